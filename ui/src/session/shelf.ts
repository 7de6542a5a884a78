/** What a window asks of the library, the hub and the downloads. */
import {
  type ChatSettings,
  type HubListing,
  type HubModel,
  type ModelFit,
  type Platform,
  type Settings,
  type WireError,
  asWireError,
} from "../platform/types";
import type { Action } from "../state/actions";

/** See above. What goes on by itself is told by the news `folders`, `models` and `downloads`. */
export class Shelf {
  readonly #platform: Platform;
  readonly #dispatch: (action: Action) => void;

  constructor(platform: Platform, dispatch: (action: Action) => void) {
    this.#platform = platform;
    this.#dispatch = dispatch;
  }

  /** The room for each of these models; none where nobody can tell. */
  async fits(ids: string[]): Promise<Map<string, ModelFit["fit"]>> {
    try {
      const fits = await this.#platform.modelFits(ids);
      return new Map(fits.map(({ id, fit }) => [id, fit]));
    } catch {
      // Without it the list is as good as before.
      return new Map();
    }
  }

  search(words: string): Promise<HubModel[]> {
    return this.#platform.hubSearch(words);
  }

  files(repo: string): Promise<HubListing> {
    return this.#platform.hubFiles(repo);
  }

  download(repo: string, path: string): Promise<WireError | null> {
    return this.#tell(() => this.#platform.startDownload(repo, path));
  }

  downloadStarter(): Promise<WireError | null> {
    return this.#tell(() => this.#platform.downloadStarter());
  }

  pause(id: number): Promise<WireError | null> {
    return this.#tell(() => this.#platform.pauseDownload(id));
  }

  resume(id: number): Promise<WireError | null> {
    return this.#tell(() => this.#platform.resumeDownload(id));
  }

  remove(id: number): Promise<WireError | null> {
    return this.#tell(() => this.#platform.removeDownload(id));
  }

  /** What a chat has of its own; null if it goes by the settings of all. */
  chatSettings(conversation: number | null): Promise<ChatSettings | null> {
    return this.#platform.chatSettings(conversation);
  }

  /** Keeps that, or forgets it with null; gives back what is kept. Another count is due then. */
  async keepChatSettings(
    conversation: number | null,
    chat: ChatSettings | null,
  ): Promise<ChatSettings | null> {
    const kept = await this.#platform.keepChatSettings(conversation, chat);
    this.#dispatch({ type: "recount", key: conversation ?? "new" });
    return kept;
  }

  /** What the open model would read of a short conversation. */
  previewTemplate(chat: ChatSettings): Promise<string> {
    return this.#platform.previewTemplate(chat);
  }

  pickFolder(): Promise<WireError | null> {
    return this.#keep(() => this.#platform.pickFolder());
  }

  addFolder(path: string): Promise<WireError | null> {
    return this.#keep(() => this.#platform.addModelFolder(path));
  }

  removeFolder(id: string): Promise<WireError | null> {
    return this.#keep(() => this.#platform.removeModelFolder(id));
  }

  searchFolders(): Promise<WireError | null> {
    return this.#tell(() => this.#platform.searchFolders());
  }

  #keep(ask: () => Promise<Settings | null>): Promise<WireError | null> {
    return this.#tell(async () => {
      const settings = await ask();
      if (settings) this.#dispatch({ type: "settings", settings });
    });
  }

  async #tell(ask: () => Promise<unknown>): Promise<WireError | null> {
    try {
      await ask();
      return null;
    } catch (thrown) {
      return asWireError(thrown);
    }
  }
}
