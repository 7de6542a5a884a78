//! A model file described to a person who has not opened it: what it is, what it would take, and
//! one sentence for everything that stands against it.

use crate::app::App;
use crate::error::Error;
use crate::headless::{Finding, Weight, describe};
use crate::library;
use crate::wire::{Detail, FindingWeight, ModelDetails, ModelFinding};
use crate::words::{self, Phrase, Tongue};

impl App {
    /// Describes a file of the library. Loads nothing; memory is counted for the context that is
    /// set. A file that cannot be read is described by what is wrong with it.
    ///
    /// # Errors
    /// [`Code::NotFound`](crate::wire::Code::NotFound) if the id is not one of the library's.
    pub fn model_details(&self, id: &str) -> Result<ModelDetails, Error> {
        let path = library::path_of(id)?;
        let options = self.inner.inspect_options(id);
        let (facts, findings) = describe(&path, &options);
        let room = self.model_fits(&[String::from(id)])?;
        let (name, tongue) = (library::shown_name(&path), self.inner.tongue());
        let findings = findings
            .into_iter()
            .map(|found| finding(&name, found, tongue));
        Ok(ModelDetails {
            facts: facts.into_iter().map(|row| detail(row, tongue)).collect(),
            findings: findings.collect(),
            fit: room.into_iter().find_map(|room| room.fit),
            name,
        })
    }
}

fn detail((name, value): (Phrase, Phrase), tongue: Tongue) -> Detail {
    Detail {
        name: name.to(tongue),
        value: value.to(tongue),
    }
}

/// A sentence that begins with the file's name begins as the name does.
fn finding(file: &str, found: Finding, tongue: Tongue) -> ModelFinding {
    let message = found.message.in_tongue(tongue);
    let message = match message.strip_prefix(file) {
        Some(rest) => format!("{file}{}", words::closed(rest)),
        None => words::sentence(message),
    };
    ModelFinding {
        weight: match found.weight {
            Weight::Against => FindingWeight::Against,
            Weight::NoText => FindingWeight::NoText,
            Weight::Doubt => FindingWeight::Doubt,
            Weight::Note => FindingWeight::Note,
        },
        message,
        advice: found.advice.map(|advice| advice.sentence().to(tongue)),
    }
}
