import { expect, it, vi } from "vitest";
import { addressAttribute, isOpenable, lastCodeBlock, renderHtml } from "../src/markdown/render";

const tag = (name: string, rest = ""): string => `<${name}${rest}>`;

/** What a hostile reply may hold. None of it may survive as anything but words. */
const hostile: [string, string][] = [
  ["a script", `${tag("script")}canary()${tag("/script")}`],
  ["a script in Markdown", `**bold** ${tag("script")}canary()${tag("/script")}`],
  ["an event handler on an image", tag("img", ` src=x onerror="canary()"`)],
  ["an image without quotes", tag("img", " src=x onerror=canary()//")],
  ["SVG with a handler", `${tag("svg", ` onload="canary()"`)}${tag("/svg")}`],
  ["SVG with an animation", `<svg><animate onbegin=canary() attributeName=x></animate></svg>`],
  ["MathML that hides an image", `<math><mtext><img src=x onerror=canary()></mtext></math>`],
  ["a javascript link", "[click](javascript:canary())"],
  ["a javascript link in disguise", "[click](JaVaScRiPt&colon;canary())"],
  ["a javascript link with a tab", "[click](java\tscript:canary())"],
  ["a javascript autolink", "<javascript:canary()>"],
  ["a data link", "[click](data:text/html;base64,PHNjcmlwdD5jYW5hcnkoKTwvc2NyaXB0Pg==)"],
  ["a vbscript link", "[click](vbscript:canary())"],
  ["a file link", "[click](file:///etc/passwd)"],
  ["a link of the shell", "[click](ipc://localhost/send)"],
  ["a link to the page itself", "[click](tauri://localhost/index.html)"],
  ["a relative link", "[click](/index.html)"],
  ["a link with a handler in its title", `[click](https://example.com "x\\" onclick=\\"canary()")`],
  ["an iframe", tag("iframe", ` src="https://example.com"`)],
  ["a form", `${tag("form", ` action="https://example.com"`)}<input name=x>${tag("/form")}`],
  ["a style that covers the page", `<style>*{position:fixed}</style>`],
  ["an inline style", `<div style="position:fixed;inset:0">x</div>`],
  ["a base", tag("base", ` href="https://example.com/"`)],
  ["a meta refresh", `<meta http-equiv=refresh content="0;url=https://example.com">`],
  ["a fence with HTML", "```\n<img src=x onerror=canary()>\n```"],
  ["a fence whose language is HTML", '```"><img src=x onerror=canary()>\nx\n```'],
  ["an unclosed fence", "```html\n<script>canary()"],
  ["a remote image", "![track](https://example.com/pixel.png?who=me)"],
  ["a reference image", "![track][a]\n\n[a]: https://example.com/pixel.png"],
  ["an image inside a link", "[![x](https://example.com/x.png)](javascript:canary())"],
  ["a table with HTML", "| a |\n| - |\n| <img src=x onerror=canary()> |"],
  ["a custom element", `<x-frame onclick="canary()" slot=y></x-frame>`],
  ["entities", "&lt;script&gt;canary()&lt;/script&gt;"],
  ["a comment that ends late", "<!--><img src=x onerror=canary()>-->"],
  ["a template", `<template><script>canary()</script></template>`],
  ["malformed LaTeX", "$$\\frac{a}{\\href{javascript:canary()}{x}"],
  ["malformed Mermaid", "```mermaid\ngraph TD; A[<img src=x onerror=canary()>]--"],
  ["a copy button of its own", `<button class="code-copy" onclick="canary()">Copy</button>`],
];

const elements = new Set(
  (
    "p br hr h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code em strong s a table thead tbody tr th " +
    "td span div button"
  ).split(" "),
);
const attributes = new Set(
  ["class", "start", "title", "role", "tabindex", "dir", "type", "aria-label", addressAttribute],
);

function check(source: string): HTMLElement {
  const page = document.createElement("div");
  page.innerHTML = renderHtml(source);
  for (const element of page.querySelectorAll("*")) {
    expect(elements).toContain(element.tagName.toLowerCase());
    for (const { name } of element.attributes) expect(attributes).toContain(name);
    const address = element.getAttribute(addressAttribute);
    if (address !== null) expect(isOpenable(address)).toBe(true);
  }
  return page;
}

it.each(hostile)("nothing of %s can run, load or navigate", (_name, source) => {
  const canary = vi.fn();
  Object.assign(globalThis, { canary });
  const page = check(source);
  document.body.append(page);
  page.querySelectorAll<HTMLElement>("*").forEach((element) => element.click());
  expect(canary).not.toHaveBeenCalled();
  expect(document.querySelectorAll("img, script, iframe, [href], [src]")).toHaveLength(0);
  page.remove();
});

it("words of hostile HTML stay readable", () => {
  expect(check(`a <b onclick="canary()">bold</b> word`).textContent).toContain(
    `<b onclick="canary()">bold</b>`,
  );
});

it("a link carries its address as data, and shows it", () => {
  const link = check("[here](https://example.com/a?b=1&c=2)").querySelector("a");
  expect(link?.getAttribute(addressAttribute)).toBe("https://example.com/a?b=1&c=2");
  expect(link?.hasAttribute("href")).toBe(false);
  expect(link?.title).toBe("https://example.com/a?b=1&c=2");
});

it("a bare address becomes a link; a file name does not", () => {
  expect(check("see https://example.com/x").querySelectorAll("a")).toHaveLength(1);
  expect(check("see main.rs and README.md and a.py").querySelectorAll("a")).toHaveLength(0);
});

it("an image is a note, not a request", () => {
  expect(check("![a chart](https://example.com/x.png)").textContent).toContain(
    "Image not loaded: a chart",
  );
});

it("code has its language, its colours and a button", () => {
  const page = check("```rust\nfn main() {}\n```");
  expect(page.querySelector(".code-language")?.textContent).toBe("rust");
  expect(page.querySelector(".hljs-keyword")?.textContent).toBe("fn");
  expect(page.querySelector("code")?.textContent).toBe("fn main() {}");
  expect(page.querySelector("button.code-copy")).not.toBeNull();
});

it("code in an unknown language is plain and whole", () => {
  const page = check("```zig9\nconst a = <b>;\n```");
  expect(page.querySelector("code")?.innerHTML).toBe("const a = &lt;b&gt;;");
});

it("the columns of a table keep their side without inline styles", () => {
  const page = check("| a | b |\n| :-- | --: |\n| 1 | 2 |");
  expect(page.querySelector("td.align-right")?.textContent).toBe("2");
  expect(page.querySelector("[style]")).toBeNull();
});

const large: [string, string][] = [
  ["10,000 nested quotes", ">".repeat(10_000) + " deep"],
  ["10,000 nested lists", "- ".repeat(10_000) + "deep"],
  ["10,000 open brackets", "[".repeat(10_000)],
  ["10,000 stars", "*a ".repeat(10_000)],
  ["10,000 backticks", "`a ".repeat(10_000)],
  ["a line of a million characters", "x".repeat(1_000_000)],
];
/** Not a speed: a limit that only what grows without bound would reach. */
const hangMs = 10_000;
it.each(large)("%s are drawn in bounded time", (_name, source) => {
  const begun = performance.now();
  expect(renderHtml(source)).not.toBe("");
  expect(performance.now() - begun).toBeLessThan(hangMs);
}, 2 * hangMs);

const dense: [string, string][] = [
  ["emphasis", "_*".repeat(10_000)],
  ["code", "`a ".repeat(10_000)],
  ["formulas", "$x^2$ ".repeat(5_000)],
  ["rows", "| a | b |\n| - | - |\n" + "| 1 | 2 |\n".repeat(2_000)],
  ["addresses", "https://example.com/x ".repeat(2_000)],
];

it.each(dense)("more %s than anybody writes are plain text, and whole", (_name, source) => {
  const page = document.createElement("div");
  page.innerHTML = renderHtml(source);
  expect(page.querySelectorAll("*")).toHaveLength(1);
  expect(page.querySelector("p.plain")?.textContent).toBe(source);
});

it("a long table and a long fence are none of that", () => {
  expect(renderHtml("| a | b | c |\n| - | - | - |\n" + "| 1 | 2 | 3 |\n".repeat(500))).toContain("<table>");
  expect(renderHtml("```sh\n" + "echo `a` | $b * _c_\n".repeat(2_000) + "```")).toContain("code-copy");
});

it("the last code block is copied as it was written", () => {
  expect(lastCodeBlock("```\na\n```\n\n- x\n\n  ```js\n  b < c\n  ```\n")).toBe("b < c");
  expect(lastCodeBlock("no code")).toBeNull();
});
