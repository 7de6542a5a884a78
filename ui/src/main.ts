/** Where the window begins: chooses the platform and puts the page up. */
import { mount } from "svelte";
import App from "./App.svelte";
import { insideTauri, tauriPlatform } from "./platform/tauri";
import type { Platform } from "./platform/types";
import { Session } from "./session/session.svelte";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/prose.css";

/** The scripted platform is left out of the real build altogether. */
const scripted = import.meta.env.DEV || import.meta.env.MODE === "fake";

async function begin(target: HTMLElement): Promise<void> {
  if (scripted && !insideTauri()) {
    const { beginScripted } = await import("./platform/fake/begin");
    await beginScripted((platform) => put(target, platform));
    return;
  }
  await put(target, tauriPlatform).start();
}

function put(target: HTMLElement, platform: Platform): Session {
  const session = new Session(platform);
  mount(App, { target, props: { session } });
  return session;
}

const target = document.getElementById("app");
if (target) void begin(target);
