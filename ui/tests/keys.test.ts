import { expect, it } from "vitest";
import { type BoxState, type KeyPress, keyEffect, shortcutOf } from "../src/composer/keys";

const press = (key: string, change: Partial<KeyPress> = {}): KeyPress => ({
  key,
  shiftKey: false,
  ctrlKey: false,
  altKey: false,
  metaKey: false,
  isComposing: false,
  keyCode: 0,
  ...change,
});
const box: BoxState = { text: "hello", justComposed: false, writing: false };

const cases: [string, KeyPress, BoxState, string][] = [
  ["Enter sends", press("Enter"), box, "submit"],
  ["Enter queues while a reply is written", press("Enter"), { ...box, writing: true }, "submit"],
  ["Shift+Enter is a new line", press("Enter", { shiftKey: true }), box, "none"],
  ["Ctrl+Enter is left alone", press("Enter", { ctrlKey: true }), box, "none"],
  ["Enter in a composition", press("Enter", { isComposing: true }), box, "none"],
  ["Enter taken by an input method", press("Enter", { keyCode: 229 }), box, "none"],
  ["WebKit's Enter after a composition", press("Enter"), { ...box, justComposed: true }, "none"],
  ["Esc stops", press("Escape"), { ...box, writing: true }, "stop"],
  ["Esc with nothing to stop", press("Escape"), box, "none"],
  ["Esc of a composition", press("Escape", { isComposing: true }), { ...box, writing: true }, "none"],
  [
    "WebKit's Esc after a composition",
    press("Escape"),
    { ...box, writing: true, justComposed: true },
    "none",
  ],
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
