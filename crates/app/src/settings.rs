//! The user's choices: one JSON file, replaced as a whole, never half.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::error::Error;
use crate::wire::{Code, DeviceChoice, GpuCheck, KvChoice, Sampling, Settings, Theme};

/// Threads beyond this help nobody; it keeps a typing slip from starting thousands.
const THREADS_MAX: u32 = 256;
/// More cards than a machine has places for.
const GPU_MAX: u32 = 255;
/// More models than a person gives a choice of their own.
const GPU_CHECKS_MAX: usize = 1_000;
/// The fewest tokens of context that hold a question and an answer.
const CONTEXT_MIN: u32 = 256;
/// More context than any model of today was trained for.
const CONTEXT_MAX: u32 = 1 << 20;
/// Above this every token is as likely as any other.
const TEMPERATURE_MAX: f32 = 5.0;
/// Beyond this the penalty leaves no word unsaid twice.
const REPEAT_PENALTY_MAX: f32 = 2.0;
/// As many tokens of a reply as of the largest context.
const REPLY_TOKENS_MAX: u32 = CONTEXT_MAX;

impl Default for Settings {
    fn default() -> Self {
        Self {
            theme: Theme::System,
            device: DeviceChoice::Auto,
            gpu: None,
            gpu_check: GpuCheck::default(),
            gpu_checks: BTreeMap::new(),
            threads: None,
            context: None,
            kv: KvChoice::default(),
            system_prompt: String::new(),
            sampling: Sampling::default(),
            sidebar_folded: false,
        }
    }
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.7,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.0,
            repeat_penalty: 1.0,
            max_tokens: 2_048,
            seed: None,
        }
    }
}

/// The same with every number inside its bounds.
fn bounded(mut settings: Settings) -> Settings {
    let defaults = Sampling::default();
    settings.threads = settings
        .threads
        .map(|threads| threads.clamp(1, THREADS_MAX));
    settings.context = settings
        .context
        .map(|context| context.clamp(CONTEXT_MIN, CONTEXT_MAX));
    settings.gpu = settings.gpu.map(|gpu| gpu.min(GPU_MAX));
    while settings.gpu_checks.len() > GPU_CHECKS_MAX {
        settings.gpu_checks.pop_last();
    }
    let sampling = &mut settings.sampling;
    sampling.temperature = within(
        sampling.temperature,
        0.0,
        TEMPERATURE_MAX,
        defaults.temperature,
    );
    sampling.top_p = within(sampling.top_p, 0.0, 1.0, defaults.top_p);
    sampling.min_p = within(sampling.min_p, 0.0, 1.0, defaults.min_p);
    let penalty = sampling.repeat_penalty;
    sampling.repeat_penalty = within(penalty, 1.0, REPEAT_PENALTY_MAX, defaults.repeat_penalty);
    sampling.max_tokens = sampling.max_tokens.clamp(1, REPLY_TOKENS_MAX);
    settings
}

fn within(value: f32, min: f32, max: f32, otherwise: f32) -> f32 {
    if value.is_nan() {
        otherwise
    } else {
        value.clamp(min, max)
    }
}

/// The settings and the file they live in.
pub(crate) struct SettingsFile {
    path: PathBuf,
    settings: Settings,
    /// As read, with fields that this version does not know.
    raw: Map<String, Value>,
}

impl SettingsFile {
    /// Reads the file. A broken one is set aside under a name with `now_ms`, and the defaults are
    /// used; the second part of the answer then says so.
    pub(crate) fn open(path: PathBuf, now_ms: i64) -> (Self, Option<String>) {
        let empty = |path| Self {
            path,
            settings: Settings::default(),
            raw: Map::new(),
        };
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return (empty(path), None),
            Err(error) => {
                let notice = format!("Your settings could not be read ({error}).");
                return (empty(path), Some(notice));
            }
        };
        let parsed = serde_json::from_slice::<Map<String, Value>>(&text).and_then(|raw| {
            let settings = serde_json::from_value(Value::Object(raw.clone()))?;
            Ok((raw, bounded(settings)))
        });
        match parsed {
            Ok((raw, settings)) => (
                Self {
                    path,
                    settings,
                    raw,
                },
                None,
            ),
            Err(_) => {
                let notice = set_aside(&path, now_ms);
                (empty(path), Some(notice))
            }
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Writes new settings, inside their bounds, and gives them back.
    pub(crate) fn save(&mut self, settings: Settings) -> Result<Settings, Error> {
        let settings = bounded(settings);
        let mut raw = self.raw.clone();
        // The settings are plain values, which always become JSON.
        if let Ok(Value::Object(fields)) = serde_json::to_value(&settings) {
            merge(&mut raw, fields);
        }
        replace(&self.path, &raw).map_err(|source| {
            let message = format!("Your settings could not be saved: {source}.");
            Error::new(Code::Storage, message).because(source)
        })?;
        self.raw = raw;
        self.settings = settings.clone();
        Ok(settings)
    }
}

fn set_aside(path: &Path, now_ms: i64) -> String {
    let aside = path.with_extension(format!("broken-{now_ms}.json"));
    match fs::rename(path, &aside) {
        Ok(()) => {
            let name = aside.file_name().unwrap_or_default().to_string_lossy();
            format!("Your settings could not be understood. They were kept as {name}.")
        }
        Err(error) => {
            format!("Your settings could not be understood, nor kept aside ({error}).")
        }
    }
}

/// Puts `fields` over `raw` and leaves what they do not name.
fn merge(raw: &mut Map<String, Value>, fields: Map<String, Value>) {
    for (name, value) in fields {
        match (raw.get_mut(&name), value) {
            (Some(Value::Object(inner)), Value::Object(fields)) => merge(inner, fields),
            (_, value) => {
                raw.insert(name, value);
            }
        }
    }
}

/// Writes beside the file and renames, so that a crash leaves the old or the new one.
fn replace(path: &Path, raw: &Map<String, Value>) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir)?;
    let beside = path.with_extension("json.new");
    let mut file = File::create(&beside)?;
    serde_json::to_writer_pretty(&mut file, raw)?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(text: &str) -> (tempfile::TempDir, SettingsFile, Option<String>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings.json");
        fs::write(&path, text).unwrap();
        let (file, notice) = SettingsFile::open(path, 7);
        (dir, file, notice)
    }

    #[test]
    fn no_file_means_the_defaults_and_no_word() {
        let dir = tempfile::tempdir().unwrap();
        let (file, notice) = SettingsFile::open(dir.path().join("settings.json"), 7);
        assert_eq!(file.settings(), &Settings::default());
        assert_eq!(notice, None);
    }

    #[test]
    fn fields_of_another_version_are_kept() {
        let text = r#"{"later":[1],"theme":"dark","sampling":{"mirostat":2,"topK":3}}"#;
        let (_dir, mut file, notice) = opened(text);
        assert_eq!(notice, None);
        assert_eq!(file.settings().theme, Theme::Dark);
        assert_eq!(file.settings().sampling.top_k, 3);

        let settings = Settings {
            theme: Theme::Light,
            ..file.settings().clone()
        };
        file.save(settings).unwrap();
        let saved: Value = serde_json::from_slice(&fs::read(&file.path).unwrap()).unwrap();
        assert_eq!(saved["later"], serde_json::json!([1]));
        assert_eq!(saved["sampling"]["mirostat"], 2);
        assert_eq!(saved["theme"], "light");
    }

    #[test]
    fn a_broken_file_is_kept_aside_and_said_once() {
        for text in ["{", "", "[]", r#"{"theme":"mauve"}"#, "\u{0}\u{0}"] {
            let (dir, file, notice) = opened(text);
            assert_eq!(file.settings(), &Settings::default());
            assert!(
                notice.unwrap().contains("settings.broken-7.json"),
                "{text:?}"
            );
            let aside = dir.path().join("settings.broken-7.json");
            assert_eq!(fs::read_to_string(aside).unwrap(), text);
            let (_, again) = SettingsFile::open(file.path.clone(), 8);
            assert_eq!(again, None);
        }
    }

    #[test]
    fn numbers_stay_inside_their_bounds() {
        let (_dir, mut file, _) = opened("{}");
        let sampling = Sampling {
            temperature: f32::NAN,
            top_p: 7.0,
            min_p: -1.0,
            repeat_penalty: 0.0,
            max_tokens: 0,
            ..Sampling::default()
        };
        let wild = Settings {
            threads: Some(0),
            context: Some(1),
            sampling,
            ..Settings::default()
        };
        let saved = file.save(wild).unwrap();
        assert_eq!((saved.threads, saved.context), (Some(1), Some(CONTEXT_MIN)));
        let sampling = saved.sampling;
        assert_eq!(
            (sampling.temperature, sampling.top_p, sampling.min_p),
            (0.7, 1.0, 0.0)
        );
        assert_eq!((sampling.repeat_penalty, sampling.max_tokens), (1.0, 1));
    }
}
