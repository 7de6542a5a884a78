/** What happens to the one message that waits above the box. */
import type { Action } from "./actions";
import type { AppState, Key } from "./model";
import { readiness } from "./select";
import { without } from "./talk";
import { holdQueued } from "./turns";

type Of<T extends Action["type"]> = Extract<Action, { type: T }>;

/** More words wait: behind those that wait already, also where these are being edited. */
export function queued(state: AppState, action: Of<"queue">): AppState {
  const { key } = action;
  const before = state.queued[key];
  const first = state.queuedEdits[key] ?? before?.text ?? "";
  const text = [first, action.text].filter((words) => words !== "").join("\n\n");
  const cards = [...(before?.cards ?? []), ...action.cards];
  return {
    ...state,
    queued: { ...state.queued, [key]: { text, cards, waitsFor: "reply" } },
    queuedEdits: without(state.queuedEdits, key),
  };
}

/** Takes the waiting message away. */
export function unqueued(state: AppState, key: Key): AppState {
  return {
    ...state,
    queued: without(state.queued, key),
    queuedEdits: without(state.queuedEdits, key),
  };
}

/** The waiting message is being edited, so far to these words. */
export function edits(state: AppState, key: Key, text: string): AppState {
  if (!state.queued[key]) return state;
  return { ...state, queuedEdits: { ...state.queuedEdits, [key]: text } };
}

/**
 * An edit ends. If the time of the message came meanwhile, Enter sends it; who only looked
 * elsewhere did not say that it is whole.
 */
export function edited(state: AppState, action: Of<"edit-queued">): AppState {
  const { key } = action;
  const before = state.queued[key];
  if (!before) return state;
  const text = action.text ?? before.text;
  if (text.trim() === "" && before.cards.length === 0) return unqueued(state, key);
  const next = {
    ...state,
    queued: { ...state.queued, [key]: { ...before, text } },
    queuedEdits: without(state.queuedEdits, key),
  };
  const isDue = action.by === "leaving" && readiness(state, key).kind === "ready";
  return isDue ? holdQueued(next, key) : next;
}
