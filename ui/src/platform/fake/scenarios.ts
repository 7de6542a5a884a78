/** The situations that the scripted platform can show; `#name` in the address chooses one. */
import type {
  Banner,
  Conversation,
  Message,
  ModelDetails,
  ModelEntry,
  ReplayOutcome,
  ReplyRecord,
  Snapshot,
  Status,
} from "../bindings";
import { defaultSampling, defaultSettings } from "../../state/model";
import { message, scriptedHash, thinkingMs } from "./replies";
import { circle, code, formulas, heavy, prose, questions, short, thoughtful, titles } from "./words";
import { downloads, folders } from "./shelf";

/** How the scripted engine answers. */
export interface Script {
  replies: string[];
  /** Milliseconds before the first word. */
  readingMs: number;
  /** Milliseconds between pieces. */
  stepMs: number;
  wordsPerPiece: number;
  /** Fails after that many pieces. */
  failAfter: number | null;
  /** Is said to repeat itself after that many. */
  repeatsAfter?: number;
}

/** One situation. */
export interface Scenario {
  snapshot: Snapshot;
  conversations: Conversation[];
  script: Script;
  /** What a replay finds. */
  outcome: (record: ReplyRecord) => ReplayOutcome;
  /** Messages that the model does not see any more. */
  leftOut?: number;
  /** What happens by itself after the start. */
  opening: "nothing" | "show-first" | "send" | "send-and-stop" | "stop-early" | "load";
}

/** Names of all situations. */
export const scenarioNames = [
  "empty",
  "ready",
  "chat",
  "streaming",
  "stopped",
  "early",
  "refused",
  "failed",
  "loading",
  "waiting",
  "proving",
  "proven",
  "rejected",
  "moved",
  "long",
  "heavy",
  "thinking",
  "thought",
  "formulas",
  "repeats",
  "newcomer",
  "downloads",
] as const;

export type ScenarioName = (typeof scenarioNames)[number];

const now = 1_790_000_000_000;
const modelName = "SmolLM2-135M-Instruct";
const starterBytes = 98_300_000;

export const cpuBanner: Banner = {
  kind: "cpu",
  tone: "neutral",
  state: "CPU",
  reason: "no NVIDIA driver found · AVX-512 · 2 threads",
  advice: "Fine if there is no NVIDIA card. Otherwise install the driver.",
  progress: null,
  actions: [],
  details: [
    { name: "Device", value: "CPU" },
    { name: "Driver", value: "none found" },
    { name: "Instruction set", value: "AVX-512" },
    { name: "Threads", value: "2" },
    { name: "Weights", value: "98 MB, read from the file in place" },
    { name: "Context", value: "8,192 tokens, 94 MB" },
    { name: "Memory free", value: "18.2 GB" },
  ],
  report: null,
};

export const openStatus: Status = {
  banner: cpuBanner,
  model: {
    id: "smol",
    name: modelName,
    context: 8192,
    architecture: "llama",
    quantization: "Q4_1",
    templateFallback: null,
  },
};

const noModelStatus: Status = {
  banner: {
    kind: "no-model",
    tone: "neutral",
    state: "No model open.",
    reason: "Open a model file, or the starter model on disk (98 MB).",
    advice: null,
    progress: null,
    actions: ["open-model", "open-starter"],
    details: [{ name: "Instruction set", value: "AVX-512" }],
    report: null,
  },
  model: null,
};

const refusedStatus: Status = {
  banner: {
    kind: "refused",
    tone: "refusal",
    state: "Not loaded",
    reason: "llama-3.gguf is incomplete: it has 2.1 GB of 4.7 GB. Probably the download broke off.",
    advice: "Download the file again. The model that was open before stays open.",
    progress: null,
    actions: ["open-model"],
    details: [
      { name: "File", value: "/home/ana/Downloads/llama-3.gguf" },
      { name: "Found", value: "2,104,533,975 bytes" },
      { name: "Needed", value: "4,661,216,384 bytes" },
    ],
    report: null,
  },
  model: openStatus.model,
};

/** The banner of a load that has got so far. */
export function loadingStatus(share: number): Status {
  return {
    banner: {
      kind: "loading",
      tone: "neutral",
      state: "Loading",
      reason: `qwen2.5-coder-0.5b · ${Math.round(share * 100)} % · ${Math.ceil(4 * (1 - share))} s left`,
      advice: null,
      progress: share,
      actions: ["stop-loading"],
      details: [{ name: "File", value: "/home/ana/models/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf" }],
      report: null,
    },
    model: null,
  };
}

const waitingStatus: Status = {
  banner: {
    ...cpuBanner,
    kind: "waiting",
    tone: "attention",
    state: "Waiting",
    reason: "for the reply in “Bread without kneading”",
  },
  model: openStatus.model,
};

const card = "NVIDIA GeForce RTX 4090";

const provenBanner: Banner = {
  kind: "gpu",
  tone: "proven",
  state: "GPU",
  reason: `${card} · proven on 65 positions (lowest match 0.9998) · 2026-12-01`,
  advice: null,
  progress: null,
  actions: ["check-again"],
  details: [
    { name: "Device", value: card },
    { name: "Driver", value: "580.65" },
    { name: "Memory used", value: "5.1 GB" },
    { name: "Memory of the card", value: "24.0 GB" },
    { name: "Checked", value: "65 positions, 2026-12-01" },
    { name: "Lowest match", value: "0.9998" },
  ],
  report: "The GPU was proven on 65 positions.",
};

const provingBanner: Banner = {
  ...provenBanner,
  kind: "proving",
  tone: "neutral",
  state: "Checking",
  reason: `${card} against the CPU · 23 of 65`,
  progress: 23 / 65,
  actions: ["stop-loading", "use-cpu"],
  details: [],
  report: null,
};

const rejectedBanner: Banner = {
  ...cpuBanner,
  tone: "attention",
  reason: `GPU found (${card}), but its answers differed (first at layer 7, attention), so the CPU is used · AVX-512 · 2 threads`,
  advice: "Update the driver, or try another file of the model. Copy the report to pass it on.",
  actions: ["check-again"],
  report: "The GPU was rejected at position 12: layer 7, attention.",
};

export function recordFor(text: string): ReplyRecord {
  const generatedTokens = Math.max(1, Math.round(text.length / 4.2));
  return {
    model: modelName,
    backend: "CPU",
    device: "Intel Xeon",
    proof: "",
    moved: null,
    backendReason: "no NVIDIA driver found",
    kv: "16 bits",
    generatedTokens,
    promptTokens: 38,
    cachedTokens: 12,
    prefillMs: 310,
    decodeMs: (generatedTokens / 48) * 1000,
    firstTokenMs: 320,
    seed: 2_718_281,
    sampling: defaultSampling,
    failure: null,
    notice: null,
    leftOut: 0,
    continued: false,
    thinkingMs: text.startsWith("<think>") ? [thinkingMs] : [],
    quantization: "Q4_1",
    fileSha256: null,
    version: "0.1.0",
    templateSha256: scriptedHash.split("").reverse().join(""),
    contextSha256: scriptedHash.replace(/[0-9]/g, (digit) => String(9 - Number(digit))),
    stop: [],
  };
}

function movedRecord(): ReplyRecord {
  const moved = "The GPU stopped working (it ran out of memory); this reply went on with the CPU.";
  return { ...recordFor(prose), backend: "GPU, then CPU", moved };
}

let nextMessage = 1;

function pair(question: string, answer: string, change: Partial<Message> = {}): Message[] {
  const user = message({ id: nextMessage++, role: "user", text: question });
  const record = recordFor(answer);
  const reply = message({ id: nextMessage++, role: "assistant", text: answer, record, ...change });
  return [user, reply];
}

function conversations(): Conversation[] {
  const [tides = "", counting = "", capital = ""] = questions;
  return titles.map((title, index) => ({
    id: index + 1,
    title,
    messages: index === 1 ? [...pair(capital, short), ...pair(counting, code)] : pair(tides, prose),
  }));
}

function longConversation(): Conversation {
  const [tides = "", counting = ""] = questions;
  const messages: Message[] = [];
  for (let round = 0; round < 1000; round += 1) {
    messages.push(...pair(round % 3 ? tides : counting, round % 3 ? prose : code));
  }
  return { id: 1, title: titles[0] ?? "", messages };
}

function snapshotOf(status: Status, list: Conversation[]): Snapshot {
  const day = 86_400_000;
  return {
    version: "0.1.0",
    status,
    settings: defaultSettings,
    conversations: list.map((c, index) => ({
      id: c.id,
      title: c.title,
      updatedMs: now - index * day * 0.7,
      pinned: false,
      folder: null,
    })),
    models: [
      entry("smol", "smollm2-135m-instruct-q4_1.gguf", "/home/ana/models", starterBytes),
      entry("qwen", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "/home/ana/models", 491_000_000),
      entry("gone", "llama-3.gguf", "/media/ana/stick", null),
    ],
    folders,
    downloads: [],
    starter: { state: "ready", id: "smol", sizeBytes: starterBytes },
    turns: [],
    notices: [],
    unsent: [],
  };
}

function entry(id: string, name: string, folder: string, sizeBytes: number | null) {
  return { id, name, folder, sizeBytes, missing: sizeBytes === null, lastUsedMs: now };
}

/** A file that is gone is described by that alone. */
export function detailsOf(model: ModelEntry): ModelDetails {
  const path = `${model.folder}/${model.name}`;
  if (model.missing) {
    const message = `${model.name}: there is no such file.`;
    return { name: model.name, facts: [], findings: [{ weight: "against", message, advice: null }], fit: null };
  }
  const message = "The file brings no chat template; ChatML is used.";
  return {
    name: model.name,
    facts: [
      { name: "File", value: path },
      { name: "Architecture", value: "llama" },
      { name: "Use", value: "runs on the CPU" },
    ],
    findings: model.id === "smol" ? [] : [{ weight: "note", message, advice: null }],
    fit: null,
  };
}

const calm: Script = { replies: [code, prose, short], readingMs: 400, stepMs: 30, wordsPerPiece: 1, failAfter: null };

/** Makes a situation afresh. */
export function scenario(name: ScenarioName): Scenario {
  nextMessage = 1;
  const all = conversations();
  const same = (record: ReplyRecord): ReplayOutcome => ({
    kind: "same",
    tokens: record.generatedTokens,
    note: null,
  });
  const base = { snapshot: snapshotOf(openStatus, all), conversations: all, script: calm, outcome: same };
  switch (name) {
    case "empty":
      return {
        ...base,
        snapshot: { ...snapshotOf(noModelStatus, []), models: [] },
        conversations: [],
        opening: "nothing",
      };
    case "ready":
      return { ...base, opening: "nothing" };
    case "downloads":
      return { ...base, snapshot: { ...snapshotOf(openStatus, all), downloads }, opening: "show-first" };
    case "newcomer":
      return {
        ...base,
        snapshot: {
          ...snapshotOf(noModelStatus, []),
          models: [],
          starter: { state: "download", sizeBytes: starterBytes },
        },
        conversations: [],
        opening: "nothing",
      };
    case "chat":
      return { ...base, opening: "show-first" };
    case "streaming":
      return { ...base, opening: "send" };
    case "stopped":
      return { ...base, opening: "send-and-stop" };
    case "early":
      return { ...base, script: { ...calm, readingMs: 60_000 }, opening: "stop-early" };
    case "refused":
      return { ...base, snapshot: snapshotOf(refusedStatus, all), opening: "show-first" };
    case "failed":
      return { ...base, script: { ...calm, failAfter: 12 }, opening: "send" };
    case "heavy":
      return {
        ...base,
        script: { ...calm, replies: [heavy()], stepMs: 4, wordsPerPiece: 6 },
        opening: "send",
      };
    case "loading":
      return { ...base, snapshot: snapshotOf(loadingStatus(0), all), opening: "load" };
    case "waiting":
      return { ...base, snapshot: snapshotOf(waitingStatus, all), opening: "show-first" };
    case "proving":
      return { ...base, snapshot: snapshotOf({ banner: provingBanner, model: null }, all), opening: "nothing" };
    case "proven":
      return { ...base, snapshot: snapshotOf({ ...openStatus, banner: provenBanner }, all), opening: "show-first" };
    case "rejected":
      return { ...base, snapshot: snapshotOf({ ...openStatus, banner: rejectedBanner }, all), opening: "show-first" };
    case "moved": {
      const first = { id: 1, title: titles[0] ?? "", messages: pair(questions[0] ?? "", prose, { record: movedRecord() }) };
      const list = [first, ...all.slice(1)];
      return { ...base, conversations: list, snapshot: snapshotOf(openStatus, list), opening: "show-first" };
    }
    case "thinking":
      return { ...base, script: { ...calm, replies: [thoughtful] }, opening: "send" };
    case "thought":
    case "formulas": {
      const answer = name === "thought" ? thoughtful : formulas;
      const first = { id: 1, title: titles[0] ?? "", messages: pair(questions[0] ?? "", answer) };
      const list = [first, ...all.slice(1)];
      const outcome = (): ReplayOutcome => ({ kind: "differs", token: 17, then: " Moon", now: " Sun", note: null });
      return {
        ...base,
        conversations: list,
        snapshot: snapshotOf(openStatus, list),
        outcome: name === "thought" ? same : outcome,
        opening: "show-first",
      };
    }
    case "repeats":
      return { ...base, script: { ...calm, replies: [circle], repeatsAfter: 60 }, opening: "send" };
    case "long": {
      const list = [longConversation(), ...all.slice(1)];
      return {
        ...base,
        conversations: list,
        snapshot: snapshotOf(openStatus, list),
        opening: "show-first",
      };
    }
  }
}
