/** Scripted replies as the program would tell them: thoughts apart from words. */
import type { Message, MessagePart, ReplayEvent, TurnEvent } from "../bindings";
import type { ReplayReader } from "../types";

const open = "<think>";
const close = "</think>";

/** How long a scripted thought takes. */
export const thinkingMs = 4_200;

/** A scripted reply in its parts. One pair of marks at its start is all that scripts have. */
export function scriptedParts(text: string): MessagePart[] {
  if (!text.startsWith(open)) return [];
  const [thought = "", ...said] = text.slice(open.length).split(close);
  const thinking: MessagePart = { kind: "thinking", text: thought.trim(), ms: thinkingMs };
  const words = said.join(close).trimStart();
  return words === "" ? [thinking] : [thinking, { kind: "text", text: words, ms: null }];
}

/** What was said of it. */
export function scriptedAnswer(text: string): string {
  const parts = scriptedParts(text);
  return parts.length === 0 ? text : (parts.find((part) => part.kind === "text")?.text ?? "");
}

/** What the piece tells that comes after `before`, as the words so far go. */
export function scriptedEvents(before: string, piece: string, tokens: number): TurnEvent[] {
  const whole = before + piece;
  const [then, now] = [scriptedParts(before), scriptedParts(whole)];
  if (now.length === 0) return [{ kind: "text", text: piece, tokens }];
  const added = (index: number): string =>
    (now[index]?.text ?? "").slice((then[index]?.text ?? "").length);
  const events: TurnEvent[] = [{ kind: "thinking", text: added(0), tokens }];
  if (whole.includes(close) && !before.includes(close)) events.push({ kind: "thought", ms: thinkingMs });
  if (now.length > 1) events.push({ kind: "text", text: added(1), tokens });
  return events;
}

/** A stored message with what every message has. */
export function message(fields: Pick<Message, "id" | "role" | "text"> & Partial<Message>): Message {
  const isReply = fields.role === "assistant";
  return {
    state: "finished",
    turn: null,
    record: null,
    parts: isReply ? scriptedParts(fields.text) : [],
    versions: [],
    kept: 0,
    cards: [],
    ...fields,
    text: isReply ? scriptedAnswer(fields.text) : fields.text,
  };
}

/** The hash of the scripted model file. */
export const scriptedHash = "5fc4b1a3e0d27c6f98a41b0e6d3c2f7518e9a06bd4c3f2e17a8b5c9d0e1f2a3b";

const replayStepMs = 120;
const replaySteps = 12;

/** Replays that run. */
export class ScriptedReplays {
  readonly #running = new Map<number, { reader: ReplayReader; timer: ReturnType<typeof setTimeout> }>();

  begin(message: number, tokens: number, outcome: Extract<ReplayEvent, { kind: "ended" }>, reader: ReplayReader): void {
    let step = 0;
    reader({ kind: "hashing" });
    const tell = (): void => {
      step += 1;
      if (step > replaySteps) {
        this.#running.delete(message);
        reader(outcome);
        return;
      }
      reader({ kind: "writing", done: Math.round((tokens * step) / replaySteps), total: tokens });
      this.#running.set(message, { reader, timer: setTimeout(tell, replayStepMs) });
    };
    this.#running.set(message, { reader, timer: setTimeout(tell, replayStepMs) });
  }

  stop(message: number): void {
    const running = this.#running.get(message);
    if (!running) return;
    clearTimeout(running.timer);
    this.#running.delete(message);
    running.reader({ kind: "ended", outcome: { kind: "stopped" } });
  }
}
