/** What the scripted platform says. */

export const prose = `A tide is the slow rise and fall of the sea, and the Moon does most of the work.

The Moon pulls on the near side of the Earth a little more than on the far side. That difference stretches the ocean into two gentle bulges: one facing the Moon, one on the opposite side. As the Earth turns, a coast passes through both of them, so most places see **two high tides a day**.

- The Sun pulls too, about half as strongly.
- When Sun and Moon line up, the tides are larger (*spring tides*).
- At right angles they partly cancel (*neap tides*).

The shape of the coast decides the rest. A narrow bay can turn half a metre of ocean into twelve metres of water.`;

export const code = `Here is a small function that counts words. It walks over the text once and keeps the counts in a map.

\`\`\`rust
use std::collections::HashMap;

/// How often each word occurs, without regard to case.
fn word_counts(text: &str) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for word in text.split_whitespace() {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        if !word.is_empty() {
            *counts.entry(word.to_lowercase()).or_insert(0) += 1;
        }
    }
    counts
}
\`\`\`

### What to know

1. \`split_whitespace\` also handles tabs and line breaks.
2. \`trim_matches\` drops the marks around a word, so \`tide,\` and \`tide\` count as one.

| text | distinct words | time |
| --- | ---: | ---: |
| a page | 210 | 0.1 ms |
| a novel | 9,800 | 31 ms |

> For other languages than English, a proper segmenter does better.

More in the [standard library](https://doc.rust-lang.org/std/collections/).`;

export const short = "Paris is the capital of France. It lies on the Seine.";

/** About 300 kB: prose, a long code block, a long table, prose again. */
export function heavy(): string {
  const line = "    let value_of_the_row = compute(row, column) + offset; // row by row\n";
  const row = "| a cell | 1,234 | another cell with words |\n";
  return [
    `${prose}\n\n`.repeat(60),
    `\`\`\`rust\n${line.repeat(3_000)}\`\`\`\n\n`,
    `| name | count | words |\n| --- | ---: | --- |\n${row.repeat(500)}\n`,
    `${prose}\n\n`.repeat(20),
  ].join("");
}

export const questions = [
  "Why are there two tides a day?",
  "Write a function in Rust that counts the words of a text.",
  "What is the capital of France?",
];

export const titles = [
  "Why are there two tides a day?",
  "Counting words in Rust",
  "A letter to the landlord",
  "Names for a small boat",
  "Bread without kneading",
  "What a hash map costs",
];
