/**
 * Pictures of the scripted window, light and dark, into a folder.
 *
 *     npm run build:fake && npm run preview:fake &
 *     node --experimental-websocket tests/chromium/shots.mjs ../docs/screenshots
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sleep, startBrowser } from "./driver.mjs";

const folder = process.argv[2] ?? "shots";
const only = process.argv[3];

const find = (testid) => `document.querySelector('[data-testid=${testid}]')`;
const last = (testid) => `[...document.querySelectorAll('[data-testid=${testid}]')].at(-1)`;

/** A name, a situation, and what is done in it before the picture. */
const shots = [
  ["empty", "empty", async () => undefined],
  ["ready", "ready", async () => undefined],
  ["streaming", "streaming", async () => sleep(2_500)],
  ["stopped", "stopped", async () => sleep(1_500)],
  ["refused", "refused", async () => undefined],
  ["proven", "proven", async () => undefined],
  ["rejected", "rejected", async () => undefined],
  ["settings", "chat", async (page) => page.evaluate(`${find("settings")}.click()`)],
  [
    "settings-german",
    "chat&language=german",
    async (page) => page.evaluate(`${find("settings")}.click()`),
  ],
  [
    "server",
    "chat",
    async (page) => {
      await page.evaluate(`${find("settings")}.click()`);
      await page.until(`${find("setting-server")} !== null`);
      await page.evaluate(`${find("setting-server")}.click()`);
      await page.until(`${find("server-address")} !== null`);
    },
  ],
  [
    "shortcuts",
    "chat",
    async (page) =>
      page.evaluate(
        `dispatchEvent(new KeyboardEvent("keydown", { key: "/", code: "Slash", ctrlKey: true, bubbles: true }))`,
      ),
  ],
  ["thinking", "thinking", async (page) => page.until(`${find("thoughts")}?.textContent.length > 250`)],
  ["thought", "thought", async () => undefined],
  ["formulas", "formulas", async (page) => page.until(`document.querySelectorAll('.katex').length > 5`)],
  ["repeats", "repeats", async (page) => page.until(`${find("reply-repeats")} !== null`)],
  [
    "record",
    "thought",
    async (page) => {
      await page.evaluate(`${last("stats")}.click()`);
      await page.until(`${find("record")}?.textContent.includes('5fc4')`);
      await page.evaluate(`${find("replay")}.click()`);
      await page.until(`${find("replay-outcome")}?.dataset.kind === 'same'`);
      await page.evaluate(`${find("conversation")}.scrollTop = 1e9`);
    },
  ],
  [
    "replay-differs",
    "formulas",
    async (page) => {
      await page.evaluate(`${last("stats")}.click()`);
      await page.until(`${find("replay")} !== null`);
      await page.evaluate(`${find("replay")}.click()`);
      await page.until(`${find("replay-outcome")}?.dataset.kind === 'differs'`);
      await page.evaluate(`${find("conversation")}.scrollTop = 1e9`);
    },
  ],
  [
    "report",
    "ready",
    async (page) => {
      await page.evaluate(`${find("settings")}.click()`);
      await page.until(`${find("report-show")} !== null`);
      await page.evaluate(`${find("report-show")}.click()`);
      await page.until(`${find("report-text")} !== null`);
      await page.evaluate(`${find("report-text")}.scrollIntoView({ block: "center" })`);
    },
  ],
];

mkdirSync(folder, { recursive: true });
const browser = await startBrowser({ width: 1100, height: 760 });
try {
  for (const [name, situation, prepare] of shots) {
    if (only && only !== name) continue;
    for (const theme of ["light", "dark"]) {
      await browser.page.show(`${situation}&theme=${theme}`);
      await prepare(browser.page);
      await sleep(250);
      writeFileSync(join(folder, `${name}-${theme}.png`), await browser.page.picture());
    }
  }
} finally {
  await browser.close();
}
