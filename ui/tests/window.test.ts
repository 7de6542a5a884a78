import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import App from "../src/App.svelte";
import { FakePlatform } from "../src/platform/fake/fake";
import { type ScenarioName, scenario, scenarioNames } from "../src/platform/fake/scenarios";
import { Session } from "../src/session/session.svelte";
import { defaultSettings } from "../src/state/model";
import { shownMessages } from "../src/state/select";

let app: ReturnType<typeof mount> | null = null;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  if (app) void unmount(app);
  app = null;
  document.body.replaceChildren();
  vi.useRealTimers();
});

interface Page {
  session: Session;
  platform: FakePlatform;
}

async function open(name: ScenarioName, change?: (platform: FakePlatform) => void): Promise<Page> {
  const platform = new FakePlatform(scenario(name));
  change?.(platform);
  const session = new Session(platform, (run) => setTimeout(run, 16));
  app = mount(App, { target: document.body, props: { session } });
  await session.start();
  await settle(0);
  return { session, platform };
}

async function settle(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
  flushSync();
}

function find<E extends HTMLElement = HTMLElement>(testid: string): E {
  const found = document.querySelectorAll<E>(`[data-testid="${testid}"]`);
  const element = found[found.length - 1];
  if (!element) throw new Error(`nothing is called ${testid}`);
  return element;
}

const has = (testid: string): boolean =>
  document.querySelector(`[data-testid="${testid}"]`) !== null;

async function type(text: string): Promise<void> {
  const box = find<HTMLTextAreaElement>("composer");
  box.value = text;
  box.dispatchEvent(new InputEvent("input", { bubbles: true }));
  await settle(0);
}

async function press(target: EventTarget, key: string, init: KeyboardEventInit = {}): Promise<void> {
  target.dispatchEvent(
    new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...init }),
  );
  await settle(0);
}

it.each(scenarioNames)("the situation “%s” can be shown, and every control has a name", async (name) => {
  const { session } = await open(name);
  const first = session.state.conversations[0];
  if (first) await session.show(first.id);
  await settle(100);
  for (const control of document.querySelectorAll<HTMLElement>("button, input, textarea, a")) {
    const label = control.getAttribute("aria-label") ?? control.textContent ?? "";
    const labelled = control.closest("label") ?? document.querySelector(`[for="${control.id}"]`);
    expect(label.trim() !== "" || labelled !== null, control.outerHTML).toBe(true);
  }
  expect(find("banner").dataset["kind"]).toBe(session.state.status.banner.kind);
});

it("a chat: write, read, stop, ask again", async () => {
  await open("ready");
  expect(find("send")).toHaveProperty("disabled", true);
  await type("hello");
  await press(find("composer"), "Enter");
  expect(find<HTMLTextAreaElement>("composer").value).toBe("");
  expect(find("message").dataset).toMatchObject({ role: "assistant", state: "writing" });
  expect(has("send")).toBe(false);

  await settle(1_500);
  const early = find("reply-text").textContent.length;
  expect(early).toBeGreaterThan(0);
  await settle(500);
  expect(find("reply-text").textContent.length).toBeGreaterThan(early);

  find("stop").click();
  await settle(50);
  expect(find("message").dataset["state"]).toBe("stopped");
  expect(find("stats").textContent).toContain("stopped by you");
  expect(has("send")).toBe(true);

  const stopped = find("reply-text").textContent;
  await settle(1_000);
  expect(find("reply-text").textContent).toBe(stopped);

  find("regenerate").click();
  await settle(50);
  expect(find("message").dataset["state"]).toBe("writing");
});

it("Esc stops from anywhere, and before the answer began there is a way to send again", async () => {
  await open("early");
  await type("hello");
  await press(find("composer"), "Enter");
  await press(document.body, "Escape");
  await settle(50);
  expect(find("stopped-early").textContent).toBe("Stopped before the answer began.");
  expect(find("regenerate").textContent.trim()).toBe("Send again");
});

it("a key of an input method neither sends nor stops", async () => {
  await open("ready");
  await type("にほん");
  const box = find("composer");
  await press(box, "Enter", { isComposing: true });
  await press(box, "Enter", { keyCode: 229 });
  box.dispatchEvent(new CompositionEvent("compositionend", { bubbles: true }));
  await press(box, "Enter");
  expect(has("message")).toBe(false);
  await settle(100);
  box.dispatchEvent(new KeyboardEvent("keyup", { key: "Enter" }));
  await settle(0);
  await type("日本");
  await press(box, "Enter", {});
  expect(has("message")).toBe(true);
});

/** Opens a field that Enter ends; what to click, then the field. */
const fields: [string, string[], string][] = [
  ["an edited question", ["edit-message"], "edit-field"],
  ["a waiting message", ["queued-edit"], "queued-field"],
  ["a chat's name", ["row-menu", "rename"], "rename-field"],
  ["a new folder", ["row-menu", "move", "new-folder"], "folder-field"],
  ["the search", [], "search"],
];

it.each(fields)("a key of an input method ends nothing in the field of %s", async (_, clicks, name) => {
  const { session } = await open("chat");
  await session.show(2);
  await settle(0);
  if (clicks[0] === "queued-edit") {
    await type("hello");
    await press(find("composer"), "Enter");
    await type("next");
    await press(find("composer"), "Enter");
  }
  for (const testid of clicks) {
    find(testid).click();
    await settle(0);
  }
  const field = find<HTMLInputElement>(name);
  field.value = "にほん";
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
  await settle(200);
  const before = JSON.stringify(session.state.conversations);
  const stop = vi.spyOn(session, "stop");
  const keys: KeyboardEventInit[] = [{ isComposing: true }, { keyCode: 229 }, {}];
  for (const key of ["Enter", "Escape"]) {
    for (const init of keys) {
      field.dispatchEvent(new CompositionEvent("compositionend", { bubbles: true }));
      await press(field, key, init);
      expect(find<HTMLInputElement>(name)).toBe(field);
      expect(field.value).toBe("にほん");
    }
  }
  expect(JSON.stringify(session.state.conversations)).toBe(before);
  expect(stop).not.toHaveBeenCalled();
});

it("Enter during a reply makes one message wait, which can be edited and removed", async () => {
  await open("ready");
  await type("hello");
  await press(find("composer"), "Enter");
  await type("next");
  await press(find("composer"), "Enter");
  expect(find("queued").textContent).toContain("next");
  find("queued-remove").click();
  await settle(0);
  expect(has("queued")).toBe(false);
});

it("a waiting message is not sent while it is edited, wherever one looks meanwhile", async () => {
  const { session } = await open("ready");
  await type("hello");
  await press(find("composer"), "Enter");
  await type("next");
  await press(find("composer"), "Enter");
  const key = session.state.shown;
  find("queued-edit").click();
  await settle(0);
  const field = find<HTMLTextAreaElement>("queued-field");
  expect(document.activeElement).toBe(field);
  field.value = "next, but better";
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
  await session.show(1);
  await settle(60_000);
  await session.show(key);
  await settle(0);
  const sent = (): string[] => shownMessages(session.state, key).map((message) => message.text);
  expect(sent()).not.toContain("next");
  expect(find<HTMLTextAreaElement>("queued-field").value).toBe("next, but better");
  await press(find("queued-field"), "Enter");
  await settle(0);
  expect(has("queued")).toBe(false);
  expect(sent()).toContain("next, but better");
});

it("the arrow brings back the last message into an empty box", async () => {
  const { session } = await open("chat");
  await session.show(3);
  await settle(0);
  await press(find("composer"), "ArrowUp");
  expect(find<HTMLTextAreaElement>("composer").value).toBe("Why are there two tides a day?");
});

it("each conversation keeps its draft", async () => {
  const { session } = await open("chat");
  await session.show(3);
  await type("half a");
  await session.show(4);
  await settle(0);
  expect(find<HTMLTextAreaElement>("composer").value).toBe("");
  await session.show(3);
  await settle(0);
  expect(find<HTMLTextAreaElement>("composer").value).toBe("half a");
});

it("without a model the text stays, and the page says what to do", async () => {
  await open("empty");
  await type("hello");
  await press(find("composer"), "Enter");
  expect(find<HTMLTextAreaElement>("composer").value).toBe("hello");
  expect(find("hint").textContent).toContain("No model is open");
  // The starter model lies on this computer: nothing may sound as if it were fetched.
  expect(find("empty-starter").textContent).toContain("Open the starter model · 98 MB");
  expect(find("banner-reason").textContent).toContain("the starter model on disk");
  expect(has("empty-open-file")).toBe(true);
  expect(find("empty-state").textContent).toContain("(.gguf or .apr)");
});

it("a refusal is a sentence with its reason, and details", async () => {
  await open("refused");
  expect(find("banner").dataset["tone"]).toBe("refusal");
  expect(find("banner-reason").textContent).toContain("it has 2.1 GB of 4.7 GB");
  expect(has("details-panel")).toBe(false);
  find("details").click();
  await settle(0);
  expect(find("banner-advice").textContent).toContain("Download the file again");
});

it("a GPU that is being checked can be stopped, or left for the CPU", async () => {
  await open("proving");
  expect(find("banner-state").textContent).toBe("Checking");
  expect(find("banner-reason").textContent).toContain("23 of 65");
  expect(document.querySelector("progress")?.value).toBeCloseTo(23 / 65);
  expect(has("banner-stop-loading")).toBe(true);
  await type("hello");
  await press(find("composer"), "Enter");
  expect(find("queued").textContent).toContain("hello");
  find("banner-use-cpu").click();
  await settle(50);
  expect(find("banner").dataset["kind"]).toBe("cpu");
});

it("a GPU whose answers differed leaves its report to be copied", async () => {
  const copied: string[] = [];
  vi.stubGlobal("navigator", { clipboard: { writeText: async (t: string) => void copied.push(t) } });
  await open("rejected");
  expect(find("banner").dataset).toMatchObject({ kind: "cpu", tone: "attention" });
  expect(find("banner-reason").textContent).toMatch(/^GPU found .* its answers differed/);
  expect(has("banner-check-again")).toBe(false);
  find("details").click();
  await settle(0);
  expect(find("banner-advice").textContent).toContain("Update the driver");
  find("copy-report").click();
  await settle(0);
  expect(copied).toEqual(["The GPU was rejected at position 12: layer 7, attention."]);
  find("banner-check-again").click();
  await settle(200);
  expect(find("banner").dataset["kind"]).toBe("loading");
  vi.unstubAllGlobals();
});

it("the CPU of one's own choice is no fault, and the GPU can be had back", async () => {
  const { session } = await open("ready", (platform) => {
    void platform.saveSettings({ ...defaultSettings, device: "cpu" });
  });
  expect(session.state.settings.device).toBe("cpu");
  await session.device("use-gpu");
  expect(session.state.status.banner.kind).toBe("loading");
});

it("each model can have a check of its own", async () => {
  const { session } = await open("ready");
  find("model-button").click();
  await settle(0);
  find("model-info").click();
  await settle(50);
  const choice = find<HTMLSelectElement>("gpu-check");
  choice.value = "every-prompt";
  choice.dispatchEvent(new Event("change", { bubbles: true }));
  await settle(0);
  expect(Object.values(session.state.settings.gpuChecks)).toEqual(["every-prompt"]);
  choice.value = "";
  choice.dispatchEvent(new Event("change", { bubbles: true }));
  await settle(0);
  expect(session.state.settings.gpuChecks).toEqual({});
});

it("a reply that went on with the CPU says so once, and its record says what computed", async () => {
  const { session } = await open("moved");
  await session.show(1);
  await settle(50);
  const notices = document.querySelectorAll("[data-testid=reply-moved]");
  expect([...notices].map((notice) => notice.textContent)).toEqual([
    "The GPU stopped working (it ran out of memory); this reply went on with the CPU.",
  ]);
  expect(find("stats").textContent).toContain("GPU, then CPU");
});

it("a load has a Stop", async () => {
  const { platform } = await open("loading");
  platform.startLoading();
  await settle(500);
  expect(document.querySelector("progress")?.value).toBeGreaterThan(0);
  find("banner-stop-loading").click();
  await settle(500);
  expect(find("banner").dataset["kind"]).toBe("no-model");
});

it("a model is opened by its path, and a wrong one says why", async () => {
  await open("empty");
  find("model-button").click();
  await settle(0);
  const field = find<HTMLInputElement>("path-field");
  field.value = "/home/ana/page.html";
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
  await settle(0);
  find("path-open").click();
  await settle(0);
  expect(find("model-error").textContent).toContain("is not a model file");
  field.value = "/home/ana/a b.gguf";
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
  await settle(0);
  find("path-open").click();
  await settle(6_000);
  expect(has("model-menu")).toBe(false);
  expect(find("banner").dataset["kind"]).toBe("cpu");
});

it("a link shows its address before anything opens", async () => {
  const { session, platform } = await open("chat");
  await session.show(2);
  await settle(50);
  document.querySelector<HTMLElement>(".prose .link")?.click();
  await settle(0);
  expect(find("link-address").textContent).toBe(
    "https://doc.rust-lang.org/std/collections/",
  );
  expect(platform.opened).toEqual([]);
  find("link-open").click();
  await settle(0);
  expect(platform.opened).toEqual(["https://doc.rust-lang.org/std/collections/"]);
});

it("each deletion keeps its own undo", async () => {
  const { session } = await open("chat");
  const before = session.state.conversations.map((c) => c.id);
  const rows = (): string[] =>
    [...find("conversations").querySelectorAll<HTMLElement>("li[data-testid]")].map(
      ({ dataset }) => `${dataset["testid"] === "removed" ? "-" : ""}${dataset["id"]}`,
    );
  for (const id of [3, 2, 6]) {
    await session.chats.remove(id);
    await settle(10);
  }
  expect(rows()).toEqual(["1", "-2", "-3", "4", "5", "-6"]);
  for (const undo of document.querySelectorAll<HTMLElement>('[data-testid="undo"]')) {
    undo.click();
    await settle(10);
  }
  expect(session.state.conversations.map((c) => c.id)).toEqual(before);
  expect(rows()).toEqual(before.map(String));
});

it("Delete alone deletes nothing; Ctrl+Delete can be undone", async () => {
  const { session } = await open("chat");
  const row = document.querySelector<HTMLElement>('[data-testid="conversation-item"] .open');
  if (!row) throw new Error("no conversation");
  await press(row, "Delete");
  await press(row, "Backspace");
  expect(session.state.conversations).toHaveLength(6);
  await press(row, "Delete", { ctrlKey: true });
  expect(session.state.conversations).toHaveLength(5);
  expect(document.activeElement).toBe(find("undo"));
  find("undo").click();
  await settle(0);
  expect(session.state.conversations).toHaveLength(6);
});

it("a title is changed in place", async () => {
  const { session } = await open("chat");
  find("row-menu").click();
  await settle(0);
  find("rename").click();
  await settle(0);
  const field = find<HTMLInputElement>("rename-field");
  field.value = "Maps";
  await press(field, "Enter");
  await settle(0);
  expect(session.state.conversations.map((c) => c.title)).toContain("Maps");
});

it("hostile titles and names are words", async () => {
  const evil = `<img src=x onerror="canary()">`;
  const { session } = await open("chat", (platform) => {
    const bootstrap = platform.bootstrap.bind(platform);
    platform.bootstrap = async () => {
      const snapshot = await bootstrap();
      const [first] = snapshot.conversations;
      if (snapshot.status.model) snapshot.status.model.name = evil;
      return {
        ...snapshot,
        notices: [evil],
        conversations: first ? [{ ...first, title: evil }] : [],
      };
    };
  });
  await session.show(1);
  await settle(50);
  expect(document.querySelector("img")).toBeNull();
  expect(find("title").textContent).toBe(evil);
});

it("a reply is announced by sentence, and its end once", async () => {
  await open("ready");
  await type("hello");
  await press(find("composer"), "Enter");
  await settle(1_200);
  const log = find("announcer");
  expect(log.getAttribute("role")).toBe("log");
  expect(log.textContent).toContain("Here is a small function that counts words.");
  await settle(60_000);
  expect(log.textContent.match(/End of the reply\./g)).toHaveLength(1);
});

it("the look follows the setting", async () => {
  const { session } = await open("ready");
  await press(document.body, ",", { ctrlKey: true });
  const dark = document.querySelector<HTMLInputElement>('input[value="dark"]');
  dark?.click();
  await settle(0);
  expect(document.documentElement.dataset["theme"]).toBe("dark");
  expect(session.state.settings.theme).toBe("dark");
});

it("Ctrl+B folds the sidebar, and the setting keeps it", async () => {
  const { session } = await open("ready");
  await press(document.body, "b", { ctrlKey: true });
  expect(has("sidebar")).toBe(false);
  expect(session.state.settings.sidebarFolded).toBe(true);
  expect(document.activeElement).toBe(find("unfold"));
});

it("a chat of 2,000 messages draws its end only", async () => {
  const { session } = await open("long");
  await session.show(1);
  await settle(50);
  expect(document.querySelectorAll('[data-testid="message"]')).toHaveLength(40);
  find("show-earlier").click();
  await settle(0);
  expect(document.querySelectorAll('[data-testid="message"]')).toHaveLength(140);
});

it("the details of a model say what stands against it, before it is opened", async () => {
  await open("ready");
  const describe = async (id: string): Promise<string> => {
    find("model-button").click();
    await settle(0);
    document.querySelector<HTMLElement>(`[data-id="${id}"] [data-testid="model-info"]`)?.click();
    await settle(0);
    expect(has("model-menu")).toBe(false);
    const text = find("model-details").textContent ?? "";
    find("model-details").querySelector<HTMLElement>('[aria-label="Close"]')?.click();
    await settle(0);
    expect(has("model-details")).toBe(false);
    return text;
  };
  expect(await describe("smol")).toContain("Nothing stands against using this file.");
  expect(await describe("qwen")).toMatch(/Good to know\.\s+The file brings no chat template/);
  expect(await describe("gone")).toMatch(/Cannot be used\.\s+llama-3\.gguf: there is no such file/);
});

it("a piece of a reply touches nothing on the root, whose every change costs all elements", async () => {
  await open("ready");
  await type("hello");
  await press(find("composer"), "Enter");
  await settle(1_500);
  const before = find("reply-text").textContent.length;
  const changed: (string | null)[] = [];
  const observer = new MutationObserver((records) => {
    changed.push(...records.map((record) => record.attributeName));
  });
  observer.observe(document.documentElement, { attributes: true });
  await settle(500);
  observer.disconnect();
  expect(find("reply-text").textContent.length).toBeGreaterThan(before);
  expect(changed).toEqual([]);
});

it("the report on the program is read before it is saved, and saved as it was read", async () => {
  const { platform } = await open("ready");
  find("settings").click();
  await settle(0);
  expect(has("report-text")).toBe(false);
  find("report-show").click();
  await settle(0);
  const shown = find("report-text").textContent;
  expect(shown).toContain("What computes");
  find("report-save").click();
  await settle(0);
  expect(platform.saved).toEqual([shown]);
  expect(find("report-save").textContent.trim()).toBe("Saved");
});
