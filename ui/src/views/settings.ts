/** What the settings dialog offers: ranges, and how typed words become numbers. */
import type { GpuCheck, Sampling } from "../platform/bindings";

/** A number that a person can set. */
export interface NumberField {
  min: number;
  max: number;
  step: number;
}

/** Sampling, in the order of the dialog. */
export const samplingFields: {
  name: Exclude<keyof Sampling, "seed">;
  label: string;
  help: string;
  field: NumberField;
}[] = [
  {
    name: "temperature",
    label: "Temperature",
    help: "How freely words are chosen. 0 takes the likeliest each time.",
    field: { min: 0, max: 2, step: 0.05 },
  },
  {
    name: "topK",
    label: "Top-k",
    help: "Chooses among that many of the likeliest. 0 is off.",
    field: { min: 0, max: 1000, step: 1 },
  },
  {
    name: "topP",
    label: "Top-p",
    help: "Chooses among the likeliest that make up this share. 1 is off.",
    field: { min: 0, max: 1, step: 0.01 },
  },
  {
    name: "minP",
    label: "Min-p",
    help: "Leaves out what is rarer than this share of the likeliest. 0 is off.",
    field: { min: 0, max: 1, step: 0.01 },
  },
  {
    name: "repeatPenalty",
    label: "Repeat penalty",
    help: "Makes words that were just used less likely. 1 is off.",
    field: { min: 1, max: 2, step: 0.05 },
  },
  {
    name: "maxTokens",
    label: "Longest reply",
    help: "In tokens. A token is about three quarters of a word.",
    field: { min: 1, max: 131_072, step: 1 },
  },
];

/** When a GPU is held against the CPU, in the words of the dialogs. */
export const gpuChecks: { value: GpuCheck; label: string }[] = [
  { value: "probe", label: "When opened" },
  { value: "first-prompt", label: "First message" },
  { value: "every-prompt", label: "Every message" },
];

export const gpuField: NumberField = { min: 0, max: 255, step: 1 };
export const threadsField: NumberField = { min: 1, max: 256, step: 1 };
export const contextField: NumberField = { min: 256, max: 1_048_576, step: 1 };
export const seedField: NumberField = { min: 0, max: 4_294_967_295, step: 1 };

/** The number nearest to what was typed that is allowed; null if nothing was typed. */
export function numberFrom(words: string, field: NumberField): number | null {
  if (words.trim() === "") return null;
  const value = Number(words);
  if (!Number.isFinite(value)) return null;
  const whole = field.step === 1 ? Math.round(value) : value;
  return Math.min(field.max, Math.max(field.min, whole));
}
