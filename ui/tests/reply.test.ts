import { flushSync, mount, unmount } from "svelte";
import { afterEach, expect, it } from "vitest";
import type { MessageState } from "../src/platform/bindings";
import Reply from "../src/views/Reply.svelte";
import { record, reply } from "./make";

let page: ReturnType<typeof mount> | null = null;

afterEach(() => {
  if (page) void unmount(page);
  page = null;
  document.body.replaceChildren();
});

const notice = "The chat template refused the conversation; neighbouring turns were joined.";

const cases: [string, MessageState, string | null][] = [
  ["Words.", "finished", notice],
  ["Words.", "finished", null],
  ["", "stopped", notice],
  ["", "failed", notice],
];

it.each(cases)("%j, %s, says %j at its end and nothing else of it", (text, state, said) => {
  const stored = reply(2, { text, state, turn: null, record: { ...record, notice: said } });
  page = mount(Reply, {
    target: document.body,
    props: {
      message: { ...stored, key: "m2", live: null, failure: null },
      place: "last",
      canAsk: true,
      stopping: false,
      onregenerate: () => undefined,
      onlink: () => undefined,
    },
  });
  flushSync();
  const lines = [...document.querySelectorAll("[data-testid=reply-notice]")];
  expect(lines.map((line) => line.textContent)).toEqual(said === null ? [] : [said]);
});
