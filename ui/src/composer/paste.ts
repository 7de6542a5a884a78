/** Whether pasted words stay in the box or become a card. Pure. */

/** A box with more than this is slow to type in, and hides what was asked. */
export const longPasteChars = 4_000;

/** A screen full of lines. */
export const longPasteLines = 60;

/** Whether a pasted text becomes a card. */
export function becomesCard(text: string): boolean {
  if (text.length > longPasteChars) return true;
  let lines = 1;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) {
    lines += 1;
    if (lines > longPasteLines) return true;
  }
  return false;
}

/** What a card says of itself: "1,204 lines · 98 kB". */
export function cardFacts(lines: string, size: string): string {
  return `${lines} · ${size}`;
}
