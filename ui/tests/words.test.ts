import { afterEach, describe, expect, it } from "vitest";
import { de } from "../src/text/strings/de";
import { en } from "../src/text/strings/en";
import { speak, spoken, t, tongueFor } from "../src/text/words.svelte";

const places = (words: string): string[] => (words.match(/\{\w+\}/g) ?? []).sort();

describe("the words of the window", () => {
  afterEach(() => {
    speak("en");
  });

  it("are there in every language, none empty, with the same places to fill in", () => {
    expect(Object.keys(de)).toEqual(Object.keys(en));
    for (const [key, words] of Object.entries(en)) {
      const other = de[key as keyof typeof en];
      expect(words.trim(), key).not.toBe("");
      expect(other.trim(), key).not.toBe("");
      expect(places(other), key).toEqual(places(words));
    }
  });

  it("do not shout, in any language", () => {
    for (const words of [...Object.values(en), ...Object.values(de)]) {
      expect(words).not.toContain("!");
    }
  });

  it("are filled in, and a place without a value stays as it is", () => {
    expect(t("downloads.of", { received: "1 GB", total: "2 GB" })).toBe("1 GB of 2 GB");
    expect(t("models.button", {})).toBe("Model: {name}");
    speak("de");
    expect(t("models.button", { name: "x" })).toBe("Modell: x");
    expect(spoken()).toBe("de");
  });

  it("are in the language that was chosen, else in the first that the system knows", () => {
    expect(tongueFor("german", ["en"])).toBe("de");
    expect(tongueFor("english", ["de"])).toBe("en");
    expect(tongueFor("system", ["fr-FR", "de-AT", "en"])).toBe("de");
    expect(tongueFor("system", ["fr"])).toBe("en");
    expect(tongueFor("system", [])).toBe("en");
  });
});
