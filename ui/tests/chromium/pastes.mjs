/**
 * Measures what a long paste costs: gaps between frames from the paste until a second after its card
 * is there, and then how fast keys are drawn. Prints one line of JSON.
 *
 *     npm run build:fake && npm run preview:fake &
 *     node --experimental-websocket tests/chromium/pastes.mjs
 */
import { sleep, startBrowser } from "./driver.mjs";

const size = { width: 1100, height: 800 };
const keys = 20;

/** Each as the page makes it; what is shown of a card are its first 100,000 characters. */
const pastes = [
  ["100,000 characters of code pasted", `"let x = f(y); // z!\\n".repeat(5_000)`],
  ["1,000,000 characters in one line pasted", `"x".repeat(1_000_000)`],
  [
    "tabs, CRLF, NUL, right-to-left and invisible signs pasted",
    `"a\\tb\\r\\nשלום עולם \\u200b\\u200d\\u202e مرحبا \\0 🙂\\n".repeat(3_000)`,
  ],
];

const watch = `(() => {
  globalThis.candorGaps = [];
  globalThis.candorKeys = [];
  let last = performance.now();
  const frame = () => {
    const now = performance.now();
    candorGaps.push(now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  addEventListener("keydown", () => {
    const begun = performance.now();
    requestAnimationFrame(() => setTimeout(() => candorKeys.push(performance.now() - begun)));
  }, true);
})()`;

const paste = (text) => `(() => {
  const box = document.querySelector("[data-testid=composer]");
  box.focus();
  globalThis.candorPasted = ${text};
  candorGaps.length = 0;
  const clipboardData = new DataTransfer();
  clipboardData.setData("text/plain", candorPasted);
  box.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
})()`;

const cards = `document.querySelectorAll("[data-testid=card]").length`;
const draft = `document.querySelector("[data-testid=composer]").value`;
const click = (name) => `document.querySelector("[data-testid=${name}]").click()`;

const browser = await startBrowser(size);
const { page } = browser;
try {
  const found = [];
  for (const [what, text] of pastes) {
    await page.show("chat");
    await page.evaluate(watch);
    await page.evaluate(paste(text));
    await page.until(`${cards} === 1`);
    await sleep(1_000);
    const gapsMs = await page.evaluate("candorGaps");
    for (let count = 0; count < keys; count += 1) {
      await page.key("x", "x");
      await sleep(50);
    }
    const keysMs = await page.evaluate("candorKeys");
    let wrong = null;
    if ((await page.evaluate(draft)) !== "x".repeat(keys)) wrong = "the keys are not in the box";
    // Another chat and back: words and card are there, and the card holds what was pasted.
    const shown = await page.evaluate(`document.querySelector("[data-testid=conversation-item][data-current=true]").dataset.id`);
    await page.evaluate(click("new-chat"));
    await page.until(`${cards} === 0`);
    await page.evaluate(`document.querySelector("[data-testid=conversation-item][data-id='${shown}'] .open").click()`);
    await page.until(`${cards} === 1`);
    if ((await page.evaluate(draft)) !== "x".repeat(keys)) wrong = "the draft is lost";
    await page.evaluate(click("card-open"));
    await page.until(`document.querySelector("[data-testid=card-text]") !== null`);
    const same = `document.querySelector("[data-testid=card-text]").textContent === candorPasted.slice(0, 100_000)`;
    if (!(await page.evaluate(same))) wrong = "the card holds something else";
    found.push({ what, gapsMs, keysMs, wrong });
  }
  const rounded = (list) => list.map((ms) => Math.round(ms * 10) / 10);
  console.log(
    JSON.stringify({
      pastes: found.map((one) => ({ ...one, gapsMs: rounded(one.gapsMs), keysMs: rounded(one.keysMs) })),
    }),
  );
} finally {
  await browser.close();
}
