//! What was measured so far: one line of JSON for each run of both engines, in the build folder. A
//! measurement that was broken off goes on where it stood, as long as the kernels are the same.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Pair, Setting, number};
use crate::command;

/// Both engines, once, in turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Run {
    /// Of Candor's kernels; see [`kernels`].
    build: String,
    pub(super) model: String,
    pub(super) setting: Setting,
    /// Candor ÷ llama.cpp: reading, writing, peak memory.
    pub(super) reading: f64,
    pub(super) writing: f64,
    pub(super) memory: f64,
    /// Tokens a second: reading, writing.
    pub(super) ours: [f64; 2],
    pub(super) theirs: [f64; 2],
    /// Bytes a second that Candor's threads read from memory beside it.
    pub(super) bandwidth: f64,
}

/// The runs with one state of the kernels.
pub(super) struct Log {
    file: PathBuf,
    build: String,
    runs: Vec<Run>,
    /// When no further run may begin.
    end: Option<Instant>,
    /// The longest run so far.
    longest: Duration,
}

impl Log {
    /// Reads what was measured of this state before. Measures for so many minutes at most.
    pub(super) fn open(file: PathBuf, build: String, minutes: Option<u64>) -> Result<Self> {
        let text = fs::read_to_string(&file).unwrap_or_default();
        // A line that was cut off is measured again.
        let runs = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let runs = runs.filter(|run: &Run| run.build == build).collect();
        let end = minutes
            .and_then(|minutes| Instant::now().checked_add(Duration::from_secs(60 * minutes)));
        Ok(Self {
            file,
            build,
            runs,
            end,
            longest: Duration::ZERO,
        })
    }

    /// Those of a model in a setting.
    pub(super) fn of<'a>(&'a self, model: &str, setting: Setting) -> Vec<&'a Run> {
        let same = |run: &&Run| run.model == model && run.setting == setting;
        self.runs.iter().filter(same).collect()
    }

    /// Sees to it that there are so many runs of a model in a setting. Says whether there was one to
    /// add; `None` if the time is over.
    pub(super) fn measure(
        &mut self,
        pair: &Pair,
        (model, setting): (&Path, Setting),
        runs: usize,
    ) -> Result<Option<bool>> {
        if self.of(&name(model), setting).len() >= runs {
            return Ok(Some(false));
        }
        let begun = Instant::now();
        if self.end.is_some_and(|end| begun + self.longest > end) {
            return Ok(None);
        }
        let run = run_of(&pair.run(model, setting)?, &self.build, (model, setting))?;
        self.longest = self.longest.max(begun.elapsed());
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.file)?;
        writeln!(file, "{}", serde_json::to_string(&run)?)?;
        self.runs.push(run);
        Ok(Some(true))
    }
}

/// A model as the tables name it.
pub(super) fn name(model: &Path) -> String {
    let stem = model.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// The folders on which it depends how fast a token is computed.
const KERNELS: [&str; 3] = ["crates/arch", "crates/cpu", "crates/quant"];

/// The state of the kernels as git names it. What is not committed is a state of its own with every
/// build.
pub(super) fn kernels(program: &Path) -> Result<String> {
    let mut state = String::new();
    for folder in KERNELS {
        let tree = command::program("git", &["rev-parse", "--short=10"]);
        let tree = tree.argument(format!("HEAD:{folder}")).quiet_output()?;
        state.push_str(tree.trim());
        state.push('-');
    }
    let changed = command::program("git", &["status", "--porcelain", "--"]);
    let changed = KERNELS
        .iter()
        .fold(changed, |git, folder| git.argument(folder));
    if !changed.quiet_output()?.trim().is_empty() {
        let about = fs::metadata(program).with_context(|| program.display().to_string())?;
        let built = about.modified()?.duration_since(SystemTime::UNIX_EPOCH)?;
        state.push_str(&built.as_millis().to_string());
    }
    Ok(state)
}

/// What is kept of a line that the program printed.
fn run_of(row: &Value, build: &str, (model, setting): (&Path, Setting)) -> Result<Run> {
    let rate = |engine: &str, what: &str| -> Result<f64> {
        let at = format!("/last/{engine}/{what}/tokens_per_second");
        let in_list = format!("/last/{engine}/{what}/0/tokens_per_second/median");
        number(row, &at).or_else(|_| number(row, &in_list))
    };
    Ok(Run {
        build: build.to_owned(),
        model: name(model),
        setting,
        reading: number(row, "/prefill_ratio")?,
        writing: number(row, "/decode_ratio")?,
        memory: number(row, "/memory_ratio")?,
        ours: [rate("ours", "prefill")?, rate("ours", "decode")?],
        theirs: [rate("theirs", "prefill")?, rate("theirs", "decode")?],
        bandwidth: number(row, "/last/ours/bandwidth_bytes_per_second")?,
    })
}

/// The run of a test.
#[cfg(test)]
pub(super) fn sample(model: &str, setting: Setting, [reading, writing]: [f64; 2]) -> Run {
    Run {
        build: "1-1".to_owned(),
        model: model.to_owned(),
        setting,
        reading,
        writing,
        memory: 0.9,
        ours: [500.0 * reading, 40.0 * writing],
        theirs: [500.0, 40.0],
        bandwidth: 50e9,
    }
}

/// A log of a test.
#[cfg(test)]
pub(super) fn log_of(runs: Vec<Run>) -> Log {
    Log {
        file: PathBuf::new(),
        build: "1-1".to_owned(),
        runs,
        end: None,
        longest: Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTING: Setting = Setting {
        threads: 2,
        depth: 0,
        prompt: 512,
        tokens: 32,
    };

    #[test]
    fn a_line_of_the_program_becomes_a_run() {
        let row = serde_json::json!({
            "model": "m.gguf", "prefill_ratio": 2.0, "decode_ratio": 1.5, "memory_ratio": 0.9,
            "last": {
                "ours": {
                    "prefill": [{"tokens_per_second": {"median": 1000.0}}],
                    "decode": [{"tokens_per_second": {"median": 60.0}}],
                    "bandwidth_bytes_per_second": 50e9,
                },
                "theirs": {
                    "prefill": {"tokens_per_second": 500.0},
                    "decode": {"tokens_per_second": 40.0},
                },
            },
        });
        let run = run_of(&row, "1-1", (Path::new("/a/m.gguf"), SETTING)).unwrap();
        assert_eq!(run, sample("m", SETTING, [2.0, 1.5]));
    }

    #[test]
    fn what_was_measured_of_this_state_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("log");
        let same = Run {
            build: String::from("this"),
            ..sample("m", SETTING, [2.0, 1.5])
        };
        let other = sample("m", SETTING, [1.0, 1.0]);
        let lines = [&same, &other].map(|run| serde_json::to_string(run).unwrap());
        fs::write(
            &file,
            format!("{}\n{}\n{{\"build\": \"1", lines[0], lines[1]),
        )
        .unwrap();
        let log = Log::open(file, String::from("this"), None).unwrap();
        assert_eq!(log.of("m", SETTING), [&same]);
        assert!(log.of("n", SETTING).is_empty());
    }
}
