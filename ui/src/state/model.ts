/**
 * All that the window knows, as one plain value. Nothing in this folder knows the platform, the
 * framework or the clock: state goes in, state comes out.
 */
import type {
  Card,
  ChatSettings,
  Conversation,
  ConversationSummary,
  Download,
  Message,
  MessagePart,
  ModelEntry,
  ModelFolder,
  Sampling,
  Settings,
  Starter,
  Status,
  TokenCount,
  WireError,
} from "../platform/bindings";
import type { Key as WordsKey } from "../text/words.svelte";

/** A conversation's place in the window: its number, or the one that is not begun yet. */
export type Key = number | "new";

/** A reply that is being written, wherever it is. */
export interface Turn {
  turn: number;
  conversation: number;
  message: number;
  phase: "waiting" | "checking" | "reading" | "writing";
  /** Tokens of the prompt that were read, and all there are. */
  read: { done: number; total: number } | null;
  /** Positions of the message on which a GPU was held against the CPU, and all there are. */
  checked: { done: number; total: number } | null;
  /** That another device writes on, and why. */
  moved: string | null;
  /** What was said so far, and all parts of it, thoughts among them. */
  text: string;
  parts: MessagePart[];
  /** It repeats itself word for word: so long a block, so often. */
  repeats: { blockTokens: number; copies: number } | null;
  tokens: number;
  /** The number of the next event that is wanted. */
  nextSeq: number;
  /** Stop was pressed and the end has not come yet. */
  stopping: boolean;
}

/** A message on its way: shown at once, before the program has answered. */
export interface Pending {
  kind: "send" | "regenerate" | "edit" | "continue";
  text: string;
  cards: Card[];
  /** The message that gets another version, or is gone on with. */
  message: number | null;
  /** Stop was pressed before the turn had a number. */
  stopWanted: boolean;
}

/** The one message that waits above the composer. */
export interface Queued {
  text: string;
  cards: Card[];
  /** It waits for the reply, or (after a stop or a failure) for the person. */
  waitsFor: "reply" | "person";
}

/** A message that is being edited: its conversation, the words so far, and those it has. */
export interface Edit {
  conversation: number;
  text: string;
  was: string;
}

/** What could not be done, as a row above the composer. */
export interface Problem {
  error: WireError;
  /** The words for what was not done: "Not sent". */
  what: WordsKey;
}

/** A conversation that was deleted and can still be had back. */
export interface Removed {
  summary: ConversationSummary;
  /** The one that stands behind its place; none at the end of the list. */
  before: number | null;
}

/** A message that a search led to, and the words that were looked for. */
export interface Spot {
  message: number;
  words: string[];
}

/** The whole state. */
export interface AppState {
  phase: "starting" | "ready" | "failed";
  /** Why the window could not start. */
  startError: WireError | null;
  version: string;
  status: Status;
  settings: Settings;
  conversations: ConversationSummary[];
  models: ModelEntry[];
  folders: ModelFolder[];
  downloads: Download[];
  starter: Starter;
  shown: Key;
  /** Conversations that were read, with their messages. */
  open: Record<number, Conversation>;
  turns: Record<number, Turn>;
  pending: Partial<Record<Key, Pending>>;
  drafts: Partial<Record<Key, string>>;
  /** Messages under edit by their numbers, until the program has taken the words. */
  edits: Record<number, Edit>;
  /** Long texts that go with the words in the box. */
  cards: Partial<Record<Key, Card[]>>;
  queued: Partial<Record<Key, Queued>>;
  /** The words of a waiting message while it is edited: until that ends it is not sent. */
  queuedEdits: Partial<Record<Key, string>>;
  /** What the next message takes of the context, as far as it was counted. */
  counts: Partial<Record<Key, TokenCount>>;
  /** How often what a chat goes by was changed: each time its next message is counted anew. */
  recounts: Partial<Record<Key, number>>;
  spot: Spot | null;
  problems: Partial<Record<Key, Problem>>;
  /** In the order in which they stood, as far as their places touch. */
  removed: Removed[];
  /** What the person has to hear once. */
  notices: string[];
  /** Why replies failed, where the stored record does not say it. */
  failures: Record<number, WireError>;
}

/** The sampling that a fresh program uses. */
export const defaultSampling: Sampling = {
  temperature: 0.7,
  topK: 40,
  topP: 0.95,
  minP: 0,
  repeatPenalty: 1,
  presencePenalty: 0,
  frequencyPenalty: 0,
  dryMultiplier: 0,
  dryBase: 1.75,
  dryAllowedLength: 2,
  xtcProbability: 0,
  xtcThreshold: 0.1,
  maxTokens: 2048,
  seed: null,
};

/** The settings shown until the program has told its own. */
export const defaultSettings: Settings = {
  theme: "system",
  device: "auto",
  gpu: null,
  gpuCheck: "probe",
  gpuChecks: {},
  threads: null,
  context: null,
  kv: "f16",
  models: {},
  systemPrompt: "",
  sampling: defaultSampling,
  stop: [],
  jsonSchema: "",
  template: "",
  thinking: "auto",
  presets: [],
  sidebarFolded: false,
  language: "system",
  textPercent: 100,
  modelFolders: [],
  hubAddress: "",
  offline: false,
  server: { on: false, port: 11711, key: "", origins: [], mayLoad: false },
};

/** The state before the program has answered. */
export const initialState: AppState = {
  phase: "starting",
  startError: null,
  version: "",
  status: {
    banner: {
      kind: "no-model",
      tone: "neutral",
      state: "",
      reason: "",
      advice: null,
      progress: null,
      actions: [],
      details: [],
      report: null,
    },
    model: null,
  },
  settings: defaultSettings,
  conversations: [],
  models: [],
  folders: [],
  downloads: [],
  starter: { state: "absent", why: "" },
  shown: "new",
  open: {},
  turns: {},
  pending: {},
  drafts: {},
  edits: {},
  cards: {},
  queued: {},
  queuedEdits: {},
  counts: {},
  recounts: {},
  spot: null,
  problems: {},
  removed: [],
  notices: [],
  failures: {},
};

/** A message as it is drawn. */
export interface ShownMessage extends Message {
  /** Stable over the life of the bubble, also while it has no number yet. */
  key: string;
  /** The turn that writes it. */
  live: Turn | null;
  /** Why it failed, in plain words. */
  failure: string | null;
}

/** What is chosen for a chat that has no settings of its own. */
export function chatOf(settings: Settings): ChatSettings {
  const { systemPrompt, sampling, stop, jsonSchema, template, thinking } = settings;
  return { systemPrompt, sampling, stop, jsonSchema, template, thinking };
}

/** The settings with other choices for such chats. */
export function withChat(settings: Settings, chat: ChatSettings): Settings {
  return { ...settings, ...chat };
}
