/** Cuts a growing reply into sentences for the ears: whole sentences only, never the same twice. */
import { counted } from "./format";
import { t } from "./words.svelte";

/** What can be said now, and how much of the text has been taken. */
export interface Spoken {
  sentences: string[];
  taken: number;
}

// A sentence ends at a mark and white space, or at a line break.
const sentenceEnd = /[.!?…。！？]["'”’)\]]*(?=\s)|\n+/g;
const fenceLine = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;

/** The sentences that are complete in `text` after the first `taken` characters. */
export function completeSentences(text: string, taken: number): Spoken {
  const sentences: string[] = [];
  let from = taken;
  for (;;) {
    const fenced = fencedBlock(text, from);
    if (fenced === "open") break;
    if (fenced) {
      sentences.push(fenced.words);
      from = fenced.end;
      continue;
    }
    sentenceEnd.lastIndex = from;
    const match = sentenceEnd.exec(text);
    if (!match) break;
    const end = match.index + match[0].length;
    pushWords(sentences, text.slice(from, end));
    from = end;
  }
  return { sentences, taken: from };
}

/** What is left when the reply has ended. */
export function lastSentences(text: string, taken: number): string[] {
  const { sentences, taken: from } = completeSentences(text, taken);
  const rest = text.slice(from);
  if (fenceLine.test(rest)) sentences.push(t("said.code"));
  else pushWords(sentences, rest);
  return sentences;
}

/** Code is not read out: its language and its length are. */
function fencedBlock(text: string, from: number): { words: string; end: number } | "open" | null {
  if (from > 0 && text[from - 1] !== "\n") return null;
  const open = fenceLine.exec(text.slice(from, from + 200));
  const fence = open?.[1];
  if (!open || !fence) return null;
  const close = new RegExp(`\\n {0,3}${fence[0] === "~" ? "~" : "`"}{${fence.length},}[ \\t]*(?:\\n|$)`, "g");
  close.lastIndex = from;
  const end = close.exec(text);
  if (!end) return "open";
  const lines = counted("count.lines", text.slice(from, end.index).split("\n").length - 1);
  const language = open[2];
  return {
    words: language ? t("said.codeLanguage", { language, lines }) : t("said.codeLines", { lines }),
    end: end.index + end[0].length,
  };
}

function pushWords(into: string[], markdown: string): void {
  const words = markdown
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/^[ \t]*(?:#{1,6}|>|[-*+]|\|)[ \t]+/gm, "")
    .replace(/[*`_|]+/g, "")
    .replace(/\s+/g, " ")
    .trim();
  if (/[\p{L}\p{N}]/u.test(words)) into.push(words);
}
