import { expect, it } from "vitest";
import type { MessageState } from "../src/platform/bindings";
import { duration, fileSize, grouped, perSecond, statsLine } from "../src/text/format";
import { recordRows } from "../src/text/reply";
import { completeSentences, lastSentences } from "../src/text/sentences";
import { followsAfterScroll, isAtEnd } from "../src/views/follow";
import { numberFrom, seedField, threadsField } from "../src/views/settings";
import { record } from "./make";

it.each([
  [0, "0 bytes"],
  [999, "999 bytes"],
  [98_300_000, "98 MB"],
  [4_661_216_384, "4.7 GB"],
])("%d bytes are %s", (bytes, words) => expect(fileSize(bytes)).toBe(words));

it.each([
  [320, "0.3 s"],
  [9_940, "9.9 s"],
  [9_960, "10 s"],
  [59_400, "59 s"],
  [120_000, "2 min"],
  [125_000, "2 min 5 s"],
])("%d ms are %s", (ms, words) => expect(duration(ms)).toBe(words));

it.each([
  [999, "999"],
  [1_204, "1,204"],
  [1_048_576, "1,048,576"],
])("%d is %s", (value, words) => expect(grouped(value)).toBe(words));

it.each([
  [212, 4416.7, "48 per second"],
  [3, 1000, "3.0 per second"],
  [0, 1000, null],
  [5, 0, null],
])("%d tokens in %d ms are %s", (count, ms, words) => expect(perSecond(count, ms)).toBe(words));

const endings: [MessageState, string][] = [
  ["finished", "finished"],
  ["stopped", "stopped by you"],
  ["length", "length limit"],
  ["context-full", "context full"],
  ["interrupted", "interrupted"],
];
it.each(endings)("a reply that is %s says so", (state, words) => {
  expect(statsLine(record, state)).toBe(
    `SmolLM2 · CPU · 212 tokens · 48 per second · first after 0.3 s · ${words}`,
  );
  expect(statsLine(null, state)).toBe(words);
});

it("a reply of a proven GPU says so, and so does its record", () => {
  const gpu = { ...record, backend: "GPU", device: "RTX 4090", proof: "on 65 positions" };
  expect(statsLine(gpu, "finished")).toContain("SmolLM2 · GPU, proven · 212 tokens");
  const rows = recordRows(gpu, "finished", null).filter((row) => row.name === "Proof");
  expect(rows).toEqual([{ name: "Proof", value: "on 65 positions" }]);
});

it("a reply of which little is known leaves out what is not known", () => {
  const bare = { ...record, generatedTokens: 1, decodeMs: 0, firstTokenMs: null };
  expect(statsLine(bare, "stopped")).toBe("SmolLM2 · CPU · 1 token · stopped by you");
});

it("the full record names seed and sampling", () => {
  const rows = Object.fromEntries(recordRows(record, "finished", "ef56").map((r) => [r.name, r.value]));
  expect(rows["Seed"]).toBe("42");
  expect(rows["Context sent"]).toBe("38 tokens · 12 still in memory");
  expect(rows["Context SHA-256"]).toBe("cd34");
  expect(rows["Model"]).toBe("SmolLM2 · Q4_1");
  expect(rows["File SHA-256"]).toBe("ef56");
  expect(rows["Engine"]).toBe("Candor 0.1.0");
  expect(rows["Template SHA-256"]).toBe("ab12");
  expect(rows["Reading"]).toBe("0.3 s · 100 per second");
  expect(rows["Sampling"]).toContain("temperature 0.7");
  for (const name of ["top-k", "top-p", "min-p", "repeat penalty", "presence penalty", "frequency penalty", "DRY", "XTC", "at most"]) {
    expect(rows["Sampling"], name).toContain(name);
  }
  expect(rows["Keys and values"]).toBe("16 bits");
  const earlier = recordRows(
    { ...record, kv: "", version: "", templateSha256: "", contextSha256: "" },
    "finished",
    null,
  ).map((row) => row.name);
  for (const name of ["Keys and values", "Engine", "Template SHA-256", "Context SHA-256", "File SHA-256"]) {
    expect(earlier).not.toContain(name);
  }
});

const spoken: [string, string, string[]][] = [
  ["whole sentences only", "One. Two! Thr", ["One.", "Two!"]],
  ["no number is cut", "Pi is 3.14 or so. ", ["Pi is 3.14 or so."]],
  ["marks of Markdown are not read", "## Head\n**Bold** and `code`.\n", ["Head", "Bold and code."]],
  ["a link is its words", "See [here](https://example.com). ", ["See here."]],
  ["code is counted", "Look:\n```rust\nfn a() {}\nfn b() {}\n```\nDone.\n", [
    "Look:",
    "Code, rust, 2 lines.",
    "Done.",
  ]],
  ["open code is not read", "Look:\n```rust\nfn a() {}. \n", ["Look:"]],
  ["rules and rows are silent", "---\n| --- | --- |\n", []],
];
it.each(spoken)("listening: %s", (_name, text, sentences) => {
  expect(completeSentences(text, 0).sentences).toEqual(sentences);
});

it("nothing is said twice however the text arrives", () => {
  const text = "One. Two is **longer**, 3.5 words.\n\n```py\nprint(1)\n```\n\n- Three\n- Four. And fi";
  const whole = lastSentences(text, 0);
  for (let step = 1; step < 9; step += 1) {
    const said: string[] = [];
    let taken = 0;
    for (let end = 0; end <= text.length; end += step) {
      const now = completeSentences(text.slice(0, end), taken);
      taken = now.taken;
      said.push(...now.sentences);
    }
    said.push(...lastSentences(text, taken));
    expect(said).toEqual(whole);
  }
});

const at = (top: number, contentHeight = 1000, viewHeight = 400) => ({
  top,
  contentHeight,
  viewHeight,
});
const scrolls: [string, Parameters<typeof followsAfterScroll>, string][] = [
  ["a small move up frees the view", [at(600), at(590), "following"], "free"],
  ["a return to the end takes it along", [at(300), at(590), "free"], "following"],
  ["a move down that ends short does not", [at(300), at(400), "free"], "free"],
  ["growing text does not free it", [at(600), at(600, 1200), "following"], "following"],
  ["shrinking text does not free it", [at(600), at(500, 900), "following"], "following"],
  ["a lower window does not free it", [at(600), at(580, 1000, 420), "following"], "following"],
  ["text that grows does not catch a free reader", [at(200), at(200, 900), "free"], "free"],
];
it.each(scrolls)("scrolling: %s", (_name, args, result) => {
  expect(followsAfterScroll(...args)).toBe(result);
});

it("near the end is at the end", () => {
  expect(isAtEnd(at(570))).toBe(true);
  expect(isAtEnd(at(500))).toBe(false);
});

it.each([
  ["", threadsField, null],
  ["abc", threadsField, null],
  ["4", threadsField, 4],
  ["4.6", threadsField, 5],
  ["0", threadsField, 1],
  ["99999999999", seedField, 4_294_967_295],
])("%j becomes a number that is allowed", (words, field, value) => {
  expect(numberFrom(words, field)).toBe(value);
});
