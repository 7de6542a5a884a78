import { afterEach, expect, it, vi } from "vitest";
import { drawFormulas, formulasDrawn } from "../src/markdown/formulas";
import { formulaCharsMax, looksLikeMath } from "../src/markdown/math";
import { patchChildren } from "../src/markdown/patch";
import { renderHtml } from "../src/markdown/render";
import { ReplyView } from "../src/markdown/view";

afterEach(() => document.body.replaceChildren());

function page(source: string): HTMLElement {
  const root = document.createElement("div");
  root.innerHTML = renderHtml(source);
  document.body.append(root);
  return root;
}

/** The sources of the formulas that are found, in order. */
function formulas(source: string): string[] {
  return [...page(source).querySelectorAll(".math")].map((element) => element.textContent);
}

const prose: [string, string][] = [
  ["two prices", "It costs $5 and $10."],
  ["a range of prices", "between $5-$10 a day, or $1,000/month"],
  ["a price at both ends", "$5 to 10$ and 20$"],
  ["prices in words", "pay $5, or US$6, or 7$, or A$8"],
  ["a price in bold", "**$19.99** instead of **$25**"],
  ["shell variables", "run $HOME/bin with $PATH and $USER"],
  ["shell variables side by side", "echo $A$B; echo ${HOME}/${USER} ${A}${B}"],
  ["a command substitution", "files=$(ls) and n=$((n+1)) or $?"],
  ["positional parameters", "awk '{print $1}' | sort -k$2 and $@ $#"],
  ["an amount of millions", "$3 million of $40 billion"],
  ["a variable of PHP", "$user->name and $this->x = $y;"],
  ["a template", "Hello ${name}, you owe ${amount}."],
  ["a lonely dollar", "a $ sign, and another $ sign"],
  ["an escaped dollar", "\\$5 and \\$x^2\\$"],
  ["dollars in code", "`$x^2$` and `$5`"],
  ["a fence", "```sh\necho $x^2$ $$ \\(a\\)\n```"],
  ["brackets without a backslash", "(a) [b] and f(x) = [1]"],
  ["an opening without an end", "$x^2 and \\(y and $$z"],
  ["two words between dollars", "$hello world$"],
];

it.each(prose)("%s: no formula", (_name, source) => {
  expect(formulas(source)).toEqual([]);
});

const math: [string, string[]][] = [
  ["Let $x$ be $x^2 + y^2 = z^2$.", ["x", "x^2 + y^2 = z^2"]],
  ["$\\frac{a}{b}$ costs $5 and $10", ["\\frac{a}{b}"]],
  ["$a_i$, $f(x)$, $n-1$, $-3.5$ and $\\{a, b\\}$", ["a_i", "f(x)", "n-1", "-3.5", "\\{a, b\\}"]],
  ["$\\sin x + \\log n$ or $sin(x) = 1$", ["\\sin x + \\log n", "sin(x) = 1"]],
  ["inline \\(a + b\\) and \\[c\\] too", ["a + b", "c"]],
  ["$$\nE = mc^2\n$$", ["E = mc^2"]],
  ["text\n$$\n- a\n+ b\n# c\n$$\ntext", ["- a\n+ b\n# c"]],
  ["\\[\n\\begin{aligned}\na &= b \\\\\n- c\n\\end{aligned}\n\\]", ["\\begin{aligned}\na &= b \\\\\n- c\n\\end{aligned}"]],
  ["- a list\n  $$\n  x = 1\n  $$\n- more", ["x = 1"]],
  ["| a | b |\n| - | - |\n| $x^2$ | $5 |", ["x^2"]],
  ["$$a$$ and $$b$$", ["a", "b"]],
  ["$_a$ and *b* and $c_d$ and _e_", ["_a", "c_d"]],
];

it.each(math)("%j: %j", (source, found) => {
  expect(formulas(source)).toEqual(found);
});

it("the source between single dollars decides", () => {
  expect(looksLikeMath("x")).toBe(true);
  expect(looksLikeMath("5 and ")).toBe(false);
  expect(looksLikeMath("HOME")).toBe(false);
});

it("a formula is drawn with what listens can read, and nothing that loads or runs", async () => {
  const root = page("$x^2$ and $$\\sum_{i=1}^n \\sqrt{i}$$");
  drawFormulas(root);
  await formulasDrawn();
  expect(root.querySelectorAll(".katex")).toHaveLength(2);
  expect(root.querySelectorAll(".katex-display")).toHaveLength(1);
  expect(root.querySelectorAll("math annotation")).toHaveLength(2);
  expect(root.querySelectorAll("svg path").length).toBeGreaterThan(0);
  expect(root.querySelector("[href], [src], [onclick]")).toBeNull();
});

const malformed: string[] = [
  "\\frac{a",
  "{".repeat(900),
  "\\left(",
  "\\undefinedcommand{x}",
  "\\href{javascript:canary()}{x}",
  "\\url{https://example.com}",
  "\\includegraphics{https://example.com/x.png}",
  "\\htmlId{a}{b}\\htmlStyle{position:fixed}{c}",
  "\\def\\a{\\a\\a}\\a",
  "\\begin{matrix} a & b",
  "x".repeat(formulaCharsMax + 1) + "^2",
  "\\rule{999999em}{999999em}",
  "^",
];

it.each(malformed)("a formula that cannot be set stays readable: %j", async (source) => {
  const canary = vi.fn();
  Object.assign(globalThis, { canary });
  const root = page(`Before.\n\n$$\n${source}\n$$\n\nAfter.`);
  drawFormulas(root);
  await formulasDrawn();
  const words = root.textContent;
  expect(words).toContain("Before.");
  expect(words).toContain("After.");
  // Drawn or not, its source is there: as text, or as the annotation of what was drawn.
  const flat = (text: string): string => text.replace(/\s+/g, "");
  expect(flat(words)).toContain(flat(source));
  expect(root.querySelector("a, img, [href], [src], [id]")).toBeNull();
  expect(canary).not.toHaveBeenCalled();
});

it("a drawn formula is not drawn again while the reply grows", async () => {
  const root = document.createElement("div");
  document.body.append(root);
  const view = new ReplyView(root);
  view.update("So $x^2$ is", "live");
  await formulasDrawn();
  const drawn = root.querySelector(".katex");
  expect(drawn).not.toBeNull();
  view.update("So $x^2$ is the square of $x$.", "live");
  await formulasDrawn();
  expect(root.querySelector(".katex")).toBe(drawn);
  expect(root.querySelectorAll(".katex")).toHaveLength(2);
});

it("another formula in its place replaces a drawn one", async () => {
  const root = page("$x^2$");
  drawFormulas(root);
  await formulasDrawn();
  const fresh = document.createElement("template");
  fresh.innerHTML = renderHtml("$y^2$");
  patchChildren(root, fresh.content);
  expect(root.querySelector(".math")?.textContent).toBe("y^2");
});
