/** A hub, folders and downloads that the scripted platform shows. */
import type { Download, Fit, HubListing, HubModel, ModelFolder } from "../bindings";

const free = 6_400_000_000;

/** What is said while nothing may be asked. */
export const offline =
  "Candor is set to ask nothing of the network. The switch is in the settings, under Network.";

/** The room for something of this size. */
export function fitOf(sizeBytes: number, context: number | null): Fit {
  const neededBytes = sizeBytes * 1.2;
  const verdict = neededBytes > free ? "does-not-fit" : neededBytes > free * 0.85 ? "tight" : "fits";
  const word = { "does-not-fit": "Does not fit", tight: "Tight", fits: "Fits" }[verdict];
  const needed = `${(neededBytes / 1e9).toFixed(1)} GB`;
  const sentence = `${word}: it takes about ${needed}, 6.4 GB are free of memory.`;
  return { verdict, place: "memory", neededBytes, freeBytes: free, context, sentence };
}

/** A folder that was looked through. */
export function folderOf(path: string, own: boolean): ModelFolder {
  return { id: path, path, own, state: "ready", models: own ? 2 : 7, problems: [] };
}

export const folders: ModelFolder[] = [
  folderOf("/home/ana/.local/share/candor/models", true),
  {
    ...folderOf("/home/ana/models", false),
    problems: ["/home/ana/models/old.gguf is a link to a file that is not there."],
  },
  { ...folderOf("/media/ana/stick", false), state: "missing", models: 0 },
];

export const hubModels: HubModel[] = [
  { repo: "Qwen/Qwen2.5-Coder-7B-Instruct-GGUF", downloads: 184_233, likes: 312, updated: "2026-08-14", gated: false },
  { repo: "bartowski/Qwen2.5-7B-Instruct-GGUF", downloads: 96_410, likes: 145, updated: "2026-06-02", gated: false },
  { repo: "google/qwen-comparison-GGUF", downloads: 1_204, likes: 9, updated: "2026-01-20", gated: true },
];

/** The files of a place. */
export function listingOf(repo: string): HubListing {
  const sizes = [
    ["Q3_K_M", 3_810_000_000],
    ["Q4_K_M", 4_680_000_000],
    ["Q6_K", 6_250_000_000],
    ["Q8_0", 8_100_000_000],
  ] as const;
  const stem = repo.split("/")[1]?.replace(/-GGUF$/, "").toLowerCase() ?? "model";
  const files = sizes.map(([quantization, sizeBytes]) => {
    const name = `${stem}-${quantization.toLowerCase()}.gguf`;
    const parts = quantization === "Q8_0" ? 3 : 1;
    return { path: name, name, parts, sizeBytes, checked: true, fit: fitOf(sizeBytes, null), id: null };
  });
  return { repo, files };
}

export const downloads: Download[] = [
  {
    id: 2,
    name: "qwen2.5-coder-7b-instruct-q4_k_m.gguf",
    repo: "Qwen/Qwen2.5-Coder-7B-Instruct-GGUF",
    receivedBytes: 1_730_000_000,
    totalBytes: 4_680_000_000,
    state: "running",
    bytesPerSecond: 11_200_000,
    leftS: 263,
    message: null,
    model: null,
  },
  {
    id: 1,
    name: "qwen2.5-7b-instruct-q6_k.gguf",
    repo: "bartowski/Qwen2.5-7B-Instruct-GGUF",
    receivedBytes: 0,
    totalBytes: 6_250_000_000,
    state: "failed",
    bytesPerSecond: null,
    leftS: null,
    message: "What came does not match the checksum, so it was thrown away.",
    model: null,
  },
];
