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

/** Puts words into the last field of this name, as typing them does. */
const write = (testid, words) => `(() => {
  const field = ${last(testid)};
  field.value = ${JSON.stringify(words)};
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
})()`;

/** Presses these controls one after the other; each has a name, or a name and which of them. */
async function press(page, ...controls) {
  for (const [testid, which] of controls.map((control) => [control, 0].flat())) {
    const control = `document.querySelectorAll('[data-testid=${testid}]')[${which}]`;
    await page.until(`${control} !== undefined`);
    await page.evaluate(`${control}.click()`);
  }
}

/** A name, a situation, and what is done in it before the picture. */
const shots = [
  ["newcomer", "newcomer", async () => undefined],
  ["chat-settings", "chat", async (page) => press(page, "chat-settings")],
  ["models", "chat", async (page) => press(page, "model-button", "models-open")],
  ["downloads", "downloads", async (page) => press(page, "model-button", "models-open", "models-tab-downloads")],
  [
    "talk-search",
    "chat",
    async (page) => {
      await page.evaluate(write("search", "tide"));
      await page.until(`${find("found")} !== null`);
      await page.evaluate(`${last("found")}.click()`);
    },
  ],
  [
    "talk-places",
    "chat",
    async (page) => {
      await press(page, ["row-menu", 2], "pin", ["row-menu", 3], "move", "new-folder");
      await page.until(`${find("folder-field")} !== null`);
      await page.evaluate(write("folder-field", "Nature"));
      await page.evaluate(
        `${find("folder-field")}.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }))`,
      );
      await sleep(200);
      await press(page, ["row-menu", 4]);
    },
  ],
  [
    "talk-cards",
    "chat",
    async (page) => {
      await page.evaluate(`(() => {
        const paste = new Event("paste", { bubbles: true, cancelable: true });
        paste.clipboardData = { getData: () => "line of code(42);\\n".repeat(900) };
        ${find("composer")}.dispatchEvent(paste);
      })()`);
      await press(page, "attach");
      await page.evaluate(write("composer", "What does this do?"));
      await sleep(600);
    },
  ],
  [
    "talk-branches",
    "chat",
    async (page) => {
      await page.evaluate(`${last("regenerate")}.click()`);
      await sleep(1_500);
      await page.evaluate(`${last("stop")}.click()`);
      await sleep(300);
      await press(page, "edit-message");
      await page.evaluate(`${find("conversation")}.scrollTop = 0`);
    },
  ],
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
