//! Figures that tests print: a line `MEASURED name: number` is one run.

use anyhow::{Context, Result};

use super::counted;
use super::figures::{Figure, Limit};
use crate::command::Kept;

/// How such a line begins.
const MARK: &str = "MEASURED ";

/// The figures that a run of tests printed, each held to the limit whose words its name holds; what
/// passed is counted in a figure of its own.
pub(super) fn figures(what: &str, kept: &Kept, limits: &[(&str, Limit)]) -> Result<Vec<Figure>> {
    let mut passed = Figure::new(what);
    counted::note(&mut passed, kept);
    let mut found: Vec<(&str, Figure)> = Vec::new();
    for line in kept.text.lines() {
        let Some(rest) = line.trim().strip_prefix(MARK) else {
            continue;
        };
        let (name, number) = rest.rsplit_once(": ").with_context(|| line.to_owned())?;
        let number: f64 = number.trim().parse().with_context(|| line.to_owned())?;
        let at = match found.iter().position(|(known, _)| *known == name) {
            Some(at) => at,
            None => {
                let limit = limits.iter().find(|(words, _)| name.contains(words));
                let figure = Figure::new(name);
                let figure =
                    limit.map_or_else(|| Figure::new(name), |(_, limit)| figure.limit(*limit));
                found.push((name, figure));
                found.len() - 1
            }
        };
        found[at].1.value(number);
    }
    let mut all = vec![passed];
    all.extend(found.into_iter().map(|(_, figure)| figure));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::super::figures::{all_within, table};
    use super::*;

    #[test]
    fn lines_of_one_name_are_one_figure_and_held_to_its_limit() {
        let text =
            "test a ... ok\n  MEASURED gap of x: 12\nMEASURED gap of x: 30\nMEASURED other: 0.5\n";
        let kept = |failure: Option<&str>| Kept {
            text: text.to_owned(),
            failure: failure.map(str::to_owned),
        };
        let limits = [("gap", all_within(20))];
        let found = figures("tests", &kept(None), &limits).unwrap();
        let held: Vec<bool> = found.iter().map(Figure::holds).collect();
        assert_eq!(held, [true, false, true], "{}", table(&found));
        let broken = figures("tests", &kept(Some("it ended badly")), &limits).unwrap();
        assert!(!broken[0].holds());
    }
}
