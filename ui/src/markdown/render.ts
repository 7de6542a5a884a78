/**
 * A reply as HTML. Model text is hostile: HTML in it stays text, only a short list of elements and
 * attributes survives, nothing is ever fetched, and no element can navigate.
 */
import DOMPurify from "dompurify";
import MarkdownIt from "markdown-it";
import { t } from "../text/words.svelte";
import { type Growth, highlighted } from "./highlight";
import { withMath } from "./math";

/** Past this, one block is shown as plain text: parsing it would cost more than a frame. */
const blockCharsMax = 500_000;

/**
 * More marks of one kind in one block than this, and it is shown as plain text: each limit costs a
 * busy machine about a tenth of a second. No person writes so many; a table of 500 rows has fewer.
 */
const marksMax: [RegExp, number][] = [
  [/[*_~]/g, 4_000],
  [/`/g, 4_000],
  [/\$/g, 1_000],
  [/\|/g, 3_000],
  [/:\/\//g, 1_500],
];

/** Shorter blocks cannot have too many. */
const denseCharsMin = 1_000;

/** Deeper nesting than this is hostile or useless. */
const nestingMax = 20;

/** The attribute that holds a link's address: without `href` a click can go nowhere. */
export const addressAttribute = "data-address";

const markdown = new MarkdownIt({ html: false, linkify: true, breaks: false, typographer: false });
markdown.set({ maxNesting: nestingMax });
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
// A definition at the end of a reply would change links in blocks that are finished already.
markdown.disable("reference");
markdown.validateLink = isOpenable;
withMath(markdown);

/** Whether an address may be offered to the person at all. */
export function isOpenable(address: string): boolean {
  return /^(https?:\/\/|mailto:)[^\s]/i.test(address.trim());
}

const { escapeHtml } = markdown.utils;

interface RenderEnvironment {
  growth: Growth;
}

markdown.renderer.rules.fence = (tokens, index, _options, environment) => {
  const token = tokens[index];
  if (!token) return "";
  const language = /^[\w+#.-]{1,30}/.exec(token.info.trim())?.[0] ?? "";
  const growth = environment?.["growth"] === "live" ? "live" : "done";
  return codeBlock(token.content, language, growth);
};
markdown.renderer.rules.code_block = (tokens, index) =>
  codeBlock(tokens[index]?.content ?? "", "", "done");

/** Plain code is laid out in parts of so many lines. */
const partLines = 100;

/**
 * Long code without colours, in parts: code that grows has only its last one laid out again. Each
 * ends with its line, so that no line is added where they are marked or copied.
 */
function inParts(code: string): string {
  const lines = code.split(/(?<=\n)/);
  if (lines.length <= partLines) return escapeHtml(code);
  let parts = "";
  for (let at = 0; at < lines.length; at += partLines) {
    parts += `<span class="code-part">${escapeHtml(lines.slice(at, at + partLines).join(""))}</span>`;
  }
  return parts;
}

function codeBlock(content: string, language: string, growth: Growth): string {
  const code = content.replace(/\n$/, "");
  const coloured = highlighted(code, language.toLowerCase(), growth) ?? inParts(code);
  const label = escapeHtml(language || t("code.text"));
  return (
    `<div class="code"><div class="code-head"><span class="code-language">${label}</span>` +
    `<button type="button" class="code-copy" aria-label="${escapeHtml(t("code.copy"))}">${escapeHtml(t("common.copy"))}</button></div>` +
    `<pre tabindex="0" dir="ltr"><code>${coloured}</code></pre></div>`
  );
}

markdown.renderer.rules.link_open = (tokens, index) => {
  const address = String(tokens[index]?.attrGet("href") ?? "");
  const safe = escapeHtml(address);
  return `<a role="link" tabindex="0" class="link" ${addressAttribute}="${safe}" title="${safe}">`;
};

markdown.renderer.rules.image = (tokens, index) => {
  const token = tokens[index];
  const words = token?.content.trim() || t("code.noDescription");
  return `<span class="image-note">${escapeHtml(t("code.image", { words }))}</span>`;
};

// The writer of a table aligns by inline style, which the window's policy forbids.
for (const cell of ["th_open", "td_open"] as const) {
  markdown.renderer.rules[cell] = (tokens, index) => {
    const style = String(tokens[index]?.attrGet("style") ?? "");
    const side = /text-align:\s*(left|right|center)/.exec(style)?.[1];
    const tag = cell.slice(0, 2);
    return side ? `<${tag} dir="auto" class="align-${side}">` : `<${tag} dir="auto">`;
  };
}
markdown.renderer.rules.table_open = () => '<div class="table" tabindex="0"><table>';
markdown.renderer.rules.table_close = () => "</table></div>";

// Each block, and each cell of a table, takes its direction from its own words.
const directed = ["paragraph_open", "heading_open", "list_item_open", "bullet_list_open", "ordered_list_open", "blockquote_open"];
for (const block of directed) {
  markdown.renderer.rules[block] = (tokens, index, options, _environment, self) => {
    tokens[index]?.attrSet("dir", "auto");
    return self.renderToken(tokens, index, options);
  };
}

const allowed = {
  ALLOWED_TAGS: [
    ..."p br hr h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code em strong s a".split(" "),
    ..."table thead tbody tr th td span div button".split(" "),
  ],
  ALLOWED_ATTR: ["class", "start", "title", "role", "tabindex", "dir", "type", "aria-label", addressAttribute],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
};

/** Whether setting a block would cost more than a reader should wait. Code has no marks. */
function isTooDense(source: string): boolean {
  if (source.length < denseCharsMin || /^\s*(```|~~~)/.test(source)) return false;
  return marksMax.some(([mark, most]) => (source.match(mark)?.length ?? 0) > most);
}

/** Markdown as a string of HTML before it is sanitised: for comparisons, never for the page. */
export function unsafeHtml(source: string, growth: Growth): string {
  if (source.length > blockCharsMax || isTooDense(source)) return `<p class="plain">${escapeHtml(source)}</p>`;
  try {
    return markdown.render(source, { growth } satisfies RenderEnvironment);
  } catch {
    return `<p class="plain">${escapeHtml(source)}</p>`;
  }
}

/** Markdown as nodes that are safe to put on the page. */
export function renderFragment(source: string, growth: Growth): DocumentFragment {
  return DOMPurify.sanitize(unsafeHtml(source, growth), { ...allowed, RETURN_DOM_FRAGMENT: true });
}

/** Markdown as safe HTML. */
export function renderHtml(source: string, growth: Growth = "done"): string {
  return DOMPurify.sanitize(unsafeHtml(source, growth), allowed);
}

/** The lines where blocks of the outermost level begin. */
export function blockStarts(source: string): number[] {
  const starts: number[] = [];
  for (const token of markdown.parse(source, { growth: "done" } satisfies RenderEnvironment)) {
    if (token.level === 0 && token.map && token.nesting >= 0) starts.push(token.map[0]);
  }
  return starts;
}

/** The last code block of a reply, as it was written. */
export function lastCodeBlock(source: string): string | null {
  const code = markdown
    .parse(source, { growth: "done" } satisfies RenderEnvironment)
    .findLast((token) => token.type === "fence" || token.type === "code_block");
  return code ? code.content.replace(/\n$/, "") : null;
}
