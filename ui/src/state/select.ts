/** Questions to the state. */
import type { Message, OpenModel, Status, Unsent } from "../platform/bindings";
import type { AppState, Key, Pending, Problem, Queued, ShownMessage, Turn } from "./model";
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
  if (pending.kind === "regenerate") {
    const last = stored.at(-1);
    if (last?.role !== "assistant") return stored;
    return [...stored.slice(0, -1), optimisticReply()];
  }
  return [...stored, optimisticQuestion(pending), optimisticReply()];
}

function drawn(state: AppState, message: Message): ShownMessage {
  const key = `m${message.id}`;
  const live = message.turn === null ? null : (state.turns[message.turn] ?? null);
  const failure = message.record?.failure ?? state.failures[message.id]?.message ?? null;
  if (message.state !== "writing" || !live) return { ...message, key, live: null, failure };
  return { ...message, key, live, failure, text: live.text || message.text };
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

/** Waiting messages whose time has come. */
export function dueQueued(state: AppState): { key: Key; text: string }[] {
  const due: { key: Key; text: string }[] = [];
  for (const [name, queued] of Object.entries(state.queued)) {
    const key: Key = name === "new" ? "new" : Number(name);
    if (queued?.waitsFor === "reply" && readiness(state, key).kind === "ready") {
      due.push({ key, text: queued.text });
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

/** Conversations in which something may be unsent. */
export function unsentKeys(state: AppState): Key[] {
  const names = [state.drafts, state.queued, state.pending].flatMap((record) => Object.keys(record));
  return names.map((name) => (name === "new" ? "new" : Number(name)));
}

/**
 * What would be lost with the window. A message on its way counts as waiting until the program has
 * taken it.
 */
export function unsentOf(state: AppState, key: Key): Unsent {
  const pending = state.pending[key];
  const onItsWay = pending?.kind === "send" ? pending.text : "";
  const waiting = [onItsWay, state.queued[key]?.text ?? ""].filter((text) => text !== "");
  return {
    conversation: key === "new" ? null : key,
    text: draftFor(state, key),
    waiting: waiting.join("\n\n"),
  };
}

/** The title in the header. */
export function titleOf(state: AppState, key: Key): string {
  if (key === "new") return "New chat";
  return (
    state.conversations.find((c) => c.id === key)?.title ?? state.open[key]?.title ?? "New chat"
  );
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
