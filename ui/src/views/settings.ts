/** What the settings offer: ranges, and how typed words become numbers. */
import type { GpuCheck, Sampling } from "../platform/bindings";
import type { Key } from "../text/words.svelte";

/** A number that a person can set. */
export interface NumberField {
  min: number;
  max: number;
  step: number;
}

type SamplingName = Exclude<keyof Sampling, "seed">;

/** A number of the sampling. */
export interface SamplingField {
  name: SamplingName;
  label: Key;
  help: Key;
  field: NumberField;
}

const share: NumberField = { min: 0, max: 1, step: 0.01 };
const wordPenalty: NumberField = { min: -2, max: 2, step: 0.05 };

function row(name: SamplingName, field: NumberField): SamplingField {
  return { name, label: `chat.${name}`, help: `chat.${name}Help`, field };
}

/** What most people ever change. */
export const mainFields: SamplingField[] = [
  row("temperature", { min: 0, max: 5, step: 0.05 }),
  row("topK", { min: 0, max: 1000, step: 1 }),
  row("topP", share),
  row("minP", share),
  row("repeatPenalty", { min: 1, max: 2, step: 0.05 }),
  row("maxTokens", { min: 1, max: 131_072, step: 1 }),
];

/** The rest, folded. */
export const moreFields: SamplingField[] = [
  row("presencePenalty", wordPenalty),
  row("frequencyPenalty", wordPenalty),
  row("dryMultiplier", { min: 0, max: 5, step: 0.05 }),
  row("dryBase", { min: 1, max: 4, step: 0.05 }),
  row("dryAllowedLength", { min: 1, max: 100, step: 1 }),
  row("xtcProbability", share),
  row("xtcThreshold", share),
];

/** When a GPU is held against the CPU, in the words of the dialogs. */
export const gpuChecks: { value: GpuCheck; label: Key }[] = [
  { value: "probe", label: "settings.checkOpened" },
  { value: "first-prompt", label: "settings.checkFirst" },
  { value: "every-prompt", label: "settings.checkEvery" },
];

/** What may compute. */
export const devices: { value: "auto" | "cpu" | "gpu"; label: Key }[] = [
  { value: "auto", label: "common.automatic" },
  { value: "cpu", label: "settings.cpuOnly" },
  { value: "gpu", label: "settings.gpu" },
];

/** In how many bits a conversation is remembered. */
export const bits: { value: "f16" | "q8"; label: Key }[] = [
  { value: "f16", label: "settings.kv16" },
  { value: "q8", label: "settings.kv8" },
];

export const gpuField: NumberField = { min: 0, max: 255, step: 1 };
export const threadsField: NumberField = { min: 1, max: 256, step: 1 };
export const contextField: NumberField = { min: 256, max: 1_048_576, step: 1 };
export const seedField: NumberField = { min: 0, max: 4_294_967_295, step: 1 };
export const textField: NumberField = { min: 75, max: 200, step: 1 };

/** The number nearest to what was typed that is allowed; null if nothing was typed. */
export function numberFrom(words: string, field: NumberField): number | null {
  if (words.trim() === "") return null;
  const value = Number(words);
  if (!Number.isFinite(value)) return null;
  const whole = field.step === 1 ? Math.round(value) : value;
  return Math.min(field.max, Math.max(field.min, whole));
}

/** Why this is no JSON; null if it is, or if there is nothing. */
export function notJson(text: string): string | null {
  if (text.trim() === "") return null;
  try {
    JSON.parse(text);
    return null;
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown);
  }
}
