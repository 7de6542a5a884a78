import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { compositionEnded, isOfInputMethod } from "../src/composer/composition";
import { type BoxState, type KeyPress, keyEffect, shortcutOf } from "../src/composer/keys";

const press = (key: string, change: Partial<KeyPress> = {}): KeyPress => ({
  key,
  shiftKey: false,
  ctrlKey: false,
  altKey: false,
  metaKey: false,
  ...change,
});
const box: BoxState = { text: "hello", writing: false };

const cases: [string, KeyPress, BoxState, string][] = [
  ["Enter sends", press("Enter"), box, "submit"],
  ["Enter queues while a reply is written", press("Enter"), { ...box, writing: true }, "submit"],
  ["Shift+Enter is a new line", press("Enter", { shiftKey: true }), box, "none"],
  ["Ctrl+Enter is left alone", press("Enter", { ctrlKey: true }), box, "none"],
  ["Esc stops", press("Escape"), { ...box, writing: true }, "stop"],
  ["Esc with nothing to stop", press("Escape"), box, "none"],
  ["Up in an empty box", press("ArrowUp"), { ...box, text: "" }, "recall"],
  ["Up in text", press("ArrowUp"), box, "none"],
  ["Up in a blank line", press("ArrowUp"), { ...box, text: " " }, "none"],
  ["Delete is the box's own", press("Delete"), { ...box, text: "" }, "none"],
  ["Backspace is the box's own", press("Backspace"), { ...box, text: "" }, "none"],
];

it.each(cases)("%s", (_name, key, state, effect) => {
  expect(keyEffect(key, state)).toBe(effect);
});

const shortcuts: [KeyPress, string | null][] = [
  [press("n", { ctrlKey: true }), "new-chat"],
  [press("N", { metaKey: true }), "new-chat"],
  [press("o", { ctrlKey: true }), "open-model"],
  [press("b", { ctrlKey: true }), "toggle-sidebar"],
  [press(",", { ctrlKey: true }), "settings"],
  [press("/", { ctrlKey: true }), "shortcuts"],
  [press("/", { ctrlKey: true, shiftKey: true }), "shortcuts"],
  [press("C", { ctrlKey: true, shiftKey: true }), "copy-reply"],
  [press(":", { ctrlKey: true, shiftKey: true }), "copy-code"],
  [press("c", { ctrlKey: true }), null],
  [press("n"), null],
  [press("n", { ctrlKey: true, altKey: true }), null],
  [press("Delete"), null],
  [press("Delete", { ctrlKey: true }), null],
];

it.each(shortcuts)("%j is %s", (key, shortcut) => {
  expect(shortcutOf(key)).toBe(shortcut);
});

describe("a key of an input method", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const rows: [string, KeyboardEventInit, "here" | "elsewhere" | null, number, boolean][] = [
    ["within a composition", { isComposing: true }, null, 0, true],
    ["by its code, as WebKit sends it afterwards", { keyCode: 229 }, null, 0, true],
    ["right after a composition in this field", {}, "here", 5, true],
    ["later", {}, "here", 100, false],
    ["after a composition in another field", {}, "elsewhere", 5, false],
    ["with no composition at all", {}, null, 0, false],
  ];

  it.each(rows)("%s", (_name, init, composed, afterMs, want) => {
    const field = document.createElement("textarea");
    const other = document.createElement("textarea");
    if (composed) compositionEnded({ target: composed === "here" ? field : other });
    vi.advanceTimersByTime(afterMs);
    for (const key of ["Enter", "Escape"]) {
      const event = new KeyboardEvent("keydown", { key, ...init });
      field.dispatchEvent(event);
      expect(isOfInputMethod(event)).toBe(want);
    }
  });
});
