import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { TurnBatch } from "../src/platform/bindings";
import { FakePlatform } from "../src/platform/fake/fake";
import { type ScenarioName, scenario } from "../src/platform/fake/scenarios";
import { Session } from "../src/session/session.svelte";
import { readiness, shownMessages } from "../src/state/select";

const frameMs = 16;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

async function open(name: ScenarioName): Promise<{ session: Session; platform: FakePlatform }> {
  const platform = new FakePlatform(scenario(name));
  const session = new Session(platform, (run) => setTimeout(run, frameMs));
  await session.start();
  return { session, platform };
}

const last = (session: Session) => shownMessages(session.state, session.state.shown).at(-1);

async function say(session: Session, text: string): Promise<void> {
  session.draft(text);
  session.submitDraft();
  await vi.advanceTimersByTimeAsync(0);
}

describe("a reply", () => {
  it("grows, ends, and is then what the program stored", async () => {
    const { session } = await open("ready");
    await say(session, "hello");
    expect(session.state.drafts).toEqual({});
    await vi.advanceTimersByTimeAsync(1_000);
    const early = last(session)?.text.length ?? 0;
    expect(early).toBeGreaterThan(0);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(last(session)?.text.length).toBeGreaterThan(early);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(last(session)).toMatchObject({ state: "finished", live: null });
  });

  it("changes the state at most once a frame", async () => {
    const { session, platform } = await open("ready");
    const readers: ((batch: TurnBatch) => void)[] = [];
    const send = platform.send.bind(platform);
    platform.send = async (conversation, text, cards, reader) => {
      readers.push(reader);
      return send(conversation, text, cards, () => undefined);
    };
    await say(session, "hello");
    const dispatch = vi.spyOn(session, "dispatch");
    for (let seq = 1; seq <= 50; seq += 1) {
      readers[0]?.({ nextSeq: seq, events: [{ kind: "text", text: "x", tokens: seq }] });
    }
    await vi.advanceTimersByTimeAsync(frameMs);
    expect(dispatch).toHaveBeenCalledTimes(1);
    expect(last(session)?.text).toBe("x".repeat(50));
  });

  it("keeps news that come before the number of the turn is known", async () => {
    const { session, platform } = await open("ready");
    const send = platform.send.bind(platform);
    platform.send = async (conversation, text, cards, reader) => {
      const sent = await send(conversation, text, cards, () => undefined);
      reader({ nextSeq: 1, events: [{ kind: "text", text: "early", tokens: 1 }] });
      return sent;
    };
    await say(session, "hello");
    await vi.advanceTimersByTimeAsync(frameMs);
    expect(last(session)?.text).toBe("early");
  });

  it("is found again by a window that opens while it is written", async () => {
    const { session, platform } = await open("ready");
    await say(session, "hello");
    await vi.advanceTimersByTimeAsync(1_000);
    const second = new Session(platform, (run) => setTimeout(run, frameMs));
    await second.start();
    await second.show(session.state.shown);
    await vi.advanceTimersByTimeAsync(200);
    expect(last(second)?.text).toBe(last(session)?.text);
    expect(readiness(second.state, second.state.shown).kind).toBe("writing");
    await second.stop();
    await vi.advanceTimersByTimeAsync(100);
    expect(last(second)?.state).toBe("stopped");
    expect(last(session)?.state).toBe("stopped");
  });

  it("whose end never comes through is read again", async () => {
    const { session, platform } = await open("ready");
    const send = platform.send.bind(platform);
    platform.send = async (conversation, text, cards) => send(conversation, text, cards, () => undefined);
    await say(session, "hello");
    await vi.advanceTimersByTimeAsync(60_000);
    expect(last(session)?.state).toBe("finished");
    expect(readiness(session.state, session.state.shown).kind).toBe("ready");
  });
});

describe("stop", () => {
  it("ends a reply and leaves what was written", async () => {
    const { session } = await open("ready");
    await say(session, "hello");
    await vi.advanceTimersByTimeAsync(1_000);
    await session.stop();
    await vi.advanceTimersByTimeAsync(frameMs);
    expect(last(session)?.state).toBe("stopped");
    expect(last(session)?.text).not.toBe("");
  });

  it("pressed before the program has answered is carried out then, once", async () => {
    const { session, platform } = await open("ready");
    const stop = vi.spyOn(platform, "stop");
    session.draft("hello");
    session.submitDraft();
    void session.stop();
    void session.stop();
    await vi.advanceTimersByTimeAsync(100);
    expect(stop).toHaveBeenCalledTimes(1);
    expect(last(session)).toMatchObject({ state: "stopped", text: "" });
  });
});

describe("a message that waits", () => {
  it("is sent when the reply has ended", async () => {
    const { session } = await open("ready");
    await say(session, "hello");
    await say(session, "and then?");
    expect(Object.values(session.state.queued)).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(8_000);
    const messages = shownMessages(session.state, session.state.shown);
    expect(messages.map((m) => m.text)).toContain("and then?");
    expect(session.state.queued).toEqual({});
  });

  it("stays for the person after a stop", async () => {
    const { session } = await open("ready");
    await say(session, "hello");
    await say(session, "and then?");
    await vi.advanceTimersByTimeAsync(1_000);
    await session.stop();
    await vi.advanceTimersByTimeAsync(5_000);
    const key = session.state.shown;
    expect(session.state.queued[key]).toEqual({ text: "and then?", cards: [], waitsFor: "person" });
    session.sendQueued(key);
    await vi.advanceTimersByTimeAsync(frameMs);
    expect(shownMessages(session.state, key).map((m) => m.text)).toContain("and then?");
  });
});

describe("without a model", () => {
  it("the text stays in the box", async () => {
    const { session } = await open("empty");
    await say(session, "hello");
    expect(session.state.drafts["new"]).toBe("hello");
  });

  it("a message written during a load is sent when the model is ready", async () => {
    const { session, platform } = await open("loading");
    platform.startLoading();
    await say(session, "hello");
    expect(session.state.queued["new"]?.text).toBe("hello");
    await vi.advanceTimersByTimeAsync(10_000);
    expect(shownMessages(session.state, session.state.shown)[0]?.text).toBe("hello");
  });
});

describe("conversations", () => {
  it("that are deleted leave an undo, and come back whole", async () => {
    const { session } = await open("chat");
    await session.show(3);
    await session.chats.remove(3);
    expect(session.state.removed.map((r) => [r.summary.id, r.before])).toEqual([[3, 4]]);
    expect(session.state.shown).toBe("new");
    await session.chats.restore(3);
    expect(session.state.conversations.map((c) => c.id)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it("that cannot be deleted are still there, and a line says why", async () => {
    const { session, platform } = await open("chat");
    platform.deleteConversation = async () =>
      Promise.reject({ code: "storage", message: "The disk is full." });
    await session.chats.remove(3);
    expect(session.state.conversations.map((c) => c.id)).toContain(3);
    expect(session.state.removed).toEqual([]);
    expect(session.state.problems["new"]?.error.message).toBe("The disk is full.");
  });
});

it("settings that are refused go back", async () => {
  const { session, platform } = await open("ready");
  platform.saveSettings = async () => Promise.reject({ code: "storage", message: "No." });
  const error = await session.saveSettings({ ...session.state.settings, theme: "dark" });
  expect(error?.message).toBe("No.");
  expect(session.state.settings.theme).toBe("system");
});

it("a program that cannot start says why", async () => {
  const platform = new FakePlatform(scenario("ready"));
  platform.bootstrap = async () => Promise.reject({ code: "storage", message: "Damaged." });
  const session = new Session(platform);
  await session.start();
  expect(session.state.phase).toBe("failed");
  expect(session.state.startError?.message).toBe("Damaged.");
});

it("news that overtake the snapshot are not undone by it", async () => {
  const platform = new FakePlatform(scenario("loading"));
  const tell = new Map<string, (payload: never) => void>();
  platform.on = async (event, handler) => {
    tell.set(event, handler as (payload: never) => void);
    return () => undefined;
  };
  const { status } = await new FakePlatform(scenario("ready")).bootstrap();
  const bootstrap = platform.bootstrap.bind(platform);
  platform.bootstrap = async () => {
    const snapshot = await bootstrap();
    tell.get("status")?.(status as never);
    return snapshot;
  };
  const session = new Session(platform);
  await session.start();
  expect(session.state.phase).toBe("ready");
  expect(session.state.status.banner.kind).toBe("cpu");
});
