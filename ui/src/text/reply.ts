/** What is said around a reply: its thoughts, what it repeats, its record, its replay. */
import type { MessageState, ReplayEvent, ReplyRecord } from "../platform/bindings";
import { duration, grouped, perSecond, tokens } from "./format";
import { ending } from "./format";

const separator = " · ";

function joined(parts: (string | null)[]): string {
  return parts.filter((part) => part !== null && part !== "").join(separator);
}

/** Over thoughts: "Thinking…", "Thought for 4.2 s". */
export function thinkingLine(ms: number | null, running: boolean): string {
  if (running) return "Thinking…";
  return ms === null ? "Thoughts" : `Thought for ${duration(ms)}`;
}

/** Said once of a reply that goes round in a circle. */
export function repeatsLine(repeats: { blockTokens: number; copies: number }): string {
  const block = repeats.blockTokens === 1 ? "the same token" : `the same ${tokens(repeats.blockTokens)}`;
  return `This reply repeats itself: ${block} came ${grouped(repeats.copies + 1)} times in a row.`;
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
  const rows: (RecordRow | null)[] = [
    { name: "Model", value: joined([record.model, record.quantization]) },
    row("File SHA-256", fileHash ?? "", true),
    { name: "Computed by", value: joined([record.backend, record.device, record.backendReason]) },
    row("Proof", record.proof),
    row("Moved", record.moved ?? ""),
    row("Keys and values", record.kv),
    row("Engine", record.version === "" ? "" : `Candor ${record.version}`),
    row("Template SHA-256", record.templateSha256, true),
    {
      name: "Context sent",
      value: joined([
        tokens(record.promptTokens),
        record.cachedTokens > 0 ? `${grouped(record.cachedTokens)} still in memory` : null,
        record.leftOut > 0 ? `${grouped(record.leftOut)} earlier messages left out` : null,
      ]),
    },
    row("Context SHA-256", record.contextSha256, true),
    { name: "Reading", value: joined([duration(record.prefillMs), reading]) },
    {
      name: "Writing",
      value: joined([tokens(record.generatedTokens), duration(record.decodeMs), writing]),
    },
    row("Thinking", thought > 0 ? duration(thought) : ""),
    {
      name: "First token",
      value: record.firstTokenMs === null ? "none" : `after ${duration(record.firstTokenMs)}`,
    },
    { name: "Ended", value: ending(state) },
    { name: "Seed", value: String(record.seed) },
    { name: "Sampling", value: samplingWords(record) },
    row("Stop words", record.stop.map((words) => JSON.stringify(words)).join(", ")),
  ];
  return rows.filter((found) => found !== null);
}

function row(name: string, value: string, mono = false): RecordRow | null {
  if (value === "") return null;
  return mono ? { name, value, mono } : { name, value };
}

/** Every setting that chose the tokens, also those that are off. */
function samplingWords({ sampling }: ReplyRecord): string {
  const off = (name: string, value: number, neutral: number): string =>
    value === neutral ? `${name} off` : `${name} ${value}`;
  return joined([
    sampling.temperature === 0 ? "best token always (temperature 0)" : `temperature ${sampling.temperature}`,
    off("top-k", sampling.topK, 0),
    off("top-p", sampling.topP, 1),
    off("min-p", sampling.minP, 0),
    off("repeat penalty", sampling.repeatPenalty, 1),
    off("presence penalty", sampling.presencePenalty, 0),
    off("frequency penalty", sampling.frequencyPenalty, 0),
    sampling.dryMultiplier === 0
      ? "DRY off"
      : `DRY ${sampling.dryMultiplier} (base ${sampling.dryBase}, from ${tokens(sampling.dryAllowedLength)})`,
    sampling.xtcProbability === 0
      ? "XTC off"
      : `XTC ${sampling.xtcProbability} (threshold ${sampling.xtcThreshold})`,
    `at most ${tokens(sampling.maxTokens)}`,
  ]);
}

/** How a replay goes, or what came out. */
export function replayLine(event: ReplayEvent): { words: string; tone: "quiet" | "same" | "differs" } {
  switch (event.kind) {
    case "hashing":
      return { words: "Reading the model file to know it is the same…", tone: "quiet" };
    case "reading":
      return { words: `Reading ${grouped(event.done)} of ${tokens(event.total)}`, tone: "quiet" };
    case "writing":
      return { words: `Same so far: ${grouped(event.done)} of ${tokens(event.total)}`, tone: "quiet" };
    case "ended": {
      const { outcome } = event;
      const note = "note" in outcome && outcome.note !== null ? ` ${outcome.note}` : "";
      switch (outcome.kind) {
        case "same":
          return { words: `Same: ${sameWords(outcome.tokens)}.${note}`, tone: "same" };
        case "differs": {
          const where = `Differs at token ${grouped(outcome.token)}`;
          const words = `${where}: then ${quoted(outcome.then)}, now ${quoted(outcome.now)}.${note}`;
          return { words, tone: "differs" };
        }
        case "impossible":
          return { words: `Not replayed. ${outcome.why}`, tone: "quiet" };
        case "stopped":
          return { words: "Stopped.", tone: "quiet" };
      }
    }
  }
}

function sameWords(count: number): string {
  return count === 1 ? "its 1 token came again" : `all ${tokens(count)} came again`;
}

function quoted(text: string | null): string {
  return text === null ? "the end" : `“${text.replace(/\n/g, "⏎")}”`;
}

/** Rows as text for the clipboard. */
export function rowsAsText(rows: RecordRow[]): string {
  return rows.map((found) => `${found.name}: ${found.value}`).join("\n");
}
