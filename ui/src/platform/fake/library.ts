/** The part of the scripted platform that knows models, folders, the hub, downloads and settings. */
import type {
  Download,
  HubListing,
  HubModel,
  ModelDetails,
  ModelEntry,
  ModelFit,
  ModelFolder,
  Settings,
  Snapshot,
  Status,
  WireError,
} from "../bindings";
import type { PlatformEvents, Unsubscribe } from "../types";
import { detailsOf, loadingStatus, openStatus } from "./scenarios";
import { downloads, fitOf, folderOf, hubModels, listingOf, offline } from "./shelf";

type Handler = (payload: never) => void;

const loadStepMs = 120;
const loadStep = 0.03;

/** See `Platform`. It holds the snapshot and tells its news. */
export class FakeLibrary {
  readonly #handlers = new Map<string, Set<Handler>>();
  #loading: ReturnType<typeof setInterval> | null = null;
  protected snapshot: Snapshot;
  protected nextId = 1_000_000;

  constructor(snapshot: Snapshot) {
    this.snapshot = snapshot;
  }

  async pickModel(): Promise<ModelEntry | null> {
    return this.snapshot.models[0] ?? this.addModel("/home/ana/models/picked.gguf");
  }

  async addModel(path: string): Promise<ModelEntry> {
    if (!path.endsWith(".gguf")) throw fault("refused", `${path} is not a model file.`);
    const cut = path.lastIndexOf("/");
    const entry: ModelEntry = {
      id: path,
      name: path.slice(cut + 1),
      folder: path.slice(0, cut),
      sizeBytes: 98_300_000,
      missing: false,
      lastUsedMs: null,
    };
    this.#models([entry, ...this.snapshot.models.filter((m) => m.id !== path)]);
    return entry;
  }

  async loadModel(): Promise<void> {
    this.startLoading();
  }

  /** Loads as if a file of a few hundred megabytes were read. */
  startLoading(): void {
    let share = 0;
    this.#status(loadingStatus(0));
    this.#loading = setInterval(() => {
      share += loadStep;
      if (share < 1) {
        this.#status(loadingStatus(share));
        return;
      }
      this.#endLoading();
      this.#status(openStatus);
    }, loadStepMs);
  }

  async stopLoading(): Promise<void> {
    this.#endLoading();
    this.#status({
      ...openStatus,
      model: null,
      banner: { ...openStatus.banner, kind: "no-model", state: "No model open.", reason: "" },
    });
  }

  async useCpu(): Promise<void> {
    this.#endLoading();
    this.#status(openStatus);
  }

  async useGpu(): Promise<void> {
    await this.saveSettings({ ...this.snapshot.settings, device: "auto" });
    this.startLoading();
  }

  async checkAgain(): Promise<void> {
    this.startLoading();
  }

  async modelDetails(id: string): Promise<ModelDetails> {
    const entry = this.snapshot.models.find((model) => model.id === id);
    if (!entry) throw { code: "not-found", message: "That model is not there any more." } satisfies WireError;
    return detailsOf(entry);
  }

  async modelFits(ids: string[]): Promise<ModelFit[]> {
    const sizes = new Map(this.snapshot.models.map((model) => [model.id, model.sizeBytes]));
    return ids.map((id) => {
      const size = sizes.get(id) ?? null;
      return { id, fit: size === null ? null : fitOf(size, 8192) };
    });
  }

  async pickFolder(): Promise<Settings | null> {
    return this.addModelFolder("/media/ana/models");
  }

  async addModelFolder(path: string): Promise<Settings> {
    if (!path.startsWith("/")) throw fault("not-found", `${path} is no folder.`);
    const settings = this.snapshot.settings;
    const folder = folderOf(path, false);
    this.#folders([...this.snapshot.folders.filter((f) => f.id !== path), folder]);
    return this.saveSettings({ ...settings, modelFolders: [...settings.modelFolders, path] });
  }

  async removeModelFolder(id: string): Promise<Settings> {
    const settings = this.snapshot.settings;
    this.#folders(this.snapshot.folders.filter((folder) => folder.id !== id));
    const modelFolders = settings.modelFolders.filter((folder) => folder !== id);
    return this.saveSettings({ ...settings, modelFolders });
  }

  async searchFolders(): Promise<void> {
    this.#folders(this.snapshot.folders);
  }

  async hubSearch(words: string): Promise<HubModel[]> {
    if (this.snapshot.settings.offline) throw fault("network", offline);
    return hubModels.filter((model) => model.repo.toLowerCase().includes(words.toLowerCase()));
  }

  async hubFiles(repo: string): Promise<HubListing> {
    if (this.snapshot.settings.offline) throw fault("network", offline);
    return listingOf(repo);
  }

  async startDownload(repo: string, path: string): Promise<Download> {
    const file = listingOf(repo).files.find((known) => known.path === path);
    if (!file) throw fault("not-found", "This file is not there any more.");
    return this.#download(repo, file.name, file.sizeBytes);
  }

  async downloadStarter(): Promise<Download> {
    return this.#download("HuggingFaceTB/SmolLM2-135M", "smollm2-135m-instruct-q4_1.gguf", 98_362_432);
  }

  async pauseDownload(id: number): Promise<void> {
    this.#changeDownload(id, { state: "paused", bytesPerSecond: null, leftS: null });
  }

  async resumeDownload(id: number): Promise<void> {
    this.#changeDownload(id, { state: "running", message: null });
  }

  async removeDownload(id: number): Promise<void> {
    this.#downloads(this.snapshot.downloads.filter((job) => job.id !== id));
  }

  #download(repo: string, name: string, totalBytes: number): Download {
    const download: Download = {
      ...downloads[0]!,
      id: this.nextId++,
      repo,
      name,
      totalBytes,
      receivedBytes: 0,
      state: "running",
    };
    this.#downloads([download, ...this.snapshot.downloads]);
    return download;
  }

  #changeDownload(id: number, change: Partial<Download>): void {
    const list = this.snapshot.downloads;
    if (!list.some((job) => job.id === id)) {
      throw fault("not-found", "This download is not there any more.");
    }
    this.#downloads(list.map((job) => (job.id === id ? { ...job, ...change } : job)));
  }

  #downloads(list: Download[]): void {
    this.snapshot = { ...this.snapshot, downloads: list };
    this.emit("downloads", list);
  }

  #folders(list: ModelFolder[]): void {
    this.snapshot = { ...this.snapshot, folders: list };
    this.emit("folders", list);
  }

  async forgetModel(id: string): Promise<void> {
    this.#models(this.snapshot.models.filter((m) => m.id !== id));
  }

  async saveSettings(settings: Settings): Promise<Settings> {
    this.snapshot = { ...this.snapshot, settings };
    return settings;
  }

  async on<E extends keyof PlatformEvents>(
    event: E,
    handler: (payload: PlatformEvents[E]) => void,
  ): Promise<Unsubscribe> {
    const handlers = this.#handlers.get(event) ?? new Set();
    handlers.add(handler as Handler);
    this.#handlers.set(event, handlers);
    return () => handlers.delete(handler as Handler);
  }

  #models(models: ModelEntry[]): void {
    this.snapshot = { ...this.snapshot, models };
    this.emit("models", models);
  }

  #status(status: Status): void {
    this.snapshot = { ...this.snapshot, status };
    this.emit("status", status);
  }

  #endLoading(): void {
    if (this.#loading) clearInterval(this.#loading);
    this.#loading = null;
  }

  protected emit<E extends keyof PlatformEvents>(event: E, payload: PlatformEvents[E]): void {
    for (const handler of this.#handlers.get(event) ?? []) handler(payload as never);
  }
}

/** An error as the program tells it. */
export function fault(code: WireError["code"], message: string): WireError {
  return { code, message };
}
