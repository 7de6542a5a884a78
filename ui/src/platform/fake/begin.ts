/** Starts the window in the situation that the address names: `#streaming`, `#stopped&theme=dark`. */
import type { Session } from "../../session/session.svelte";
import { renderFragment } from "../../markdown/render";
import { readiness } from "../../state/select";
import type { Platform } from "../types";
import { FakePlatform } from "./fake";
import { type ScenarioName, scenario, scenarioNames } from "./scenarios";
import { questions } from "./words";

/** Situations that show their first conversation. */
const shownFirst = new Set<ScenarioName>(["long", "thought", "formulas"]);

/** Stops after so much of the reply, so that the picture is always about the same. */
const stopAfterMs = 2_400;
const stopEarlyAfterMs = 300;
/** Time for a view to come up before the next press. */
const pressAfterMs = 150;

interface Wishes {
  name: ScenarioName;
  theme: string | null;
  language: string | null;
  /** Names of what is pressed after the start, one after the other. */
  press: string[];
}

function named(hash: string): Wishes {
  const [first = "", ...rest] = hash.replace(/^#/, "").split("&");
  const name = scenarioNames.find((known) => known === first) ?? "ready";
  const wish = (key: string): string | null =>
    rest.find((part) => part.startsWith(`${key}=`))?.slice(key.length + 1) ?? null;
  const press = wish("press")?.split(",") ?? [];
  return {
    name,
    theme: first === "dark" ? "dark" : wish("theme"),
    language: wish("language"),
    press,
  };
}

/** Each once it is there; a name of what never comes ends it. */
async function pressAll(testids: string[]): Promise<void> {
  for (const testid of testids) {
    await new Promise((then) => setTimeout(then, pressAfterMs));
    const found = document.querySelectorAll<HTMLElement>(`[data-testid="${testid}"]`);
    const last = found[found.length - 1];
    if (!last) return;
    last.click();
  }
}

/** Puts the page up and plays the opening. */
export async function beginScripted(put: (platform: Platform) => Session): Promise<void> {
  const { name, theme, language, press } = named(location.hash);
  const scene = scenario(name);
  if (theme === "dark" || theme === "light") {
    scene.snapshot = { ...scene.snapshot, settings: { ...scene.snapshot.settings, theme } };
  }
  // So that a browser can be asked what drawing something costs.
  Object.assign(globalThis, { candorRender: renderFragment });
  if (language === "german" || language === "english") {
    scene.snapshot = { ...scene.snapshot, settings: { ...scene.snapshot.settings, language } };
  }
  const { status } = scene.snapshot;
  if (language === "german" && status.banner.kind === "cpu") {
    // What the shell would say; the rest of the script is English as a foreign chat would be.
    const reason = "kein NVIDIA-Treiber gefunden · AVX-512 · 2 Threads";
    scene.snapshot = { ...scene.snapshot, status: { ...status, banner: { ...status.banner, reason } } };
  }
  const platform = new FakePlatform(scene);
  const session = put(platform);
  await session.start();
  addEventListener("hashchange", () => location.reload());

  void pressAll(press);
  switch (scene.opening) {
    case "nothing":
      return;
    case "load":
      platform.startLoading();
      return;
    case "show-first":
      await session.show(scene.conversations[shownFirst.has(name) ? 0 : 1]?.id ?? "new");
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
