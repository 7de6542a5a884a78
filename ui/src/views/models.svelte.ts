/** What the lists of models share: searching them, and the room for each. */
import { SvelteMap } from "svelte/reactivity";
import type { Fit, ModelEntry } from "../platform/types";
import type { Shelf } from "../session/shelf";

/** Every word of the search is somewhere in the name or the folder. */
export function matching(models: ModelEntry[], words: string): ModelEntry[] {
  const wanted = words.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return models.filter((model) => {
    const text = `${model.folder}/${model.name}`.toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}

/** As many as are asked about at once. */
const askedAtOnce = 24;

/** The room for the models of a list, asked for once the list is shown. */
export function fitsOf(
  shelf: () => Shelf,
  models: () => ModelEntry[],
): { of: (id: string) => Fit | null } {
  const known = new SvelteMap<string, Fit | null>();
  const asked = new Set<string>();
  $effect(() => {
    const open = models().filter((model) => !model.missing && !asked.has(model.id));
    for (const model of open) asked.add(model.id);
    void ask(open.map((model) => model.id));
  });

  async function ask(ids: string[]): Promise<void> {
    for (let at = 0; at < ids.length; at += askedAtOnce) {
      const fits = await shelf().fits(ids.slice(at, at + askedAtOnce));
      for (const [id, fit] of fits) known.set(id, fit);
    }
  }
  return { of: (id) => known.get(id) ?? null };
}

/** The host of an address, as a person knows it. */
export function hostOf(address: string): string {
  const bare = address.trim().replace(/^\w+:\/\//, "").replace(/\/.*$/, "");
  return bare === "" ? "huggingface.co" : bare;
}
