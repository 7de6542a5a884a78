/** Marks the words that a search was for in a message, where the web view can do that. */

/** The name under which the style sheet knows the marks. */
const name = "found";

/** Most marks in one message: more than anybody looks at. */
const marksMax = 500;

/** Older web views cannot; the message is framed there all the same. */
const canMark = typeof CSS !== "undefined" && "highlights" in CSS;

/** The places of the words in a text, whole text in lower case. */
export function placesOf(text: string, words: string[]): { start: number; end: number }[] {
  const lower = text.toLowerCase();
  // A letter whose small form is longer would shift all places after it.
  if (lower.length !== text.length) return [];
  const places: { start: number; end: number }[] = [];
  for (const word of words) {
    const looked = word.toLowerCase();
    for (let at = lower.indexOf(looked); at !== -1; at = lower.indexOf(looked, at + looked.length)) {
      places.push({ start: at, end: at + looked.length });
      if (places.length === marksMax) return places;
    }
  }
  return places;
}

/** Marks the words in an element, and nowhere else. */
export function markFound(element: HTMLElement, words: string[]): void {
  if (!canMark) return;
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    for (const { start, end } of placesOf(node.textContent ?? "", words)) {
      const range = new Range();
      range.setStart(node, start);
      range.setEnd(node, end);
      ranges.push(range);
    }
  }
  CSS.highlights.set(name, new Highlight(...ranges));
}

/** Takes the marks away. */
export function unmarkFound(): void {
  if (canMark) CSS.highlights.delete(name);
}
