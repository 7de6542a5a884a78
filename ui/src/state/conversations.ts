/** What happens to the list of conversations and to the messages that are read. */
import type { Conversation, ConversationSummary, Sent } from "../platform/bindings";
import type { AppState, Key, Removed } from "./model";
import { freshTurn } from "./turns";

/** Newest first; equal times keep the higher number first, so that the order is always the same. */
export function sorted(conversations: ConversationSummary[]): ConversationSummary[] {
  return [...conversations].sort((a, b) => b.updatedMs - a.updatedMs || b.id - a.id);
}

/** Takes a conversation out of the list, remembering its place. */
export function remove(state: AppState, id: number): AppState {
  const index = state.conversations.findIndex((c) => c.id === id);
  const summary = state.conversations[index];
  if (!summary) return state;
  const open = { ...state.open };
  delete open[id];
  const before = state.conversations[index + 1]?.id ?? null;
  // What was deleted right before it stands before it still; the others of its place behind.
  const ahead = state.removed.filter((r) => r.before === id).map((r) => ({ ...r, before }));
  const others = state.removed.filter((r) => r.before !== id);
  return {
    ...state,
    conversations: state.conversations.filter((c) => c.id !== id),
    open,
    shown: state.shown === id ? "new" : state.shown,
    removed: [...ahead, { summary, before }, ...others],
  };
}

/** Puts a conversation back where it was. */
export function restore(state: AppState, summary: ConversationSummary): AppState {
  const others = state.conversations.filter((c) => c.id !== summary.id);
  const at = state.removed.findIndex((r) => r.summary.id === summary.id);
  const place = state.removed[at]?.before;
  // What stood before it in the same place stands before it again.
  const removed = state.removed.map((r, i) =>
    i < at && r.before === place ? { ...r, before: summary.id } : r,
  );
  return {
    ...state,
    conversations: sorted([...others, summary]),
    removed: settled(removed, summary.id),
  };
}

/** The deletions without this one. */
export function settled(removed: Removed[], id: number): Removed[] {
  return removed.filter(({ summary }) => summary.id !== id);
}

/** Changes one row of the list. */
export function replaceSummary(state: AppState, summary: ConversationSummary): AppState {
  const opened = state.open[summary.id];
  return {
    ...state,
    conversations: state.conversations.map((c) => (c.id === summary.id ? summary : c)),
    open: opened
      ? { ...state.open, [summary.id]: { ...opened, title: summary.title } }
      : state.open,
  };
}

/** The program has taken a message: it has a number now, and a turn writes the reply. */
export function takeSent(state: AppState, key: Key, sent: Sent): AppState {
  const { conversation, turn } = sent;
  const reply = conversation.messages.findLast((m) => m.turn === turn);
  const pending = state.pending[key];
  const stopWanted = pending?.stopWanted ?? false;
  const ended =
    pending?.kind === "edit" && pending.message !== null
      ? editEnded(state, pending.message, pending.text)
      : state;
  const moved = moveKey(ended, key, conversation.id);
  const turns =
    reply?.state === "writing"
      ? {
          ...moved.turns,
          [turn]: {
            ...freshTurn({ turn, conversation: conversation.id, message: reply.id }),
            stopping: stopWanted,
          },
        }
      : moved.turns;
  return {
    ...moved,
    turns,
    open: { ...moved.open, [conversation.id]: conversation },
    conversations: listed(moved.conversations, conversation),
  };
}

/** An edit ends, unless there are other words in it by now than those the program has taken. */
export function editEnded(state: AppState, message: number, taken: string | null): AppState {
  const edit = state.edits[message];
  if (!edit || (taken !== null && edit.text !== taken)) return state;
  const edits = { ...state.edits };
  delete edits[message];
  return { ...state, edits };
}

/**
 * What is known of a conversation, and what was read of it a while ago: the reading may be older
 * than what turns have told meanwhile, so it never takes a message away, nor an end.
 */
export function refreshed(known: Conversation | undefined, read: Conversation): Conversation {
  if (!known) return read;
  const of = (c: Conversation, id: number) => c.messages.find((message) => message.id === id);
  const isNewer = known.messages.every((message) => of(read, message.id));
  const base = isNewer ? read : known;
  const messages = base.messages.map(({ id }) => {
    const versions = [of(known, id), of(read, id)].filter((message) => message !== undefined);
    return versions.find((message) => message.state !== "writing") ?? versions[0];
  });
  return { ...base, messages: messages.filter((message) => message !== undefined) };
}

/** The program tells the list too, but perhaps later: until then the row must not be missing. */
function listed(list: ConversationSummary[], c: Conversation): ConversationSummary[] {
  if (list.some((summary) => summary.id === c.id)) return list;
  const newest = list.reduce((max, summary) => Math.max(max, summary.updatedMs), 0);
  return [{ id: c.id, title: c.title, updatedMs: newest, pinned: false, folder: null }, ...list];
}

/** What belonged to the conversation that was not begun now belongs to its number. */
function moveKey(state: AppState, from: Key, to: number): AppState {
  const pending = { ...state.pending };
  const problems = { ...state.problems };
  delete pending[from];
  delete problems[from];
  if (from === to) return { ...state, pending, problems };
  const drafts = { ...state.drafts };
  const cards = { ...state.cards };
  const queued = { ...state.queued };
  const queuedEdits = { ...state.queuedEdits };
  const wasShown = state.shown === from;
  // Typing goes on in the box that is on the screen: only then does the draft move along.
  if (wasShown && drafts[from] !== undefined) drafts[to] = drafts[from];
  if (wasShown && cards[from] !== undefined) cards[to] = cards[from];
  if (wasShown) delete drafts[from];
  if (wasShown) delete cards[from];
  if (queued[from]) queued[to] = queued[from];
  delete queued[from];
  if (queuedEdits[from] !== undefined) queuedEdits[to] = queuedEdits[from];
  delete queuedEdits[from];
  const shown = wasShown ? to : state.shown;
  return { ...state, pending, problems, drafts, cards, queued, queuedEdits, shown };
}
