/** What a window asks of conversations as a whole: names, places, files, deletion. */
import type { ExportFormat, Exported, Imported, Place, Platform, WireError } from "../platform/types";
import type { Action } from "../state/actions";
import type { AppState, Key } from "../state/model";
import { turnOf } from "../state/turns";
import type { Key as WordsKey } from "../text/words.svelte";

/** What it needs of the session. */
export interface ChatsDoor {
  state: () => AppState;
  dispatch: (action: Action) => void;
  /** Runs something; what went wrong becomes a row above the box of this conversation. */
  attempt: (key: Key, what: WordsKey, run: () => Promise<void>) => Promise<void>;
  tell: (run: () => Promise<void>) => Promise<WireError | null>;
}

/** See above. */
export class Chats {
  readonly #platform: Platform;
  readonly #door: ChatsDoor;

  constructor(platform: Platform, door: ChatsDoor) {
    this.#platform = platform;
    this.#door = door;
  }

  /** Pins a conversation, or puts it into a folder. */
  async place(id: number, place: Place): Promise<void> {
    await this.#door.attempt(id, "problem.notMoved", async () => {
      const summary = await this.#platform.placeConversation(id, place);
      this.#door.dispatch({ type: "renamed", summary });
    });
  }

  /** An empty name takes the folder's conversations out of it. */
  async renameFolder(from: string, to: string): Promise<void> {
    await this.#door.attempt(this.#door.state().shown, "problem.notRenamed", () =>
      this.#platform.renameFolder(from, to),
    );
  }

  /** Writes one conversation, or all of them, into a file that the person names. */
  async exportConversations(id: number | null, format: ExportFormat): Promise<Exported | null> {
    let done: Exported | null = null;
    await this.#door.attempt(this.#door.state().shown, "problem.notExported", async () => {
      done = await this.#platform.exportConversations(id, format);
    });
    return done;
  }

  /** Takes conversations in from a file that the person picks. */
  async importConversations(): Promise<Imported | null> {
    let done: Imported | null = null;
    await this.#door.attempt(this.#door.state().shown, "problem.notImported", async () => {
      done = await this.#platform.importConversations();
    });
    return done;
  }

  async rename(id: number, title: string): Promise<void> {
    await this.#door.attempt(id, "problem.notRenamed", async () => {
      const summary = await this.#platform.renameConversation(id, title);
      this.#door.dispatch({ type: "renamed", summary });
    });
  }

  /** The reply that is written in it is stopped first: nobody could see it any more. */
  async remove(id: number): Promise<void> {
    const turn = turnOf(this.#door.state(), id);
    // At once, and with its place: the list that the program tells lacks it already.
    this.#door.dispatch({ type: "removed", id });
    const removed = this.#door.state().removed.find(({ summary }) => summary.id === id);
    const error = await this.#door.tell(async () => {
      if (turn) await this.#platform.stop(turn.turn);
      await this.#platform.deleteConversation(id);
    });
    if (!error) return;
    if (removed) this.#door.dispatch({ type: "restored", summary: removed.summary });
    this.#door.dispatch({ type: "problem", key: this.#door.state().shown, what: "problem.notDeleted", error });
  }

  async restore(id: number): Promise<void> {
    await this.#door.attempt(this.#door.state().shown, "problem.notRestored", async () => {
      const summary = await this.#platform.restoreConversation(id);
      this.#door.dispatch({ type: "restored", summary });
    });
  }
}
