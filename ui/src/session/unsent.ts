/**
 * Keeps what was typed and not sent: the program is told soon after a change, and at once where
 * the window may go away. The program keeps it over a restart and over a kill.
 */
import type { Unsent } from "../platform/bindings";
import { type WireError, asWireError } from "../platform/types";
import type { AppState, Key } from "../state/model";
import { unsentKeys, unsentOf } from "../state/select";

/** A kill may take what was typed in this time. A word a second, each a write: few enough. */
const keepAfterMs = 400;

type Keep = (unsent: Unsent) => Promise<void>;
type Failed = (key: Key, error: WireError) => void;

const nothing = { text: "", waiting: "", cards: [], waitingCards: [] };

type Words = Omit<Unsent, "conversation">;

function isSame(before: Words, now: Words): boolean {
  const ids = (words: Words): string =>
    [words.cards, words.waitingCards].map((cards) => cards.map((card) => card.id)).join(";");
  return before.text === now.text && before.waiting === now.waiting && ids(before) === ids(now);
}

const keyOf = (unsent: Unsent): Key => unsent.conversation ?? "new";

/** What one window has typed and not sent. */
export class UnsentKeeper {
  readonly #keep: Keep;
  readonly #failed: Failed;
  /** As the program has it; nothing until it has told it. */
  #kept: Map<Key, Unsent> | null = null;
  #state: AppState | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;
  /** One after the other, so that an older text never follows a newer one. */
  #writing: Promise<void> = Promise.resolve();

  constructor(keep: Keep, failed: Failed) {
    this.#keep = keep;
    this.#failed = failed;
  }

  /** The program has told what it kept. */
  begin(told: Unsent[], state: AppState): void {
    this.#kept = new Map(told.map((unsent) => [keyOf(unsent), unsent]));
    this.#state = null;
    this.changed(state);
  }

  /** Looks at another state; cheap where nothing was typed or sent. */
  changed(state: AppState): void {
    const before = this.#state;
    this.#state = state;
    const same =
      before?.drafts === state.drafts &&
      before.edits === state.edits &&
      before.cards === state.cards &&
      before.queued === state.queued &&
      before.queuedEdits === state.queuedEdits &&
      before.pending === state.pending;
    if (same || !this.#kept) return;
    this.#timer ??= setTimeout(() => void this.flush(), keepAfterMs);
  }

  /** Tells the program at once. Ends when it has answered. */
  flush(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  async #write(): Promise<void> {
    const [kept, state] = [this.#kept, this.#state];
    if (!kept || !state) return;
    for (const key of new Set([...kept.keys(), ...unsentKeys(state)])) {
      const now = unsentOf(state, key);
      const before = kept.get(key);
      if (isSame(before ?? nothing, now)) continue;
      try {
        await this.#keep(now);
        kept.set(key, now);
      } catch (thrown) {
        this.#failed(key, asWireError(thrown));
      }
    }
  }
}
