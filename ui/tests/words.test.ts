import { afterEach, describe, expect, it } from "vitest";
import { counted, duration, fileSize, grouped, keyNames, perSecond, statsLine, withKeys } from "../src/text/format";
import { recordRows, repeatsLine, replayLine } from "../src/text/reply";
import { completeSentences } from "../src/text/sentences";
import { de } from "../src/text/strings/de";
import { en } from "../src/text/strings/en";
import { exportedWords, importedWords } from "../src/text/transfer";
import { speak, spoken, t, tongueFor } from "../src/text/words.svelte";
import { record } from "./make";

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

const german: [string, () => unknown, string][] = [
  ["thousands", () => grouped(1_048_576), "1.048.576"],
  ["a size", () => fileSize(4_661_216_384), "4,7 GB"],
  ["a small size", () => fileSize(999), "999 Byte"],
  ["a short time", () => duration(320), "0,3 s"],
  ["a long time", () => duration(125_000), "2 min 5 s"],
  ["a rate", () => perSecond(3, 1000), "3,0 je Sekunde"],
  ["one line", () => counted("count.lines", 1), "1 Zeile"],
  ["several lines", () => counted("count.lines", 1_204), "1.204 Zeilen"],
  ["the keys of a keyboard", () => keyNames("Ctrl+Shift+C"), "Strg+Umschalt+C"],
  ["what keys do", () => withKeys(t("search.chats"), "Ctrl+K"), "Gespräche durchsuchen (Strg+K)"],
  [
    "the line under a reply",
    () => statsLine(record, "finished"),
    "SmolLM2 · CPU · 212 Tokens · 48 je Sekunde · erstes nach 0,3 s · fertig",
  ],
  [
    "its sampling",
    () => recordRows(record, "finished", null).find((row) => row.name === "Auswahl")?.value.split(" · ")[0],
    "Temperatur 0,7",
  ],
  [
    "a circle of several tokens",
    () => repeatsLine({ blockTokens: 42, copies: 3 }),
    "Diese Antwort wiederholt sich: Dieselben 42 Tokens kamen 4-mal hintereinander.",
  ],
  [
    "a circle of one",
    () => repeatsLine({ blockTokens: 1, copies: 9 }),
    "Diese Antwort wiederholt sich: Dasselbe Token kam 10-mal hintereinander.",
  ],
  ["a replay", () => replayLine({ kind: "reading", done: 12, total: 38 }).words, "Liest 12 von 38 Tokens"],
  ["code for the ears", () => completeSentences("```rust\na\nb\n```\n", 0).sentences[0], "Code, rust, 2 Zeilen."],
  ["an export", () => exportedWords({ path: "/a.json", conversations: 1 }), "Geschrieben nach /a.json: 1 Gespräch."],
  [
    "an import",
    () => importedWords({ source: "ChatGPT", conversations: 3, messages: 41, leftOut: 1, first: null }),
    "Aus ChatGPT: 3 Gespräche, 41 Nachrichten. 1 Teil (Bilder, Werkzeuge) hatte hier keinen Platz.",
  ],
];
it.each(german)("in German: %s", (_name, words, expected) => {
  speak("de");
  try {
    expect(words()).toBe(expected);
  } finally {
    speak("en");
  }
});

it("English says one and several", () => {
  const many = { source: "ChatGPT", conversations: 1, messages: 1, leftOut: 2, first: null };
  expect(importedWords(many)).toBe(
    "From ChatGPT: 1 chat with 1 message. 2 parts (pictures, tools) had no place here.",
  );
  expect(exportedWords({ path: "/a.md", conversations: 12 })).toBe("Written: 12 chats to /a.md.");
});
