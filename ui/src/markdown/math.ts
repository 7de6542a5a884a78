/**
 * Where formulas are in Markdown: `$…$`, `$$…$$`, `\(…\)` and `\[…\]`. Prices, shell variables and
 * other dollars stay what they are: between single dollars there has to be something that looks
 * like mathematics. What is found is put into the page as its source; `formulas.ts` draws it.
 */
import type { MarkdownIt } from "markdown-it";

/** How a formula stands. */
export type MathStyle = "inline" | "display";

/** The class of an element that holds the source of a formula, and those of its two styles. */
export const mathClass = "math";

/** Longer sources stay text: no formula is so long, and setting it would cost more than a frame. */
export const formulaCharsMax = 4_000;

/** Names that are words of mathematics although they have several letters. */
const functionNames = new Set(
  (
    "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh exp log ln lg lim max min sup inf " +
    "det dim ker deg gcd lcm mod arg mean var cov rank tr diag sgn erf softmax argmax argmin"
  ).split(" "),
);

/** Words of more letters than this are prose, a price's or a variable's. */
const variableLettersMax = 2;

/** Whether what stands between two single dollars is a formula. */
export function looksLikeMath(source: string): boolean {
  // A command (\frac), an index or a power are in no price.
  if (/\\[a-zA-Z]+|\\[{}|,;!]/.test(source)) return true;
  if (/^-?\d[\d.,\s]*$/.test(source)) return true;
  const words = source.match(/\p{L}+/gu) ?? [];
  const isSymbol = (word: string): boolean =>
    word.length <= variableLettersMax || functionNames.has(word);
  if (!words.every(isSymbol)) return false;
  if (/[\^_=<>+*/|]/.test(source)) return true;
  // What is left has to be short: "x", "f(x)", "n-1", "(a, b)"; words side by side are prose.
  if (/[\p{L}\d]\s+[\p{L}\d]/u.test(source)) return false;
  return words.length > 0 && words.length <= 3 && /^[\p{L}\d\s()[\],.'′:!-]+$/u.test(source);
}

/** The source between dollars that begin at `from`, and where it ends; null if there is none. */
function betweenDollars(text: string, from: number): { source: string; end: number } | null {
  const next = text[from + 1];
  // Nothing opens before white space, nor after a letter or a digit ("US$", "a$b").
  if (next === undefined || /\s/.test(next)) return null;
  if (from > 0 && /[\p{L}\d$\\]/u.test(text[from - 1] ?? "")) return null;
  for (let at = from + 1; at < text.length && at - from <= formulaCharsMax; at += 1) {
    const c = text[at];
    if (c === "\n") return null;
    if (c === "\\") {
      at += 1;
      continue;
    }
    if (c !== "$") continue;
    const before = text[at - 1] ?? " ";
    const after = text[at + 1] ?? " ";
    // The first dollar that could close decides: "$5 and $10" has none that can.
    if (/\s/.test(before) || /[\p{L}\d{($]/u.test(after)) return null;
    const source = text.slice(from + 1, at);
    return source !== "" && looksLikeMath(source) ? { source, end: at + 1 } : null;
  }
  return null;
}

/** The source between an opening and a closing mark; null without the latter. */
function betweenMarks(text: string, from: number, close: string): { source: string; end: number } | null {
  const start = from + 2;
  const end = text.indexOf(close, start);
  if (end === -1 || end - start > formulaCharsMax) return null;
  const source = text.slice(start, end);
  return source.trim() === "" ? null : { source, end: end + close.length };
}

const displayMarks: Record<string, string> = { $$: "$$", "\\[": "\\]" };
const inlineMarks: Record<string, string> = { "\\(": "\\)" };

function formulaAt(text: string, at: number): { source: string; end: number; style: MathStyle } | null {
  const mark = text.slice(at, at + 2);
  const display = displayMarks[mark];
  if (display !== undefined) {
    const found = betweenMarks(text, at, display);
    return found && { ...found, style: "display" };
  }
  const inline = inlineMarks[mark];
  const found = inline === undefined ? null : betweenMarks(text, at, inline);
  if (found) return { ...found, style: "inline" };
  const dollars = mark.startsWith("$") ? betweenDollars(text, at) : null;
  return dollars && { ...dollars, style: "inline" };
}

/** The lines of a display formula that begins a block, and what is in them. */
interface MathBlock {
  source: string;
  /** The line after the last. */
  end: number;
  /** A formula without its end stays text. */
  closed: boolean;
}

/**
 * A block goes on to the line that closes it, or to the first blank line: no formula has one. So
 * what comes later never changes a block that is finished.
 */
function blockAt(lines: (line: number) => string | null, first: number, last: number): MathBlock | null {
  const opening = lines(first) ?? "";
  const close = displayMarks[opening.slice(0, 2)];
  if (close === undefined) return null;
  const rest = opening.slice(2);
  const closesAt = rest.indexOf(close);
  if (closesAt !== -1) {
    // Words after the formula make the line a paragraph.
    if (rest.slice(closesAt + 2).trim() !== "") return null;
    return { source: rest.slice(0, closesAt), end: first + 1, closed: true };
  }
  const source = [rest];
  for (let line = first + 1; line < last; line += 1) {
    const text = lines(line);
    if (text === null || text.trim() === "") return { source: source.join("\n"), end: line, closed: false };
    if (text.trimEnd().endsWith(close)) {
      source.push(text.trimEnd().slice(0, -close.length));
      return { source: source.join("\n"), end: line + 1, closed: true };
    }
    source.push(text);
  }
  return { source: source.join("\n"), end: last, closed: false };
}

/** Teaches a parser of Markdown to find formulas. */
export function withMath(markdown: MarkdownIt): void {
  const { escapeHtml } = markdown.utils;
  markdown.inline.ruler.before("escape", "math", (state, silent) => {
    const c = state.src[state.pos];
    if (c !== "$" && c !== "\\") return false;
    const found = formulaAt(state.src, state.pos);
    if (!found || found.end > state.posMax) return false;
    if (!silent) {
      const token = state.push("math", "span", 0);
      token.content = found.source;
      token.markup = found.style;
    }
    state.pos = found.end;
    return true;
  });
  markdown.block.ruler.before(
    "fence",
    "math_block",
    (state, startLine, endLine, silent) => {
      if ((state.sCount[startLine] ?? 0) - state.blkIndent >= 4) return false;
      const lines = (line: number): string | null => {
        if ((state.sCount[line] ?? 0) < state.blkIndent) return null;
        const from = (state.bMarks[line] ?? 0) + (state.tShift[line] ?? 0);
        return state.src.slice(from, state.eMarks[line]);
      };
      const block = blockAt(lines, startLine, endLine);
      if (!block) return false;
      if (silent) return true;
      const isFormula = block.closed && block.source.trim() !== "" && block.source.length <= formulaCharsMax;
      const token = state.push("math_block", "p", 0);
      token.block = true;
      token.map = [startLine, block.end];
      token.content = isFormula
        ? block.source
        : state.getLines(startLine, block.end, state.blkIndent, false);
      token.markup = isFormula ? "display" : "";
      state.line = block.end;
      return true;
    },
    { alt: ["paragraph", "reference", "blockquote", "list"] },
  );
  const formula = (source: string, style: string): string =>
    `<span class="${mathClass} math-${style}" dir="ltr">${escapeHtml(source.trim())}</span>`;
  markdown.renderer.rules["math"] = (tokens, index) => {
    const token = tokens[index];
    return token ? formula(token.content, token.markup) : "";
  };
  markdown.renderer.rules["math_block"] = (tokens, index) => {
    const token = tokens[index];
    if (!token) return "";
    if (token.markup === "display") return `<p>${formula(token.content, "display")}</p>\n`;
    return `<p class="plain">${escapeHtml(token.content)}</p>\n`;
  };
}
