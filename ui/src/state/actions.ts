/** Everything that can happen. */
import type {
  Card,
  Conversation,
  ConversationSummary,
  Download,
  ModelEntry,
  ModelFolder,
  RunningTurn,
  Sent,
  Settings,
  Snapshot,
  Status,
  TokenCount,
  TurnBatch,
  WireError,
} from "../platform/bindings";
import type { Key as WordsKey } from "../text/words.svelte";
import type { Edit, Key, Pending, Spot } from "./model";

/** One thing that happened. */
export type Action =
  | { type: "started"; snapshot: Snapshot }
  | { type: "start-failed"; error: WireError }
  | { type: "status"; status: Status }
  | { type: "settings"; settings: Settings }
  | { type: "models"; models: ModelEntry[] }
  | { type: "folders"; folders: ModelFolder[] }
  | { type: "downloads"; downloads: Download[] }
  | { type: "conversations"; conversations: ConversationSummary[] }
  | { type: "show"; key: Key }
  | { type: "opened"; conversation: Conversation }
  | { type: "renamed"; summary: ConversationSummary }
  | { type: "removed"; id: number }
  | { type: "restored"; summary: ConversationSummary }
  | { type: "removal-settled"; id: number }
  | { type: "notice-seen"; notice: string }
  | { type: "draft"; key: Key; text: string }
  | { type: "editing"; message: number; edit: Edit }
  /** An edit is given up, or the program has taken these words of it. */
  | { type: "edit-ended"; message: number; taken: string | null }
  | { type: "submitted"; key: Key; pending: Pending }
  | { type: "sent"; key: Key; sent: Sent }
  | { type: "not-sent"; key: Key; error: WireError }
  | { type: "attached"; turn: RunningTurn }
  | { type: "batches"; items: { turn: number; batch: TurnBatch }[] }
  | { type: "stop-wanted"; key: Key }
  | { type: "turn-lost"; turn: number; conversation: Conversation | null }
  | { type: "read"; conversation: Conversation }
  | { type: "spot"; spot: Spot | null }
  | { type: "card"; key: Key; card: Card }
  | { type: "uncard"; key: Key; id: number }
  | { type: "uncard-all"; key: Key }
  | { type: "counted"; key: Key; count: TokenCount | null }
  /** What a chat goes by has changed, and with it what its next message takes. */
  | { type: "recount"; key: Key }
  | { type: "queue"; key: Key; text: string; cards: Card[] }
  | { type: "editing-queued"; key: Key; text: string }
  /** Enter ends the edit of a waiting message, or one looks elsewhere; no text leaves it as it was. */
  | { type: "edit-queued"; key: Key; text: string | null; by: "enter" | "leaving" }
  | { type: "unqueue"; key: Key }
  | { type: "problem"; key: Key; what: WordsKey; error: WireError }
  | { type: "problem-seen"; key: Key };
