/** A reply in its parts, while it grows and afterwards: what was thought, and what was said. */
import type { Message, MessagePart } from "../platform/bindings";

/** Goes on with the last part if it is of this kind, else begins another. */
export function withWords(parts: MessagePart[], kind: MessagePart["kind"], text: string): MessagePart[] {
  if (text === "") return parts;
  const last = parts.at(-1);
  // Thoughts whose time is told have ended.
  if (last?.kind === kind && last.ms === null) {
    return [...parts.slice(0, -1), { ...last, text: last.text + text }];
  }
  return [...parts, { kind, text, ms: null }];
}

/** The thoughts that were written last took so long. */
export function thoughtFor(parts: MessagePart[], ms: number): MessagePart[] {
  const index = parts.findLastIndex((part) => part.kind === "thinking");
  return parts.map((part, i) => (i === index ? { ...part, ms } : part));
}

/** The text since the last thoughts was thought, too: its end came without a beginning. */
export function textWasThought(parts: MessagePart[]): MessagePart[] {
  const last = parts.at(-1);
  if (last?.kind !== "text") return parts;
  return [...parts.slice(0, -1), { kind: "thinking", text: last.text.trim(), ms: null }];
}

/** What was said, without what was thought. */
export function answerOf(parts: MessagePart[]): string {
  return parts
    .filter((part) => part.kind === "text")
    .map((part) => part.text)
    .join("");
}

/** A message in its parts, also one that is nothing but an answer. */
export function partsOf(message: Pick<Message, "text" | "parts">): MessagePart[] {
  if (message.parts.length > 0) return message.parts;
  return message.text === "" ? [] : [{ kind: "text", text: message.text, ms: null }];
}

/** The first `units` of all that is shown: what was there before a turn that goes on with it. */
export function beginning(parts: MessagePart[], units: number): MessagePart[] {
  const kept: MessagePart[] = [];
  let left = units;
  for (const part of parts) {
    if (left <= 0) break;
    kept.push(part.text.length <= left ? part : { ...part, text: part.text.slice(0, left) });
    left -= part.text.length;
  }
  return kept;
}

/** One after the other; words of one kind that meet become one part. */
export function joined(before: MessagePart[], after: MessagePart[]): MessagePart[] {
  const [first, ...rest] = after;
  if (!first) return before;
  const last = before.at(-1);
  if (!last || last.kind !== first.kind || last.ms !== null) return [...before, ...after];
  const met: MessagePart = { ...first, text: last.text + first.text };
  return [...before.slice(0, -1), met, ...rest];
}
