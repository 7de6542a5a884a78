/**
 * Draws formulas: the sources that `math.ts` found become nodes of KaTeX, which is fetched from the
 * program itself with the first formula. Whatever it cannot set stays as its source. A frame draws
 * only so many, so that a page full of them does not stand still.
 */
import DOMPurify from "dompurify";
import { formulaCharsMax, mathClass } from "./math";

/** Work on formulas in one frame. */
const frameBudgetMs = 8;

/** How often a macro may be expanded: enough for what people define, too little for a loop. */
const expandMax = 200;

/** Largest length in a formula, in ems: nothing reaches beyond the column. */
const sizeEmsMax = 40;

/** On an element whose formula was drawn: its source. */
const drawnAttribute = "data-formula";

/** What KaTeX makes: boxes, drawn signs, and MathML for those who listen. */
const allowed = {
  ALLOWED_TAGS: (
    "span svg path line math semantics annotation mrow mi mn mo ms mspace mtext mfrac msqrt mroot " +
    "mstyle merror mpadded mphantom menclose msub msup msubsup munder mover munderover mtable mtr mtd"
  ).split(" "),
  ALLOWED_ATTR: (
    "class style aria-hidden xmlns encoding display mathvariant mathcolor mathbackground width height " +
    "depth lspace rspace stretchy fence separator minsize maxsize accent accentunder linethickness " +
    "scriptlevel displaystyle rowspacing columnspacing columnalign columnlines rowlines notation " +
    "voffset movablelimits viewBox preserveAspectRatio d x1 x2 y1 y2 stroke-width"
  ).split(" "),
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
};

type Katex = typeof import("katex").default;

let katex: Katex | "absent" | null = null;
let fetching: Promise<void> | null = null;
const waiting = new Set<HTMLElement>();
let scheduled = false;

function fetchKatex(): Promise<void> {
  fetching ??= Promise.all([import("katex"), import("katex/dist/katex.css")])
    .then(([module]) => {
      katex = module.default;
    })
    .catch(() => {
      // Then formulas are read as they were written.
      katex = "absent";
    });
  return fetching;
}

/** The source of an element that holds a formula, drawn or not; null for any other. */
export function formulaOf(element: Element): string | null {
  if (!element.classList.contains(mathClass)) return null;
  return element.getAttribute(drawnAttribute) ?? element.textContent;
}

/** Draws the formulas below `root` that are not drawn yet, over the next frames. */
export function drawFormulas(root: Element): void {
  const found = root.querySelectorAll<HTMLElement>(`.${mathClass}:not([${drawnAttribute}])`);
  if (found.length === 0) return;
  for (const element of found) waiting.add(element);
  if (katex === null) void fetchKatex().then(schedule);
  else schedule();
}

/** Resolves once nothing waits to be drawn. */
export async function formulasDrawn(): Promise<void> {
  await fetching;
  while (waiting.size > 0) drawSome(Infinity);
}

function schedule(): void {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    drawSome(frameBudgetMs);
    if (waiting.size > 0) schedule();
  });
}

function drawSome(budgetMs: number): void {
  const begun = performance.now();
  for (const element of waiting) {
    waiting.delete(element);
    draw(element);
    if (performance.now() - begun > budgetMs) return;
  }
}

function draw(element: HTMLElement): void {
  const source = element.textContent;
  element.setAttribute(drawnAttribute, source);
  const nodes = katex === null || katex === "absent" ? null : typeset(katex, element, source);
  if (nodes) element.replaceChildren(nodes);
  else element.classList.add("math-plain");
}

function typeset(setter: Katex, element: HTMLElement, source: string): Node | null {
  if (source.length > formulaCharsMax) return null;
  // Nodes, not markup: styles that are set through the object model pass the window's policy.
  const box = document.createElement("span");
  try {
    setter.render(source, box, {
      displayMode: element.classList.contains("math-display"),
      output: "htmlAndMathml",
      throwOnError: true,
      strict: "ignore",
      trust: false,
      maxExpand: expandMax,
      maxSize: sizeEmsMax,
    });
  } catch {
    return null;
  }
  const clean = DOMPurify.sanitize(box, { ...allowed, IN_PLACE: true });
  return clean.firstChild;
}
