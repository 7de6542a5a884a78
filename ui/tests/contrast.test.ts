import { expect, it } from "vitest";
import css from "../src/styles/tokens.css?raw";

/** WCAG 2.1, level AA, for text of ordinary size, and for the edges of controls. */
const textMin = 4.5;
const edgeMin = 3;

function colours(theme: "light" | "dark"): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [, name, light, dark] of css.matchAll(
    /--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)/g,
  )) {
    found[name ?? ""] = (theme === "light" ? light : dark) ?? "";
  }
  return found;
}

function luminance(colour: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one: string, other: string): number {
  const [low = 0, high = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

const pairs: [string, string[]][] = [
  ["ink", ["page", "side", "raised", "own", "hover", "refusal-fill", "code-fill"]],
  ["quiet", ["page", "side", "raised", "own", "hover", "refusal-fill", "code-fill"]],
  ["accent", ["page", "raised", "hover", "refusal-fill"]],
  ["on-accent", ["accent", "accent-hover"]],
  ["attention", ["page", "raised"]],
  ["refusal", ["page", "raised", "refusal-fill"]],
  ["proven", ["page", "raised"]],
  ["code-comment", ["code-fill"]],
  ["code-keyword", ["code-fill"]],
  ["code-string", ["code-fill"]],
  ["code-number", ["code-fill"]],
  ["code-name", ["code-fill"]],
  ["code-type", ["code-fill"]],
];

for (const theme of ["light", "dark"] as const) {
  const table = colours(theme);
  it.each(pairs)(`in the ${theme}, --%s can be read`, (name, grounds) => {
    for (const ground of grounds) {
      const value = contrast(table[name] ?? "", table[ground] ?? "");
      expect(value, `--${name} on --${ground}`).toBeGreaterThanOrEqual(textMin);
    }
  });

  it(`in the ${theme}, edges of fields can be seen`, () => {
    for (const ground of ["page", "raised"]) {
      const value = contrast(table["line-strong"] ?? "", table[ground] ?? "");
      expect(value, ground).toBeGreaterThanOrEqual(edgeMin);
    }
  });
}
