//! What the driver counts.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Counts since the library was loaded. Their names are what
/// [`Counters`](crate::control::Counters) reads.
#[derive(Default)]
pub(crate) struct Counters {
    calls: BTreeMap<&'static str, u64>,
    launches: BTreeMap<String, u64>,
    sums: BTreeMap<&'static str, u64>,
}

impl Counters {
    /// An entry point was called.
    pub(crate) fn called(&mut self, name: &'static str) {
        *self.calls.entry(name).or_default() += 1;
    }

    /// A kernel was launched, by itself or as part of a graph.
    pub(crate) fn launched(&mut self, kernel: &str) {
        match self.launches.get_mut(kernel) {
            Some(count) => *count += 1,
            None => {
                self.launches.insert(String::from(kernel), 1);
            }
        }
        self.add("launches", 1);
    }

    /// Adds to a sum.
    pub(crate) fn add(&mut self, name: &'static str, amount: u64) {
        *self.sums.entry(name).or_default() += amount;
    }

    /// A copy of so many bytes was asked for.
    pub(crate) fn copied(&mut self, [count, bytes]: [&'static str; 2], len: u64) {
        self.add(count, 1);
        self.add(bytes, len);
    }

    /// One `name=count` a line, with what the caller adds.
    pub(crate) fn text(&self, more: &[(&'static str, u64)]) -> String {
        let mut text = String::new();
        let sums = self.sums.iter().map(|(name, count)| (*name, *count));
        for (name, count) in sums.chain(more.iter().copied()) {
            line(&mut text, name, count);
        }
        for (name, count) in &self.calls {
            line(&mut text, &format!("call.{name}"), *count);
        }
        for (name, count) in &self.launches {
            line(&mut text, &format!("launch.{name}"), *count);
        }
        text
    }
}

fn line(text: &mut String, name: &str, count: u64) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{name}={count}");
}
