/** What is said around a reply: its thoughts, what it repeats, its record, its replay. */
import type { MessageState, ReplayEvent, ReplyRecord } from "../platform/bindings";
import { counted, duration, ending, grouped, joined, perSecond, plain, tokens } from "./format";
import { type Key, t } from "./words.svelte";

/** Over thoughts: "Thinking…", "Thought for 4.2 s". */
export function thinkingLine(ms: number | null, running: boolean): string {
  if (running) return t("reply.thinking");
  return ms === null ? t("reply.thoughts") : t("reply.thoughtFor", { time: duration(ms) });
}

/** Said once of a reply that goes round in a circle. */
export function repeatsLine(repeats: { blockTokens: number; copies: number }): string {
  const times = grouped(repeats.copies + 1);
  if (repeats.blockTokens === 1) return t("reply.repeatsToken", { times });
  return t("reply.repeats", { tokens: tokens(repeats.blockTokens), times });
}

/** One row of the full record. */
export interface RecordRow {
  name: string;
  value: string;
  /** Long ones, which are read letter by letter. */
  mono?: boolean;
}

/** The full record of a reply. What records of earlier versions do not say has no row. */
export function recordRows(record: ReplyRecord, state: MessageState, fileHash: string | null): RecordRow[] {
  const reading = perSecond(record.promptTokens - record.cachedTokens, record.prefillMs);
  const writing = perSecond(record.generatedTokens, record.decodeMs);
  const thought = record.thinkingMs.reduce((sum, ms) => sum + ms, 0);
  const { firstTokenMs, cachedTokens } = record;
  const rows: (RecordRow | null)[] = [
    always("record.model", joined([record.model, record.quantization])),
    row("record.file", fileHash ?? "", true),
    always("record.computedBy", joined([record.backend, record.device, record.backendReason])),
    row("record.proof", record.proof),
    row("record.moved", record.moved ?? ""),
    row("record.kv", record.kv),
    row("record.engine", record.version === "" ? "" : t("record.engineVersion", { version: record.version })),
    row("record.template", record.templateSha256, true),
    always(
      "record.context",
      joined([
        tokens(record.promptTokens),
        cachedTokens > 0 ? t("record.inMemory", { count: grouped(cachedTokens) }) : null,
        record.leftOut > 0 ? counted("record.leftOut", record.leftOut) : null,
      ]),
    ),
    row("record.contextHash", record.contextSha256, true),
    always("record.reading", joined([duration(record.prefillMs), reading])),
    always("record.writing", joined([tokens(record.generatedTokens), duration(record.decodeMs), writing])),
    row("record.thinking", thought > 0 ? duration(thought) : ""),
    always(
      "record.first",
      firstTokenMs === null ? t("record.firstNone") : t("record.firstAfter", { time: duration(firstTokenMs) }),
    ),
    always("record.ended", ending(state)),
    always("record.seed", String(record.seed)),
    always("record.sampling", samplingWords(record)),
    row("record.stop", record.stop.map((words) => JSON.stringify(words)).join(", ")),
  ];
  return rows.filter((found) => found !== null);
}

function always(key: Key, value: string): RecordRow {
  return { name: t(key), value };
}

function row(key: Key, value: string, mono = false): RecordRow | null {
  if (value === "") return null;
  return mono ? { ...always(key, value), mono } : always(key, value);
}

/** Every setting that chose the tokens, also those that are off. */
function samplingWords({ sampling }: ReplyRecord): string {
  const off = (key: Key, value: number, neutral: number): string =>
    value === neutral
      ? t("record.off", { name: t(key) })
      : t("record.value", { name: t(key), value: plain(value) });
  return joined([
    sampling.temperature === 0
      ? t("record.best")
      : t("record.temperature", { value: plain(sampling.temperature) }),
    off("record.topK", sampling.topK, 0),
    off("record.topP", sampling.topP, 1),
    off("record.minP", sampling.minP, 0),
    off("record.repeatPenalty", sampling.repeatPenalty, 1),
    off("record.presencePenalty", sampling.presencePenalty, 0),
    off("record.frequencyPenalty", sampling.frequencyPenalty, 0),
    sampling.dryMultiplier === 0
      ? t("record.dryOff")
      : t("record.dry", {
          strength: plain(sampling.dryMultiplier),
          base: plain(sampling.dryBase),
          tokens: tokens(sampling.dryAllowedLength),
        }),
    sampling.xtcProbability === 0
      ? t("record.xtcOff")
      : t("record.xtc", { share: plain(sampling.xtcProbability), threshold: plain(sampling.xtcThreshold) }),
    t("record.atMost", { tokens: tokens(sampling.maxTokens) }),
  ]);
}

/** How a replay goes, or what came out. */
export function replayLine(event: ReplayEvent): { words: string; tone: "quiet" | "same" | "differs" } {
  switch (event.kind) {
    case "hashing":
      return { words: t("replay.hashing"), tone: "quiet" };
    case "reading":
      return { words: t("replay.reading", progress(event)), tone: "quiet" };
    case "writing":
      return { words: t("replay.sameSoFar", progress(event)), tone: "quiet" };
    case "ended": {
      const { outcome } = event;
      const noted = (words: string): string =>
        "note" in outcome && outcome.note !== null ? t("replay.noted", { words, note: outcome.note }) : words;
      switch (outcome.kind) {
        case "same":
          return { words: noted(sameWords(outcome.tokens)), tone: "same" };
        case "differs": {
          const token = grouped(outcome.token);
          const values = { token, before: quoted(outcome.then), now: quoted(outcome.now) };
          return { words: noted(t("replay.differs", values)), tone: "differs" };
        }
        case "impossible":
          return { words: t("replay.impossible", { why: outcome.why }), tone: "quiet" };
        case "stopped":
          return { words: t("replay.stopped"), tone: "quiet" };
      }
    }
  }
}

function progress({ done, total }: { done: number; total: number }): { done: string; total: string } {
  return { done: grouped(done), total: tokens(total) };
}

function sameWords(count: number): string {
  return count === 1 ? t("replay.sameOne") : t("replay.same", { tokens: tokens(count) });
}

function quoted(text: string | null): string {
  return text === null ? t("replay.end") : t("replay.quoted", { text: text.replace(/\n/g, "⏎") });
}

/** Rows as text for the clipboard. */
export function rowsAsText(rows: RecordRow[]): string {
  return rows.map(({ name, value }) => t("record.row", { name, value })).join("\n");
}
