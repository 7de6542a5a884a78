/** Whether the view goes along with what is written. The scroll bar belongs to the reader. */

/** Within this distance of the end the reader counts as being there. */
export const nearEndPx = 32;

/** What is known of the scrolled region. */
export interface ScrollPlace {
  top: number;
  viewHeight: number;
  contentHeight: number;
}

/** How far it is to the end. */
export function distanceToEnd(place: ScrollPlace): number {
  return place.contentHeight - place.viewHeight - place.top;
}

/** Whether the reader is at the end. */
export function isAtEnd(place: ScrollPlace): boolean {
  return distanceToEnd(place) <= nearEndPx;
}

/**
 * Follows on after a scroll? Any move up frees the view at once, also a small one; only a return
 * to the end takes it along again. Content that got shorter moves the view without the reader.
 */
export function followsAfterScroll(
  before: ScrollPlace,
  now: ScrollPlace,
  following: "following" | "free",
): "following" | "free" {
  const movedUp = now.top < before.top - 1;
  const shrank = now.contentHeight < before.contentHeight;
  const resized = now.viewHeight !== before.viewHeight;
  if (movedUp && !shrank && !resized) return "free";
  if (isAtEnd(now) && now.top > before.top) return "following";
  return following;
}
