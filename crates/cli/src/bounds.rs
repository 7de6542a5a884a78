//! What the options may be. Clap holds them against these bounds before anything is opened, and
//! says the option and the value in front of the sentences here.

use std::fmt::Display;
use std::str::FromStr;

use candor_app::headless::STOP_BYTES_MAX;

/// A number from `min` to `max`. NaN lies outside.
pub(crate) fn number(
    min: f32,
    max: f32,
) -> impl Fn(&str) -> Result<f32, String> + Clone + Send + Sync + 'static {
    between("number", min, max)
}

/// A whole number from `min` to `max`.
pub(crate) fn whole<T>(
    min: T,
    max: T,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Copy + Send + Sync + 'static,
{
    between("whole number", min, max)
}

fn between<T>(
    kind: &'static str,
    min: T,
    max: T,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Copy + Send + Sync + 'static,
{
    move |text: &str| {
        let found = text.parse().ok();
        found
            .filter(|found| (min..=max).contains(found))
            .ok_or_else(|| format!("it has to be a {kind} from {min} to {max}"))
    }
}

/// A text that ends a reply.
pub(crate) fn stop_string(text: &str) -> Result<String, String> {
    match text.len() {
        1..=STOP_BYTES_MAX => Ok(text.to_owned()),
        found => Err(format!(
            "it has to be a text of 1 to {STOP_BYTES_MAX} bytes, and has {found}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: std::fmt::Debug + PartialEq>(
        parse: impl Fn(&str) -> Result<T, String>,
        cases: &[(&str, Option<T>)],
    ) {
        for (text, want) in cases {
            let found = parse(text);
            assert_eq!(found.as_ref().ok(), want.as_ref(), "{text:?}: {found:?}");
        }
    }

    #[test]
    fn numbers_outside_their_bounds_are_none() {
        check(
            number(0.0, 10.0),
            &[
                ("0", Some(0.0)),
                ("-0", Some(0.0)),
                ("10", Some(10.0)),
                ("1e0", Some(1.0)),
                ("10.1", None),
                ("-1", None),
                ("NaN", None),
                ("inf", None),
                ("-inf", None),
                ("warm", None),
                ("", None),
            ],
        );
        check(
            whole(1_usize, 8),
            &[
                ("1", Some(1)),
                ("8", Some(8)),
                ("0", None),
                ("9", None),
                ("-1", None),
                ("2.5", None),
                ("99999999999999999999999", None),
            ],
        );
        let said = whole(1_u16, 8)("9");
        assert_eq!(said, Err("it has to be a whole number from 1 to 8".into()));
    }

    #[test]
    fn a_stop_string_is_neither_empty_nor_endless() {
        let (longest, longer) = ("x".repeat(STOP_BYTES_MAX), "x".repeat(STOP_BYTES_MAX + 1));
        check(
            stop_string,
            &[
                ("\n", Some("\n".to_owned())),
                (&longest, Some(longest.clone())),
                (&longer, None),
                ("", None),
            ],
        );
    }
}
