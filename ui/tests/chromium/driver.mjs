/**
 * A small driver for a headless Chromium: starts it, speaks its devtools protocol, and ends it.
 * For measurements and screenshots of the scripted window; no package is needed for it.
 *
 * Node 20 wants `--experimental-websocket`.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const startLimitMs = 30_000;

/** The scripted window, as `npm run preview:fake` serves it. */
export const windowAddress = process.env.CANDOR_WINDOW ?? "http://127.0.0.1:4173/";

/** Starts a browser with one page of this size. */
export async function startBrowser({ width, height }) {
  const profile = mkdtempSync(join(tmpdir(), "candor-chromium-"));
  const program = process.env.CHROMIUM ?? "/usr/bin/chromium";
  const child = spawn(
    program,
    [
      "--headless=new",
      "--no-sandbox",
      "--disable-gpu",
      "--hide-scrollbars",
      "--remote-debugging-port=0",
      `--user-data-dir=${profile}`,
      `--window-size=${width},${height}`,
      "about:blank",
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  const browser = await new Promise((resolve, reject) => {
    let said = "";
    const limit = setTimeout(() => reject(new Error(`no browser: ${said}`)), startLimitMs);
    child.on("error", reject);
    child.stderr.on("data", (bytes) => {
      said += bytes;
      const found = /DevTools listening on (ws:\S+)/.exec(said);
      if (!found) return;
      clearTimeout(limit);
      resolve(found[1]);
    });
  });
  const { port } = new URL(browser);
  const pages = await (await fetch(`http://127.0.0.1:${port}/json`)).json();
  const page = await connect(pages.find((found) => found.type === "page").webSocketDebuggerUrl);
  await page.send("Page.enable");
  await page.send("Runtime.enable");
  await page.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
  return {
    page,
    async close() {
      const ended = new Promise((resolve) => child.on("exit", resolve));
      child.kill();
      await ended;
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

async function connect(address) {
  const socket = new WebSocket(address);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = reject;
  });
  let next = 1;
  const waiting = new Map();
  const heard = new Map();
  socket.onmessage = ({ data }) => {
    const { id, result, error, method, params } = JSON.parse(data);
    if (id === undefined) return heard.get(method)?.(params);
    const settle = waiting.get(id);
    waiting.delete(id);
    if (settle) error ? settle.reject(new Error(error.message)) : settle.resolve(result);
  };
  const send = (method, params = {}) =>
    new Promise((resolve, reject) => {
      const id = next++;
      waiting.set(id, { resolve, reject });
      socket.send(JSON.stringify({ id, method, params }));
    });
  /** The value of an expression in the page. */
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await send("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  };
  return {
    send,
    evaluate,
    /** Hears one kind of the browser's news. */
    on: (method, hear) => heard.set(method, hear),
    /** Shows a situation of the scripted window, from the start. */
    async show(name) {
      await send("Page.navigate", { url: "about:blank" });
      await send("Page.navigate", { url: `${windowAddress}#${name}` });
      await this.until(`document.querySelector('[data-phase=ready]') !== null`);
    },
    async until(condition, limitMs = startLimitMs) {
      const began = Date.now();
      while (!(await evaluate(condition).catch(() => false))) {
        if (Date.now() - began > limitMs) throw new Error(`never so: ${condition}`);
        await sleep(25);
      }
    },
    async key(key, text) {
      await send("Input.dispatchKeyEvent", { type: "keyDown", key, text });
      await send("Input.dispatchKeyEvent", { type: "keyUp", key });
    },
    async picture() {
      const { data } = await send("Page.captureScreenshot", { format: "png" });
      return Buffer.from(data, "base64");
    },
  };
}

export { sleep };
