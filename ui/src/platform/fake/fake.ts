/** A scripted platform: tests and the browser see the whole window without the program. */
import type {
  Card,
  ChatSettings,
  Conversation,
  ConversationSummary,
  ExportFormat,
  Exported,
  Found,
  Imported,
  Message,
  Place,
  RunningTurn,
  Sent,
  ServerState,
  Snapshot,
  TokenCount,
  TurnBatch,
  TurnEvent,
  Unsent,
} from "../bindings";
import type { Platform, ReplayReader, TurnReader } from "../types";
import { scriptedReport } from "./words";
import { FakeLibrary, fault } from "./library";
import { ScriptedReplays, message, scriptedEvents, scriptedHash } from "./replies";
import { type Scenario, recordFor } from "./scenarios";
import { ScriptedTree } from "./tree";

interface LiveTurn {
  running: RunningTurn;
  pieces: string[];
  /** What was there before: a reply that is gone on with. */
  begun: string;
  written: number;
  events: TurnEvent[];
  readers: TurnReader[];
  timer: ReturnType<typeof setTimeout> | null;
}

/** See `Platform`. */
export class FakePlatform extends FakeLibrary implements Platform {
  readonly #scenario: Scenario;
  readonly #conversations = new Map<number, Conversation>();
  readonly #deleted = new Map<number, ConversationSummary>();
  readonly #chats = new Map<number | null, ChatSettings>();
  readonly #turns = new Map<number, LiveTurn>();
  #replyCount = 0;
  readonly #replays = new ScriptedReplays();
  readonly #tree = new ScriptedTree();
  readonly #cards = new Map<number, string>();
  /** What was asked of the shell, for tests. */
  readonly opened: string[] = [];
  /** Reports that were saved. */
  readonly saved: string[] = [];
  closed = 0;
  /** Ports that another program has. */
  readonly takenPorts = new Set<number>();
  /** Requests that the server is said to have. */
  requests = 0;
  #server: ServerState = { state: "off" };

  constructor(scenario: Scenario) {
    super(scenario.snapshot);
    this.#scenario = scenario;
    for (const conversation of scenario.conversations) {
      this.#conversations.set(conversation.id, conversation);
    }
  }

  async bootstrap(): Promise<Snapshot> {
    const turns = [...this.#turns.values()].map((turn) => turn.running);
    return { ...this.snapshot, turns };
  }

  async serverState(): Promise<ServerState> {
    const { requests } = this;
    return this.#server.state === "listening" ? { ...this.#server, requests } : this.#server;
  }

  async switchServer(): Promise<ServerState> {
    const { on, port } = this.snapshot.settings.server;
    if (!on) this.#server = { state: "off" };
    else if (this.takenPorts.has(port)) this.#server = { state: "port-taken", port, free: port + 1 };
    else this.#server = { state: "listening", address: `http://127.0.0.1:${port}`, requests: 0 };
    return this.serverState();
  }

  async openConversation(id: number): Promise<Conversation> {
    const conversation = this.#conversations.get(id);
    if (!conversation) throw fault("not-found", "This conversation is not there any more.");
    return conversation;
  }

  async renameConversation(id: number, title: string): Promise<ConversationSummary> {
    const conversation = await this.openConversation(id);
    this.#conversations.set(id, { ...conversation, title });
    return this.#touch(id, title);
  }

  async deleteConversation(id: number): Promise<void> {
    const summary = this.snapshot.conversations.find((c) => c.id === id);
    if (!summary) throw fault("not-found", "This conversation is not there any more.");
    this.#deleted.set(id, summary);
    this.#list(this.snapshot.conversations.filter((c) => c.id !== id));
  }

  async restoreConversation(id: number): Promise<ConversationSummary> {
    const summary = this.#deleted.get(id);
    if (!summary) throw fault("not-found", "This conversation is not there any more.");
    this.#deleted.delete(id);
    this.#list([...this.snapshot.conversations, summary]);
    return summary;
  }

  async placeConversation(id: number, place: Place): Promise<ConversationSummary> {
    const summary = this.snapshot.conversations.find((c) => c.id === id);
    if (!summary) throw fault("not-found", "This conversation is not there any more.");
    const placed = { ...summary, ...place };
    this.#list(this.snapshot.conversations.map((c) => (c.id === id ? placed : c)));
    return placed;
  }

  async renameFolder(from: string, to: string): Promise<void> {
    const folder = to === "" ? null : to;
    const renamed = this.snapshot.conversations.map((c) => (c.folder === from ? { ...c, folder } : c));
    this.#list(renamed);
  }

  async search(words: string): Promise<Found[]> {
    return this.#tree.search(words, [...this.#conversations.values()]);
  }

  async showMessage(message: number): Promise<Conversation> {
    const shown = this.#tree.show(message, [...this.#conversations.values()]);
    if (!shown) throw fault("not-found", "This message is not there any more.");
    this.#conversations.set(shown.id, shown);
    return shown;
  }

  async duplicate(message: number): Promise<Conversation> {
    const from = this.#holding(message);
    const id = this.nextId++;
    const at = from.messages.findIndex((m) => m.id === message);
    const messages = from.messages
      .slice(0, at + 1)
      .map((m) => ({ ...m, id: this.nextId++, versions: [] }));
    this.#conversations.set(id, { ...from, id, messages });
    this.#touch(id, from.title);
    return { ...from, id, messages };
  }

  async exportConversations(id: number | null, format: ExportFormat): Promise<Exported | null> {
    const end = format === "json" ? "json" : "md";
    const conversations = id === null ? this.snapshot.conversations.length : 1;
    return { path: `/home/ana/chats.${end}`, conversations };
  }

  async importConversations(): Promise<Imported | null> {
    return { source: "ChatGPT", conversations: 3, messages: 41, leftOut: 2, first: null };
  }

  async editQuestion(id: number, text: string, reader: TurnReader): Promise<Sent> {
    const conversation = this.#holding(id);
    const at = conversation.messages.findIndex((m) => m.id === id);
    const old = conversation.messages[at];
    if (!old) throw fault("not-found", "This question is not there any more.");
    const question = message({ id: this.nextId++, role: "user", text, cards: old.cards });
    const versions = this.#tree.beside(conversation, old, question.id);
    const before = conversation.messages.slice(0, at);
    return this.#begin({ ...conversation, messages: [...before, { ...question, versions }] }, reader);
  }

  async editReply(id: number, text: string): Promise<Conversation> {
    const conversation = this.#holding(id);
    const at = conversation.messages.findIndex((m) => m.id === id);
    const old = conversation.messages[at];
    if (!old) throw fault("not-found", "This reply is not there any more.");
    const reply = message({ id: this.nextId++, role: "assistant", text, state: "edited" });
    const versions = this.#tree.beside(conversation, old, reply.id);
    const messages = [...conversation.messages.slice(0, at), { ...reply, versions }];
    const changed = { ...conversation, messages };
    this.#conversations.set(changed.id, changed);
    return changed;
  }

  async continueReply(id: number, reader: TurnReader): Promise<Sent> {
    const conversation = this.#holding(id);
    const old = conversation.messages.find((m) => m.id === id);
    if (!old) throw fault("not-found", "This reply is not there any more.");
    const messages = conversation.messages.slice(0, -1);
    return this.#begin({ ...conversation, messages }, reader, old);
  }

  async countTokens(id: number | null, text: string, cards: number[]): Promise<TokenCount | null> {
    const model = this.snapshot.status.model;
    if (!model) return null;
    const said = id === null ? [] : (this.#conversations.get(id)?.messages ?? []);
    const bytes = cards.reduce((sum, card) => sum + (this.#cards.get(card)?.length ?? 0), text.length);
    const count = Math.ceil(bytes / 4.2);
    const before = said.reduce((sum, m) => sum + Math.ceil(m.text.length / 4.2) + 5, 20);
    const tooLong =
      count > model.context
        ? `With the system prompt this message has ${count} tokens; the context holds ${model.context}.`
        : null;
    const prompt = Math.min(before + count, model.context);
    return { message: count, prompt, context: model.context, leftOut: this.#scenario.leftOut ?? 0, tooLong };
  }

  async addCard(name: string, text: string): Promise<Card> {
    const id = this.nextId++;
    this.#cards.set(id, text);
    return {
      id,
      name,
      sizeBytes: new TextEncoder().encode(text).length,
      lines: text.split("\n").length,
      preview: text.slice(0, 160),
    };
  }

  /** As if a text file were dropped on the window. */
  drop(name: string, text: string): void {
    void this.addCard(name, text).then((card) => this.emit("card", card));
  }

  async pickCard(): Promise<Card | null> {
    return this.addCard("notes.txt", "first line\nsecond line\n");
  }

  async cardText(id: number): Promise<string> {
    const text = this.#cards.get(id);
    if (text === undefined) throw fault("not-found", "This text is not there any more.");
    return text;
  }

  #holding(id: number): Conversation {
    const all = [...this.#conversations.values()];
    const found = all.find((c) => c.messages.some((m) => m.id === id));
    if (!found) throw fault("not-found", "This message is not there any more.");
    return found;
  }

  async send(
    conversation: number | null,
    text: string,
    cards: number[],
    reader: TurnReader,
  ): Promise<Sent> {
    if (!this.snapshot.status.model) throw fault("no-model", "No model is open.");
    const id = conversation ?? this.nextId++;
    const before = this.#conversations.get(id) ?? { id, title: titleFrom(text), messages: [] };
    const named = cards.map((card) => this.addCard("Pasted text", this.#cards.get(card) ?? ""));
    const question = message({ id: this.nextId++, role: "user", text, cards: await Promise.all(named) });
    return this.#begin({ ...before, messages: [...before.messages, question] }, reader);
  }

  async regenerate(reply: number, reader: TurnReader): Promise<Sent> {
    for (const conversation of this.#conversations.values()) {
      const index = conversation.messages.findIndex((m) => m.id === reply);
      if (index === -1) continue;
      const old = conversation.messages[index];
      const sent = this.#begin(
        { ...conversation, messages: conversation.messages.slice(0, index) },
        reader,
      );
      const again = sent.conversation.messages.at(-1);
      if (old && again) again.versions = this.#tree.beside(conversation, old, again.id);
      return sent;
    }
    throw fault("not-found", "This reply is not there any more.");
  }

  async attach(turn: number, fromSeq: number, reader: TurnReader): Promise<boolean> {
    const live = this.#turns.get(turn);
    if (!live) return false;
    const events = live.events.slice(fromSeq);
    if (events.length > 0) reader({ nextSeq: live.events.length, events });
    live.readers.push(reader);
    return true;
  }

  async stopWriting(): Promise<void> {
    for (const live of [...this.#turns.values()].slice(0, 1)) this.#end(live, "stopped");
  }

  async stop(turn: number): Promise<void> {
    const live = this.#turns.get(turn);
    if (live) this.#end(live, "stopped");
  }

  async replay(id: number, reader: ReplayReader): Promise<void> {
    const { outcome } = this.#scenario;
    const record = this.#recordOf(id);
    if (!record) throw fault("not-found", "It is not known how this reply was written.");
    this.#replays.begin(id, record.generatedTokens, { kind: "ended", outcome: outcome(record) }, reader);
  }

  async stopReplay(id: number): Promise<void> {
    this.#replays.stop(id);
  }

  async replyFileHash(): Promise<string> {
    return scriptedHash;
  }

  #recordOf(id: number): Message["record"] {
    const conversations = [...this.#conversations.values()];
    const messages = conversations.flatMap((conversation) => conversation.messages);
    return messages.find((found) => found.id === id)?.record ?? null;
  }

  async keepUnsent(unsent: Unsent): Promise<void> {
    const others = this.snapshot.unsent.filter((u) => u.conversation !== unsent.conversation);
    const cards = [...unsent.cards, ...unsent.waitingCards];
    const empty = unsent.text === "" && unsent.waiting === "" && cards.length === 0;
    this.snapshot = { ...this.snapshot, unsent: empty ? others : [...others, unsent] };
  }

  /** As if somebody pressed the window's own button. */
  askToClose(): void {
    this.emit("closing", null);
  }

  async closeWindow(): Promise<void> {
    this.closed += 1;
  }

  async chatSettings(conversation: number | null): Promise<ChatSettings | null> {
    return this.#chats.get(conversation) ?? null;
  }

  async keepChatSettings(
    conversation: number | null,
    chat: ChatSettings | null,
  ): Promise<ChatSettings | null> {
    if (chat) this.#chats.set(conversation, chat);
    else this.#chats.delete(conversation);
    return chat;
  }

  async previewTemplate(chat: ChatSettings): Promise<string> {
    if (chat.template.includes("{% for %}")) {
      throw fault("internal", "The template is wrong in line 1: unexpected end of block.");
    }
    const system = chat.systemPrompt === "" ? "" : `<|im_start|>system\n${chat.systemPrompt}<|im_end|>\n`;
    return `${system}<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n`;
  }

  async diagnostics(): Promise<string> {
    return scriptedReport;
  }

  async saveReport(text: string): Promise<boolean> {
    this.saved.push(text);
    return true;
  }

  async openLink(url: string): Promise<void> {
    this.opened.push(url);
  }

  /** `kept` is a reply that is gone on with. */
  #begin(conversation: Conversation, reader: TurnReader, kept: Message | null = null): Sent {
    const { script } = this.#scenario;
    const turn = this.nextId++;
    const reply: Message = kept
      ? { ...kept, state: "writing", turn, kept: kept.text.length }
      : message({ id: this.nextId++, role: "assistant", text: "", state: "writing", turn });
    const words = script.replies[this.#replyCount++ % script.replies.length] ?? "";
    const live: LiveTurn = {
      running: { turn, conversation: conversation.id, message: reply.id },
      pieces: cut(words, script.wordsPerPiece),
      begun: kept?.text ?? "",
      written: 0,
      events: [],
      readers: [reader],
      timer: null,
    };
    this.#turns.set(turn, live);
    const full = { ...conversation, messages: [...conversation.messages, reply] };
    this.#conversations.set(conversation.id, full);
    this.#touch(conversation.id, conversation.title);
    live.timer = setTimeout(() => {
      this.#tell(live, { kind: "reading", done: 38, total: 38 });
      this.#write(live);
    }, script.readingMs);
    return { turn, conversation: full };
  }

  #write(live: LiveTurn): void {
    const { script } = this.#scenario;
    const piece = live.pieces[live.written];
    if (script.failAfter !== null && live.written >= script.failAfter) {
      this.#end(live, "failed");
      return;
    }
    if (piece === undefined) {
      this.#end(live, "finished");
      return;
    }
    // Only a reply that thinks has to be looked at from its start.
    const thinks = live.pieces[0]?.trimStart().startsWith("<think>") ?? false;
    const before = thinks ? live.pieces.slice(0, live.written).join("") : "";
    live.written += 1;
    for (const event of scriptedEvents(before, piece, live.written)) this.#tell(live, event);
    if (live.written === script.repeatsAfter) this.#tell(live, { kind: "repeats", blockTokens: 42, copies: 3 });
    live.timer = setTimeout(() => {
      this.#write(live);
    }, script.stepMs);
  }

  #end(live: LiveTurn, state: "finished" | "stopped" | "failed"): void {
    if (live.timer) clearTimeout(live.timer);
    const { turn, conversation, message: id } = live.running;
    this.#turns.delete(turn);
    const text = live.begun + live.pieces.slice(0, live.written).join("");
    const failure = state === "failed" ? "The engine stopped: out of memory." : null;
    const record = text === "" ? null : { ...recordFor(text), failure };
    const versions = this.#conversations.get(conversation)?.messages.find((m) => m.id === id)?.versions;
    const ended = message({ id, role: "assistant", text, state, record, versions: versions ?? [] });
    const stored = this.#conversations.get(conversation);
    if (stored) {
      this.#conversations.set(conversation, {
        ...stored,
        messages: stored.messages.map((m) => (m.id === id ? ended : m)),
      });
    }
    this.#tell(
      live,
      failure === null
        ? { kind: "finished", message: ended }
        : { kind: "failed", message: ended, error: fault("internal", failure) },
    );
    this.emit("turn-ended", live.running);
  }

  #tell(live: LiveTurn, event: TurnEvent): void {
    live.events.push(event);
    const batch: TurnBatch = { nextSeq: live.events.length, events: [event] };
    for (const reader of live.readers) reader(batch);
  }

  #touch(id: number, title: string): ConversationSummary {
    const newest = Math.max(0, ...this.snapshot.conversations.map((c) => c.updatedMs));
    const known = this.snapshot.conversations.find((c) => c.id === id);
    const { pinned, folder } = known ?? { pinned: false, folder: null };
    const summary = { id, title, updatedMs: newest + 1, pinned, folder };
    this.#list([summary, ...this.snapshot.conversations.filter((c) => c.id !== id)]);
    return summary;
  }

  #list(conversations: ConversationSummary[]): void {
    this.snapshot = { ...this.snapshot, conversations };
    this.emit("conversations", conversations);
  }

}

function cut(text: string, wordsPerPiece: number): string[] {
  return text.match(new RegExp(`(?:\\s*\\S+){1,${wordsPerPiece}}|\\s+$`, "g")) ?? [];
}

function titleFrom(text: string): string {
  const line = text.trim().split("\n")[0] ?? "";
  return line.length > 48 ? `${line.slice(0, 47)}…` : line;
}
