/**
 * The one door between the window and the rest of the program. Everything behind it can be
 * replaced: by the real shell (`tauri.ts`) or by a scripted one (`fake/`).
 */
import type {
  Card,
  ChatSettings,
  Conversation,
  ConversationSummary,
  Download,
  ExportFormat,
  Exported,
  Found,
  HubListing,
  HubModel,
  Imported,
  Language,
  ModelDetails,
  ModelEntry,
  ModelFit,
  ModelFolder,
  ReplayEvent,
  RunningTurn,
  Sent,
  Place,
  ServerState,
  Settings,
  Snapshot,
  Status,
  TokenCount,
  TurnBatch,
  Unsent,
  WireError,
} from "./bindings";
import { t } from "../text/words.svelte";

export type * from "./bindings";

/** Takes what a turn tells, in order. */
export type TurnReader = (batch: TurnBatch) => void;

/** Takes how a replay goes, to its one end. */
export type ReplayReader = (event: ReplayEvent) => void;

/** Ends a subscription. */
export type Unsubscribe = () => void;

/** The rare news that concern the whole window. */
export interface PlatformEvents {
  status: Status;
  conversations: ConversationSummary[];
  models: ModelEntry[];
  folders: ModelFolder[];
  downloads: Download[];
  "turn-ended": RunningTurn;
  /** A text file was dropped on the window. */
  card: Card;
  /** What was dropped could not be taken. */
  "card-refused": WireError;
  /** Somebody closes the window; it goes when `closeWindow` is called, or soon without that. */
  closing: null;
}

/** What the window can ask for. A rejection is always a `WireError`. */
export interface Platform {
  /** `system` is the language that the system speaks, for a window of which none was chosen. */
  bootstrap(system: Language): Promise<Snapshot>;
  openConversation(id: number): Promise<Conversation>;
  renameConversation(id: number, title: string): Promise<ConversationSummary>;
  deleteConversation(id: number): Promise<void>;
  restoreConversation(id: number): Promise<ConversationSummary>;
  /** Pins a conversation, or puts it into a folder. */
  placeConversation(id: number, place: Place): Promise<ConversationSummary>;
  /** An empty name takes the folder's conversations out of it. */
  renameFolder(from: string, to: string): Promise<void>;
  search(words: string): Promise<Found[]>;
  /** Shows the branch on which a message lies. */
  showMessage(message: number): Promise<Conversation>;
  /** A new conversation with the messages up to this one. */
  duplicate(message: number): Promise<Conversation>;
  /** Shows the system's dialog; null if the person closed it. No number: all conversations. */
  exportConversations(id: number | null, format: ExportFormat): Promise<Exported | null>;
  importConversations(): Promise<Imported | null>;
  send(conversation: number | null, text: string, cards: number[], reader: TurnReader): Promise<Sent>;
  /** Another version of a question, and a reply to it. */
  editQuestion(message: number, text: string, reader: TurnReader): Promise<Sent>;
  /** Another version of a reply, in the person's words. */
  editReply(message: number, text: string): Promise<Conversation>;
  continueReply(message: number, reader: TurnReader): Promise<Sent>;
  /** Null if no model is open to count. */
  countTokens(conversation: number | null, text: string, cards: number[]): Promise<TokenCount | null>;
  /** Keeps a long text that will go with a message. */
  addCard(name: string, text: string): Promise<Card>;
  /** Shows the system's dialog; null if the person closed it. */
  pickCard(): Promise<Card | null>;
  cardText(id: number): Promise<string>;
  regenerate(message: number, reader: TurnReader): Promise<Sent>;
  /** False if the turn is over: read the conversation again. */
  attach(turn: number, fromSeq: number, reader: TurnReader): Promise<boolean>;
  stop(turn: number): Promise<void>;
  /** Writes a reply once more, in no conversation, to see whether it comes out the same. */
  replay(message: number, reader: ReplayReader): Promise<void>;
  stopReplay(message: number): Promise<void>;
  /** The SHA-256 of the model file that wrote a reply; it may have to be read for it. */
  replyFileHash(message: number): Promise<string>;
  /** Stops the reply that others, or another model, wait for. */
  stopWriting(): Promise<void>;
  /** Null if the person closed the dialog. */
  pickModel(): Promise<ModelEntry | null>;
  addModel(path: string): Promise<ModelEntry>;
  /** Answers at once; how it goes is told by `status`. */
  loadModel(id: string): Promise<void>;
  /** Reads the file's description; loads nothing. */
  modelDetails(id: string): Promise<ModelDetails>;
  /** Whether there is room for them, in the same order. */
  modelFits(ids: string[]): Promise<ModelFit[]>;
  /** Null if the person closed the dialog. */
  pickFolder(): Promise<Settings | null>;
  addModelFolder(path: string): Promise<Settings>;
  removeModelFolder(id: string): Promise<Settings>;
  /** Looks through all folders again; what is found is told by `folders` and `models`. */
  searchFolders(): Promise<void>;
  hubSearch(words: string): Promise<HubModel[]>;
  hubFiles(repo: string): Promise<HubListing>;
  /** How it goes on is told by `downloads`. */
  startDownload(repo: string, path: string): Promise<Download>;
  downloadStarter(): Promise<Download>;
  pauseDownload(id: number): Promise<void>;
  resumeDownload(id: number): Promise<void>;
  /** What has come of one that is not whole is removed. */
  removeDownload(id: number): Promise<void>;
  stopLoading(): Promise<void>;
  /** Lets the CPU compute; what a GPU was about to do ends. */
  useCpu(): Promise<void>;
  /** Takes back that only the CPU may compute, and loads the model again. */
  useGpu(): Promise<void>;
  /** Asks the driver again and holds the GPU against the CPU again. */
  checkAgain(): Promise<void>;
  forgetModel(id: string): Promise<void>;
  saveSettings(settings: Settings): Promise<Settings>;
  /** Null if this chat has no settings of its own; null asks for the chat that is not begun. */
  chatSettings(conversation: number | null): Promise<ChatSettings | null>;
  keepChatSettings(
    conversation: number | null,
    chat: ChatSettings | null,
  ): Promise<ChatSettings | null>;
  /** What the open model would read of a short conversation. */
  previewTemplate(chat: ChatSettings): Promise<string>;
  serverState(): Promise<ServerState>;
  /** Starts, changes or stops the server as the settings say. */
  switchServer(): Promise<ServerState>;
  openLink(url: string): Promise<void>;
  /** A report on the program and the machine, without the names of people. */
  diagnostics(): Promise<string>;
  /** Shows the system's dialog and keeps the report there; false if the person closed it. */
  saveReport(text: string): Promise<boolean>;
  /** Keeps words for the next start, in the place of what was kept of the same conversation. */
  keepUnsent(unsent: Unsent): Promise<void>;
  closeWindow(): Promise<void>;
  on<E extends keyof PlatformEvents>(
    event: E,
    handler: (payload: PlatformEvents[E]) => void,
  ): Promise<Unsubscribe>;
}

/** Whatever was thrown, as an error that can be shown. */
export function asWireError(thrown: unknown): WireError {
  if (typeof thrown === "object" && thrown !== null && "message" in thrown) {
    const { message } = thrown as { message: unknown };
    const code = "code" in thrown ? (thrown as { code: unknown }).code : undefined;
    if (typeof message === "string") {
      return { code: typeof code === "string" ? (code as WireError["code"]) : "internal", message };
    }
  }
  return { code: "internal", message: typeof thrown === "string" ? thrown : t("common.unknownError") };
}
