//! What a person has chosen in the window about cards, for commands that say nothing of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use candor_engine::Mode;
use serde::Deserialize;
use serde_json::Value;

use super::device::BackendWish;
use crate::wire::{DeviceChoice, GpuCheck};
use crate::{library, path_id};

/// A settings file larger than this is none.
const SETTINGS_BYTES_MAX: u64 = 16 << 20;

/// The choices about cards. They are read and never written here; what cannot be read is as if
/// nobody had chosen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChosenCards {
    device: DeviceChoice,
    card: Option<u32>,
    check: GpuCheck,
    checks: BTreeMap<String, GpuCheck>,
}

impl ChosenCards {
    /// As this file says.
    pub fn read(settings_file: &Path) -> Self {
        let size = fs::metadata(settings_file).map_or(0, |found| found.len());
        if size > SETTINGS_BYTES_MAX {
            return Self::default();
        }
        let text = fs::read_to_string(settings_file).unwrap_or_default();
        Self::of(&serde_json::from_str(&text).unwrap_or_default())
    }

    fn of(settings: &Value) -> Self {
        Self {
            device: field(settings, "device"),
            card: field(settings, "gpu"),
            check: field(settings, "gpuCheck"),
            checks: field(settings, "gpuChecks"),
        }
    }

    /// What is to compute. Who prefers a card in the window is answered by the processor where there
    /// is none, so this never refuses.
    pub fn wish(&self) -> BackendWish {
        match self.device {
            DeviceChoice::Cpu => BackendWish::Cpu,
            DeviceChoice::Auto | DeviceChoice::Gpu => BackendWish::Auto,
        }
    }

    /// Which card, counted from 0.
    pub fn card(&self) -> Option<u32> {
        self.card
    }

    /// When a card is checked for this model.
    pub fn check(&self, model: &Path) -> Mode {
        let located = library::located(model).ok();
        let of_model = located.and_then(|path| self.checks.get(&path_id::encode(&path)));
        (*of_model.unwrap_or(&self.check)).into()
    }
}

/// One choice; as if nobody had made it where it is of another form.
fn field<T: for<'a> Deserialize<'a> + Default>(settings: &Value, name: &str) -> T {
    let value = settings.get(name).cloned().unwrap_or_default();
    serde_json::from_value(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_window_has_kept_is_read_field_by_field() {
        let chosen = |settings| {
            let chosen = ChosenCards::of(&settings);
            (
                chosen.wish(),
                chosen.card(),
                chosen.check(Path::new("none.gguf")),
            )
        };
        let usual = (BackendWish::Auto, None, Mode::Probe);
        let cases = [
            (json!({}), usual),
            (Value::Null, usual),
            (json!("nonsense"), usual),
            (
                json!({ "device": "cpu", "gpu": 1 }),
                (BackendWish::Cpu, Some(1), Mode::Probe),
            ),
            (
                json!({ "device": "gpu", "gpuCheck": "every-prompt" }),
                (BackendWish::Auto, None, Mode::EveryPrompt),
            ),
            // What one of them lacks the others have.
            (
                json!({ "device": 7, "gpu": "first", "gpuCheck": "first-prompt" }),
                (BackendWish::Auto, None, Mode::FirstPrompt),
            ),
        ];
        for (settings, want) in cases {
            assert_eq!(chosen(settings.clone()), want, "{settings}");
        }
    }

    #[test]
    fn a_model_may_have_a_check_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let model = dir.path().join("tiny.gguf");
        candor_testkit::TinyModel::llama().write(&model).unwrap();
        let id = path_id::encode(&library::located(&model).unwrap());
        let file = dir.path().join("settings.json");
        let settings = json!({ "gpuCheck": "probe", "gpuChecks": { id: "every-prompt" } });
        fs::write(&file, settings.to_string()).unwrap();
        let chosen = ChosenCards::read(&file);
        assert_eq!(chosen.check(&model), Mode::EveryPrompt);
        assert_eq!(chosen.check(Path::new("other.gguf")), Mode::Probe);
        assert_eq!(
            ChosenCards::read(&dir.path().join("none")),
            ChosenCards::default()
        );
    }
}
