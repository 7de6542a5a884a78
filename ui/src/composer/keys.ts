/** What a key does in the box. Pure, so that every case is a row in a table. */
import type { Key } from "../text/words.svelte";

/** What is known of a key press. */
export interface KeyPress {
  key: string;
  shiftKey: boolean;
  ctrlKey: boolean;
  altKey: boolean;
  metaKey: boolean;
}

/** What is known of the box. */
export interface BoxState {
  text: string;
  writing: boolean;
}

/** What is to be done. "none" leaves the key to the box. */
export type KeyEffect = "submit" | "stop" | "recall" | "none";

/** The effect of a key that no input method has taken. */
export function keyEffect(press: KeyPress, box: BoxState): KeyEffect {
  if (press.ctrlKey || press.altKey || press.metaKey) return "none";
  if (press.key === "Enter" && !press.shiftKey) return "submit";
  if (press.key === "Escape") return box.writing ? "stop" : "none";
  if (press.key === "ArrowUp" && !press.shiftKey && box.text === "") return "recall";
  return "none";
}

/** Shortcuts of the whole window. */
export type Shortcut =
  | "new-chat"
  | "search"
  | "open-model"
  | "toggle-sidebar"
  | "settings"
  | "shortcuts"
  | "copy-reply"
  | "copy-code";

/** The shortcut behind a key press, if there is one. */
export function shortcutOf(press: KeyPress): Shortcut | null {
  if (press.altKey || !(press.ctrlKey || press.metaKey)) return null;
  const key = press.key.toLowerCase();
  if (press.shiftKey) {
    if (key === "c") return "copy-reply";
    // Shift changes the sign on most layouts.
    if (key === ";" || key === ":") return "copy-code";
    // On layouts where the slash needs Shift.
    if (key === "/" || key === "?") return "shortcuts";
    return null;
  }
  switch (key) {
    case "n":
      return "new-chat";
    case "k":
      return "search";
    case "o":
      return "open-model";
    case "b":
      return "toggle-sidebar";
    case ",":
      return "settings";
    case "/":
      return "shortcuts";
    default:
      return null;
  }
}

/** The list that Ctrl+/ shows. */
export const shortcutList: { keys: string; does: Key }[] = [
  { keys: "Enter", does: "common.send" },
  { keys: "Shift+Enter", does: "keys.newLine" },
  { keys: "Esc", does: "keys.escape" },
  { keys: "↑", does: "keys.recall" },
  { keys: "Ctrl+N", does: "common.newChat" },
  { keys: "Ctrl+K", does: "search.chats" },
  { keys: "Ctrl+O", does: "keys.openModel" },
  { keys: "Ctrl+B", does: "sidebar.fold" },
  { keys: "Ctrl+,", does: "settings.title" },
  { keys: "Ctrl+Shift+C", does: "keys.copyReply" },
  { keys: "Ctrl+Shift+;", does: "keys.copyCode" },
  { keys: "Ctrl+/", does: "keys.thisList" },
];
