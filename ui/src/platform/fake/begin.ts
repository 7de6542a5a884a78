/** Starts the window in the situation that the address names: `#streaming`, `#stopped&theme=dark`. */
import type { Session } from "../../session/session.svelte";
import { readiness } from "../../state/select";
import type { Platform } from "../types";
import { FakePlatform } from "./fake";
import { type ScenarioName, scenario, scenarioNames } from "./scenarios";
import { questions } from "./words";

/** Stops after so much of the reply, so that the picture is always about the same. */
const stopAfterMs = 2_400;
const stopEarlyAfterMs = 300;

function named(hash: string): { name: ScenarioName; theme: string | null } {
  const [first = "", ...rest] = hash.replace(/^#/, "").split("&");
  const name = scenarioNames.find((known) => known === first) ?? "ready";
  const theme = rest.find((part) => part.startsWith("theme="))?.slice("theme=".length) ?? null;
  return { name, theme: first === "dark" ? "dark" : theme };
}

/** Puts the page up and plays the opening. */
export async function beginScripted(put: (platform: Platform) => Session): Promise<void> {
  const { name, theme } = named(location.hash);
  const scene = scenario(name);
  if (theme === "dark" || theme === "light") {
    scene.snapshot = { ...scene.snapshot, settings: { ...scene.snapshot.settings, theme } };
  }
  const platform = new FakePlatform(scene);
  const session = put(platform);
  await session.start();
  addEventListener("hashchange", () => location.reload());

  switch (scene.opening) {
    case "nothing":
      return;
    case "load":
      platform.startLoading();
      return;
    case "show-first":
      await session.show(scene.conversations[name === "long" ? 0 : 1]?.id ?? "new");
      return;
    case "send":
    case "send-and-stop":
    case "stop-early":
      session.sendText("new", questions[1] ?? "");
  }
  if (scene.opening === "send") return;
  const wait = scene.opening === "send-and-stop" ? stopAfterMs : stopEarlyAfterMs;
  setTimeout(() => {
    if (readiness(session.state, session.state.shown).kind === "writing") void session.stop();
  }, wait);
}
