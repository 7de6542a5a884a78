/** What became of an export or an import, in words. */
import type { Exported, Imported } from "../platform/bindings";
import { grouped } from "./format";

const chats = (count: number): string => (count === 1 ? "1 chat" : `${grouped(count)} chats`);

/** "Written: 12 chats to /home/ana/all.json." */
export function exportedWords(file: Exported): string {
  return `Written: ${chats(file.conversations)} to ${file.path}.`;
}

/** "From ChatGPT: 3 chats with 41 messages. 2 parts (pictures, tools) have no place here." */
export function importedWords(taken: Imported): string {
  const messages = taken.messages === 1 ? "1 message" : `${grouped(taken.messages)} messages`;
  const words = `From ${taken.source}: ${chats(taken.conversations)} with ${messages}.`;
  if (taken.leftOut === 0) return words;
  const parts = taken.leftOut === 1 ? "1 part" : `${grouped(taken.leftOut)} parts`;
  return `${words} ${parts} (pictures, tools) had no place here.`;
}
