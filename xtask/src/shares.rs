//! The shares of a test run: how long each took, what it counted, what it could not test.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::command::Kept;

/// What a test says, at the start of a line, when it could not run.
const NOT_RUN: &str = "NOT RUN: ";

/// Lines that are repeated at the end of what one failed share printed: enough for the words of a
/// test and where it stood, few enough that several failures fit on the end of a log.
const REPEATED_LINES: usize = 60;

/// All shares so far.
#[derive(Default)]
pub(crate) struct Shares {
    done: Vec<Share>,
    not_run: Vec<String>,
    /// What is repeated at the end, because the end is what a person sees first.
    failures: Vec<String>,
}

struct Share {
    name: &'static str,
    wall: Duration,
    counted: Counted,
}

/// How many passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted {
    passed: usize,
    failed: usize,
}

impl Shares {
    /// A share that is one check: it succeeds or not.
    pub(crate) fn check(&mut self, name: &'static str, work: impl FnOnce() -> Result<()>) {
        heading(name);
        let start = Instant::now();
        let failed = work()
            .inspect_err(|error| self.fail(name, &format!("{error:#}")))
            .is_err();
        let counted = Counted {
            passed: usize::from(!failed),
            failed: usize::from(failed),
        };
        self.done.push(Share {
            name,
            wall: start.elapsed(),
            counted,
        });
    }

    /// A share that runs tests and counts them.
    pub(crate) fn tests(&mut self, name: &'static str, work: impl FnOnce() -> Result<Kept>) {
        heading(name);
        let start = Instant::now();
        let counted = match work() {
            Ok(kept) => {
                self.not_run.extend(not_run(&kept.text));
                let mut counted = count(&kept.text);
                if let Some(failure) = &kept.failure {
                    self.fail(name, &format!("{failure}\n{}", repeated(&kept.text)));
                    // It may have failed before any test could: that must not look like a pass.
                    counted.failed = counted.failed.max(1);
                } else if counted.passed == 0 {
                    self.fail(name, "not one test has run");
                    counted.failed += 1;
                }
                counted
            }
            Err(error) => {
                self.fail(name, &format!("{error:#}"));
                Counted {
                    passed: 0,
                    failed: 1,
                }
            }
        };
        self.done.push(Share {
            name,
            wall: start.elapsed(),
            counted,
        });
    }

    fn fail(&mut self, name: &str, words: &str) {
        let words = format!("{name}: {}", words.trim_end());
        eprintln!("{words}");
        self.failures.push(words);
    }

    /// Says what could not be tested at all.
    pub(crate) fn say_not_run(&mut self, what: String) {
        println!("{NOT_RUN}{what}");
        self.not_run.push(what);
    }

    /// Prints everything and returns whether all is well.
    pub(crate) fn conclude(mut self) -> bool {
        heading("summary");
        let mut total = Counted::default();
        for Share {
            name,
            wall,
            counted,
        } in &self.done
        {
            let seconds = wall.as_secs_f64();
            println!(
                "{seconds:8.1} s  {name}: {} passed, {} failed",
                counted.passed, counted.failed
            );
            total.passed += counted.passed;
            total.failed += counted.failed;
        }
        let wall: Duration = self.done.iter().map(|share| share.wall).sum();
        println!("{:8.1} s  in all", wall.as_secs_f64());
        self.not_run.sort();
        self.not_run.dedup();
        println!("not run: {}", self.not_run.len());
        for what in &self.not_run {
            println!("  {NOT_RUN}{what}");
        }
        for words in &self.failures {
            println!("\nFAILED {words}");
        }
        println!("\n{} passed, {} failed", total.passed, total.failed);
        total.failed == 0
    }
}

fn heading(name: &str) {
    println!("\n==== {name}");
}

/// Sums the result lines of `cargo test` and of Vitest.
fn count(text: &str) -> Counted {
    let mut sum = Counted::default();
    for line in text.lines() {
        let line = line.trim();
        let result = line
            .strip_prefix("test result: ")
            .or_else(|| line.strip_prefix("Tests  "));
        if let Some(result) = result {
            sum.passed += number_before(result, "passed");
            sum.failed += number_before(result, "failed");
        }
    }
    sum
}

/// What a test runner printed of the tests that failed: their names, and their own output as far as
/// it fits. Where it names none (it may have failed to build), its last lines.
fn repeated(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let named = lines
        .iter()
        .filter(|line| line.ends_with("... FAILED") || line.trim_start().starts_with("FAIL "));
    let mut words: Vec<&str> = named.copied().collect();
    let failed: Vec<String> = words
        .iter()
        .filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"))
        .map(|name| format!("---- {name} stdout ----"))
        .collect();
    for heading in &failed {
        let Some(start) = lines.iter().rposition(|line| line == heading) else {
            continue;
        };
        let own = lines[start..].iter().enumerate();
        let own = own.take_while(|(at, line)| *at == 0 || !line.starts_with("---- "));
        words.extend(own.map(|(_, line)| *line).filter(|line| !is_frame(line)));
    }
    if words.is_empty() {
        let start = lines.len().saturating_sub(REPEATED_LINES);
        words.extend(&lines[start..]);
    }
    words.truncate(REPEATED_LINES);
    words.join("\n")
}

/// Whether a line belongs to a backtrace.
fn is_frame(line: &str) -> bool {
    let line = line.trim_start();
    let number = line.split(':').next().unwrap_or_default();
    line.starts_with("at /")
        || line.starts_with("at ./")
        || !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn number_before(text: &str, word: &str) -> usize {
    let words: Vec<&str> = text
        .split([' ', ';', '|', '.'])
        .filter(|part| !part.is_empty())
        .collect();
    let pair = words.windows(2).find(|pair| pair[1] == word);
    pair.and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

fn not_run(text: &str) -> impl Iterator<Item = String> {
    text.lines()
        .filter_map(|line| line.trim_start().strip_prefix(NOT_RUN))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_both_test_runners_are_summed() {
        let cases = [
            (
                "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured",
                (12, 0),
            ),
            ("test result: FAILED. 3 passed; 2 failed; 0 ignored", (3, 2)),
            ("      Tests  41 passed (41)", (41, 0)),
            ("      Tests  1 failed | 40 passed (41)", (40, 1)),
            (" Test Files  9 passed (9)", (0, 0)),
            (
                "test result: ok. 1 passed; 0 failed\ntest result: ok. 2 passed; 1 failed",
                (3, 1),
            ),
            ("12 passed", (0, 0)),
        ];
        for (text, (passed, failed)) in cases {
            assert_eq!(count(text), Counted { passed, failed }, "{text}");
        }
    }

    #[test]
    fn failed_tests_are_repeated_with_their_words() {
        let log = "test a ... ok\ntest m::b ... FAILED\n\nfailures:\n\n---- m::b stdout ----\n\
                   panicked at x.rs:1:\n  left: 1\n   3: core::panicking\n             at /rustc/x.rs:5\n\
                   ---- c stdout ----\nother\n";
        let cases = [
            (
                log,
                "test m::b ... FAILED\n---- m::b stdout ----\npanicked at x.rs:1:\n  left: 1",
            ),
            (" FAIL  src/a.test.ts > b\nrest", " FAIL  src/a.test.ts > b"),
            (
                "error: no\ncould not compile",
                "error: no\ncould not compile",
            ),
        ];
        for (text, want) in cases {
            assert_eq!(repeated(text), want);
        }
    }

    #[test]
    fn what_was_not_run_is_collected_from_the_start_of_lines_only() {
        let text = "a\nNOT RUN: one, no model\n  NOT RUN: two\nsaid NOT RUN: three";
        assert_eq!(not_run(text).collect::<Vec<_>>(), ["one, no model", "two"]);
    }
}
