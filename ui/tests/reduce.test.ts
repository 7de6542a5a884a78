import { describe, expect, it } from "vitest";
import type { Message, TurnBatch, TurnEvent, WireError } from "../src/platform/bindings";
import { loadingStatus } from "../src/platform/fake/scenarios";
import type { Action } from "../src/state/actions";
import type { AppState } from "../src/state/model";
import { dueQueued, readiness, shownMessages, unsentOf } from "../src/state/select";
import { turnOf } from "../src/state/turns";
import { conversation, news, question, record, reply, run, started, summary, text } from "./make";

const refused: WireError = { code: "too-long", message: "It does not fit." };
const pending = { kind: "send" as const, text: "hello", cards: [], message: null, stopWanted: false };

/** Chat 1 with a reply (message 2, turn 7) that is being written. */
function writing(): AppState {
  return run(
    started({ conversations: [summary(1)] }),
    { type: "show", key: 1 },
    { type: "submitted", key: 1, pending },
    {
      type: "sent",
      key: 1,
      sent: { turn: 7, conversation: conversation(1, [question(1, "hello"), reply(2)]) },
    },
  );
}

function ended(state: AppState, change: Partial<Message>): AppState {
  return run(state, news(0, { kind: "finished", message: reply(2, { turn: null, ...change }) }));
}

function texts(state: AppState): string[] {
  return shownMessages(state, state.shown).map((m) => m.text);
}

describe("a message on its way", () => {
  it("is shown at once, with an empty reply after it", () => {
    const state = run(started(), { type: "submitted", key: "new", pending });
    expect(shownMessages(state, "new").map((m) => [m.role, m.text, m.state])).toEqual([
      ["user", "hello", "finished"],
      ["assistant", "", "writing"],
    ]);
    expect(readiness(state, "new").kind).toBe("writing");
  });

  it("becomes the conversation that the program made of it, and the window goes there", () => {
    const state = run(
      started(),
      { type: "submitted", key: "new", pending },
      { type: "draft", key: "new", text: "typed meanwhile" },
      {
        type: "sent",
        key: "new",
        sent: { turn: 7, conversation: conversation(5, [question(1, "hello"), reply(2)]) },
      },
    );
    expect(state.shown).toBe(5);
    expect(state.drafts).toEqual({ 5: "typed meanwhile" });
    expect(state.conversations.map((c) => c.id)).toEqual([5]);
    expect(texts(state)).toEqual(["hello", ""]);
  });

  it("does not pull the window along if the person has gone elsewhere", () => {
    const state = run(
      started({ conversations: [summary(1)] }),
      { type: "submitted", key: "new", pending },
      { type: "show", key: 1 },
      {
        type: "sent",
        key: "new",
        sent: { turn: 7, conversation: conversation(5, [question(1, "hello"), reply(2)]) },
      },
    );
    expect(state.shown).toBe(1);
  });

  it("goes back into the box if it was refused", () => {
    const state = run(
      started(),
      { type: "submitted", key: "new", pending },
      { type: "not-sent", key: "new", error: refused },
    );
    expect(state.drafts["new"]).toBe("hello");
    expect(state.problems["new"]).toEqual({ what: "problem.notSent", error: refused });
    expect(shownMessages(state, "new")).toEqual([]);
  });

  it("waits above the box if that is in use by then", () => {
    const state = run(
      started(),
      { type: "submitted", key: "new", pending },
      { type: "draft", key: "new", text: "next thought" },
      { type: "not-sent", key: "new", error: refused },
    );
    expect(state.drafts["new"]).toBe("next thought");
    expect(state.queued["new"]).toEqual({ text: "hello", cards: [], waitsFor: "person" });
  });
});

describe("the news of a turn", () => {
  it("grow the text in order, and count", () => {
    const state = run(
      writing(),
      news(0, { kind: "reading", done: 10, total: 38 }),
      news(1, text("Hel", 1), text("lo", 2)),
    );
    expect(texts(state)).toEqual(["hello", "Hello"]);
    expect(state.turns[7]).toMatchObject({ phase: "writing", tokens: 2, nextSeq: 3 });
  });

  it("tell of a check on the message, and of another device that writes on", () => {
    const notice = "The GPU stopped working; this reply went on with the CPU.";
    const checking = run(writing(), news(0, { kind: "checking", done: 3, total: 64 }));
    expect(checking.turns[7]).toMatchObject({ phase: "checking", checked: { done: 3, total: 64 } });
    const moved = run(checking, news(1, text("Hel", 1), { kind: "moved", notice }, text("lo", 2)));
    expect(moved.turns[7]).toMatchObject({ phase: "writing", text: "Hello", moved: notice });
  });

  it("ends whatever was counted before: the end has no number of its own", () => {
    const finished = { kind: "finished" as const, message: reply(2, { turn: null, state: "length" }) };
    // The program counts the engine's events, of which a batch shows fewer, or none at all.
    for (const counted of [0, 1, 9]) {
      const batch = (events: TurnEvent[]): TurnBatch => ({ nextSeq: counted, events });
      const state = run(
        writing(),
        { type: "batches", items: [{ turn: 7, batch: batch(counted ? [text("all", counted)] : []) }] },
        { type: "batches", items: [{ turn: 7, batch: batch([finished]) }] },
      );
      expect(state.turns[7], `${counted}`).toBeUndefined();
      expect(readiness(state, 1).kind).toBe("ready");
    }
  });

  it("are taken once, also if they come again after a break", () => {
    const state = run(
      writing(),
      news(0, text("a"), text("b")),
      news(0, text("a"), text("b"), text("c")),
      news(1, text("b")),
    );
    expect(texts(state).at(-1)).toBe("abc");
  });

  it("of an unknown turn change nothing", () => {
    const state = started();
    expect(run(state, news(0, text("a")))).toBe(state);
  });

  it("end it exactly once, and the stored message stands", () => {
    const stored = { state: "finished" as const, text: "Hello.", record };
    const state = run(ended(writing(), stored), news(1, text(" more")));
    expect(texts(state)).toEqual(["hello", "Hello."]);
    expect(state.turns).toEqual({});
    expect(readiness(state, 1).kind).toBe("ready");
  });

  it("land in their own conversation while another is on the screen", () => {
    const state = run(writing(), { type: "show", key: "new" }, news(0, text("there")));
    expect(shownMessages(state, 1).at(-1)?.text).toBe("there");
    expect(shownMessages(state, "new")).toEqual([]);
    expect(readiness(state, "new").kind).toBe("ready");
  });

  it("keep the reason of a failure that no record tells", () => {
    const state = run(
      writing(),
      news(0, {
        kind: "failed",
        message: reply(2, { turn: null, state: "failed" }),
        error: { code: "internal", message: "The engine stopped." },
      }),
    );
    expect(shownMessages(state, 1).at(-1)?.failure).toBe("The engine stopped.");
  });

  it("that never come leave the stored conversation", () => {
    const stored = conversation(1, [
      question(1, "hello"),
      reply(2, { state: "interrupted", text: "Hal", turn: null }),
    ]);
    const state = run(writing(), { type: "turn-lost", turn: 7, conversation: stored });
    expect(shownMessages(state, 1).at(-1)?.state).toBe("interrupted");
    expect(readiness(state, 1).kind).toBe("ready");
  });

  /** The first reply was stopped, the second question is answered by turn 9. */
  const second = () =>
    run(
      ended(writing(), { state: "stopped", turn: null }),
      { type: "submitted", key: 1, pending },
      { type: "sent", key: 1, sent: { turn: 9, conversation: conversation(1, asked("writing")) } },
    );
  const asked = (state: Message["state"]) => [
    question(1, "hello"),
    reply(2, { state: "stopped", turn: null }),
    question(3, "again"),
    reply(4, { turn: state === "writing" ? 9 : null, state }),
  ];
  const lost = (messages: Message[]): Action => ({
    type: "turn-lost",
    turn: 7,
    conversation: conversation(1, messages),
  });

  it("and are read too late take nothing away from the next turn", () => {
    const early = [question(1, "hello"), reply(2, { state: "stopped", turn: null })];
    for (const read of [early, asked("writing")]) {
      const state = run(second(), lost(read));
      expect(shownMessages(state, 1)).toHaveLength(4);
      expect(readiness(state, 1).kind).toBe("writing");
      expect(turnOf(state, 1)?.turn).toBe(9);
    }
  });

  it("and are read too late do not undo the end of the next turn", () => {
    const over = run(second(), {
      type: "batches",
      items: [
        {
          turn: 9,
          batch: {
            nextSeq: 0,
            events: [{ kind: "finished", message: reply(4, { state: "stopped", turn: null }) }],
          },
        },
      ],
    });
    for (const read of [asked("writing"), asked("stopped")]) {
      const state = run(over, lost(read));
      expect(shownMessages(state, 1).at(-1)?.state).toBe("stopped");
      expect(readiness(state, 1).kind).toBe("ready");
    }
  });

  it("leave Stop to the turn that began last", () => {
    const both = run(second(), {
      type: "attached",
      turn: { turn: 7, conversation: 1, message: 2 },
    });
    expect(turnOf(both, 1)?.turn).toBe(9);
  });
});

describe("stop", () => {
  it("shows until the end has come", () => {
    const stopping = run(writing(), { type: "stop-wanted", key: 1 });
    expect(readiness(stopping, 1)).toEqual({ kind: "writing", stopping: true });
    expect(readiness(ended(stopping, { state: "stopped" }), 1).kind).toBe("ready");
  });

  it("is remembered if the turn has no number yet", () => {
    const early = run(
      started(),
      { type: "submitted", key: "new", pending },
      { type: "stop-wanted", key: "new" },
    );
    expect(readiness(early, "new")).toEqual({ kind: "writing", stopping: true });
    const state = run(early, {
      type: "sent",
      key: "new",
      sent: { turn: 7, conversation: conversation(5, [question(1, "hello"), reply(2)]) },
    });
    expect(readiness(state, 5)).toEqual({ kind: "writing", stopping: true });
  });

  it("twice, or after the end, does nothing", () => {
    const once = run(writing(), { type: "stop-wanted", key: 1 });
    expect(run(once, { type: "stop-wanted", key: 1 })).toEqual(once);
    const done = ended(writing(), { state: "finished" });
    expect(run(done, { type: "stop-wanted", key: 1 })).toBe(done);
  });
});

describe("the message that waits", () => {
  const queue = { type: "queue" as const, key: 1, text: "next", cards: [] };

  it("is one: a second one is added to it", () => {
    const state = run(writing(), queue, { ...queue, text: "and more" });
    expect(state.queued[1]).toEqual({ text: "next\n\nand more", cards: [], waitsFor: "reply" });
  });

  for (const [end, due] of [
    ["finished", 1],
    ["length", 1],
    ["context-full", 1],
    ["stopped", 0],
    ["failed", 0],
    ["interrupted", 0],
  ] as const) {
    it(`is ${due ? "sent" : "left to the person"} after a reply that ended as ${end}`, () => {
      const state = ended(run(writing(), queue), { state: end });
      expect(dueQueued(state)).toHaveLength(due);
      expect(state.queued[1]?.waitsFor).toBe(due ? "reply" : "person");
    });
  }

  it("is not due while the reply is written", () => {
    expect(dueQueued(run(writing(), queue))).toEqual([]);
  });

  it("waits for a model that is loaded", () => {
    const loading = run(
      started({ status: loadingStatus(0.5) }),
      { type: "queue", key: "new", text: "hi", cards: [] },
    );
    expect(dueQueued(loading)).toEqual([]);
    const ready = run(loading, { type: "status", status: started().status });
    expect(dueQueued(ready)).toMatchObject([{ key: "new", queued: { text: "hi" } }]);
  });

  it("goes away when it is edited to nothing", () => {
    const state = run(writing(), queue, { type: "edit-queued", key: 1, text: "  ", by: "enter" });
    expect(state.queued).toEqual({});
  });

  for (const [what, by, text, due, waits] of [
    ["Enter", "enter", "half an edit", 1, "reply"],
    ["a look elsewhere", "leaving", "half an edit", 0, "person"],
    ["Esc", "leaving", null, 0, "person"],
  ] as const) {
    it(`is not overtaken while it is edited, and ${what} ${due ? "sends" : "keeps"} it`, () => {
      const editing = run(writing(), queue, { type: "editing-queued", key: 1, text: "half an edit" });
      expect(unsentOf(editing, 1).waiting).toBe("half an edit");
      const state = ended(editing, { state: "finished" });
      expect(dueQueued(state)).toEqual([]);
      const after = run(state, { type: "edit-queued", key: 1, text, by });
      expect(dueQueued(after)).toHaveLength(due);
      expect(after.queued[1]).toEqual({ text: text ?? "next", cards: [], waitsFor: waits });
      expect(after.queuedEdits).toEqual({});
    });
  }

  it("that is added to while it is edited loses neither", () => {
    const editing = { type: "editing-queued" as const, key: 1, text: "edited" };
    const state = run(writing(), queue, editing, { ...queue, text: "and more" });
    expect(state.queued[1]?.text).toBe("edited\n\nand more");
    expect(state.queuedEdits).toEqual({});
  });
});

describe("conversations", () => {
  const list = [summary(1, "one", 1), summary(2, "two", 2), summary(3, "three", 3)];

  it("are sorted, newest first", () => {
    expect(started({ conversations: list }).conversations.map((c) => c.id)).toEqual([3, 2, 1]);
  });

  it("keep a draft each", () => {
    const state = run(
      started({ conversations: list }),
      { type: "show", key: 1 },
      { type: "draft", key: 1, text: "half a" },
      { type: "show", key: 2 },
    );
    expect(state.drafts).toEqual({ 1: "half a" });
  });

  it("leave a place to undo when deleted, and come back to it", () => {
    const state = run(
      started({ conversations: list }),
      { type: "show", key: 2 },
      { type: "removed", id: 2 },
    );
    expect(state.removed).toEqual([{ summary: summary(2, "two", 2), before: 1 }]);
    expect(state.shown).toBe("new");
    const back = run(state, { type: "restored", summary: summary(2, "two", 2) });
    expect(back.conversations.map((c) => c.id)).toEqual([3, 2, 1]);
    expect(back.removed).toEqual([]);
  });

  it.each([[[3, 2, 1]], [[1, 2, 3]], [[2, 1, 3]], [[2, 3, 1]]])(
    "deleted in the order %j keep their undos, each at its place",
    (order) => {
      const removals = order.map((id) => ({ type: "removed" as const, id }));
      const state = run(started({ conversations: list }), ...removals, {
        type: "conversations",
        conversations: list,
      });
      expect(state.conversations).toEqual([]);
      expect(state.removed.map((r) => [r.summary.id, r.before])).toEqual([[3, null], [2, null], [1, null]]);
      const back = run(state, { type: "removal-settled", id: 3 }, { type: "restored", summary: summary(1, "one", 1) });
      expect(back.removed.map((r) => [r.summary.id, r.before])).toEqual([[2, 1]]);
      expect(back.conversations.map((c) => c.id)).toEqual([1]);
    },
  );

  it("that are deleted do not come back with a list that was on its way", () => {
    const state = run(
      started({ conversations: list }),
      { type: "removed", id: 2 },
      { type: "conversations", conversations: list },
    );
    expect(state.conversations.map((c) => c.id)).toEqual([3, 1]);
  });

  it("are renamed in the list and in the header", () => {
    const state = run(
      started({ conversations: list }),
      { type: "opened", conversation: conversation(1, []) },
      { type: "renamed", summary: summary(1, "tides", 1) },
    );
    expect(state.conversations.find((c) => c.id === 1)?.title).toBe("tides");
    expect(state.open[1]?.title).toBe("tides");
  });
});

describe("a reply written again", () => {
  it("takes the place of the old one at once, and leaves it if refused", () => {
    const open = run(
      started({ conversations: [summary(1)] }),
      { type: "show", key: 1 },
      {
        type: "opened",
        conversation: conversation(1, [
          question(1, "hello"),
          reply(2, { state: "finished", text: "Hi", turn: null }),
        ]),
      },
    );
    const again = { kind: "regenerate" as const, text: "", cards: [], message: 2, stopWanted: false };
    const asked = run(open, { type: "submitted", key: 1, pending: again });
    expect(texts(asked)).toEqual(["hello", ""]);
    const refusedAgain = run(asked, { type: "not-sent", key: 1, error: refused });
    expect(texts(refusedAgain)).toEqual(["hello", "Hi"]);
    expect(refusedAgain.drafts).toEqual({});
  });
});
