import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FakePlatform } from "../src/platform/fake/fake";
import { type ScenarioName, scenario } from "../src/platform/fake/scenarios";
import { Session } from "../src/session/session.svelte";
import { shownMessages } from "../src/state/select";
import { run, snapshot, started } from "./make";

const frameMs = 16;
/** More than the program waits before it writes. */
const keptMs = 500;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

async function windowOn(platform: FakePlatform): Promise<Session> {
  const session = new Session(platform, (next) => setTimeout(next, frameMs));
  await session.start();
  return session;
}

async function open(name: ScenarioName): Promise<{ session: Session; platform: FakePlatform }> {
  const platform = new FakePlatform(scenario(name));
  return { session: await windowOn(platform), platform };
}

const keptBy = async (platform: FakePlatform) => (await platform.bootstrap()).unsent;
const unsent = (conversation: number | null, text: string, waiting = "") => ({
  conversation,
  text,
  waiting,
  cards: [],
  waitingCards: [],
});

describe("words that were not sent", () => {
  it("are there in the next window, each in its own conversation", async () => {
    const { session, platform } = await open("chat");
    session.draft("for a new one");
    await session.show(3);
    session.draft("for the third");
    await vi.advanceTimersByTimeAsync(keptMs);
    const next = await windowOn(platform);
    expect(next.state.drafts).toEqual({ new: "for a new one", 3: "for the third" });
    next.draft("");
    await vi.advanceTimersByTimeAsync(keptMs);
    expect(await keptBy(platform)).toEqual([unsent(3, "for the third")]);
  });

  it("are written some times a second while one types, and at the end", async () => {
    const { session, platform } = await open("chat");
    const keep = vi.spyOn(platform, "keepUnsent");
    for (let length = 1; length <= 40; length += 1) {
      session.draft("x".repeat(length));
      await vi.advanceTimersByTimeAsync(50);
    }
    expect(keep.mock.calls.length).toBeGreaterThan(2);
    expect(keep.mock.calls.length).toBeLessThan(10);
    await vi.advanceTimersByTimeAsync(keptMs);
    expect(await keptBy(platform)).toEqual([unsent(null, "x".repeat(40))]);
    const calls = keep.mock.calls.length;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(keep.mock.calls.length).toBe(calls);
  });

  it("are written at once when the window is closed, and then it goes", async () => {
    const { session, platform } = await open("chat");
    session.draft("half a thou");
    platform.askToClose();
    await vi.advanceTimersByTimeAsync(0);
    expect(platform.closed).toBe(1);
    expect(await keptBy(platform)).toEqual([unsent(null, "half a thou")]);
  });

  it("that wait behind a reply come back for the person to send", async () => {
    const { session, platform } = await open("ready");
    session.draft("hello");
    session.submitDraft();
    await vi.advanceTimersByTimeAsync(0);
    session.draft("and then?");
    session.submitDraft();
    await vi.advanceTimersByTimeAsync(keptMs);
    const key = session.state.shown as number;
    expect(await keptBy(platform)).toEqual([unsent(key, "", "and then?")]);
    const next = await windowOn(platform);
    expect(next.state.queued).toEqual({ [key]: { text: "and then?", cards: [], waitsFor: "person" } });
    // In the first window it is sent when the reply has ended, and is kept no more.
    await vi.advanceTimersByTimeAsync(8_000);
    expect(shownMessages(session.state, key).map((m) => m.text)).toContain("and then?");
    expect(await keptBy(platform)).toEqual([]);
  });

  it("of an edit come back in the box, and an edit that changed nothing does not", async () => {
    const { session, platform } = await open("chat");
    await session.show(2);
    const edit = { conversation: 2, text: "other words", was: "words" };
    session.dispatch({ type: "editing", message: 21, edit });
    session.dispatch({ type: "editing", message: 22, edit: { ...edit, text: "words" } });
    session.draft("half a thought");
    await vi.advanceTimersByTimeAsync(keptMs);
    expect(await keptBy(platform)).toEqual([unsent(2, "half a thought\n\nother words")]);
    session.draft("");
    session.dispatch({ type: "edit-ended", message: 21, taken: "other words" });
    await vi.advanceTimersByTimeAsync(keptMs);
    expect(await keptBy(platform)).toEqual([]);
  });

  it("are kept until the program has taken the message", async () => {
    const { session, platform } = await open("ready");
    let take: () => void = () => undefined;
    const send = platform.send.bind(platform);
    platform.send = async (...asked) => {
      await new Promise<void>((done) => (take = done));
      return send(...asked);
    };
    session.draft("hello");
    session.submitDraft();
    await vi.advanceTimersByTimeAsync(keptMs);
    expect(await keptBy(platform)).toEqual([unsent(null, "", "hello")]);
    take();
    await vi.advanceTimersByTimeAsync(0);
    expect(await keptBy(platform)).toEqual([]);
  });

  it("that cannot be kept stay in the box, a line says so, and the next try works", async () => {
    const { session, platform } = await open("chat");
    const keep = platform.keepUnsent.bind(platform);
    platform.keepUnsent = async () =>
      Promise.reject({ code: "storage", message: "The disk is full." });
    session.draft("hello");
    await vi.advanceTimersByTimeAsync(keptMs);
    expect(session.state.drafts["new"]).toBe("hello");
    expect(session.state.problems["new"]?.error.message).toBe("The disk is full.");
    platform.keepUnsent = keep;
    session.draft("hello you");
    await vi.advanceTimersByTimeAsync(keptMs);
    expect(await keptBy(platform)).toEqual([unsent(null, "hello you")]);
  });

  it("typed before the program has answered are joined to those that were kept", () => {
    const kept = [unsent(null, "kept", "waits"), unsent(3, "other")];
    const state = run(
      started(),
      { type: "draft", key: "new", text: "typed" },
      { type: "started", snapshot: snapshot({ unsent: kept }) },
    );
    expect(state.drafts).toEqual({ new: "kept\n\ntyped", 3: "other" });
    expect(state.queued).toEqual({ new: { text: "waits", cards: [], waitsFor: "person" } });
  });

  it("of a window that never heard from the program overwrite nothing", async () => {
    const platform = new FakePlatform(scenario("ready"));
    await platform.keepUnsent(unsent(null, "kept"));
    const bootstrap = platform.bootstrap.bind(platform);
    platform.bootstrap = async () => Promise.reject({ code: "storage", message: "Damaged." });
    const session = await windowOn(platform);
    session.draft("typed");
    platform.askToClose();
    await vi.advanceTimersByTimeAsync(keptMs);
    platform.bootstrap = bootstrap;
    expect(await keptBy(platform)).toEqual([unsent(null, "kept")]);
    expect(platform.closed).toBe(1);
  });
});
