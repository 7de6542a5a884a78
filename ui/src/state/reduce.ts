/** The one place where state changes. */
import type { Unsent } from "../platform/bindings";
import type { Key as WordsKey } from "../text/words.svelte";
import type { Action } from "./actions";
import { editEnded, refreshed, remove, replaceSummary, restore, settled, sorted, takeSent } from "./conversations";
import type { AppState, Key, Pending, Turn } from "./model";
import { edited, edits, queued, unqueued } from "./queue";
import { addCard, counted, removeCard, toSpot, withCards, without } from "./talk";
import { applyBatch, freshTurn, holdQueued, turnOf } from "./turns";

/** The state after an action. */
export function reduce(state: AppState, action: Action): AppState {
  switch (action.type) {
    case "started": {
      const { snapshot } = action;
      const turns: Record<number, Turn> = {};
      for (const running of snapshot.turns) turns[running.turn] = freshTurn(running);
      return {
        ...state,
        phase: "ready",
        version: snapshot.version,
        status: snapshot.status,
        settings: snapshot.settings,
        conversations: sorted(snapshot.conversations),
        models: snapshot.models,
        folders: snapshot.folders,
        downloads: snapshot.downloads,
        starter: snapshot.starter,
        turns,
        notices: snapshot.notices,
        ...withUnsent(state, snapshot.unsent),
      };
    }
    case "start-failed":
      return { ...state, phase: "failed", startError: action.error };
    case "status":
      return { ...state, status: action.status };
    case "settings":
      return { ...state, settings: action.settings };
    case "models":
      return { ...state, models: action.models };
    case "folders":
      return { ...state, folders: action.folders };
    case "downloads":
      return { ...state, downloads: action.downloads };
    case "conversations": {
      const gone = new Set(state.removed.map(({ summary }) => summary.id));
      const list = action.conversations.filter((c) => !gone.has(c.id));
      return { ...state, conversations: sorted(list) };
    }
    case "show":
      return { ...state, shown: action.key, spot: null };
    case "read":
      return {
        ...state,
        open: { ...state.open, [action.conversation.id]: action.conversation },
      };
    case "spot":
      return toSpot(state, action.spot);
    case "card":
      return addCard(state, action.key, action.card);
    case "uncard":
      return removeCard(state, action.key, action.id);
    case "uncard-all":
      return { ...state, cards: without(state.cards, action.key) };
    case "counted":
      return counted(state, action.key, action.count);
    case "recount": {
      const recounts = (state.recounts[action.key] ?? 0) + 1;
      return { ...state, recounts: set(state.recounts, action.key, recounts) };
    }
    case "opened":
      return {
        ...state,
        open: {
          ...state.open,
          [action.conversation.id]: refreshed(
            state.open[action.conversation.id],
            action.conversation,
          ),
        },
      };
    case "renamed":
      return replaceSummary(state, action.summary);
    case "removed":
      return remove(state, action.id);
    case "restored":
      return restore(state, action.summary);
    case "removal-settled":
      return { ...state, removed: settled(state.removed, action.id) };
    case "notice-seen":
      return { ...state, notices: state.notices.filter((n) => n !== action.notice) };
    case "editing":
      return { ...state, edits: { ...state.edits, [action.message]: action.edit } };
    case "edit-ended":
      return editEnded(state, action.message, action.taken);
    case "draft":
      return { ...state, drafts: set(state.drafts, action.key, action.text || undefined) };
    default:
      return reduceWriting(state, action);
  }
}

/**
 * Brings back what an earlier window left unsent. What waited there waits for the person here: it
 * may have been sent in the last moment. Words typed before the program answered come after it.
 */
function withUnsent(
  state: AppState,
  unsent: Unsent[],
): Pick<AppState, "drafts" | "queued" | "cards"> {
  const drafts = { ...state.drafts };
  const queued = { ...state.queued };
  let cards = state.cards;
  for (const { conversation, text, waiting, cards: inBox, waitingCards } of unsent) {
    const key: Key = conversation ?? "new";
    const draft = [text, drafts[key] ?? ""].filter((words) => words !== "").join("\n\n");
    if (draft !== "") drafts[key] = draft;
    if (waiting !== "" || waitingCards.length > 0) {
      queued[key] = { text: waiting, cards: waitingCards, waitsFor: "person" };
    }
    cards = withCards(cards, key, [...inBox, ...(cards[key] ?? [])]);
  }
  return { drafts, queued, cards };
}

type WritingAction = Extract<
  Action,
  {
    type:
      | "submitted"
      | "sent"
      | "not-sent"
      | "attached"
      | "batches"
      | "stop-wanted"
      | "turn-lost"
      | "queue"
      | "editing-queued"
      | "edit-queued"
      | "unqueue"
      | "problem"
      | "problem-seen";
  }
>;

function reduceWriting(state: AppState, action: WritingAction): AppState {
  switch (action.type) {
    case "submitted":
      return {
        ...state,
        pending: set(state.pending, action.key, action.pending),
        problems: set(state.problems, action.key, undefined),
      };
    case "sent":
      return takeSent(state, action.key, action.sent);
    case "not-sent":
      return notSent(state, action);
    case "attached":
      return state.turns[action.turn.turn]
        ? state
        : { ...state, turns: { ...state.turns, [action.turn.turn]: freshTurn(action.turn) } };
    case "batches":
      return action.items.reduce((s, { turn, batch }) => applyBatch(s, turn, batch), state);
    case "stop-wanted":
      return stopWanted(state, action.key);
    case "turn-lost":
      return turnLost(state, action);
    case "queue":
      return queued(state, action);
    case "editing-queued":
      return edits(state, action.key, action.text);
    case "edit-queued":
      return edited(state, action);
    case "unqueue":
      return unqueued(state, action.key);
    case "problem":
      return {
        ...state,
        problems: set(state.problems, action.key, { what: action.what, error: action.error }),
      };
    case "problem-seen":
      return { ...state, problems: set(state.problems, action.key, undefined) };
  }
}

const notDone: Record<Pending["kind"], WordsKey> = {
  send: "problem.notSent",
  regenerate: "problem.notAgain",
  edit: "problem.notSent",
  continue: "problem.notContinued",
};

/** The text is never lost: it goes back into the box, or, if that is in use, waits above it. */
function notSent(state: AppState, action: Extract<Action, { type: "not-sent" }>): AppState {
  const pending = state.pending[action.key];
  const next: AppState = {
    ...state,
    pending: set(state.pending, action.key, undefined),
    problems: set(state.problems, action.key, {
      what: pending ? notDone[pending.kind] : "problem.notSent",
      error: action.error,
    }),
  };
  if (pending?.kind !== "send") return holdQueued(next, action.key);
  const inUse = state.drafts[action.key] ?? state.cards[action.key];
  if (!inUse && !state.queued[action.key]) {
    return {
      ...next,
      drafts: set(next.drafts, action.key, pending.text || undefined),
      cards: withCards(next.cards, action.key, pending.cards),
    };
  }
  const waiting = state.queued[action.key];
  const words = state.queuedEdits[action.key] ?? waiting?.text ?? "";
  const text = [pending.text, words].filter((part) => part !== "").join("\n\n");
  const cards = [...pending.cards, ...(waiting?.cards ?? [])];
  return {
    ...next,
    queued: set(next.queued, action.key, { text, cards, waitsFor: "person" }),
    queuedEdits: set(next.queuedEdits, action.key, undefined),
  };
}

function stopWanted(state: AppState, key: Key): AppState {
  const pending = state.pending[key];
  if (pending) {
    return { ...state, pending: set(state.pending, key, { ...pending, stopWanted: true }) };
  }
  const turn = turnOf(state, key);
  if (!turn) return state;
  return { ...state, turns: { ...state.turns, [turn.turn]: { ...turn, stopping: true } } };
}

function turnLost(state: AppState, action: Extract<Action, { type: "turn-lost" }>): AppState {
  const lost = state.turns[action.turn];
  const turns = { ...state.turns };
  delete turns[action.turn];
  const read = action.conversation;
  const open = read
    ? { ...state.open, [read.id]: refreshed(state.open[read.id], read) }
    : state.open;
  const next = { ...state, turns, open };
  return lost ? holdQueued(next, lost.conversation) : next;
}

function set<V>(
  record: Partial<Record<Key, V>>,
  key: Key,
  value: V | undefined,
): Partial<Record<Key, V>> {
  const next = { ...record };
  if (value === undefined) delete next[key];
  else next[key] = value;
  return next;
}
