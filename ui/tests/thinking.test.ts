import { flushSync, mount, unmount } from "svelte";
import { afterEach, expect, it } from "vitest";
import type { MessagePart, ReplayEvent, TurnEvent } from "../src/platform/bindings";
import type { RecordDoor } from "../src/session/records";
import { beginning, joined, textWasThought, thoughtFor, withWords } from "../src/state/parts";
import { shownMessages } from "../src/state/select";
import Reply from "../src/views/Reply.svelte";
import { conversation, news, question, record, reply, run, started, text } from "./make";

let page: ReturnType<typeof mount> | null = null;

afterEach(() => {
  if (page) void unmount(page);
  page = null;
  document.body.replaceChildren();
});

function thinking(words: string, ms: number | null = null): MessagePart {
  return { kind: "thinking", text: words, ms };
}

function said(words: string): MessagePart {
  return { kind: "text", text: words, ms: null };
}

function thinks(words: string, tokens = 1): TurnEvent {
  return { kind: "thinking", text: words, tokens };
}

/** The reply of turn 7 after this news, as it is drawn. */
function drawn(events: TurnEvent[], stored = reply(2)) {
  const state = run(
    started(),
    { type: "opened", conversation: conversation(1, [question(1, "Why?"), stored]) },
    { type: "attached", turn: { turn: 7, conversation: 1, message: 2 } },
    news(0, ...events),
  );
  const shown = shownMessages(state, 1).at(-1);
  if (!shown) throw new Error("there is a reply");
  return shown;
}

const courses: [string, TurnEvent[], MessagePart[], string][] = [
  ["words alone", [text("Hi"), text(".")], [said("Hi.")], "Hi."],
  ["thoughts that run", [thinks("h"), thinks("m")], [thinking("hm")], ""],
  [
    "thoughts, then words",
    [thinks("hm"), { kind: "thought", ms: 900 }, text("So.")],
    [thinking("hm", 900), said("So.")],
    "So.",
  ],
  [
    "thoughts twice",
    [thinks("a"), { kind: "thought", ms: 1 }, text("b"), thinks("c"), { kind: "thought", ms: 2 }, text("d")],
    [thinking("a", 1), said("b"), thinking("c", 2), said("d")],
    "bd",
  ],
  [
    "an end without a beginning",
    [text("hm\n"), { kind: "textWasThinking" }, text("So.")],
    [thinking("hm"), said("So.")],
    "So.",
  ],
  ["an end of nothing", [{ kind: "textWasThinking" }, text("So.")], [said("So.")], "So."],
  ["only counting", [thinks("", 3), thinks("hm", 4)], [thinking("hm")], ""],
];

it.each(courses)("%s: parts and answer", (_name, events, parts, answer) => {
  const shown = drawn(events);
  expect(shown.parts).toEqual(parts);
  expect(shown.text).toBe(answer);
});

it("a reply that is gone on with keeps what was there, thoughts too", () => {
  const stored = reply(2, {
    text: "So it is",
    parts: [thinking("hm", 5), said("So it is")],
    kept: "hm".length + "So it".length,
  });
  const shown = drawn([text(" was.")], stored);
  expect(shown.parts).toEqual([thinking("hm", 5), said("So it was.")]);
});

it("parts are cut and joined without losing words", () => {
  const parts = [thinking("ab", 1), said("cd")];
  expect(beginning(parts, 3)).toEqual([thinking("ab", 1), said("c")]);
  expect(beginning(parts, 0)).toEqual([]);
  expect(joined([said("a")], [said("b"), thinking("c")])).toEqual([said("ab"), thinking("c")]);
  expect(joined([thinking("a", 3)], [thinking("b")])).toEqual([thinking("a", 3), thinking("b")]);
  expect(withWords(parts, "text", "")).toBe(parts);
  expect(thoughtFor([said("a")], 3)).toEqual([said("a")]);
  expect(textWasThought([thinking("a")])).toEqual([thinking("a")]);
});

function show(change: Parameters<typeof reply>[1], door: RecordDoor | null = null): void {
  const stored = reply(2, { turn: null, state: "finished", record, ...change });
  page = mount(Reply, {
    target: document.body,
    props: {
      message: { ...stored, key: "m2", live: null, failure: null },
      place: "last",
      canAsk: true,
      stopping: false,
      door,
      onregenerate: () => undefined,
      onlink: () => undefined,
    },
  });
  flushSync();
}

const find = (name: string): HTMLElement | null => document.querySelector(`[data-testid=${name}]`);

it("thoughts that ended are folded, with their time, and open with a click", () => {
  show({ text: "So.", parts: [thinking("hm", 4_200), said("So.")] });
  expect(find("thinking-toggle")?.textContent).toContain("Thought for 4.2 s");
  expect(find("thoughts")).toBeNull();
  expect(find("reply-text")?.textContent?.trim()).toBe("So.");
  find("thinking-toggle")?.click();
  flushSync();
  expect(find("thinking-text")?.textContent?.trim()).toBe("hm");
  expect(find("thinking-toggle")?.getAttribute("aria-expanded")).toBe("true");
});

it("a reply of thoughts alone shows them, and says that there is no answer", () => {
  show({ text: "", state: "length", parts: [thinking("hm", 4_200)] });
  expect(find("thinking-text")?.textContent?.trim()).toBe("hm");
  expect(find("only-thoughts")).not.toBeNull();
  expect(find("copy-reply")?.hasAttribute("disabled")).toBe(true);
});

it("a reply that repeats itself offers Stop once, quietly", () => {
  let stopped = 0;
  const shown = drawn([text("the sea "), { kind: "repeats", blockTokens: 42, copies: 3 }]);
  page = mount(Reply, {
    target: document.body,
    props: {
      message: shown,
      place: "last",
      canAsk: false,
      stopping: false,
      onregenerate: () => undefined,
      onstop: () => (stopped += 1),
      onlink: () => undefined,
    },
  });
  flushSync();
  expect(find("reply-repeats")?.textContent).toContain("the same 42 tokens came 4 times in a row");
  find("repeats-stop")?.click();
  expect(stopped).toBe(1);
});

it("a replay says how it goes and what came out, and can be stopped", async () => {
  let tell: (event: ReplayEvent) => void = () => undefined;
  let stopped = 0;
  const door: RecordDoor = {
    replay: async (reader) => {
      tell = reader;
    },
    stopReplay: async () => {
      stopped += 1;
    },
    fileHash: async () => "abcd",
  };
  show({ text: "So." }, door);
  find("stats")?.click();
  flushSync();
  await new Promise((resolve) => setTimeout(resolve, 0));
  flushSync();
  expect(find("record")?.textContent).toContain("abcd");
  find("replay")?.click();
  flushSync();
  tell({ kind: "writing", done: 3, total: 9 });
  flushSync();
  expect(find("replay-outcome")?.textContent).toContain("Same so far: 3 of 9 tokens");
  find("replay-stop")?.click();
  expect(stopped).toBe(1);
  const outcomes: [ReplayEvent, string][] = [
    [{ kind: "ended", outcome: { kind: "same", tokens: 9, note: null } }, "Same: all 9 tokens came again."],
    [
      { kind: "ended", outcome: { kind: "differs", token: 4, then: " a", now: null, note: "By the GPU." } },
      "Differs at token 4: then “ a”, now the end. By the GPU.",
    ],
    [{ kind: "ended", outcome: { kind: "impossible", why: "It is gone." } }, "Not replayed. It is gone."],
    [{ kind: "ended", outcome: { kind: "stopped" } }, "Stopped."],
  ];
  for (const [event, words] of outcomes) {
    tell(event);
    flushSync();
    expect(find("replay-outcome")?.textContent?.trim()).toBe(words);
  }
  expect(find("replay")).not.toBeNull();
});

it("a replay that is refused says why", async () => {
  const door: RecordDoor = {
    replay: () => Promise.reject({ code: "no-model", message: "No model is open." }),
    stopReplay: async () => undefined,
    fileHash: () => Promise.reject({ code: "not-found", message: "The file has changed." }),
  };
  show({ text: "So." }, door);
  find("stats")?.click();
  flushSync();
  find("replay")?.click();
  await new Promise((resolve) => setTimeout(resolve, 0));
  flushSync();
  expect(find("replay-outcome")?.textContent?.trim()).toBe("Not replayed. No model is open.");
  expect(find("record")?.textContent).toContain("The file has changed.");
});
