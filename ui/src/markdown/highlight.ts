/** Colours for code: a small set of languages, classes only, never inline styles. */
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

const languages = {
  bash,
  c,
  cpp,
  css,
  diff,
  go,
  java,
  javascript,
  json,
  python,
  rust,
  sql,
  typescript,
  xml,
  yaml,
};

for (const [name, language] of Object.entries(languages)) hljs.registerLanguage(name, language);

/** Colouring costs about a millisecond per 3,000 characters; past this, code stays plain. */
const highlightCharsMax = 60_000;

/** While code still grows it is coloured again every frame, so the limit is lower. */
const liveHighlightCharsMax = 12_000;

/** Whether a block still grows. */
export type Growth = "live" | "done";

/** The code as HTML with classes, or null if it is to stay plain. */
export function highlighted(code: string, language: string, growth: Growth): string | null {
  const limit = growth === "live" ? liveHighlightCharsMax : highlightCharsMax;
  if (code.length > limit || !hljs.getLanguage(language)) return null;
  return hljs.highlight(code, { language, ignoreIllegals: true }).value;
}
