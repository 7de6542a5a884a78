/** No words but those of the tables reach the window: neither templates nor code spell any out. */
import { parse } from "svelte/compiler";
import { expect, it } from "vitest";

const sources = import.meta.glob<string>("../src/**/*.{svelte,ts}", {
  query: "?raw",
  import: "default",
  eager: true,
});
/** Scripted data, generated types, and the tables themselves. */
const leftOut = /^..\/src\/(?:platform\/fake\/|platform\/bindings\.ts|text\/strings\/)/;

/** What a person reads or hears; all else that is written in a tag is for the program. */
const readAttributes = new Set(["title", "aria-label", "aria-description", "placeholder", "alt", "label", "help", "what"]);

/** Names that no language changes: of keys as the browser calls them, of the program, of errors. */
const names = new Set([
  ..."Enter Escape Tab Home End Delete ContextMenu ArrowUp ArrowDown ArrowLeft ArrowRight".split(" "),
  ..."Shift+Enter Esc Ctrl+N Ctrl+K Ctrl+O Ctrl+B Ctrl+Shift+C Ctrl+Shift+; Ctrl Shift".split(" "),
  "Candor",
]);
/** Units, the address of the hub, and ends of the names of words (`xOne`, `xHelp`). */
const notWords = /^(?:px|https:\S+|One|Help)$/;

interface Node {
  type?: string;
  [field: string]: unknown;
}

const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null;

/** Every node with the nodes around it, innermost last. */
function walk(node: unknown, around: Node[], visit: (node: Node, around: Node[]) => void): void {
  if (Array.isArray(node)) {
    for (const child of node) walk(child, around, visit);
    return;
  }
  if (!isNode(node)) return;
  if (node.type) visit(node, around);
  const inside = node.type ? [...around, node] : around;
  for (const [field, child] of Object.entries(node)) {
    if (field !== "parent" && field !== "leadingComments" && field !== "trailingComments") walk(child, inside, visit);
  }
}

const letters = /\p{L}/u;
/** As words for a person begin in code: "Not sent", "Stopped.", "Writing…". */
const looksSaid = /^\p{Lu}\p{Ll}+(?:$|[\s.,:;…!?])|\p{L}\p{Ll}+ \p{L}+.*[.…]$/u;

/** Words in a template: between tags, and in attributes that are read. */
function inTemplate(node: Node, around: Node[]): string | null {
  const attribute = around.findLast((outer) => outer.type === "Attribute");
  if (attribute && !readAttributes.has(String(attribute["name"]))) return null;
  if (node.type === "Text" && letters.test(String(node["data"]))) return String(node["data"]);
  const said = node.type === "Literal" ? node["value"] : null;
  if (typeof said !== "string" || !letters.test(said)) return null;
  // Keys of the table, and values that are only compared.
  const within = around.at(-1)?.type ?? "";
  const isArgument = around.some((outer) => outer.type === "CallExpression");
  const isSpoken = around.some((outer) => outer.type === "ExpressionTag");
  return isSpoken && !isArgument && within !== "BinaryExpression" ? said : null;
}

/** Words in code. */
function inCode(node: Node, around: Node[]): string | null {
  if (around.some((outer) => outer.type?.startsWith("Import") || outer.type?.startsWith("TS"))) return null;
  if (node.type === "TemplateElement") {
    const { cooked } = node["value"] as { cooked: string };
    const words = cooked.replace(/<[^>]*>?|\[[^\]]*\]?/g, "").trim();
    return /(?:^|\s)\p{L}{2,}\s+\p{L}{2,}|^\p{Lu}\p{Ll}+/u.test(words) && !names.has(words) ? cooked : null;
  }
  const said = node.type === "Literal" ? node["value"] : null;
  return typeof said === "string" && looksSaid.test(said) && !names.has(said) ? said : null;
}

function spelledOut(code: string, kind: "svelte" | "ts"): string[] {
  const whole = kind === "svelte" ? code : `<script lang="ts">\n${code}\n</script>`;
  const { fragment, instance, module } = parse(whole, { modern: true });
  const found: string[] = [];
  walk(fragment, [], (node, around) => {
    const words = inTemplate(node, around);
    if (words !== null) found.push(words.trim());
  });
  for (const part of [instance, module, fragment]) {
    walk(part, [], (node, around) => {
      const words = around.some((outer) => outer.type === "Attribute") && part === fragment ? null : inCode(node, around);
      if (words !== null) found.push(words.trim());
    });
  }
  return [...new Set(found)].filter((words) => !notWords.test(words));
}

const files: [path: string, code: string][] = Object.entries(sources).filter(([path]) => !leftOut.test(path));

it("there are files to look at", () => {
  expect(files.length).toBeGreaterThan(60);
  expect(files.map(([path]) => path)).toContain("../src/views/Sidebar.svelte");
});

it.each(files)("%s spells no words out", (path, code) => {
  expect(spelledOut(code, path.endsWith(".svelte") ? "svelte" : "ts")).toEqual([]);
});

it.each([
  ["between tags", "<p>New chat</p>", ["New chat"]],
  ["beside what is filled in", '<p>{t("a")} more</p>', ["more"]],
  ["in an attribute", '<b title="Close"></b>', ["Close"]],
  ["in a part of one", '<b aria-label="Remove {name}"></b>', ["Remove"]],
  ["chosen between tags", '<p>{copied ? "copied" : t("copy")}</p>', ["copied"]],
  ["in a script", '<script lang="ts">const words = "Not sent";</script>', ["Not sent"]],
  ["put together", '<script lang="ts">const words = `Reading ${a} of ${b}`;</script>', ["Reading"]],
  ["not: from the table", '<p title={t("close")}>{t("row.more", { name })}</p>', []],
  ["not: compared", '<p>{kind === "question" ? t("a") : t("b")}</p>', []],
  ["not: for the program", '<b class="icon" data-testid="close"></b>', []],
])("words are seen %s", (_name, code, words) => {
  expect(spelledOut(code, "svelte")).toEqual(words);
});
