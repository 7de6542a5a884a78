/** What a turn's news do to the state. */
import type { Conversation, Message, RunningTurn, TurnBatch, TurnEvent } from "../platform/bindings";
import type { AppState, Key, Turn } from "./model";
import { answerOf, textWasThought, thoughtFor, withWords } from "./parts";

/** A turn of which nothing is known yet. */
export function freshTurn(running: RunningTurn): Turn {
  return {
    ...running,
    phase: "waiting",
    read: null,
    checked: null,
    moved: null,
    text: "",
    parts: [],
    repeats: null,
    tokens: 0,
    nextSeq: 0,
    stopping: false,
  };
}

/** Takes one batch. News that were seen already, or that belong to no known turn, change nothing. */
export function applyBatch(state: AppState, turnId: number, batch: TurnBatch): AppState {
  const turn = state.turns[turnId];
  if (!turn) return state;
  const firstSeq = batch.nextSeq - batch.events.length;
  const seen = Math.max(0, turn.nextSeq - firstSeq);
  // The end has no number of its own, so it is never one that was seen: a turn ends only once.
  const unseen = batch.events.filter((event, i) => i >= seen || isEnd(event));
  if (unseen.length === 0) return state;

  let current = turn;
  for (const event of unseen) {
    if (event.kind === "finished") return endTurn(state, current, event.message);
    if (event.kind === "failed") {
      const failures = { ...state.failures, [event.message.id]: event.error };
      return endTurn({ ...state, failures }, current, event.message);
    }
    current = advance(current, event);
  }
  return {
    ...state,
    turns: { ...state.turns, [turnId]: { ...current, nextSeq: batch.nextSeq } },
  };
}

function isEnd(event: TurnEvent): boolean {
  return event.kind === "finished" || event.kind === "failed";
}

function advance(turn: Turn, event: Exclude<TurnEvent, { kind: "finished" | "failed" }>): Turn {
  switch (event.kind) {
    case "waiting":
      return { ...turn, phase: "waiting" };
    case "checking":
      return { ...turn, phase: "checking", checked: { done: event.done, total: event.total } };
    case "moved":
      return { ...turn, moved: event.notice };
    case "reading":
      return { ...turn, phase: "reading", read: { done: event.done, total: event.total } };
    case "text":
      return {
        ...turn,
        phase: "writing",
        text: turn.text + event.text,
        parts: withWords(turn.parts, "text", event.text),
        tokens: event.tokens,
      };
    case "thinking":
      return {
        ...turn,
        phase: "writing",
        parts: withWords(turn.parts, "thinking", event.text),
        tokens: event.tokens,
      };
    case "thought":
      return { ...turn, parts: thoughtFor(turn.parts, event.ms) };
    case "textWasThinking": {
      const parts = textWasThought(turn.parts);
      return { ...turn, parts, text: answerOf(parts) };
    }
    case "repeats":
      return { ...turn, repeats: { blockTokens: event.blockTokens, copies: event.copies } };
  }
}

function endTurn(state: AppState, turn: Turn, message: Message): AppState {
  const turns = { ...state.turns };
  delete turns[turn.turn];
  const conversation = state.open[turn.conversation];
  const open = conversation
    ? { ...state.open, [turn.conversation]: withMessage(conversation, message) }
    : state.open;
  return settleQueue({ ...state, turns, open }, turn.conversation, message);
}

function withMessage(conversation: Conversation, message: Message): Conversation {
  const known = conversation.messages.some((m) => m.id === message.id);
  const messages = known
    ? conversation.messages.map((m) => (m.id === message.id ? message : m))
    : [...conversation.messages, message];
  return { ...conversation, messages };
}

/** After a stop or a failure a waiting message is the person's to send, not ours. */
function settleQueue(state: AppState, key: Key, message: Message): AppState {
  const queued = state.queued[key];
  if (!queued) return state;
  const natural =
    message.state === "finished" || message.state === "length" || message.state === "context-full";
  if (natural) return state;
  return holdQueued(state, key);
}

/** Makes a waiting message wait for the person. */
export function holdQueued(state: AppState, key: Key): AppState {
  const queued = state.queued[key];
  if (!queued || queued.waitsFor === "person") return state;
  return {
    ...state,
    queued: { ...state.queued, [key]: { ...queued, waitsFor: "person" } },
  };
}

/** The turn that writes in a conversation: the last that began, if an earlier end is not known yet. */
export function turnOf(state: AppState, key: Key): Turn | null {
  if (key === "new") return null;
  const ofConversation = Object.values(state.turns).filter((turn) => turn.conversation === key);
  return ofConversation.reduce<Turn | null>(
    (last, turn) => (last && last.turn > turn.turn ? last : turn),
    null,
  );
}
