/** What the server's settings offer, and how typed words become them. */
import { t } from "../text/words.svelte";
import type { NumberField } from "./settings";

/** Ports below 1,024 are the system's own. */
export const portField: NumberField = { min: 1024, max: 65_535, step: 1 };

/** As at first. */
export const portFirst = 11_711;

/** Bytes of a key: more than anybody guesses. */
const keyBytes = 16;

/** A key that nobody can foretell. */
export function freshKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(keyBytes));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The web pages that were typed, whatever stands between them. */
export function originsFrom(words: string): string[] {
  return words.split(/[\s,;]+/).filter((word) => word !== "");
}

/** What a server that listens is doing. */
export function listening(requests: number): string {
  if (requests === 0) return t("server.idle");
  if (requests === 1) return t("server.one");
  return t("server.many", { count: String(requests) });
}

/** What a tool is given. */
export function baseOf(address: string): string {
  return `${address}/v1`;
}

/** A web page as it is named. */
export const originExample = "http://localhost:3000";
