/** Which keys belong to an input method, and so to no one else. */

/** What is known of a key press. */
type Press = Pick<KeyboardEvent, "isComposing" | "keyCode" | "target">;

/** The key code that browsers give to keys an input method has taken. */
const inputMethodKeyCode = 229;

/** WebKit sends the key that ended a composition after the composition; it comes at once. */
const afterCompositionMs = 60;

/** When the last composition in a field ended. */
const endedAt = new WeakMap<EventTarget, number>();

/** A composition has ended; the window hears of each. */
export function compositionEnded({ target }: Pick<Event, "target">): void {
  if (target) endedAt.set(target, performance.now());
}

/** Whether a key only chooses or gives up words of an input method. */
export function isOfInputMethod(press: Press): boolean {
  if (press.isComposing || press.keyCode === inputMethodKeyCode) return true;
  const ended = press.target ? endedAt.get(press.target) : undefined;
  return ended !== undefined && performance.now() - ended < afterCompositionMs;
}
