//! What was measured, and the limit it is held against.

use std::fmt::Write;
use std::time::Duration;

/// One line of a report's table.
pub(crate) struct Figure {
    what: String,
    runs: usize,
    /// In milliseconds, sorted.
    times: Vec<f64>,
    limits: Vec<Limit>,
    /// What went wrong in which run; none is what is wanted.
    faults: Vec<String>,
}

/// A share of the runs, in percent, that must be done within so many milliseconds.
#[derive(Clone, Copy)]
pub(crate) struct Limit {
    percent: usize,
    ms: f64,
}

/// Every run must be done in this time.
pub(crate) fn all_within(ms: u32) -> Limit {
    Limit {
        percent: 100,
        ms: f64::from(ms),
    }
}

/// Of a hundred runs, so many must be done in this time.
pub(crate) fn within(percent: usize, ms: u32) -> Limit {
    Limit {
        percent,
        ms: f64::from(ms),
    }
}

impl Figure {
    /// An empty line.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        let what = what.into();
        Self {
            what,
            runs: 0,
            times: Vec::new(),
            limits: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// The same with a limit.
    pub(crate) fn limit(mut self, limit: Limit) -> Self {
        self.limits.push(limit);
        self
    }

    /// Notes a run that was timed.
    pub(crate) fn timed(&mut self, took: Duration) {
        self.value(took.as_secs_f64() * 1e3);
    }

    /// Notes a run that was measured in milliseconds, or in the unit that its line names.
    pub(crate) fn value(&mut self, value: f64) {
        self.runs += 1;
        self.times.push(value);
        self.times.sort_by(f64::total_cmp);
    }

    /// Notes a run that is only right or wrong.
    pub(crate) fn counted(&mut self) {
        self.runs += 1;
    }

    /// Notes that something was not as it should be.
    pub(crate) fn fault(&mut self, what: String) {
        println!("  {what}");
        self.faults.push(what);
    }

    /// The time within which so many percent of the runs were done.
    fn at(&self, percent: usize) -> Option<f64> {
        let last = self.times.len().checked_sub(1)?;
        let rank = (self.times.len() * percent).div_ceil(100).saturating_sub(1);
        Some(self.times[rank.min(last)])
    }

    /// Whether everything was as it should be.
    pub(crate) fn holds(&self) -> bool {
        let in_time = |limit: &Limit| self.at(limit.percent).is_some_and(|time| time <= limit.ms);
        self.runs > 0 && self.faults.is_empty() && self.limits.iter().all(in_time)
    }
}

/// Small numbers with a place behind the point.
fn shown_number(number: f64) -> String {
    let places = if number.abs() < 9.95 { 1 } else { 0 };
    format!("{number:.places$}")
}

/// The figures as a table, and below it what went wrong.
pub(crate) fn table(figures: &[Figure]) -> String {
    let mut text = String::from(
        "| what | runs | median | 95 % | worst | limit | held |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for figure in figures {
        let shown = |percent| figure.at(percent).map_or("–".to_owned(), shown_number);
        let limits: Vec<String> = figure
            .limits
            .iter()
            .map(|limit| format!("{} % ≤ {}", limit.percent, limit.ms))
            .collect();
        let limits = if limits.is_empty() {
            "–".to_owned()
        } else {
            limits.join(", ")
        };
        let held = if figure.holds() { "yes" } else { "**no**" };
        let (what, runs) = (&figure.what, figure.runs);
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "| {what} | {runs} | {} | {} | {} | {limits} | {held} |",
            shown(50),
            shown(95),
            shown(100)
        );
    }
    for fault in figures.iter().flat_map(|figure| &figure.faults) {
        let _ = writeln!(text, "\nNot as it should be: {fault}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(times: &[u64], limits: &[Limit]) -> Figure {
        let mut figure = Figure::new("x");
        times
            .iter()
            .for_each(|&ms| figure.timed(Duration::from_millis(ms)));
        limits
            .iter()
            .fold(figure, |figure, &limit| figure.limit(limit))
    }

    #[test]
    fn a_limit_holds_for_its_share_of_the_runs() {
        let hundred: Vec<u64> = (1..=100).collect();
        let cases: &[(&[u64], &[Limit], bool)] = &[
            (&hundred, &[within(95, 95), all_within(100)], true),
            (&hundred, &[within(95, 94)], false),
            (&hundred, &[all_within(99)], false),
            (&[5], &[within(95, 5)], true),
            (&[], &[], false),
            (&[], &[all_within(1)], false),
        ];
        for (times, limits, expected) in cases {
            assert_eq!(figure(times, limits).holds(), *expected, "{times:?}");
        }
        let mut faulty = figure(&[1], &[all_within(2)]);
        faulty.fault("wrong".to_owned());
        assert!(!faulty.holds());
    }
}
