/** Numbers and states in words, as the language that is spoken writes them. */
import type { MessageState, ReplyRecord } from "../platform/bindings";
import { type CountedKey, type Key, t } from "./words.svelte";

/** What is there of these, side by side. */
export function joined(parts: (string | null)[]): string {
  return parts.filter((part) => part !== null && part !== "").join(" · ");
}

/** "0.8", "0,8": so many digits after the point. */
function fixed(value: number, digits: number): string {
  return value.toFixed(digits).replace(".", t("number.point"));
}

/** "0.8", "0,8": a number as it is. */
export function plain(value: number): string {
  return String(value).replace(".", t("number.point"));
}

/** "98 MB": decimal units, as file managers show them. */
export function fileSize(bytes: number): string {
  const units = [t("size.bytes"), "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit >= 3 && value < 100 ? 1 : 0;
  return `${fixed(value, digits)} ${units[unit]}`;
}

/** "1,204": grouped by thousands, the same on every machine. */
export function grouped(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, t("number.group"));
}

/** "0.3 s", "12 s", "2 min 5 s". */
export function duration(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  if (seconds < 9.95) return t("time.seconds", { count: fixed(seconds, 1) });
  if (seconds < 60) return t("time.seconds", { count: Math.round(seconds) });
  const whole = Math.round(seconds);
  const rest = whole % 60;
  const minutes = Math.floor(whole / 60);
  if (rest === 0) return t("time.minutes", { count: minutes });
  return t("time.minutesSeconds", { minutes, seconds: rest });
}

/** "48 per second"; slow ones with a decimal. */
export function perSecond(tokens: number, milliseconds: number): string | null {
  if (tokens < 1 || milliseconds <= 0) return null;
  const rate = (tokens * 1000) / milliseconds;
  return t("rate.tokens", { rate: rate < 10 ? fixed(rate, 1) : grouped(rate) });
}

const endings: Record<MessageState, Key> = {
  writing: "ending.writing",
  finished: "ending.finished",
  stopped: "ending.stopped",
  length: "ending.length",
  "context-full": "ending.contextFull",
  interrupted: "ending.interrupted",
  failed: "ending.failed",
  edited: "ending.edited",
};

/** How a reply ended, as the quiet line says it. */
export function ending(state: MessageState): string {
  return t(endings[state]);
}

/** So many of something: the words for one, or those for several. */
export function counted(key: CountedKey, count: number): string {
  return count === 1 ? t(`${key}One`) : t(key, { count: grouped(count) });
}

/** "1 token", "212 tokens". */
export function tokens(count: number): string {
  return counted("count.tokens", count);
}

/** "Ctrl+Shift+C", by the names on the keyboards of that language. */
export function keyNames(keys: string): string {
  return keys.replace("Ctrl", t("key.ctrl")).replace("Shift", t("key.shift"));
}

/** "Search chats (Ctrl+K)". */
export function withKeys(words: string, keys: string): string {
  return t("key.with", { words, keys: keyNames(keys) });
}

/** The quiet line under a reply. */
export function statsLine(record: ReplyRecord | null, state: MessageState): string {
  if (!record) return ending(state);
  const { backend, firstTokenMs } = record;
  return joined([
    record.model,
    record.proof === "" ? backend : t("reply.proven", { backend }),
    tokens(record.generatedTokens),
    perSecond(record.generatedTokens, record.decodeMs),
    firstTokenMs === null ? null : t("reply.firstAfter", { time: duration(firstTokenMs) }),
    ending(state),
  ]);
}
