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

/** With thoughts before it. */
export const thoughtful = `<think>
The question is about the *number* of tides, so the far side of the Earth has to be explained. Two bulges: one toward the Moon, one away from it.

1. The near side is pulled more than the centre.
2. The far side is pulled less, so it stays behind.
3. The Earth turns under both.

That gives about 12 hours and 25 minutes between two high tides, since the Moon moves on meanwhile. I should mention that the Sun adds to it.
</think>

${prose}`;

/** Formulas, and what is none. */
export const formulas = `The pull of the Moon falls with the square of the distance, $F = G\\frac{m_1 m_2}{r^2}$, so what matters for tides is how it *changes* over the Earth:

$$
\\Delta F \\approx \\frac{2 G M m R}{r^3}
$$

For $n$ masses the sum is \\(\\sum_{i=1}^{n} m_i a_i\\), and in matrices:

\\[
\\begin{pmatrix} x' \\\\ y' \\end{pmatrix} = \\begin{pmatrix} \\cos\\theta & -\\sin\\theta \\\\ \\sin\\theta & \\cos\\theta \\end{pmatrix} \\begin{pmatrix} x \\\\ y \\end{pmatrix}
\\]

| body | mass | tide |
| --- | ---: | ---: |
| Moon | $7.35 \\times 10^{22}$ | 2.2 |
| Sun | $1.99 \\times 10^{30}$ | 1.0 |

A tide table costs between $5 and $10; it lies in \`$HOME/tides\`, next to $PATH.`;

/** A reply that goes round in a circle. */
export const circle = "The sea rises, and the sea falls, and then it rises again, as it did before. ".repeat(60);

/** About 300 kB: prose, a long code block, a long table, 200 formulas, prose again. */
export function heavy(): string {
  const line = "    let value_of_the_row = compute(row, column) + offset; // row by row\n";
  const row = "| a cell | 1,234 | another cell with words |\n";
  return [
    `${prose}\n\n`.repeat(60),
    `\`\`\`rust\n${line.repeat(3_000)}\`\`\`\n\n`,
    `| name | count | words |\n| --- | ---: | --- |\n${row.repeat(500)}\n`,
    `A sum is $\\sum_{i=1}^n \\frac{a_i}{b_i}$ and costs $5.\n\n$$\n\\int_0^1 x^2 dx = \\frac{1}{3}\n$$\n\n`.repeat(100),
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

/** A report as the program would write it. */
export const scriptedReport = `Candor 0.1.0, linux x86_64

Machine
memory           16.2 GB free of 33 GB
display          WAYLAND_DISPLAY=wayland-0
drawing          as the web view does by itself

What computes
state            CPU
reason           no NVIDIA driver found · AVX2 · 8 threads

Kept
conversations    12
data folder      ok: ~/.local/share/candor
logs             0 bytes

Last faults inside the program
none
`;
