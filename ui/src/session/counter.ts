/**
 * Has the tokens of the words in the box counted: a moment after the last key, one count at a
 * time. The program counts on a thread of its own.
 */
import type { TokenCount } from "../platform/bindings";
import type { AppState, Key } from "../state/model";
import { draftFor } from "../state/select";

/** A person who types pauses for about this long between words. */
const afterMs = 250;

/** Words to count, with what goes with them. */
export interface ToCount {
  key: Key;
  text: string;
  cards: number[];
}

type Count = (what: ToCount) => Promise<TokenCount | null>;
type Counted = (key: Key, count: TokenCount | null) => void;

/** What has to be counted of a state. */
function toCount(state: AppState): ToCount {
  const key = state.shown;
  const cards = (state.cards[key] ?? []).map((card) => card.id);
  return { key, text: draftFor(state, key), cards };
}

/** Counts for one window. */
export class TokenCounter {
  readonly #count: Count;
  readonly #counted: Counted;
  #state: AppState | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #counting = false;
  #again = false;

  constructor(count: Count, counted: Counted) {
    this.#count = count;
    this.#counted = counted;
  }

  /** Looks at another state; cheap where nothing changes the count. */
  changed(state: AppState): void {
    const before = this.#state;
    this.#state = state;
    if (before && !isOther(before, state)) return;
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#run(), afterMs);
  }

  async #run(): Promise<void> {
    this.#timer = null;
    if (this.#counting) {
      this.#again = true;
      return;
    }
    const state = this.#state;
    if (!state?.status.model) return;
    this.#counting = true;
    const what = toCount(state);
    const count = await this.#count(what).catch(() => null);
    this.#counting = false;
    this.#counted(what.key, count);
    if (this.#again) {
      this.#again = false;
      await this.#run();
    }
  }
}

/** Whether something changed on which the count depends. */
function isOther(before: AppState, now: AppState): boolean {
  const key = now.shown;
  const messages = (state: AppState): unknown =>
    key === "new" ? null : state.open[key]?.messages;
  return (
    before.shown !== key ||
    before.drafts[key] !== now.drafts[key] ||
    before.cards[key] !== now.cards[key] ||
    before.status.model?.id !== now.status.model?.id ||
    before.status.model?.context !== now.status.model?.context ||
    before.settings !== now.settings ||
    before.recounts[key] !== now.recounts[key] ||
    messages(before) !== messages(now)
  );
}
