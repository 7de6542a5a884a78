/** Small values for tests. */
import type {
  Conversation,
  ConversationSummary,
  Message,
  ReplyRecord,
  Snapshot,
  TurnEvent,
} from "../src/platform/bindings";
import { openStatus } from "../src/platform/fake/scenarios";
import type { Action } from "../src/state/actions";
import { type AppState, defaultSampling, defaultSettings, initialState } from "../src/state/model";
import { reduce } from "../src/state/reduce";

const bare = { record: null, parts: [], versions: [], kept: 0, cards: [] };

export function question(id: number, text: string): Message {
  return { ...bare, id, role: "user", text, state: "finished", turn: null };
}

export function reply(id: number, change: Partial<Message> = {}): Message {
  return { ...bare, id, role: "assistant", text: "", state: "writing", turn: 7, ...change };
}

export function summary(id: number, title = `chat ${id}`, updatedMs = id): ConversationSummary {
  return { id, title, updatedMs, pinned: false, folder: null };
}

export function conversation(id: number, messages: Message[]): Conversation {
  return { id, title: `chat ${id}`, messages };
}

export const record: ReplyRecord = {
  model: "SmolLM2",
  backend: "CPU",
  device: "Intel Xeon",
  proof: "",
  moved: null,
  backendReason: "no NVIDIA driver found",
  kv: "16 bits",
  generatedTokens: 212,
  promptTokens: 38,
  cachedTokens: 12,
  prefillMs: 260,
  decodeMs: 4416.7,
  firstTokenMs: 300,
  seed: 42,
  sampling: defaultSampling,
  failure: null,
  notice: null,
  leftOut: 0,
  continued: false,
  thinkingMs: [],
  quantization: "Q4_1",
  fileSha256: null,
  version: "0.1.0",
  templateSha256: "ab12",
  contextSha256: "cd34",
  stop: [],
};

export function snapshot(change: Partial<Snapshot> = {}): Snapshot {
  return {
    version: "0.1.0",
    status: openStatus,
    settings: defaultSettings,
    folders: [],
    downloads: [],
    conversations: [],
    models: [],
    starter: { state: "absent", why: "The starter model is not on this computer." },
    turns: [],
    notices: [],
    unsent: [],
    ...change,
  };
}

export function run(state: AppState, ...actions: Action[]): AppState {
  return actions.reduce(reduce, state);
}

export function started(change: Partial<Snapshot> = {}): AppState {
  return run(initialState, { type: "started", snapshot: snapshot(change) });
}

/** News of turn 7, the first of which has the number `from`. */
export function news(from: number, ...events: TurnEvent[]): Action {
  return {
    type: "batches",
    items: [{ turn: 7, batch: { nextSeq: from + events.length, events } }],
  };
}

export function text(words: string, tokens = 1): TurnEvent {
  return { kind: "text", text: words, tokens };
}
