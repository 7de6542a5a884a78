/** Questions to the state. */
import type { Card, Message, OpenModel, Status, Unsent } from "../platform/bindings";
import type { AppState, Key, Pending, Problem, Queued, ShownMessage, Turn } from "./model";
import { answerOf, beginning, joined, partsOf } from "./parts";
import { turnOf } from "./turns";

/** What Enter and the button beside the box do now. */
export type Readiness =
  | { kind: "ready" }
  | { kind: "writing"; stopping: boolean }
  | { kind: "no-model" }
  | { kind: "loading" };

/** The messages of a conversation as they are drawn. */
export function shownMessages(state: AppState, key: Key): ShownMessage[] {
  const conversation = key === "new" ? undefined : state.open[key];
  const pending = state.pending[key];
  const stored = (conversation?.messages ?? []).map((m) => drawn(state, m));
  if (!pending) return stored;
  if (pending.kind === "continue") return stored;
  const before = upTo(stored, pending);
  if (pending.kind === "regenerate") return [...before, optimisticReply()];
  return [...before, optimisticQuestion(pending), optimisticReply()];
}

/** What stays on the screen while another version is being made. */
function upTo(stored: ShownMessage[], pending: Pending): ShownMessage[] {
  const at = stored.findIndex((message) => message.id === pending.message);
  if (at === -1) return stored;
  // A question that has no reply yet stays before the one it gets.
  const keeps = pending.kind === "regenerate" && stored[at]?.role === "user";
  return stored.slice(0, keeps ? at + 1 : at);
}

function drawn(state: AppState, message: Message): ShownMessage {
  const key = `m${message.id}`;
  const live = message.turn === null ? null : (state.turns[message.turn] ?? null);
  const failure = message.record?.failure ?? state.failures[message.id]?.message ?? null;
  if (message.state !== "writing" || !live) return { ...message, key, live: null, failure };
  const before = beginning(partsOf(message), message.kept);
  const begun = live.parts.length > 0 || live.nextSeq > 0;
  const parts = begun ? joined(before, live.parts) : partsOf(message);
  return { ...message, key, live, failure, parts, text: answerOf(parts) };
}

// Negative numbers are never in the store.
function optimisticQuestion(pending: Pending): ShownMessage {
  return {
    key: "pending-user",
    id: -1,
    role: "user",
    text: pending.text,
    state: "finished",
    turn: null,
    record: null,
    parts: [],
    versions: [],
    kept: 0,
    cards: pending.cards,
    live: null,
    failure: null,
  };
}

function optimisticReply(): ShownMessage {
  return {
    key: "pending-assistant",
    id: -2,
    role: "assistant",
    text: "",
    state: "writing",
    turn: null,
    record: null,
    parts: [],
    versions: [],
    kept: 0,
    cards: [],
    live: null,
    failure: null,
  };
}

/** Whether a model is on its way, wherever it has got to. */
export function isLoading(status: Status): boolean {
  return ["loading", "moving", "proving"].includes(status.banner.kind);
}

/** Whether a message can be sent from this place now. */
export function readiness(state: AppState, key: Key): Readiness {
  const pending = state.pending[key];
  if (pending) return { kind: "writing", stopping: pending.stopWanted };
  const turn = turnOf(state, key);
  if (turn) return { kind: "writing", stopping: turn.stopping };
  if (state.status.model) return { kind: "ready" };
  return { kind: isLoading(state.status) ? "loading" : "no-model" };
}

/** The turn that Stop would end. */
export function runningTurn(state: AppState, key: Key): Turn | null {
  return turnOf(state, key);
}

/** The message that waits above the composer. */
export function queuedFor(state: AppState, key: Key): Queued | null {
  return state.queued[key] ?? null;
}

/** Waiting messages whose time has come; one that is being edited is not overtaken. */
export function dueQueued(state: AppState): { key: Key; queued: Queued }[] {
  const due: { key: Key; queued: Queued }[] = [];
  for (const [name, queued] of Object.entries(state.queued)) {
    const key: Key = name === "new" ? "new" : Number(name);
    if (state.queuedEdits[key] !== undefined) continue;
    if (queued?.waitsFor === "reply" && readiness(state, key).kind === "ready") {
      due.push({ key, queued });
    }
  }
  return due;
}

/** What could not be done here. */
export function problemFor(state: AppState, key: Key): Problem | null {
  return state.problems[key] ?? null;
}

/** The words in the box. */
export function draftFor(state: AppState, key: Key): string {
  return state.drafts[key] ?? "";
}

/** The cards that go with the words in the box. */
export function cardsFor(state: AppState, key: Key): Card[] {
  return state.cards[key] ?? noCards;
}

const noCards: Card[] = [];

/** Conversations in which something may be unsent. */
export function unsentKeys(state: AppState): Key[] {
  const names = [state.drafts, state.cards, state.queued, state.pending].flatMap((record) => Object.keys(record));
  const edited = Object.values(state.edits).map((edit) => edit.conversation);
  return [...names.map((name): Key => (name === "new" ? "new" : Number(name))), ...edited];
}

/**
 * What would be lost with the window. An edit goes back into the box with the next one. A message on its way counts as waiting until the program has
 * taken it.
 */
export function unsentOf(state: AppState, key: Key): Unsent {
  const pending = state.pending[key];
  const edits = Object.values(state.edits).filter((e) => e.conversation === key && e.text !== e.was);
  const sending = pending?.kind === "send" ? pending : null;
  const onItsWay = sending?.text ?? "";
  const queued = state.queuedEdits[key] ?? state.queued[key]?.text ?? "";
  const waiting = [onItsWay, queued].filter((text) => text !== "");
  return {
    conversation: key === "new" ? null : key,
    text: [draftFor(state, key), ...edits.map((edit) => edit.text)].filter((text) => text !== "").join("\n\n"),
    waiting: waiting.join("\n\n"),
    cards: cardsFor(state, key),
    waitingCards: [...(sending?.cards ?? []), ...(state.queued[key]?.cards ?? [])],
  };
}

/** The title in the header; none of a conversation that is not begun. */
export function titleOf(state: AppState, key: Key): string | null {
  if (key === "new") return null;
  return state.conversations.find((c) => c.id === key)?.title ?? state.open[key]?.title ?? null;
}

/** The model that answers next, if one is open. */
export function openModel(state: AppState): OpenModel | null {
  return state.status.model;
}

/** The last message of one's own, for the arrow key. */
export function lastQuestion(state: AppState, key: Key): string | null {
  const messages = shownMessages(state, key);
  return messages.findLast((m) => m.role === "user")?.text ?? null;
}

/** The last reply that has words. */
export function lastReply(state: AppState, key: Key): ShownMessage | null {
  return (
    shownMessages(state, key).findLast((m) => m.role === "assistant" && m.text !== "") ?? null
  );
}

/** Tokens that the conversation filled when its last reply ended; null if no reply tells. */
export function contextUsed(state: AppState, key: Key): number | null {
  const record = shownMessages(state, key).findLast((m) => m.record !== null)?.record;
  return record ? record.promptTokens + record.generatedTokens : null;
}

/** Messages from the start that the model did not see when it wrote the last reply. */
export function leftOut(messages: ShownMessage[]): number {
  return messages.findLast((m) => m.record !== null)?.record?.leftOut ?? 0;
}

/** Whether a reply came to no end of its own and can be gone on with. */
export function canGoOn(message: ShownMessage): boolean {
  const ended = message.state === "finished" || message.state === "writing";
  return message.role === "assistant" && !ended && message.text !== "";
}
