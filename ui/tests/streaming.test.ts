import { expect, it } from "vitest";
import { emptySplit, extendSplit, tailInterval } from "../src/markdown/blocks";
import { patchChildren } from "../src/markdown/patch";
import { renderHtml, unsafeHtml } from "../src/markdown/render";
import { ReplyView } from "../src/markdown/view";
import { randomFrom } from "./random";

/** A busy machine may need this long; a hang is longer. */
const slowMs = 60_000;

/** Pieces of which random replies are made: whatever opens, closes or continues a block. */
const pieces = [
  "word ",
  "two words\n",
  "\n",
  "\n\n",
  "# Head\n",
  "#",
  "---\n",
  "===\n",
  "- item\n",
  "- item\n\n",
  "  more of it\n",
  "    indented\n",
  "1. one\n",
  "2) two\n",
  "> quote\n",
  ">\n",
  "```\n",
  "```rust\nfn a() {}\n",
  "  ```\n",
  "````\n",
  "~~~\n",
  "| a | b |\n",
  "| - | -: |\n",
  "| 1 | 2 |\n",
  "**bold** `code` ",
  "[link](https://example.com) ",
  "[ref]: https://example.com\n",
  "[ref]\n",
  "<div>\n",
  "\t- tab\n",
  "* * *\n",
  "+ plus\n",
  "\\\n",
  "…🙂é\n",
  "$x^2$ ",
  "$5 and $10 ",
  "$$\n",
  "$$ a = b $$\n",
  "\\[\n",
  "\\]\n",
  "\\(a\\)\n",
];

function randomReply(seed: number): string[] {
  const random = randomFrom(seed);
  const count = 1 + random(24);
  return Array.from({ length: count }, () => pieces[random(pieces.length)] ?? "");
}

/** Streams a reply into a view, cut into chunks that ignore the pieces. */
function streamed(text: string, seed: number): HTMLElement {
  const random = randomFrom(seed);
  const root = document.createElement("div");
  const view = new ReplyView(root);
  let end = 0;
  while (end < text.length) {
    end = Math.min(text.length, end + 1 + random(40));
    view.update(text.slice(0, end), "live");
  }
  view.update(text, "done");
  return root;
}

/** White space between blocks is not drawn. */
function drawn(html: string): string {
  return html.replace(/\n+(?=<)/g, "").replace(/(?<=>)\n+/g, "").trim();
}

it("finished blocks and tail render to what the whole renders to", () => {
  for (let seed = 0; seed < 800; seed += 1) {
    const text = randomReply(seed).join("");
    let split = emptySplit;
    for (let end = 0; end <= text.length; end += 1) split = extendSplit(split, text.slice(0, end));
    const sources = split.finished.map((block) => block.source);
    const parts = [...sources, text.slice(split.tailStart)];
    const joined = parts.map((source) => unsafeHtml(source, "done")).join("");
    expect(joined, JSON.stringify(text)).toBe(unsafeHtml(text, "done"));
  }
}, slowMs);

it("a streamed reply looks like one that came at once", () => {
  for (let seed = 0; seed < 40; seed += 1) {
    const text = randomReply(seed).join("");
    const root = streamed(text, seed);
    const joined = [...root.children].map((block) => block.innerHTML).join("");
    expect(drawn(joined), JSON.stringify(text)).toBe(drawn(renderHtml(text)));
  }
}, slowMs);

it("the split is the same however the text arrives, and loses nothing", () => {
  for (let seed = 0; seed < 300; seed += 1) {
    const text = randomReply(seed).join("");
    let split = emptySplit;
    for (let end = 0; end <= text.length; end += 1) split = extendSplit(split, text.slice(0, end));
    const sources = split.finished.map((block) => block.source).join("");
    expect(sources + text.slice(split.tailStart)).toBe(text);
  }
});

it("a finished block is never touched again", () => {
  const root = document.createElement("div");
  const view = new ReplyView(root);
  const text = "First *one*.\n\n## Second\n\nThird is the longest of them.\n\nFourth";
  view.update("First *one*.\n\n## Second\n\n", "live");
  const first = root.querySelector("em");
  const words = first?.firstChild;
  for (let end = 30; end <= text.length; end += 1) view.update(text.slice(0, end), "live");
  view.update(text, "done");
  expect(root.querySelector("em")).toBe(first);
  expect(first?.firstChild).toBe(words);
  // The last line is not complete, so the fourth may still turn out to belong to the third.
  expect(root.children).toHaveLength(3);
});

it("the cost of a frame does not grow with the reply", () => {
  const paragraph = "A sentence of some words, as they come.\n\n";
  const root = document.createElement("div");
  const view = new ReplyView(root);
  for (let count = 1; count <= 60; count += 1) {
    view.update(paragraph.repeat(count), "live");
    expect(view.tailLength).toBeLessThanOrEqual(paragraph.length);
  }
}, slowMs);

it("a selection in the part that grows is kept", () => {
  const root = document.createElement("div");
  document.body.append(root);
  const view = new ReplyView(root);
  view.update("The quick brown", "live");
  const node = root.querySelector("p")?.firstChild as Text;
  const selection = getSelection() as Selection;
  selection.setBaseAndExtent(node, 4, node, 9);
  const text = "The quick brown fox **jumps** over.\n\nAnd then it rests.\n\nFor long.";
  for (let end = 16; end <= text.length; end += 1) {
    view.update(text.slice(0, end), "live");
    expect(selection.toString()).toBe("quick");
  }
  view.update(text, "done");
  expect(selection.toString()).toBe("quick");
  root.remove();
});

it("a reply that is not a continuation is drawn afresh", () => {
  const root = document.createElement("div");
  const view = new ReplyView(root);
  view.update("One.\n\nTwo.\n\nThree", "live");
  view.update("Other", "done");
  expect(root.textContent?.trim()).toBe("Other");
});

it("patching makes equal trees", () => {
  const random = randomFrom(7);
  let html = "";
  const root = document.createElement("div");
  for (let round = 0; round < 60; round += 1) {
    const next = renderHtml(randomReply(random(10_000)).join(""));
    const template = document.createElement("template");
    template.innerHTML = next;
    patchChildren(root, template.content);
    expect(root.innerHTML, `from ${html}`).toBe(next);
    html = next;
  }
}, slowMs);

it("long tails are drawn less often, but within half a second", () => {
  expect(tailInterval(100)).toBe(0);
  expect(tailInterval(4_000)).toBe(0);
  expect(tailInterval(16_000)).toBe(200);
  expect(tailInterval(1_000_000)).toBe(400);
});

it("no rule reaches for any neighbour at all, or a whole reply is styled anew when one goes", () => {
  const sources = import.meta.glob<string>("../src/**/*.{css,svelte}", {
    query: "?raw",
    import: "default",
    eager: true,
  });
  expect(Object.keys(sources).length).toBeGreaterThan(40);
  for (const [name, source] of Object.entries(sources)) {
    const style = name.endsWith(".css") ? source : source.slice(source.lastIndexOf("<style"));
    const rules = style.replace(/\/\*[\s\S]*?\*\//g, "");
    expect(rules, name).not.toMatch(/[+~]\s*(\*|:global\(\*\)|:not)/);
  }
});

it("long code that grows touches its last part only, and loses no character", () => {
  const root = document.createElement("div");
  const view = new ReplyView(root);
  const code = (lines: number): string =>
    Array.from({ length: lines }, (_, line) => (line % 7 === 0 ? "" : `let line_${line} = <b>${line}</b>;`)).join("\n");
  view.update("```rust\n" + code(900), "live");
  const first = root.querySelector(".code-part");
  const texts = (): string[] => [...root.querySelectorAll(".code-part")].map((part) => part.textContent);
  const before = texts();
  expect(before.length).toBe(9);
  let touched = 0;
  const observer = new MutationObserver((records) => {
    touched += records.filter((record) => first?.contains(record.target)).length;
  });
  observer.observe(root, { subtree: true, childList: true, characterData: true });
  for (const lines of [910, 1_000, 1_001, 1_250]) {
    view.update("```rust\n" + code(lines), "live");
    expect(root.querySelector("code")?.textContent).toBe(code(lines));
    expect(root.querySelector(".code-part")).toBe(first);
  }
  touched += observer.takeRecords().filter((record) => first?.contains(record.target)).length;
  observer.disconnect();
  expect(touched).toBe(0);
  expect(texts().slice(0, 8)).toEqual(before.slice(0, 8));
});
