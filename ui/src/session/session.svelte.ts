/**
 * Joins the pure state to a platform: asks, dispatches the answers, and lets the news of turns in
 * at most once a frame. The only place with effects that reach outside the window.
 */
import { type Platform, type TurnBatch, type Unsubscribe, asWireError } from "../platform/types";
import type {
  Conversation,
  Found,
  ModelDetails,
  RunningTurn,
  Sent,
  Settings,
  WireError,
} from "../platform/types";
import type { Action } from "../state/actions";
import { type AppState, type Key, type Pending, type Queued, initialState } from "../state/model";
import { reduce } from "../state/reduce";
import { cardsFor, draftFor, dueQueued, readiness } from "../state/select";
import { turnOf } from "../state/turns";
import { type Key as WordsKey, systemLanguage } from "../text/words.svelte";
import { type RecordDoor, type ReportDoor, type ServerDoor, recordDoor } from "./records";
import { Chats } from "./chats";
import { TokenCounter } from "./counter";
import { Shelf } from "./shelf";
import { UnsentKeeper } from "./unsent";

/** Runs something with the next frame. */
export type Schedule = (run: () => void) => void;

/**
 * How long the end of a turn may be known to the window before its last news have come through
 * the channel. After that the conversation is read again.
 */
const channelGraceMs = 1_000;

/** A hidden window gets no frames; its news come in all the same. */
const hiddenFlushMs = 250;

function withNextFrame(run: () => void): void {
  let ran = false;
  const once = (): void => {
    if (ran) return;
    ran = true;
    run();
  };
  requestAnimationFrame(once);
  setTimeout(once, hiddenFlushMs);
}

/** One window's dealings with the program. */
export class Session {
  state = $state.raw<AppState>(initialState);

  /** The library, the hub and the downloads. */
  readonly shelf: Shelf;
  /** Names, places, files and deletion of conversations. */
  readonly chats: Chats;
  readonly report: ReportDoor;
  readonly server: ServerDoor;
  readonly #platform: Platform;
  readonly #schedule: Schedule;
  #arrived: { turn: number; batch: TurnBatch }[] = [];
  #flushScheduled = false;
  #subscriptions: Unsubscribe[] = [];
  readonly #unsent: UnsentKeeper;
  readonly #counter: TokenCounter;
  /** How often each turn was begun: a reply that is gone on with is the same turn again. */
  readonly #begun = new Map<number, number>();

  constructor(platform: Platform, schedule: Schedule = withNextFrame) {
    this.#platform = platform;
    this.shelf = new Shelf(platform, (action) => this.dispatch(action));
    this.chats = new Chats(platform, {
      state: () => this.state,
      dispatch: (action) => this.dispatch(action),
      attempt: (key, what, run) => this.#attempt(key, what, run),
      tell: (run) => this.#tell(run),
    });
    this.report = {
      read: () => platform.diagnostics(),
      save: (text) => platform.saveReport(text),
    };
    this.server = {
      state: () => platform.serverState(),
      apply: () => platform.switchServer(),
    };
    this.#schedule = schedule;
    this.#unsent = new UnsentKeeper(
      (unsent) => platform.keepUnsent(unsent),
      (key, error) => {
        this.dispatch({ type: "problem", key, what: "problem.notKept", error });
      },
    );
    this.#counter = new TokenCounter(
      ({ key, text, cards }) => platform.countTokens(key === "new" ? null : key, text, cards),
      (key, count) => {
        this.dispatch({ type: "counted", key, count });
      },
    );
  }

  /** Subscribes first, so that nothing is missed between the snapshot and the first event. */
  async start(): Promise<void> {
    // News can overtake the snapshot on its way here: then the snapshot is the older one. News
    // that were older than it are followed by newer ones.
    const early: Action[] = [];
    const hear = (action: Action): void => {
      if (this.state.phase === "starting") early.push(action);
      this.dispatch(action);
    };
    try {
      this.#subscriptions = await Promise.all([
        this.#platform.on("status", (status) => {
          hear({ type: "status", status });
        }),
        this.#platform.on("conversations", (conversations) => {
          hear({ type: "conversations", conversations });
        }),
        this.#platform.on("models", (models) => {
          hear({ type: "models", models });
        }),
        this.#platform.on("folders", (folders) => {
          hear({ type: "folders", folders });
        }),
        this.#platform.on("downloads", (downloads) => {
          hear({ type: "downloads", downloads });
        }),
        this.#platform.on("turn-ended", (turn) => {
          this.#expectEnd(turn);
        }),
        this.#platform.on("card", (card) => {
          this.dispatch({ type: "card", key: this.state.shown, card });
        }),
        this.#platform.on("card-refused", (error) => {
          this.showProblem("problem.notAdded", error);
        }),
        this.#platform.on("closing", () => {
          void this.#unsent.flush().then(() => this.#platform.closeWindow());
        }),
      ]);
      const snapshot = await this.#platform.bootstrap(systemLanguage());
      this.dispatch({ type: "started", snapshot });
      this.#unsent.begin(snapshot.unsent, this.state);
      for (const action of early) this.dispatch(action);
      for (const running of snapshot.turns) void this.#attach(running);
    } catch (thrown) {
      this.dispatch({ type: "start-failed", error: asWireError(thrown) });
    }
  }

  /** Ends the subscriptions. */
  close(): void {
    for (const end of this.#subscriptions) end();
    this.#subscriptions = [];
  }

  /** Changes the state, and sends what was waiting for that change. */
  dispatch(action: Action): void {
    this.state = reduce(this.state, action);
    for (const { key, queued } of dueQueued(this.state)) {
      this.state = reduce(this.state, { type: "unqueue", key });
      void this.#submit(key, queued);
    }
    this.#unsent.changed(this.state);
    this.#counter.changed(this.state);
  }

  /** The window may go away: what was typed is kept now. */
  async keepUnsent(): Promise<void> {
    await this.#unsent.flush();
  }

  /** Shows a conversation, or the one that is not begun. */
  async show(key: Key): Promise<void> {
    this.dispatch({ type: "show", key });
    if (key === "new" || this.state.open[key]) return;
    await this.#attempt(key, "problem.notOpened", async () => {
      const conversation = await this.#platform.openConversation(key);
      this.dispatch({ type: "opened", conversation });
      for (const message of conversation.messages) {
        const turn = message.turn;
        if (message.state !== "writing" || turn === null || this.state.turns[turn]) continue;
        void this.#attach({ turn, conversation: key, message: message.id });
      }
    });
  }

  /** Keeps the words in the box. */
  draft(text: string): void {
    this.dispatch({ type: "draft", key: this.state.shown, text });
  }

  /** Sends what is in the box, or lets it wait while a reply is written or a model is loaded. */
  submitDraft(): void {
    const key = this.state.shown;
    const text = draftFor(this.state, key);
    const cards = cardsFor(this.state, key);
    if (text.trim() === "" && cards.length === 0) return;
    const now = readiness(this.state, key);
    if (now.kind === "no-model") return;
    this.dispatch({ type: "draft", key, text: "" });
    this.dispatch({ type: "uncard-all", key });
    if (now.kind === "ready") void this.#submit(key, { text, cards });
    else this.dispatch({ type: "queue", key, text, cards });
  }

  /** A long text goes with the words in the box. */
  async addCard(name: string, text: string): Promise<void> {
    const key = this.state.shown;
    await this.#attempt(key, "problem.notAdded", async () => {
      const card = await this.#platform.addCard(name, text);
      this.dispatch({ type: "card", key, card });
    });
  }

  /** Shows the system's dialog for a text file. */
  async pickCard(): Promise<void> {
    const key = this.state.shown;
    await this.#attempt(key, "problem.notAdded", async () => {
      const card = await this.#platform.pickCard();
      if (card) this.dispatch({ type: "card", key, card });
    });
  }

  /** The words of a card. */
  cardText(id: number): Promise<string> {
    return this.#platform.cardText(id);
  }

  /** Sends words that are not from the box (a sample prompt, a message that waited). */
  sendText(key: Key, text: string): void {
    if (readiness(this.state, key).kind === "ready") void this.#submit(key, { text, cards: [] });
  }

  /** Sends the message that waits for the person. */
  sendQueued(key: Key): void {
    const queued = this.state.queued[key];
    if (!queued || readiness(this.state, key).kind !== "ready") return;
    this.dispatch({ type: "unqueue", key });
    void this.#submit(key, queued);
  }

  async #submit(key: Key, { text, cards }: Pick<Queued, "text" | "cards">): Promise<void> {
    const conversation = key === "new" ? null : key;
    const ids = cards.map((card) => card.id);
    await this.#turn(
      key,
      { kind: "send", text, cards, message: null, stopWanted: false },
      (reader) => this.#platform.send(conversation, text, ids, reader),
    );
  }

  /** Has a reply written again. */
  async regenerate(message: number): Promise<void> {
    await this.#another("regenerate", message, "", (reader) =>
      this.#platform.regenerate(message, reader),
    );
  }

  /** Asks a question in other words. */
  async editQuestion(message: number, text: string): Promise<void> {
    await this.#another("edit", message, text, (reader) =>
      this.#platform.editQuestion(message, text, reader),
    );
  }

  /** Goes on with a reply that came to no end. */
  async continueReply(message: number): Promise<void> {
    await this.#another("continue", message, "", (reader) =>
      this.#platform.continueReply(message, reader),
    );
  }

  async #another(
    kind: Exclude<Pending["kind"], "send">,
    message: number,
    text: string,
    ask: (reader: (batch: TurnBatch) => void) => Promise<Sent>,
  ): Promise<void> {
    const key = this.state.shown;
    if (readiness(this.state, key).kind !== "ready") return;
    const known = key === "new" ? undefined : this.state.open[key];
    const cards = kind === "edit" ? known?.messages.find((m) => m.id === message)?.cards : [];
    await this.#turn(key, { kind, text, cards: cards ?? [], message, stopWanted: false }, ask);
  }

  /** Gives a reply other words. */
  async editReply(message: number, text: string): Promise<void> {
    const read = await this.#read("problem.notChanged", () => this.#platform.editReply(message, text));
    if (read) this.dispatch({ type: "edit-ended", message, taken: text });
  }

  /** Shows another version of a message. */
  async showVersion(message: number): Promise<void> {
    await this.#read("problem.notShown", () => this.#platform.showMessage(message));
  }

  /** Makes a conversation of the messages up to this one, and shows it. */
  async duplicate(message: number): Promise<void> {
    const copy = await this.#read("problem.notCopied", () => this.#platform.duplicate(message));
    if (copy) await this.show(copy.id);
  }

  async #read(what: WordsKey, ask: () => Promise<Conversation>): Promise<Conversation | null> {
    let read: Conversation | null = null;
    await this.#attempt(this.state.shown, what, async () => {
      read = await ask();
      this.dispatch({ type: "read", conversation: read });
    });
    return read;
  }

  /** Where these words are found. */
  search(words: string): Promise<Found[]> {
    return this.#platform.search(words);
  }

  /** Opens a conversation at the place that was found. */
  async openFound(found: Found, words: string): Promise<void> {
    const { conversation, message } = found;
    if (message === null) {
      await this.show(conversation);
      return;
    }
    const read = await this.#read("problem.notOpened", () => this.#platform.showMessage(message));
    if (!read) return;
    await this.show(conversation);
    const looked = words.split(/\s+/).filter((word) => word !== "");
    this.dispatch({ type: "spot", spot: { message, words: looked } });
  }

  async #turn(
    key: Key,
    pending: Pending,
    ask: (reader: (batch: TurnBatch) => void) => Promise<Sent>,
  ): Promise<void> {
    this.dispatch({ type: "submitted", key, pending });
    // News can come before the answer that says to which turn they belong.
    const early: TurnBatch[] = [];
    let turn: number | null = null;
    try {
      const sent = await ask((batch) => {
        if (turn === null) early.push(batch);
        else this.#arrive(turn, batch);
      });
      turn = sent.turn;
      this.#begun.set(turn, (this.#begun.get(turn) ?? 0) + 1);
      const stopWanted = this.state.pending[key]?.stopWanted ?? false;
      this.dispatch({ type: "sent", key, sent });
      // It is in the store now and must not come back as unsent.
      void this.#unsent.flush();
      for (const batch of early) this.#arrive(turn, batch);
      if (stopWanted) await this.#platform.stop(turn);
    } catch (thrown) {
      this.dispatch({ type: "not-sent", key, error: asWireError(thrown) });
    }
  }

  /** What the record of a reply can ask for. */
  recordDoor(message: number): RecordDoor {
    return recordDoor(this.#platform, message);
  }

  /** Ends the reply that is written in the conversation on the screen. */
  async stop(): Promise<void> {
    const key = this.state.shown;
    const turn = turnOf(this.state, key);
    this.dispatch({ type: "stop-wanted", key });
    if (!turn) return;
    await this.#attempt(key, "problem.notStopped", () => this.#platform.stop(turn.turn));
  }

  async #attach(running: RunningTurn): Promise<void> {
    this.dispatch({ type: "attached", turn: running });
    const from = this.state.turns[running.turn]?.nextSeq ?? 0;
    try {
      const alive = await this.#platform.attach(running.turn, from, (batch) => {
        this.#arrive(running.turn, batch);
      });
      if (!alive) await this.#readAgain(running);
    } catch {
      await this.#readAgain(running);
    }
  }

  #expectEnd(running: RunningTurn): void {
    const begun = this.#begun.get(running.turn);
    setTimeout(() => {
      // It was gone on with meanwhile.
      if (this.#begun.get(running.turn) !== begun) return;
      const known = this.state.turns[running.turn] !== undefined;
      const stale = this.state.open[running.conversation]?.messages.some(
        (m) => m.id === running.message && m.state === "writing",
      );
      if (known || stale) void this.#readAgain(running);
    }, channelGraceMs);
  }

  async #readAgain(running: RunningTurn): Promise<void> {
    const conversation = await this.#platform
      .openConversation(running.conversation)
      .catch(() => null);
    this.dispatch({ type: "turn-lost", turn: running.turn, conversation });
  }

  #arrive(turn: number, batch: TurnBatch): void {
    this.#arrived.push({ turn, batch });
    if (this.#flushScheduled) return;
    this.#flushScheduled = true;
    this.#schedule(() => {
      this.#flushScheduled = false;
      const items = this.#arrived;
      this.#arrived = [];
      this.dispatch({ type: "batches", items });
    });
  }

  /** Shows the system's dialog. True if a model was chosen. */
  async pickModel(): Promise<WireError | null> {
    return this.#tell(async () => {
      const entry = await this.#platform.pickModel();
      if (entry) await this.#platform.loadModel(entry.id);
    });
  }

  /** Opens a model by its path. */
  async openPath(path: string): Promise<WireError | null> {
    return this.#tell(async () => {
      const entry = await this.#platform.addModel(path);
      await this.#platform.loadModel(entry.id);
    });
  }

  async loadModel(id: string): Promise<WireError | null> {
    return this.#tell(() => this.#platform.loadModel(id));
  }

  async forgetModel(id: string): Promise<WireError | null> {
    return this.#tell(() => this.#platform.forgetModel(id));
  }

  /** What a model's file says of itself, and what stands against it. */
  modelDetails(id: string): Promise<ModelDetails> {
    return this.#platform.modelDetails(id);
  }

  async stopLoading(): Promise<WireError | null> {
    return this.#tell(() => this.#platform.stopLoading());
  }

  /** What the banner's buttons do for whatever computes. */
  async device(
    wish: "use-cpu" | "use-gpu" | "check-again" | "switch-now" | "stop-other",
  ): Promise<WireError | null> {
    const ask = {
      "use-cpu": () => this.#platform.useCpu(),
      "use-gpu": () => this.#platform.useGpu(),
      "check-again": () => this.#platform.checkAgain(),
      "switch-now": () => this.#platform.stopWriting(),
      "stop-other": () => this.#platform.stopWriting(),
    }[wish];
    return this.#tell(ask);
  }

  /** Shows the choice at once; what the program made of it comes back. */
  async saveSettings(settings: Settings): Promise<WireError | null> {
    const before = this.state.settings;
    this.dispatch({ type: "settings", settings });
    const error = await this.#tell(async () => {
      const saved = await this.#platform.saveSettings(settings);
      this.dispatch({ type: "settings", settings: saved });
    });
    if (error) this.dispatch({ type: "settings", settings: before });
    return error;
  }

  async openLink(url: string): Promise<void> {
    await this.#attempt(this.state.shown, "problem.notOpened", () => this.#platform.openLink(url));
  }

  /** Shows what went wrong as a row above the box. */
  showProblem(what: WordsKey, error: WireError): void {
    this.dispatch({ type: "problem", key: this.state.shown, what, error });
  }

  async #attempt(key: Key, what: WordsKey, run: () => Promise<void>): Promise<void> {
    const error = await this.#tell(run);
    if (error) this.dispatch({ type: "problem", key, what, error });
  }

  async #tell(run: () => Promise<void>): Promise<WireError | null> {
    try {
      await run();
      return null;
    } catch (thrown) {
      return asWireError(thrown);
    }
  }
}
