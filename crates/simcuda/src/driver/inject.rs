//! Which call, launch, allocation or kernel is told to go wrong.

use std::collections::BTreeMap;

use crate::settings::{Settings, Wrong};

use super::codes::Code;

/// How often what has happened since the settings were last changed.
#[derive(Default)]
pub(crate) struct Injected {
    calls: BTreeMap<&'static str, u64>,
    launches: u64,
    allocations: u64,
    kernels: BTreeMap<String, u64>,
}

/// What becomes of a call.
pub(crate) enum Ill {
    Well,
    Fails(Code),
    Hangs,
    Crashes,
}

/// Whether this entry point does not return for now.
pub(crate) fn hangs(name: &str, settings: &Settings) -> bool {
    is_meant(&settings.hang, name)
}

fn is_meant(wish: &Option<String>, name: &str) -> bool {
    wish.as_deref()
        .is_some_and(|wish| wish == "any" || wish == name)
}

impl Injected {
    /// Counts a call of an entry point.
    pub(crate) fn called(&mut self, name: &'static str, settings: &Settings) -> Ill {
        let nth = self.calls.entry(name).or_default();
        *nth += 1;
        if hangs(name, settings) {
            return Ill::Hangs;
        }
        if is_meant(&settings.crash, name) {
            return Ill::Crashes;
        }
        let fails = |call: &&crate::settings::FailedCall| call.name == name && call.nth == *nth;
        match settings.fail.iter().find(fails) {
            Some(call) => Ill::Fails(Code(call.code)),
            None => Ill::Well,
        }
    }

    /// Counts a launch, and tells the code that it fails with.
    pub(crate) fn launched(&mut self, settings: &Settings) -> Option<Code> {
        self.launches += 1;
        let nth = self.launches;
        let failed = settings.launch.iter().find(|launch| launch.nth == nth)?;
        Some(Code(failed.code))
    }

    /// Counts an allocation, and tells whether it finds no memory.
    pub(crate) fn allocated(&mut self, settings: &Settings) -> bool {
        self.allocations += 1;
        settings.allocation.contains(&self.allocations)
    }

    /// Counts a run of a kernel, and tells how it goes wrong.
    pub(crate) fn ran(&mut self, kernel: &str, settings: &Settings) -> Option<Wrong> {
        if settings.kernel.is_empty() {
            return None;
        }
        let nth = self.kernels.entry(String::from(kernel)).or_default();
        *nth += 1;
        let meant = |wrong: &&crate::settings::WrongKernel| {
            wrong.fits(kernel) && wrong.nth.is_none_or(|wanted| wanted == *nth)
        };
        Some(settings.kernel.iter().find(meant)?.what)
    }
}
