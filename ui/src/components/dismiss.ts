import { isOfInputMethod } from "../composer/composition";

/** Closes what is open when a person presses Esc in it or clicks elsewhere. */
export interface DismissOptions {
  close: () => void;
  /** A press on this one is its own business. */
  opener: HTMLElement | null;
}

/** For use on the element that is open. */
export function dismissable(
  node: HTMLElement,
  initial: DismissOptions,
): { update: (options: DismissOptions) => void; destroy: () => void } {
  let options = initial;

  function onPointerDown(event: PointerEvent): void {
    const target = event.target as Node;
    if (node.contains(target) || options.opener?.contains(target)) return;
    options.close();
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.key !== "Escape" || isOfInputMethod(event)) return;
    event.preventDefault();
    event.stopPropagation();
    options.opener?.focus();
    options.close();
  }

  document.addEventListener("pointerdown", onPointerDown, true);
  document.addEventListener("keydown", onKeyDown, true);
  return {
    update(next) {
      options = next;
    },
    destroy() {
      document.removeEventListener("pointerdown", onPointerDown, true);
      document.removeEventListener("keydown", onKeyDown, true);
    },
  };
}
