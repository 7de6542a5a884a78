import axe from "axe-core";
import { flushSync, mount, unmount } from "svelte";
import { afterEach, describe, expect, it } from "vitest";
import App from "../src/App.svelte";
import { FakePlatform } from "../src/platform/fake/fake";
import { type ScenarioName, scenario, scenarioNames } from "../src/platform/fake/scenarios";
import { Session } from "../src/session/session.svelte";
import { defaultSampling } from "../src/state/model";
import { speak } from "../src/text/words.svelte";
import { hostOf, matching } from "../src/views/models.svelte";
import { freshKey, originsFrom } from "../src/views/server";
import { notJson, numberFrom } from "../src/views/settings";

let app: ReturnType<typeof mount> | null = null;

afterEach(() => {
  if (app) void unmount(app);
  app = null;
  document.body.replaceChildren();
  speak("en");
});

interface Page {
  session: Session;
  platform: FakePlatform;
}

async function open(name: ScenarioName): Promise<Page> {
  const platform = new FakePlatform(scenario(name));
  const session = new Session(platform, (run) => run());
  app = mount(App, { target: document.body, props: { session } });
  await session.start();
  await settle();
  return { session, platform };
}

async function settle(): Promise<void> {
  // Each answer of the platform is a promise or two away.
  for (let turn = 0; turn < 16; turn += 1) await Promise.resolve();
  flushSync();
}

const all = (testid: string): HTMLElement[] => [
  ...document.querySelectorAll<HTMLElement>(`[data-testid="${testid}"]`),
];

function find<E extends HTMLElement = HTMLElement>(testid: string): E {
  const element = all(testid).at(-1);
  if (!element) throw new Error(`nothing is called ${testid}`);
  return element as E;
}

async function click(testid: string): Promise<void> {
  find(testid).click();
  await settle();
}

async function fill(testid: string, value: string): Promise<void> {
  const box = find<HTMLInputElement>(testid);
  box.value = value;
  box.dispatchEvent(new Event("input", { bubbles: true }));
  box.dispatchEvent(new Event("change", { bubbles: true }));
  await settle();
}

async function submit(testid: string): Promise<void> {
  find(testid).closest("form")?.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
  await settle();
}

async function openModels(page: "here" | "find" | "downloads"): Promise<void> {
  await click("model-button");
  await click("models-open");
  await click(`models-tab-${page}`);
}

describe("models", () => {
  it("are told with the room for them, in the menu and on their page", async () => {
    await open("ready");
    await click("model-button");
    const menu = find("model-menu");
    expect(menu.textContent).toContain("Fits · 118 MB of 6.4 GB");
    expect(menu.textContent).toContain("missing · /media/ana/stick");
    await click("models-open");
    const items = all("models-item").map((item) => item.dataset["missing"]);
    expect(items).toEqual(["false", "false", "true"]);
    await fill("models-search", "QWEN ana");
    expect(all("models-item")).toHaveLength(1);
    await fill("models-search", "nothing of this name");
    expect(all("models-item")).toHaveLength(0);
  });

  it("are searched by every word, in names and folders", () => {
    const entry = (name: string, folder: string) => ({
      id: name,
      name,
      folder,
      sizeBytes: 1,
      missing: false,
      lastUsedMs: null,
    });
    const models = [entry("Qwen-Q4.gguf", "/a"), entry("llama.gguf", "/qwen"), entry("x.apr", "/a")];
    const names = (words: string): string[] => matching(models, words).map((m) => m.name);
    expect(names("")).toHaveLength(3);
    expect(names("qwen")).toEqual(["Qwen-Q4.gguf", "llama.gguf"]);
    expect(names(" q4  QWEN ")).toEqual(["Qwen-Q4.gguf"]);
    expect(hostOf("")).toBe("huggingface.co");
    expect(hostOf("https://hf.example:8080/hub")).toBe("hf.example:8080");
  });

  it("come from folders that are added and taken away", async () => {
    const { session } = await open("ready");
    await openModels("here");
    expect(all("folder").map((folder) => folder.dataset["state"])).toEqual([
      "ready",
      "ready",
      "missing",
    ]);
    expect(all("folder-remove")).toHaveLength(2);
    await fill("folder-path", "relative");
    await submit("folder-path");
    expect(find("folder-error").textContent).toContain("relative is no folder");
    await fill("folder-path", "/mnt/models");
    await submit("folder-path");
    expect(session.state.settings.modelFolders).toEqual(["/mnt/models"]);
    expect(all("folder")).toHaveLength(4);
    await click("folder-remove");
    expect(session.state.settings.modelFolders).toEqual([]);
    expect(all("folder")).toHaveLength(3);
  });

  it("are found on the hub and downloaded, paused, gone on with and taken off", async () => {
    const { session } = await open("ready");
    await openModels("find");
    expect(document.body.textContent).toContain("Nothing is asked of the network until");
    await fill("hub-words", "coder");
    await submit("hub-words");
    expect(all("hub-model").map((model) => model.dataset["repo"])).toEqual([
      "Qwen/Qwen2.5-Coder-7B-Instruct-GGUF",
    ]);
    find("hub-model").querySelector("button")?.click();
    await settle();
    const files = all("hub-file").map((file) => file.textContent.replace(/\s+/g, " ").trim());
    expect(files[0]).toContain("3.8 GB · Fits · 4.6 GB of 6.4 GB");
    expect(files[1]).toContain("Tight");
    expect(files[3]).toContain("3 files · Does not fit");
    all("hub-get")[0]?.click();
    await settle();
    expect(find("download").dataset["state"]).toBe("running");
    await click("download-pause");
    expect(find("download").dataset["state"]).toBe("paused");
    await click("download-resume");
    expect(find("download").dataset["state"]).toBe("running");
    await click("download-remove");
    expect(session.state.downloads).toEqual([]);
  });

  it("are not looked for while the network is not to be asked, and the page says so", async () => {
    const { session } = await open("ready");
    await session.saveSettings({ ...session.state.settings, offline: true });
    await openModels("find");
    expect(find("hub-offline").textContent).toContain("nothing of the network");
    expect(all("hub-words")).toHaveLength(0);
    find("hub-offline").querySelector("button")?.click();
    await settle();
    expect(session.state.settings.offline).toBe(false);
    expect(all("hub-words")).toHaveLength(1);
  });

  it("say of a download how far it is and why it failed", async () => {
    await open("downloads");
    await click("model-button");
    await click("models-open");
    const [running, failed] = all("download");
    expect(running?.textContent).toContain("1.7 GB of 4.7 GB · 11 MB a second · 4 min 23 s left");
    expect(running?.dataset["percent"]).toBe("36");
    expect(failed?.textContent).toContain("does not match the checksum");
  });

  it("are offered to a newcomer: the starter model comes with one click", async () => {
    const { session } = await open("newcomer");
    expect(find("empty-starter-get").textContent).toContain("98 MB");
    expect(session.state.downloads).toEqual([]);
    await click("empty-starter-get");
    expect(session.state.downloads).toHaveLength(1);
    expect(all("empty-starter-get")).toHaveLength(0);
    expect(find("download").dataset["state"]).toBe("running");
  });

  it("have choices of their own", async () => {
    const { session } = await open("ready");
    await click("model-button");
    all("model-info")[0]?.click();
    await settle();
    await fill("setting-own-context", "4096");
    expect(session.state.settings.models).toEqual({
      smol: { device: null, threads: null, context: 4096, kv: null },
    });
    await click("reset-own-context");
    expect(session.state.settings.models["smol"]?.context).toBeNull();
  });
});

describe("settings", () => {
  it("of a chat are its own until it goes by those of all again", async () => {
    const { session } = await open("chat");
    await click("chat-settings");
    expect(find("chat-standing").dataset["own"]).toBe("false");
    await fill("setting-temperature", "0.2");
    expect(find("chat-standing").dataset["own"]).toBe("true");
    const shown = session.state.shown === "new" ? null : session.state.shown;
    expect((await session.shelf.chatSettings(shown))?.sampling.temperature).toBe(0.2);
    expect(session.state.settings.sampling.temperature).toBe(0.7);
    await click("reset-temperature");
    expect(find<HTMLInputElement>("setting-temperature").value).toBe("0.7");
    await click("chat-shared");
    expect(find("chat-standing").dataset["own"]).toBe("false");
    expect(await session.shelf.chatSettings(shown)).toBeNull();
  });

  it("are kept under a name and chosen by it", async () => {
    const { session } = await open("chat");
    await click("chat-settings");
    await fill("setting-system-prompt", "Be brief.");
    await fill("preset-name", " Brief ");
    await submit("preset-name");
    expect(session.state.settings.presets.map((preset) => preset.name)).toEqual(["Brief"]);
    await click("chat-shared");
    await fill("preset", "Brief");
    expect(find<HTMLTextAreaElement>("setting-system-prompt").value).toBe("Be brief.");
    await click("preset-remove");
    expect(session.state.settings.presets).toEqual([]);
  });

  it("name what is wrong with a schema or a template, and show what a model would read", async () => {
    await open("chat");
    await click("chat-settings");
    await fill("setting-schema", "{type");
    expect(find("schema-error").textContent).toContain("This is no JSON");
    await fill("setting-schema", '{"type":"object"}');
    expect(all("schema-error")).toHaveLength(0);
    expect(find("template-preview").textContent).toContain("<|im_start|>user");
    await fill("setting-template", "{% for %}");
    expect(find("template-error").textContent).toContain("wrong in line 1");
  });

  it("go back to what they were at first, all at once", async () => {
    const { session } = await open("ready");
    await session.saveSettings({
      ...session.state.settings,
      sampling: { ...defaultSampling, topK: 3, dryMultiplier: 1 },
    });
    await click("settings");
    await click("reset-sampling");
    expect(session.state.settings.sampling).toEqual(defaultSampling);
  });

  it("change the language and the size of the whole window", async () => {
    const { session } = await open("ready");
    await session.saveSettings({ ...session.state.settings, language: "german", textPercent: 130 });
    await settle();
    expect(document.documentElement.lang).toBe("de");
    expect(document.documentElement.style.fontSize).toBe("130%");
    await click("model-button");
    expect(find("model-menu").textContent).toContain("Alle Modelle");
    document.documentElement.style.fontSize = "";
  });

  it("take only numbers that are allowed, and only JSON", () => {
    const field = { min: 0, max: 10, step: 1 };
    expect(numberFrom("7.6", field)).toBe(8);
    expect(numberFrom("-3", field)).toBe(0);
    expect(numberFrom(" ", field)).toBeNull();
    expect(numberFrom("many", field)).toBeNull();
    expect(notJson("")).toBeNull();
    expect(notJson("{")).not.toBeNull();
  });
});

/**
 * What axe may say nothing about here: jsdom draws nothing, so colours are looked at in
 * `contrast.test.ts`, and what is on the screen in the tests of the real window.
 */
const rules = { "color-contrast": { enabled: false }, region: { enabled: false } };

async function faults(): Promise<string[]> {
  const { violations } = await axe.run(document.body, { rules, resultTypes: ["violations"] });
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

describe("every view is accessible as far as axe can tell", () => {
  it.each(scenarioNames.filter((name) => name !== "long" && name !== "heavy"))(
    "the situation “%s”",
    async (name) => {
      await open(name);
      expect(await faults()).toEqual([]);
    },
    20_000,
  );

  it.each([
    ["settings", ["settings"]],
    ["keyboard", ["shortcuts"]],
    ["chat settings", ["chat-settings"]],
    ["model menu", ["model-button"]],
    ["models", ["model-button", "models-open"]],
    ["search", ["model-button", "models-open", "models-tab-find"]],
    ["downloads", ["model-button", "models-open", "models-tab-downloads"]],
    ["details", ["model-button", "model-info"]],
  ])(
    "%s",
    async (_name, path) => {
      await open("chat");
      for (const testid of path) await click(testid);
      expect(await faults()).toEqual([]);
    },
    20_000,
  );
});

describe("other programs", () => {
  const how = (): string | undefined => find("server-how").dataset["state"];

  it("are answered once the switch is on, and not before", async () => {
    const { platform, session } = await open("chat");
    expect(all("server-badge")).toHaveLength(0);
    await click("settings");
    expect(how()).toBe("off");
    expect(all("setting-port")).toHaveLength(0);
    await click("setting-server");
    expect(how()).toBe("listening");
    expect(session.state.settings.server.on).toBe(true);
    expect(find("server-address").textContent).toBe("http://127.0.0.1:11711/v1");
    expect(all("server-badge")).toHaveLength(1);
    expect(await axe.run(document.body, { rules: { "color-contrast": { enabled: false } } })).toMatchObject({
      violations: [],
    });
    await click("setting-server");
    expect(how()).toBe("off");
    expect(await platform.serverState()).toEqual({ state: "off" });
  });

  it("hear of another port where one is taken", async () => {
    const { platform, session } = await open("chat");
    platform.takenPorts.add(11_711);
    await click("settings");
    await click("setting-server");
    expect(how()).toBe("port-taken");
    expect(find("server-how").textContent).toContain("port 11711 is used by another program");
    await click("server-other");
    expect(how()).toBe("listening");
    expect(session.state.settings.server.port).toBe(11_712);
  });

  it("need a key that nobody can foretell, where one is made", async () => {
    const { session } = await open("chat");
    await click("settings");
    await click("setting-server");
    await click("server-make-key");
    const { key } = session.state.settings.server;
    expect(key).toMatch(/^[0-9a-f]{32}$/);
    expect(find<HTMLInputElement>("setting-server-key").value).toBe(key);
    expect(freshKey()).not.toBe(key);
  });

  it("on web pages are named one by one", async () => {
    const cases: [string, string[]][] = [
      ["", []],
      ["http://a:1", ["http://a:1"]],
      [" http://a:1,  http://b ; http://c ", ["http://a:1", "http://b", "http://c"]],
    ];
    for (const [words, origins] of cases) expect(originsFrom(words)).toEqual(origins);
  });
});
