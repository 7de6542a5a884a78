/** What became of an export or an import, in words. */
import type { Exported, Imported } from "../platform/bindings";
import { counted } from "./format";
import { t } from "./words.svelte";

/** "Written: 12 chats to /home/ana/all.json." */
export function exportedWords(file: Exported): string {
  return t("transfer.written", { chats: counted("count.chats", file.conversations), path: file.path });
}

/** "From ChatGPT: 3 chats with 41 messages. 2 parts (pictures, tools) have no place here." */
export function importedWords(taken: Imported): string {
  const words = t("transfer.read", {
    source: taken.source,
    chats: counted("count.chats", taken.conversations),
    messages: counted("count.messages", taken.messages),
  });
  return taken.leftOut === 0 ? words : `${words} ${counted("transfer.leftOut", taken.leftOut)}`;
}
