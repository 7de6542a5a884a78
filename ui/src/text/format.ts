/** Numbers and states in words. */
import type { MessageState, ReplyRecord } from "../platform/bindings";

const separator = " · ";

/** "98 MB": decimal units, as file managers show them. */
export function fileSize(bytes: number): string {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit >= 3 && value < 100 ? 1 : 0;
  return `${value.toFixed(digits)} ${units[unit]}`;
}

/** "1,204": grouped by thousands, the same on every machine. */
export function grouped(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ",");
}

/** "0.3 s", "12 s", "2 min 5 s". */
export function duration(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  const rest = whole % 60;
  return rest === 0 ? `${Math.floor(whole / 60)} min` : `${Math.floor(whole / 60)} min ${rest} s`;
}

/** "48 per second"; slow ones with a decimal. */
export function perSecond(tokens: number, milliseconds: number): string | null {
  if (tokens < 1 || milliseconds <= 0) return null;
  const rate = (tokens * 1000) / milliseconds;
  return `${rate < 10 ? rate.toFixed(1) : grouped(rate)} per second`;
}

const endings: Record<Exclude<MessageState, "writing">, string> = {
  finished: "finished",
  stopped: "stopped by you",
  length: "length limit",
  "context-full": "context full",
  interrupted: "interrupted",
  failed: "failed",
  edited: "changed by you",
};

/** How a reply ended, as the quiet line says it. */
export function ending(state: MessageState): string {
  return state === "writing" ? "being written" : endings[state];
}

/** "1 token", "212 tokens". */
export function tokens(count: number): string {
  return count === 1 ? "1 token" : `${grouped(count)} tokens`;
}

/** The quiet line under a reply. */
export function statsLine(record: ReplyRecord | null, state: MessageState): string {
  if (!record) return ending(state);
  const parts: (string | null)[] = [
    record.model,
    record.proof === "" ? record.backend : `${record.backend}, proven`,
    tokens(record.generatedTokens),
    perSecond(record.generatedTokens, record.decodeMs),
    record.firstTokenMs === null ? null : `first after ${duration(record.firstTokenMs)}`,
    ending(state),
  ];
  return parts.filter((part) => part !== null && part !== "").join(separator);
}
