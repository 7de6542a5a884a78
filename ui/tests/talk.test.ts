/** Conversations: branches, search, places, cards, and what the model still remembers. */
import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import App from "../src/App.svelte";
import { becomesCard, longPasteChars, longPasteLines } from "../src/composer/paste";
import { FakePlatform } from "../src/platform/fake/fake";
import { type ScenarioName, scenario } from "../src/platform/fake/scenarios";
import { Session } from "../src/session/session.svelte";
import { chatOf } from "../src/state/model";
import { shelves } from "../src/state/talk";
import { turnOf } from "../src/state/turns";
import { exportedWords, importedWords } from "../src/text/transfer";
import { placesOf } from "../src/views/spot";
import { summary } from "./make";

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

async function settle(ms = 0): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
  flushSync();
}

interface Page {
  session: Session;
  platform: FakePlatform;
}

async function open(name: ScenarioName, leftOut?: number): Promise<Page> {
  const scene = scenario(name);
  if (leftOut !== undefined) scene.leftOut = leftOut;
  const platform = new FakePlatform(scene);
  const session = new Session(platform, (run) => setTimeout(run, 16));
  app = mount(App, { target: document.body, props: { session } });
  await session.start();
  if (name === "chat") await session.show(2);
  await settle(300);
  return { session, platform };
}

function all<E extends HTMLElement = HTMLElement>(testid: string): E[] {
  return [...document.querySelectorAll<E>(`[data-testid="${testid}"]`)];
}

function find<E extends HTMLElement = HTMLElement>(testid: string): E {
  const element = all<E>(testid).at(-1);
  if (!element) throw new Error(`nothing is called ${testid}`);
  return element;
}

async function click(element: HTMLElement): Promise<void> {
  element.click();
  await settle();
}

async function press(target: EventTarget, key: string, init: KeyboardEventInit = {}): Promise<void> {
  target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...init }));
  await settle();
}

async function write(testid: string, text: string): Promise<void> {
  const field = find<HTMLInputElement>(testid);
  field.value = text;
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
  await settle();
}

const texts = (): string[] =>
  all("message").map((m) => m.querySelector("p, [data-testid=reply-text]")?.textContent ?? "");

describe("branches", () => {
  it("an edited question is asked beside the first, and each can be shown", async () => {
    await open("chat");
    const before = texts();
    const first = all("message")[0];
    await click(first?.querySelector('[data-testid="edit-message"]') as HTMLElement);
    expect(find<HTMLTextAreaElement>("edit-field").value).toBe(before[0]);
    await write("edit-field", "What is the capital of Spain?");
    await press(find("edit-field"), "Enter");
    await settle(60_000);
    expect(texts()[0]).toBe("What is the capital of Spain?");
    expect(all("message")).toHaveLength(2);
    expect(all("version")[0]?.textContent).toBe("2/2");
    await click(all("version-before")[0] as HTMLElement);
    await settle(50);
    expect(texts()).toEqual(before);
    expect(all("version")[0]?.textContent).toBe("1/2");
    await press(all("version-next")[0] as HTMLElement, "ArrowRight");
    await settle(50);
    expect(texts()[0]).toBe("What is the capital of Spain?");
  });

  it.each([
    ["question", "edit-message", "editQuestion", "Not sent."],
    ["reply", "edit-reply", "editReply", "Not changed."],
  ] as const)("an edited %s that is refused stays in its editor", async (_, opener, ask, said) => {
    const { session, platform } = await open("chat");
    const refused = { code: "too-long", message: "It is too long." } as const;
    const asked = vi.spyOn(platform, ask).mockRejectedValueOnce(refused);
    await click(all(opener)[0] as HTMLElement);
    await write("edit-field", "My long edit");
    await click(find("edit-save"));
    await settle(500);
    expect(find<HTMLTextAreaElement>("edit-field").value).toBe("My long edit");
    expect(find("problem").textContent).toContain(said);
    await click(find("edit-save"));
    await settle(500);
    expect(asked).toHaveBeenCalledTimes(2);
    expect(all("edit-field")).toHaveLength(0);
    expect(session.state.edits).toEqual({});
    expect(texts().join()).toContain("My long edit");
  });

  it("edits stay open while one looks elsewhere, each in its message", async () => {
    const { session } = await open("chat");
    await click(all("edit-message")[0] as HTMLElement);
    await write("edit-field", "Another question");
    await click(find("edit-reply"));
    await write("edit-field", "Another reply");
    const words = (): string[] => all<HTMLTextAreaElement>("edit-field").map((field) => field.value);
    expect(words()).toEqual(["Another question", "Another reply"]);
    await session.show(1);
    await settle(50);
    expect(words()).toEqual([]);
    await session.show(2);
    await settle(50);
    expect(words()).toEqual(["Another question", "Another reply"]);
    await press(find("edit-field"), "Escape");
    expect(words()).toEqual(["Another question"]);
  });

  it("Esc ends an edit and not the reply, and the focus goes back", async () => {
    const { session } = await open("chat");
    const first = all("message")[0] as HTMLElement;
    await click(first.querySelector('[data-testid="edit-message"]') as HTMLElement);
    const stop = vi.spyOn(session, "stop");
    await press(find("edit-field"), "Escape");
    expect(all("edit-field")).toHaveLength(0);
    expect(stop).not.toHaveBeenCalled();
    expect((document.activeElement as HTMLElement).dataset["testid"]).toBe("edit-message");
  });

  it("a reply that was written again is one of two", async () => {
    await open("chat");
    await click(find("regenerate"));
    await settle(60_000);
    expect(all("version").map((v) => v.textContent)).toEqual(["2/2"]);
  });

  it("a reply's words can be changed, and it says so", async () => {
    await open("chat");
    await click(find("edit-reply"));
    await write("edit-field", "Words of mine.");
    await click(find("edit-save"));
    expect(find("reply-text").textContent).toContain("Words of mine.");
    expect(find("message").dataset["state"]).toBe("edited");
    expect(find("stats").textContent).toContain("changed by you");
  });

  it("a stopped reply is gone on with at its place", async () => {
    const { session } = await open("stopped");
    await session.show("new");
    session.sendText("new", "hello");
    await settle(1_500);
    await session.stop();
    await settle(50);
    const before = find("reply-text").textContent;
    expect(before.length).toBeGreaterThan(0);
    await click(find("continue"));
    expect(find("message").dataset["state"]).toBe("writing");
    expect(find("reply-text").textContent).toBe(before);
    await settle(2_000);
    expect(find("reply-text").textContent.startsWith(before)).toBe(true);
    expect(find("reply-text").textContent.length).toBeGreaterThan(before.length);
    await settle(60_000);
    expect(find("message").dataset["state"]).toBe("finished");
    expect(all("continue")).toHaveLength(0);
  });

  it("a duplicate is a chat of its own", async () => {
    const { session } = await open("chat");
    const count = session.state.conversations.length;
    await click(all("duplicate")[1] as HTMLElement);
    await settle(50);
    expect(session.state.conversations).toHaveLength(count + 1);
    expect(session.state.shown).not.toBe(2);
    expect(all("message")).toHaveLength(2);
  });
});

describe("the search", () => {
  it("is opened by Ctrl+K, shows where the words are, and leads there", async () => {
    const { session } = await open("ready");
    await press(document.body, "k", { ctrlKey: true });
    await settle(10);
    expect(document.activeElement).toBe(find("search"));
    await write("search", "word counts");
    await settle(200);
    expect(find("nothing-found").textContent).toContain("Nothing was found");
    await write("search", "counts words");
    await settle(200);
    expect(all("found").length).toBeGreaterThan(0);
    expect(find("found").querySelector("mark")?.textContent).toBe("counts words");
    await press(find("search"), "ArrowDown");
    expect(document.activeElement).toBe(all("found")[0]);
    await press(document.activeElement as HTMLElement, "ArrowUp");
    await press(find("search"), "Enter");
    await settle(50);
    const spot = session.state.spot;
    expect(spot?.words).toEqual(["counts", "words"]);
    expect(document.querySelector(".found [data-testid=message]")).not.toBeNull();
    await press(find("search"), "Escape");
    expect(all("conversation-item").length).toBeGreaterThan(0);
  });

  it("says why it failed, and does not call that nothing", async () => {
    const { platform } = await open("ready");
    const damaged = { code: "storage", message: "The file is damaged." } as const;
    vi.spyOn(platform, "search").mockRejectedValueOnce(damaged);
    await write("search", "tides");
    await settle(200);
    expect(find("search-failed").textContent).toBe("The file is damaged.");
    expect(all("nothing-found")).toHaveLength(0);
    await write("search", "counts");
    await settle(200);
    expect(all("search-failed")).toHaveLength(0);
    expect(all("found").length).toBeGreaterThan(0);
  });

  it("marks every place of the words, and none where letters would shift", () => {
    const places = (text: string, ...words: string[]) =>
      placesOf(text, words).map(({ start, end }) => text.slice(start, end));
    expect(places("The Moon, the moon", "moon", "the")).toEqual(["Moon", "moon", "The", "the"]);
    expect(places("İstanbul moon", "moon")).toEqual([]);
    expect(places("", "moon")).toEqual([]);
  });
});

describe("while a reply is written", () => {
  async function writing(): Promise<Page & { stop: ReturnType<typeof vi.spyOn> }> {
    const page = await open("ready");
    await page.session.addCard("a.txt", "words");
    await write("composer", "hello");
    await press(find("composer"), "Enter");
    await settle(500);
    expect(all("stop")).toHaveLength(1);
    return { ...page, stop: vi.spyOn(page.session, "stop") };
  }

  /** What opens each dialog, and the dialog. */
  const dialogs = [
    ["card-open", "card-dialog"],
    ["settings", "settings-dialog"],
    ["shortcuts", "shortcuts-dialog"],
  ] as const;

  it.each(dialogs)("Esc and shortcuts reach nothing behind what %s opens", async (opener, name) => {
    const { session, stop } = await writing();
    const key = session.state.shown;
    await click(find(opener));
    await settle(10);
    const inside = find(name).querySelector("button") as HTMLElement;
    await press(inside, "n", { ctrlKey: true });
    await press(inside, "b", { ctrlKey: true });
    await press(inside, "Escape");
    expect(stop).not.toHaveBeenCalled();
    expect(session.state.shown).toBe(key);
    expect(session.state.settings.sidebarFolded).toBe(false);
  });

  it.each([
    ["finished", "End of the reply."],
    ["length", "End of the reply: length limit."],
    ["context-full", "End of the reply: context full."],
    ["interrupted", "End of the reply: interrupted."],
    ["stopped", "Stopped."],
  ] as const)("its end is announced as what it is: %s", async (state, words) => {
    const { session } = await writing();
    const { shown, open: read } = session.state;
    const turn = turnOf(session.state, shown)?.turn ?? 0;
    const message = read[shown as number]?.messages.at(-1);
    if (!message) throw new Error("no reply is written");
    const end = { kind: "finished", message: { ...message, state, text: "Words." } } as const;
    session.dispatch({ type: "batches", items: [{ turn, batch: { nextSeq: 0, events: [end] } }] });
    await settle();
    expect(find("announcer").lastElementChild?.textContent).toBe(words);
  });

  it("Esc in the search ends the words, then leaves it, and only then stops", async () => {
    const { stop } = await writing();
    find("search").focus();
    await write("search", "tides");
    await press(find("search"), "Escape");
    expect(find<HTMLInputElement>("search").value).toBe("");
    expect(document.activeElement).toBe(find("search"));
    await press(find("search"), "Escape");
    expect(document.activeElement).toBe(find("composer"));
    expect(stop).not.toHaveBeenCalled();
    await press(find("composer"), "Escape");
    expect(stop).toHaveBeenCalledTimes(1);
  });
});

describe("places", () => {
  it("are reached from the keyboard: pin, folder, rename the folder", async () => {
    const { session } = await open("ready");
    const row = all("conversation-item")[2] as HTMLElement;
    const opener = row.querySelector(".open") as HTMLElement;
    await press(opener, "F10", { shiftKey: true });
    expect((document.activeElement as HTMLElement).dataset["testid"]).toBe("pin");
    await press(document.activeElement as HTMLElement, "End");
    expect((document.activeElement as HTMLElement).dataset["testid"]).toBe("delete");
    await press(document.activeElement as HTMLElement, "Home");
    await click(find("pin"));
    expect(session.state.conversations.filter((c) => c.pinned)).toHaveLength(1);
    expect(find("conversations").textContent).toContain("Pinned");
    await click(all("row-menu")[1] as HTMLElement);
    await click(find("move"));
    await settle();
    await click(find("new-folder"));
    await write("folder-field", "Nature");
    await press(find("folder-field"), "Enter");
    expect(find("folder").textContent).toContain("Nature");
    await press(find("folder"), "F2");
    await write("folder-name", "Outside");
    await press(find("folder-name"), "Enter");
    expect(find("folder").textContent).toContain("Outside");
    const rows = all("conversation-item").length;
    await click(find("folder"));
    expect(all("conversation-item")).toHaveLength(rows - 1);
  });

  it("stand in one order: pinned, folders by name, all others", () => {
    const list = [
      { ...summary(1), folder: "b" },
      { ...summary(2), pinned: true, folder: "a" },
      summary(3),
      { ...summary(4), folder: "a" },
    ];
    const shown = shelves(list).map((shelf) => [shelf.name, shelf.conversations.map((c) => c.id)]);
    expect(shown).toEqual([["", [2]], ["a", [4]], ["b", [1]], ["", [3]]]);
    expect(shelves([])).toEqual([]);
  });
});

describe("what is imported and exported", () => {
  it("is said in words", async () => {
    const file = { path: "/tmp/a.json", conversations: 1 };
    expect(exportedWords(file)).toBe("Written: 1 chat to /tmp/a.json.");
    const taken = { source: "Open WebUI", conversations: 1200, messages: 1, leftOut: 0, first: null };
    expect(importedWords(taken)).toBe("From Open WebUI: 1,200 chats with 1 message.");
    await open("ready");
    await click(find("transfer"));
    await click(find("import"));
    await settle(10);
    expect(find("transferred").textContent).toContain("2 parts (pictures, tools) had no place here.");
  });
});

describe("a long text", () => {
  it.each([
    ["short", false],
    ["x".repeat(longPasteChars), false],
    ["x".repeat(longPasteChars + 1), true],
    ["line\n".repeat(longPasteLines - 1), false],
    ["line\n".repeat(longPasteLines + 1), true],
    ["x".repeat(1_000_000), true],
  ])("becomes a card by its size (%#)", (text, want) => {
    expect(becomesCard(text)).toBe(want);
  });

  it("is a card above the box, is sent as it is, and stays with its message", async () => {
    const { session, platform } = await open("ready");
    const pasted = `a\u0000b\r\n\t\u202e${"x".repeat(1_000_000)}`;
    const paste = new Event("paste", { bubbles: true, cancelable: true });
    Object.assign(paste, { clipboardData: { getData: () => pasted } });
    find("composer").dispatchEvent(paste);
    await settle(10);
    expect(paste.defaultPrevented).toBe(true);
    expect(find<HTMLTextAreaElement>("composer").value).toBe("");
    expect(find("card").textContent).toContain("1 MB");
    // It is there after another chat was looked at.
    await session.show(1);
    await settle(10);
    expect(all("composer")).toHaveLength(1);
    await session.show("new");
    await settle(10);
    const id = Number(find("card").dataset["id"]);
    expect(await platform.cardText(id)).toBe(pasted);
    await press(find("composer"), "Enter");
    await settle(10);
    expect(session.state.cards).toEqual({});
    const sent = all("message")[0]?.querySelector<HTMLElement>('[data-testid="card"]');
    expect(await platform.cardText(Number(sent?.dataset["id"]))).toBe(pasted);
  });

  it("can be removed again, and one that was dropped is added", async () => {
    const { session, platform } = await open("ready");
    await session.addCard("a.txt", "words");
    await settle();
    await click(find("card-remove"));
    expect(all("card")).toHaveLength(0);
    platform.drop("b.txt", "others");
    await settle(10);
    expect(find("card").textContent).toContain("b.txt");
    await click(find("card-open"));
    await settle(10);
    expect(find("card-text").textContent).toBe("others");
  });
});

describe("the context", () => {
  it("is counted a moment after the last key, and says what is too long", async () => {
    const { platform } = await open("ready");
    const count = vi.spyOn(platform, "countTokens");
    for (const text of ["h", "he", "hel"]) await write("composer", text);
    await settle(400);
    expect(count).toHaveBeenCalledTimes(1);
    expect(find("token-count").textContent).toBe("1 token");
    await write("composer", "word ".repeat(10_000));
    await settle(400);
    expect(find("hint").textContent).toContain("the context holds 8192");
  });

  it("is counted anew when the settings of the chat are changed", async () => {
    const { session, platform } = await open("chat");
    const count = vi.spyOn(platform, "countTokens");
    const own = { ...chatOf(session.state.settings), systemPrompt: "Be brief. ".repeat(100) };
    for (const [chat, counts] of [[own, 1], [null, 2]] as const) {
      await session.shelf.keepChatSettings(2, chat);
      await settle(400);
      expect(count).toHaveBeenCalledTimes(counts);
    }
    await session.shelf.keepChatSettings(3, own);
    await settle(400);
    expect(count).toHaveBeenCalledTimes(2);
  });

  it("keeps the line of the memory while what is written is too long", async () => {
    const { session, platform } = await open("chat", 2);
    const told = { message: 9_000, prompt: 8_192, context: 8_192, leftOut: 0, tooLong: "Too long." };
    vi.spyOn(platform, "countTokens").mockResolvedValue(told);
    await write("composer", "word ".repeat(10_000));
    await settle(400);
    expect(find("hint").textContent).toContain("Too long.");
    expect(find("memory").dataset["count"]).toBe("2");
    session.dispatch({ type: "counted", key: 2, count: { ...told, tooLong: null } });
    await settle();
    expect(all("memory")).toHaveLength(0);
  });

  it("shows where the model's memory begins", async () => {
    await open("chat", 2);
    const line = find("memory");
    expect(line.dataset["count"]).toBe("2");
    const following = line.nextElementSibling?.querySelector<HTMLElement>('[data-testid="message"]');
    expect(following?.dataset["id"]).toBe(all("message")[2]?.dataset["id"]);
  });
});
