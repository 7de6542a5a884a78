/**
 * Splits a growing reply into finished blocks and a tail, so that a frame renders the tail only.
 *
 * A block is finished as soon as another block of the outermost level has begun on a line that is
 * complete: Markdown is read line by line, so nothing that comes later can change what is before
 * it (link definitions, the one exception, are switched off in the renderer).
 */
import { blockStarts } from "./render";

/** A piece of the source that renders by itself. */
export interface Block {
  /** Where it begins; also its identity. */
  start: number;
  source: string;
}

/** What is finished, and where the tail begins. */
export interface Split {
  finished: Block[];
  tailStart: number;
}

/** Nothing yet. */
export const emptySplit: Split = { finished: [], tailStart: 0 };

/** Goes on from an earlier split of a beginning of `text`. */
export function extendSplit(split: Split, text: string): Split {
  const tail = text.slice(split.tailStart);
  // A line that still grows can turn out to be something else.
  const whole = tail.slice(0, tail.lastIndexOf("\n") + 1);
  if (whole === "") return split;
  const starts = blockStarts(whole);
  if (starts.length < 2) return split;

  const offsets = lineOffsets(whole);
  const finished = [...split.finished];
  for (const [index, line] of starts.slice(0, -1).entries()) {
    // What stands before the first block (blank lines) belongs to it.
    const from = index === 0 ? 0 : (offsets[line] ?? 0);
    const to = offsets[starts[index + 1] ?? 0] ?? whole.length;
    finished.push({ start: split.tailStart + from, source: whole.slice(from, to) });
  }
  const last = offsets[starts.at(-1) ?? 0] ?? 0;
  return { finished, tailStart: split.tailStart + last };
}

function lineOffsets(text: string): number[] {
  const offsets = [0];
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) {
    offsets.push(at + 1);
  }
  return offsets;
}

/** A tail up to this size is rendered every frame. */
const everyFrameChars = 4_000;

/** How much longer to wait, per character beyond that. */
const waitPerCharMs = 1 / 60;

/** No reader should wait longer than this for what is written. */
const waitMaxMs = 400;

/**
 * Milliseconds between two renderings of a tail. Its cost grows with its length, so a long table
 * or code block is drawn more seldom and the share of time stays the same.
 */
export function tailInterval(tailLength: number): number {
  return Math.min(waitMaxMs, Math.max(0, (tailLength - everyFrameChars) * waitPerCharMs));
}
