//! Whether there is room for a model: what it takes against what is free, counted as if the model
//! that is open now had gone.

use std::path::Path;

use candor_backend::DeviceKind;

use crate::app::{App, Inner};
use crate::compose::CudaDevice;
use crate::error::Error;
use crate::headless::{InspectOptions, Inspection, inspect};
use crate::library;
use crate::models::{Wish, memory_bytes};
use crate::wire::{DeviceChoice, Fit, FitPlace, FitVerdict, ModelFit};
use crate::words::{Bytes, Count, Tongue, phrase};

/// From this share of what is free on it is tight: other programs want something as well.
const TIGHT_SHARE: f64 = 0.85;
/// What a file of which only the size is known takes beside its weights, as a share of them.
/// Of eight billion weights in four bits, 8,192 tokens of context are about that.
const BESIDE_WEIGHTS: f64 = 0.2;
/// What each token of a vocabulary takes in the tokenizer, with its merges, in bytes: measured on
/// SmolLM2, whose 49,152 tokens took 30 MB beside weights, conversation and scratch.
const TOKEN_BYTES: u64 = 600;
/// More than a window shows at once.
const ASKED_MAX: usize = 200;

/// What is free.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Room {
    /// Of the machine, the open model counted as gone; none if it does not say.
    pub(crate) memory: Option<u64>,
    /// Of the card that would be taken, with its name.
    pub(crate) card: Option<(String, u64)>,
}

/// What a model takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    pub(crate) bytes: u64,
    /// Tokens that this is counted for; none where only a size is known.
    pub(crate) context: Option<u64>,
    /// Whether a card could run it.
    pub(crate) runs_on_card: bool,
}

/// In a word and in a sentence.
pub(crate) fn fit(needs: Needs, room: &Room, tongue: Tongue) -> Fit {
    let card = room.card.as_ref().filter(|_| needs.runs_on_card);
    let on_card = card.map(|(name, free)| (name, judged(needs.bytes, Some(*free)), *free));
    // A card that is too small leaves it to the processor.
    let on_card = on_card.filter(|(_, verdict, _)| *verdict != FitVerdict::DoesNotFit);
    let (place, verdict, free, where_) = match on_card {
        Some((name, verdict, free)) => (
            FitPlace::Card,
            verdict,
            Some(free),
            phrase!(" on {name}", " auf {name}", name),
        ),
        None => (
            FitPlace::Memory,
            judged(needs.bytes, room.memory),
            room.memory,
            phrase!(" of memory", " im Arbeitsspeicher"),
        ),
    };
    let size = Bytes(needs.bytes);
    let needed = match needs.context.map(Count) {
        Some(tokens) => phrase!(
            "{size} with {tokens} tokens of context",
            "{size} bei {tokens} Tokens Kontext",
            size,
            tokens,
        ),
        None => phrase!("about {size}", "etwa {size}", size),
    };
    let word = match verdict {
        FitVerdict::Fits => phrase!("Fits", "Passt"),
        FitVerdict::Tight => phrase!("Tight", "Knapp"),
        FitVerdict::DoesNotFit => phrase!("Does not fit", "Passt nicht"),
        FitVerdict::Unknown => phrase!("Unknown", "Unbekannt"),
    };
    let free_words = match free.map(Bytes) {
        Some(free) => phrase!(
            "{free} are free{where_}",
            "frei sind {free}{where_}",
            free,
            where_
        ),
        None => phrase!("nobody says what is free", "was frei ist, sagt niemand"),
    };
    let sentence = phrase!(
        "{word}: it takes {needed}, {free_words}.",
        "{word}: Es braucht {needed}, {free_words}.",
        word,
        needed,
        free_words,
    );
    Fit {
        verdict,
        place,
        needed_bytes: needs.bytes as f64,
        free_bytes: free.map(|bytes| bytes as f64),
        context: needs
            .context
            .map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX)),
        sentence: sentence.to(tongue),
    }
}

fn judged(needed: u64, free: Option<u64>) -> FitVerdict {
    match free {
        None => FitVerdict::Unknown,
        Some(free) if needed > free => FitVerdict::DoesNotFit,
        Some(free) if needed as f64 > free as f64 * TIGHT_SHARE => FitVerdict::Tight,
        Some(_) => FitVerdict::Fits,
    }
}

/// The room for a file of which only the size is known.
pub(crate) fn of_size(inner: &Inner, size: u64) -> Fit {
    let needs = Needs {
        bytes: size.saturating_add((size as f64 * BESIDE_WEIGHTS) as u64),
        context: None,
        // Most can; the file itself will say.
        runs_on_card: true,
    };
    fit(needs, &inner.room(), inner.tongue())
}

/// What a file that was looked at takes; none if it cannot be run.
pub(crate) fn needs(inspection: &Inspection) -> Option<Needs> {
    let memory = inspection.memory?;
    let vocabulary = inspection.vocabulary.unwrap_or(0) as u64;
    Some(Needs {
        bytes: memory
            .total_bytes
            .saturating_add(vocabulary.saturating_mul(TOKEN_BYTES)),
        context: Some(memory.context_tokens),
        runs_on_card: inspection.gpu,
    })
}

impl App {
    /// Whether there is room for these models, by their ids, in the same order. Reads each file's
    /// description, and loads nothing.
    ///
    /// # Errors
    /// [`Code::NotFound`](crate::wire::Code::NotFound) if an id is not one of the library's.
    pub fn model_fits(&self, ids: &[String]) -> Result<Vec<ModelFit>, Error> {
        let (room, tongue) = (self.inner.room(), self.inner.tongue());
        let asked = ids.iter().take(ASKED_MAX);
        let fits = asked.map(|id| {
            let path = library::path_of(id)?;
            let needs = self.inner.needs(id, &path);
            Ok(ModelFit {
                id: id.clone(),
                fit: needs.map(|needs| fit(needs, &room, tongue)),
            })
        });
        fits.collect()
    }
}

impl Inner {
    /// How a file is looked at for this app.
    pub(crate) fn inspect_options(&self, id: &str) -> InspectOptions {
        let wish = Wish::of(&self.settings(), id, self.config.threads);
        InspectOptions {
            // The app goes no further than a model was trained.
            context_default_max: wish.context.map(|tokens| tokens as usize),
            kv: Some(wish.kv),
            threads: Some(wish.threads),
            free_memory: self.room().memory,
            ..InspectOptions::default()
        }
    }

    fn needs(&self, id: &str, path: &Path) -> Option<Needs> {
        needs(&inspect(path, &self.inspect_options(id)).ok()?)
    }

    /// What is free, the open model counted as gone.
    pub(crate) fn room(&self) -> Room {
        let chat = self.models.state().chat();
        let open = chat.filter(|chat| chat.loaded.device.kind == DeviceKind::Cpu);
        let gives_back = open.map_or(0, |chat| memory_bytes(&chat.loaded));
        let free = (self.config.free_memory)();
        let is_allowed = self.settings().device != DeviceChoice::Cpu;
        // The driver was asked before any model was loaded, so what it said counts ours as gone.
        let card = self.known_card().filter(|_| is_allowed);
        Room {
            memory: free.map(|free| free.saturating_add(gives_back)),
            card: card.map(|card: CudaDevice| (card.name, card.free_bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::says_the_same;

    const GB: u64 = 1_000_000_000;

    #[track_caller]
    fn check(needs: Needs, room: &Room, verdict: FitVerdict, sentence: &str) {
        let found = fit(needs, room, Tongue::English);
        assert_eq!(
            (found.verdict, found.sentence.as_str()),
            (verdict, sentence)
        );
        says_the_same(sentence, &fit(needs, room, Tongue::German).sentence);
    }

    #[test]
    fn the_word_follows_from_what_is_free_and_the_sentence_has_the_numbers() {
        let card = |free| Some((String::from("RTX 4090"), free));
        let memory = |free| Room {
            memory: free,
            card: None,
        };
        let needs = |bytes, context, runs_on_card| Needs {
            bytes,
            context,
            runs_on_card,
        };
        let cases = [
            (
                needs(2 * GB, Some(8_192), true),
                memory(Some(8 * GB)),
                FitVerdict::Fits,
                "Fits: it takes 2.0 GB with 8,192 tokens of context, 8.0 GB are free of memory.",
            ),
            (
                needs(7 * GB, Some(4_096), true),
                memory(Some(8 * GB)),
                FitVerdict::Tight,
                "Tight: it takes 7.0 GB with 4,096 tokens of context, 8.0 GB are free of memory.",
            ),
            (
                needs(9 * GB, None, true),
                memory(Some(8 * GB)),
                FitVerdict::DoesNotFit,
                "Does not fit: it takes about 9.0 GB, 8.0 GB are free of memory.",
            ),
            (
                needs(9 * GB, None, true),
                memory(None),
                FitVerdict::Unknown,
                "Unknown: it takes about 9.0 GB, nobody says what is free.",
            ),
            (
                needs(2 * GB, Some(512), true),
                Room {
                    card: card(20 * GB),
                    ..memory(Some(GB))
                },
                FitVerdict::Fits,
                "Fits: it takes 2.0 GB with 512 tokens of context, 20.0 GB are free on RTX 4090.",
            ),
            // The card cannot run it, or is too small: the machine's memory counts.
            (
                needs(2 * GB, Some(512), false),
                Room {
                    card: card(20 * GB),
                    ..memory(Some(GB))
                },
                FitVerdict::DoesNotFit,
                "Does not fit: it takes 2.0 GB with 512 tokens of context, 1.0 GB are free of memory.",
            ),
            (
                needs(21 * GB, Some(512), true),
                Room {
                    card: card(20 * GB),
                    ..memory(Some(64 * GB))
                },
                FitVerdict::Fits,
                "Fits: it takes 21.0 GB with 512 tokens of context, 64.0 GB are free of memory.",
            ),
        ];
        for (needs, room, verdict, sentence) in cases {
            check(needs, &room, verdict, sentence);
        }
    }
}
