/**
 * Measures what a reader feels: gaps between frames while 300 kB are written, whether a piece costs
 * more at the end than at the start, how fast a key is drawn meanwhile, and how fast a conversation
 * of 2,000 messages opens. Prints one line of JSON.
 *
 *     npm run build:fake && npm run preview:fake &
 *     node --experimental-websocket tests/chromium/frames.mjs
 */
import { sleep, startBrowser } from "./driver.mjs";

/** Stop is pressed after so long at the latest, however far the reply is. */
const limitSeconds = Number(process.argv[2] ?? 120);

/** Prints each frame and key, not only the worst: `cargo xtask soak` reads them. */
const printsAll = process.argv.includes("--all");

const size = { width: 1100, height: 800 };

/** The reader goes up, and comes back, after so many pieces. */
const upAt = 2_000;
const backAt = 5_000;
/** Stop is pressed after so many, which is after the last formula. */
const stopAt = 8_100;

/** Notes every frame and every key until it is drawn. */
const watch = `(() => {
  const log = { frames: [], keys: [], lengths: [] };
  globalThis.candorLog = log;
  let last = performance.now();
  const frame = (now) => {
    log.frames.push([now, performance.now() - last]);
    last = performance.now();
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  addEventListener("keydown", () => {
    const begun = performance.now();
    requestAnimationFrame(() => setTimeout(() => log.keys.push(performance.now() - begun)));
  }, true);
})()`;

/** Largest gap, in tenths of the time. */
function tenths(frames, from, to) {
  const parts = Array.from({ length: 10 }, () => ({ worst: 0, sum: 0, count: 0 }));
  for (const [at, gap] of frames) {
    if (at < from || at > to) continue;
    const part = parts[Math.min(9, Math.floor(((at - from) / (to - from)) * 10))];
    part.worst = Math.max(part.worst, gap);
    part.sum += gap;
    part.count += 1;
  }
  return parts.map(({ worst, sum, count }) => ({ worst: Math.round(worst), mean: Math.round(sum / Math.max(1, count)) }));
}

const browser = await startBrowser(size);
const { page } = browser;
const rounded = (value) => Math.round(value * 10) / 10;
try {
  await page.show("heavy");
  await page.evaluate(watch);
  const from = await page.evaluate("performance.now()");
  await page.evaluate(`document.querySelector('[data-testid=composer]').focus()`);
  const finished = `document.querySelector('[data-role=assistant]')?.dataset.state === "finished"`;
  const position = `(() => { const r = document.querySelector('[data-testid=conversation]'); return [r.scrollTop, r.scrollHeight - r.clientHeight]; })()`;
  // Cheap to ask for: the window counts the pieces itself.
  const written = `Number(/[\\d,]+/.exec(document.querySelector('[data-testid=progress]')?.textContent ?? "")?.[0].replace(/,/g, "") ?? 0)`;
  let pieces = 0;
  let scrolled = null;
  let selected = null;
  let stopMs = null;
  const began = Date.now();
  while (!(await page.evaluate(finished))) {
    await page.key("x", "x");
    pieces = (await page.evaluate(written)) || pieces;
    if (!scrolled && pieces > upAt) {
      // The reader goes up and marks something: neither may move.
      await page.evaluate(`document.querySelector('[data-testid=conversation]').dispatchEvent(new WheelEvent("wheel", { deltaY: -2000 }))`);
      await page.evaluate(`document.querySelector('[data-testid=conversation]').scrollTop -= 3000`);
      await sleep(100);
      const [top] = await page.evaluate(position);
      selected = await page.evaluate(`(() => {
        const p = document.querySelector('[data-testid=reply-text] p').firstChild;
        getSelection().setBaseAndExtent(p, 2, p, 12);
        return getSelection().toString();
      })()`);
      scrolled = { top };
    }
    if (scrolled && scrolled.after === undefined && pieces > backAt) {
      const [top] = await page.evaluate(position);
      scrolled.after = top;
      scrolled.selection = await page.evaluate("getSelection().toString()");
      await page.evaluate("getSelection().removeAllRanges()");
      await page.evaluate(`document.querySelector('[data-testid=to-end]').click()`);
    }
    const isLate = Date.now() - began > limitSeconds * 1000;
    if (pieces > stopAt || isLate) {
      stopMs = await page.evaluate(`new Promise((resolve) => {
        const begun = performance.now();
        document.querySelector('[data-testid=stop]').click();
        const look = () => (document.querySelector('[data-testid=stop]') ? requestAnimationFrame(look) : resolve(performance.now() - begun));
        look();
      })`);
      break;
    }
    await sleep(100);
  }
  const formulas = await page.evaluate(`document.querySelectorAll('.katex').length`);
  await sleep(300);
  const to = await page.evaluate("performance.now()");
  const log = await page.evaluate("candorLog");
  const characters = await page.evaluate(`document.querySelector('[data-testid=reply-text]').textContent.length`);
  const [top, end] = await page.evaluate(position);
  const keys = log.keys.sort((a, b) => a - b);
  const parts = tenths(log.frames, from, to);
  const inside = log.frames.filter(([at]) => at >= from && at <= to).map(([, gap]) => gap).sort((a, b) => a - b);

  await page.show("ready");
  await page.show("long");
  const opened = await page.evaluate(`performance.now()`);
  await page.until(`document.querySelectorAll('[data-testid=message]').length > 0`);
  const drawn = await page.evaluate(`performance.now()`);

  // What an attacker or a broken model may write: each within 100 ms, or as plain text.
  await page.show("ready");
  const hostileMs = await page.evaluate(`(() => {
    const cases = {
      quotes: ">".repeat(10_000) + " deep",
      lists: "- ".repeat(10_000) + "deep",
      brackets: "[".repeat(10_000),
      stars: "*a ".repeat(10_000),
      backticks: "\`a ".repeat(10_000),
      dollars: "$x ".repeat(10_000),
      formulas: "$x^2$ ".repeat(5_000),
      links: "https://example.com/x ".repeat(2_000),
      rows: "| a | b |\\n| - | - |\\n" + "| 1 | 2 |\\n".repeat(2_000),
      line: "x".repeat(1_000_000),
      fence: "\`\`\`html\\n<script>canary()\\n" + "<b>\\n".repeat(20_000),
      emphasis: "_*".repeat(10_000),
    };
    const found = {};
    for (const [name, source] of Object.entries(cases)) {
      const begun = performance.now();
      const box = document.createElement("div");
      box.append(candorRender(source, "done"));
      found[name] = Math.round(performance.now() - begun);
    }
    return found;
  })()`);

  console.log(
    JSON.stringify({
      seconds: Math.round((to - from) / 1000),
      pieces,
      characters,
      formulas,
      stopMs: stopMs && rounded(stopMs),
      worstFrameMs: rounded(inside.at(-1)),
      p99FrameMs: rounded(inside[Math.floor(inside.length * 0.99)]),
      tenths: parts,
      keyToFrameMs: { median: rounded(keys[keys.length >> 1]), p99: rounded(keys[Math.floor(keys.length * 0.99)]), worst: rounded(keys.at(-1)) },
      scrolledUp: scrolled && { moved: scrolled.after - scrolled.top, selectionKept: scrolled.selection === selected },
      atEndAfterReturn: end - top < 40,
      longChatDrawnAfterStartMs: Math.round(drawn),
      waitedForIt: Math.round(drawn - opened),
      hostileMs,
      ...(printsAll ? { framesMs: inside.map(rounded), keysMs: keys.map(rounded) } : {}),
    }),
  );
} finally {
  await browser.close();
}
