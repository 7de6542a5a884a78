/** The words of the window in the language that was chosen. All of them stand in `strings/`. */
import type { Language } from "../platform/bindings";
import { de } from "./strings/de";
import { type Key, en } from "./strings/en";

export type { Key };

/** Words for several of something, beside which those for one of it stand: `x` and `xOne`. */
export type CountedKey = { [K in Key]: `${K}One` extends Key ? K : never }[Key];

/** Languages that have all words. */
export type Tongue = "en" | "de";

const tables: Record<Tongue, Record<Key, string>> = { en, de };

let tongue = $state<Tongue>("en");

/** The language for a choice; `system` are the ones that the system prefers, best first. */
export function tongueFor(choice: Language, system: readonly string[]): Tongue {
  if (choice === "german") return "de";
  if (choice === "english") return "en";
  for (const wish of system) {
    const base = wish.toLowerCase().split("-")[0];
    if (base === "de" || base === "en") return base;
  }
  return "en";
}

/** The language of the system, among those that have all words. */
export function systemLanguage(): Language {
  const found = tongueFor("system", navigator.languages ?? []);
  return found === "de" ? "german" : "english";
}

/** Speaks this language from now on. */
export function speak(chosen: Tongue): void {
  tongue = chosen;
}

/** The language that is spoken. */
export function spoken(): Tongue {
  return tongue;
}

/** The words of this name, with what is to be filled in. */
export function t(key: Key, values: Record<string, string | number> = {}): string {
  return tables[tongue][key].replace(/\{(\w+)\}/g, (whole, name: string) =>
    name in values ? String(values[name]) : whole,
  );
}
