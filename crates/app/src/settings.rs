//! The user's choices: one JSON file, replaced as a whole, never half.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::Error;
use crate::library;
use crate::wire::{
    ChatSettings, Code, DeviceChoice, GpuCheck, KvChoice, Language, SERVER_PORT_DEFAULT, Sampling,
    ServerSettings, Settings, Theme, Thinking,
};
use crate::words::{Phrase, phrase};

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
/// Beyond this the penalties on single words leave no word unsaid twice.
const WORD_PENALTY_MAX: f32 = 2.0;
/// Beyond this a run of words that was written is never written again.
const DRY_MULTIPLIER_MAX: f32 = 5.0;
/// At 1 the penalty does not grow; beyond 4 a run of ten tokens is beyond any number.
const DRY_BASE: (f32, f32) = (1.0, 4.0);
/// Shorter runs are in every sentence; longer ones than this nobody means by repeating.
const DRY_LENGTH: (u32, u32) = (1, 100);
/// More ends of a reply than anybody types; the engine takes as many and no longer ones.
const STOPS_MAX: usize = 16;
/// As above, in bytes.
const STOP_BYTES_MAX: usize = 256;
/// More sets of choices than a menu can show.
const PRESETS_MAX: usize = 200;
/// A name that fits in a menu, in characters.
const PRESET_NAME_CHARS_MAX: usize = 80;
/// Models that are chosen for apart; see [`GPU_CHECKS_MAX`].
const MODELS_MAX: usize = GPU_CHECKS_MAX;
/// More folders than a person keeps models in.
const FOLDERS_MAX: usize = 64;
/// Smaller or larger letters leave no window to work in, in percent.
const TEXT_PERCENT: (u32, u32) = (75, 200);
/// A system prompt, a schema or a template longer than this fits in no context, in bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Longest address of a mirror or a web page, in bytes.
const ADDRESS_BYTES_MAX: usize = 2_000;
/// A key that a header can hold, in characters.
const KEY_CHARS_MAX: usize = 200;
/// More web pages than anybody lets in.
const ORIGINS_MAX: usize = 32;

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
            models: BTreeMap::new(),
            system_prompt: String::new(),
            sampling: Sampling::default(),
            stop: Vec::new(),
            json_schema: String::new(),
            template: String::new(),
            thinking: Thinking::default(),
            presets: Vec::new(),
            sidebar_folded: false,
            language: Language::default(),
            text_percent: 100,
            model_folders: Vec::new(),
            hub_address: String::new(),
            offline: false,
            server: ServerSettings::default(),
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
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            dry_multiplier: 0.0,
            // The values that the authors of the two samplers propose.
            dry_base: 1.75,
            dry_allowed_length: 2,
            xtc_probability: 0.0,
            xtc_threshold: 0.1,
            max_tokens: 2_048,
            seed: None,
        }
    }
}

impl Settings {
    /// What is chosen for a conversation that has no choices of its own.
    pub fn chat(&self) -> ChatSettings {
        ChatSettings {
            system_prompt: self.system_prompt.clone(),
            sampling: self.sampling.clone(),
            stop: self.stop.clone(),
            json_schema: self.json_schema.clone(),
            template: self.template.clone(),
            thinking: self.thinking,
        }
    }

    /// The same settings for a conversation with choices of its own.
    #[must_use]
    pub fn with_chat(self, chat: ChatSettings) -> Self {
        Self {
            system_prompt: chat.system_prompt,
            sampling: chat.sampling,
            stop: chat.stop,
            json_schema: chat.json_schema,
            template: chat.template,
            thinking: chat.thinking,
            ..self
        }
    }
}

/// The same with every number inside its bounds.
fn bounded(mut settings: Settings) -> Settings {
    let chat = bounded_chat(settings.chat());
    settings = settings.with_chat(chat);
    settings.threads = settings.threads.map(bounded_threads);
    settings.context = settings.context.map(bounded_context);
    settings.gpu = settings.gpu.map(|gpu| gpu.min(GPU_MAX));
    while settings.gpu_checks.len() > GPU_CHECKS_MAX {
        settings.gpu_checks.pop_last();
    }
    settings.models.retain(|_, own| *own != Default::default());
    while settings.models.len() > MODELS_MAX {
        settings.models.pop_last();
    }
    for own in settings.models.values_mut() {
        own.threads = own.threads.map(bounded_threads);
        own.context = own.context.map(bounded_context);
    }
    let mut names = BTreeSet::new();
    for preset in &mut settings.presets {
        let name = preset.name.trim().chars().take(PRESET_NAME_CHARS_MAX);
        preset.name = name.collect();
        preset.chat = bounded_chat(std::mem::take(&mut preset.chat));
    }
    settings
        .presets
        .retain(|preset| !preset.name.is_empty() && names.insert(preset.name.clone()));
    settings.presets.truncate(PRESETS_MAX);
    settings.model_folders.truncate(FOLDERS_MAX);
    settings.text_percent = settings.text_percent.clamp(TEXT_PERCENT.0, TEXT_PERCENT.1);
    settings.hub_address = String::from(settings.hub_address.trim());
    if settings.hub_address.len() > ADDRESS_BYTES_MAX {
        settings.hub_address.clear();
    }
    settings.server = bounded_server(settings.server);
    settings
}

/// A key that is too long is cut and never left out: it must not let everybody in.
fn bounded_server(mut server: ServerSettings) -> ServerSettings {
    if server.port == 0 {
        server.port = SERVER_PORT_DEFAULT;
    }
    let key = server.key.trim().chars().take(KEY_CHARS_MAX);
    server.key = key.collect();
    let origins = server.origins.iter().map(|origin| {
        let origin = origin.trim().trim_end_matches('/');
        origin.to_owned()
    });
    server.origins = origins
        .filter(|origin| !origin.is_empty() && origin.len() <= ADDRESS_BYTES_MAX)
        .take(ORIGINS_MAX)
        .collect();
    server
}

fn bounded_threads(threads: u32) -> u32 {
    threads.clamp(1, THREADS_MAX)
}

fn bounded_context(context: u32) -> u32 {
    context.clamp(CONTEXT_MIN, CONTEXT_MAX)
}

/// The same with every number inside its bounds, and no text longer than anything can use.
pub(crate) fn bounded_chat(mut chat: ChatSettings) -> ChatSettings {
    chat.sampling = bounded_sampling(chat.sampling);
    chat.stop
        .retain(|words| !words.is_empty() && words.len() <= STOP_BYTES_MAX);
    chat.stop.truncate(STOPS_MAX);
    for text in [
        &mut chat.system_prompt,
        &mut chat.json_schema,
        &mut chat.template,
    ] {
        let end = text.floor_char_boundary(TEXT_BYTES_MAX);
        text.truncate(end);
    }
    chat
}

fn bounded_sampling(sampling: Sampling) -> Sampling {
    let usual = Sampling::default();
    let share = |value, otherwise| within(value, (0.0, 1.0), otherwise);
    let word_penalty = (-WORD_PENALTY_MAX, WORD_PENALTY_MAX);
    Sampling {
        temperature: within(
            sampling.temperature,
            (0.0, TEMPERATURE_MAX),
            usual.temperature,
        ),
        top_k: sampling.top_k,
        top_p: share(sampling.top_p, usual.top_p),
        min_p: share(sampling.min_p, usual.min_p),
        repeat_penalty: within(
            sampling.repeat_penalty,
            (1.0, REPEAT_PENALTY_MAX),
            usual.repeat_penalty,
        ),
        presence_penalty: within(sampling.presence_penalty, word_penalty, 0.0),
        frequency_penalty: within(sampling.frequency_penalty, word_penalty, 0.0),
        dry_multiplier: within(sampling.dry_multiplier, (0.0, DRY_MULTIPLIER_MAX), 0.0),
        dry_base: within(sampling.dry_base, DRY_BASE, usual.dry_base),
        dry_allowed_length: sampling
            .dry_allowed_length
            .clamp(DRY_LENGTH.0, DRY_LENGTH.1),
        xtc_probability: share(sampling.xtc_probability, 0.0),
        xtc_threshold: share(sampling.xtc_threshold, usual.xtc_threshold),
        max_tokens: sampling.max_tokens.clamp(1, REPLY_TOKENS_MAX),
        seed: sampling.seed,
    }
}

fn within(value: f32, (min, max): (f32, f32), otherwise: f32) -> f32 {
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
    pub(crate) fn open(path: PathBuf, now_ms: i64) -> (Self, Option<Phrase>) {
        let empty = |path| Self {
            path,
            settings: Settings::default(),
            raw: Map::new(),
        };
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return (empty(path), None),
            Err(error) => {
                let notice = phrase!(
                    "Your settings could not be read ({error}).",
                    "Deine Einstellungen ließen sich nicht lesen ({error}).",
                    error,
                );
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
            let message = phrase!(
                "Your settings could not be saved: {source}.",
                "Deine Einstellungen ließen sich nicht speichern: {source}.",
                source,
            );
            Error::new(Code::Storage, message).because(source)
        })?;
        self.raw = raw;
        self.settings = settings.clone();
        Ok(settings)
    }
}

fn set_aside(path: &Path, now_ms: i64) -> Phrase {
    let aside = path.with_extension(format!("broken-{now_ms}.json"));
    match fs::rename(path, &aside) {
        Ok(()) => {
            let name = library::shown_name(&aside);
            phrase!(
                "Your settings could not be understood. They were kept as {name}.",
                "Deine Einstellungen waren nicht zu verstehen. Sie sind aufgehoben als {name}.",
                name,
            )
        }
        Err(error) => phrase!(
            "Your settings could not be understood, nor kept aside ({error}).",
            "Deine Einstellungen waren nicht zu verstehen und ließen sich nicht aufheben ({error}).",
            error,
        ),
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
pub(crate) fn replace(path: &Path, content: &impl Serialize) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir)?;
    let beside = path.with_extension("json.new");
    let mut file = File::create(&beside)?;
    serde_json::to_writer_pretty(&mut file, content)?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{ModelSettings, Preset};

    fn opened(text: &str) -> (tempfile::TempDir, SettingsFile, Option<Phrase>) {
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
                notice
                    .unwrap()
                    .to_string()
                    .contains("settings.broken-7.json"),
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
            presence_penalty: f32::INFINITY,
            dry_base: 0.0,
            dry_allowed_length: 0,
            xtc_threshold: f32::NAN,
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
        assert_eq!(
            (sampling.presence_penalty, sampling.xtc_threshold),
            (WORD_PENALTY_MAX, 0.1)
        );
        assert_eq!((sampling.dry_base, sampling.dry_allowed_length), (1.0, 1));
    }

    #[test]
    fn names_of_presets_are_not_empty_and_each_is_there_once() {
        let (_dir, mut file, _) = opened("{}");
        let named = |name: &str, temperature| Preset {
            name: String::from(name),
            chat: ChatSettings {
                sampling: Sampling {
                    temperature,
                    ..Sampling::default()
                },
                ..ChatSettings::default()
            },
        };
        let presets = vec![
            named(" Poems ", 1.0),
            named("", 0.5),
            named("Poems", 0.2),
            named("Code", f32::NAN),
        ];
        let own = ModelSettings {
            context: Some(1),
            ..ModelSettings::default()
        };
        let models = [("a", own), ("b", ModelSettings::default())];
        let models = models.map(|(id, own)| (String::from(id), own));
        let saved = file
            .save(Settings {
                presets,
                models: models.into(),
                text_percent: 10,
                stop: vec![String::new(), String::from("END")],
                ..Settings::default()
            })
            .unwrap();
        let kept = saved.presets.iter();
        let kept: Vec<_> = kept
            .map(|preset| (preset.name.as_str(), preset.chat.sampling.temperature))
            .collect();
        assert_eq!(kept, [("Poems", 1.0), ("Code", 0.7)]);
        assert_eq!(saved.models.len(), 1, "a choice of nothing is none");
        assert_eq!(saved.models["a"].context, Some(CONTEXT_MIN));
        assert_eq!((saved.text_percent, saved.stop.len()), (75, 1));
    }

    #[test]
    fn a_server_stays_inside_its_bounds_and_is_never_opened_by_them() {
        let long = "k".repeat(KEY_CHARS_MAX + 1);
        let (_dir, mut file, _) = opened("{}");
        assert_eq!(file.settings().server, ServerSettings::default());
        let cases = [("", ""), (" secret ", "secret"), (&*long, &long[1..])];
        for (key, kept) in cases {
            let server = ServerSettings {
                on: true,
                port: 0,
                key: key.to_owned(),
                origins: [" http://a:1/ ", "", "http://b"].map(String::from).into(),
                may_load: true,
            };
            let saved = file.save(Settings {
                server,
                ..Settings::default()
            });
            let server = saved.unwrap().server;
            assert_eq!((server.port, &*server.key), (SERVER_PORT_DEFAULT, kept));
            assert_eq!(server.origins, ["http://a:1", "http://b"]);
            assert!(server.on && server.may_load);
        }
    }

    #[test]
    fn a_conversation_has_choices_of_its_own_and_all_else_of_the_settings() {
        let chat = ChatSettings {
            system_prompt: String::from("Be brief."),
            thinking: Thinking::Off,
            ..ChatSettings::default()
        };
        let all = Settings {
            theme: Theme::Dark,
            system_prompt: String::from("Be long."),
            ..Settings::default()
        };
        let its = all.clone().with_chat(chat.clone());
        assert_eq!((its.theme, its.chat()), (Theme::Dark, chat));
        assert_eq!(all.clone().with_chat(all.chat()), all);
    }
}
