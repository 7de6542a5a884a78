/** What happens to cards, to the count of tokens, and to the place that a search led to. */
import type { Card, ConversationSummary, TokenCount } from "../platform/bindings";
import type { AppState, Key, Spot } from "./model";
import { leftOut, shownMessages } from "./select";

/** A card goes with the words in the box. */
export function addCard(state: AppState, key: Key, card: Card): AppState {
  const cards = [...(state.cards[key] ?? []), card];
  return { ...state, cards: { ...state.cards, [key]: cards }, counts: without(state.counts, key) };
}

/** A card goes no longer with them. */
export function removeCard(state: AppState, key: Key, id: number): AppState {
  const left = (state.cards[key] ?? []).filter((card) => card.id !== id);
  return { ...state, cards: withCards(state.cards, key, left), counts: without(state.counts, key) };
}

/**
 * What the next message takes. One that is too long says nothing of the memory, which is shown as
 * it was.
 */
export function counted(state: AppState, key: Key, count: TokenCount | null): AppState {
  if (!count) return { ...state, counts: without(state.counts, key) };
  const before = state.counts[key]?.leftOut ?? leftOut(shownMessages(state, key));
  const known = count.tooLong === null ? count : { ...count, leftOut: before };
  return { ...state, counts: { ...state.counts, [key]: known } };
}

/** The cards of a place are these now. */
export function withCards(
  cards: AppState["cards"],
  key: Key,
  list: Card[],
): AppState["cards"] {
  return list.length === 0 ? without(cards, key) : { ...cards, [key]: list };
}

/** A record without one key. */
export function without<V>(record: Partial<Record<Key, V>>, key: Key): Partial<Record<Key, V>> {
  const next = { ...record };
  delete next[key];
  return next;
}

/** Leads the eye to a message. */
export function toSpot(state: AppState, spot: Spot | null): AppState {
  return { ...state, spot };
}

/** A part of the sidebar. */
export interface Shelf {
  /** What it is: none is where conversations lie that have no other place. */
  kind: "pinned" | "folder" | "none";
  /** Of a folder; the others are known by their kind. */
  name: string;
  conversations: ConversationSummary[];
}

/** The conversations by their places: pinned ones, folders by name, all others. */
export function shelves(conversations: ConversationSummary[]): Shelf[] {
  const pinned = conversations.filter((c) => c.pinned);
  const others = conversations.filter((c) => !c.pinned);
  const names = [...new Set(others.map((c) => c.folder).filter((name) => name !== null))];
  names.sort((a, b) => a.localeCompare(b));
  const folders = names.map(
    (name): Shelf => ({ kind: "folder", name, conversations: others.filter((c) => c.folder === name) }),
  );
  const rest = others.filter((c) => c.folder === null);
  const all: Shelf[] = [
    { kind: "pinned", name: "", conversations: pinned },
    ...folders,
    { kind: "none", name: "", conversations: rest },
  ];
  return all.filter((shelf) => shelf.conversations.length > 0);
}

/** All folders, by name. */
export function foldersOf(conversations: ConversationSummary[]): string[] {
  const names = new Set(conversations.map((c) => c.folder).filter((name) => name !== null));
  return [...names].sort((a, b) => a.localeCompare(b));
}
