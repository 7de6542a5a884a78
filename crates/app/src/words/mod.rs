//! Numbers, and sentences in every language that the window speaks.
//!
//! What this crate says to a person is a [`Phrase`], both languages side by side where it is said;
//! what the layers below say is said once more in `german`. The command line, the server and logs
//! take the English.

mod german;
pub(crate) mod phrase;

use candor_backend::KvType;
use candor_engine::LoadFailure;

use crate::banner;

pub(crate) use german::{German, advice, capital, fallback, note, turn_code};
pub(crate) use phrase::{Bytes, Count, Digits, phrase};
pub use phrase::{Phrase, Tongue};

/// Bytes in decimal units, as file managers and shops count: "98 MB", "4.7 GB".
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "kB", "MB", "GB", "TB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    // From 999.5 on, a number of the smaller unit would be shown as 1000.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1_000.0;
        unit += 1;
    }
    let decimals = usize::from(unit >= 3 && value < 99.95);
    format!("{value:.decimals$} {}", UNITS[unit])
}

/// Why a model was not loaded, with its sizes in units that people know.
pub(crate) fn load_failure(failure: &LoadFailure) -> Phrase {
    match failure {
        LoadFailure::OutOfMemory {
            needed_bytes,
            available_bytes,
        } => phrase!(
            "the model needs {needed} of memory, {free} are free",
            "das Modell braucht {needed} Speicher, frei sind {free}",
            needed = Bytes(*needed_bytes),
            free = Bytes(*available_bytes),
        ),
        LoadFailure::NotOnDevice { passed_over } => {
            let why = passed_over.last().map(banner::why_not).unwrap_or_default();
            phrase!(
                "the GPU cannot serve: {why}",
                "die GPU kann nicht rechnen: {why}",
                why,
            )
        }
        other => Phrase::of(other),
    }
}

/// The system has no more threads.
pub(crate) fn no_thread(source: &std::io::Error) -> Phrase {
    phrase!(
        "The system gives no thread: {source}.",
        "Das System gibt keinen Thread mehr her: {source}.",
        source,
    )
}

/// Words of the engine as a sentence for a person.
pub(crate) fn sentence(message: &str) -> String {
    let mut chars = message.chars();
    let first: String = chars
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    format!("{first}{}", closed(chars.as_str()))
}

/// The same with a sign at its end.
pub(crate) fn closed(message: &str) -> String {
    let dot = if message.ends_with(['.', '!', '?']) {
        ""
    } else {
        "."
    };
    format!("{message}{dot}")
}

/// A count with commas between the thousands: "8,192".
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// The day at so many milliseconds after 1970 began: "2026-12-01", in UTC.
pub(crate) fn day(now_ms: i64) -> String {
    let time = crate::prompt::utc(now_ms);
    format!("{:04}-{:02}-{:02}", time.year, time.month, time.day)
}

/// How keys and values are kept.
pub(crate) fn kv(kv: KvType) -> Phrase {
    match kv {
        KvType::F32 => phrase!("32 bits", "32 Bit"),
        KvType::F16 => phrase!("16 bits", "16 Bit"),
        KvType::Q8_0 => phrase!("8 bits", "8 Bit"),
    }
}

/// "1 thread", "2 threads".
pub(crate) fn threads(count: usize) -> Phrase {
    match count {
        1 => phrase!("1 thread", "1 Thread"),
        _ => phrase!("{count} threads", "{count} Threads", count),
    }
}

#[cfg(test)]
pub(crate) use tests::says_the_same;

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds German words against the English: they say something of their own, with the same
    /// numbers.
    #[track_caller]
    pub(crate) fn says_the_same(english: &str, german: &str) {
        let numbers = |text: &str| {
            let text = text.replace([',', '.'], "");
            let digits = |part: &&str| !part.is_empty();
            let parts = text.split(|sign: char| !sign.is_ascii_digit());
            let mut numbers: Vec<String> = parts.filter(digits).map(String::from).collect();
            numbers.sort();
            numbers
        };
        assert_eq!(numbers(english), numbers(german), "{english} / {german}");
        let is_untranslated = english == german && !english.is_empty();
        assert!(!is_untranslated, "nobody translated {english}");
    }

    #[test]
    fn a_model_that_does_not_fit_says_so_in_units() {
        let failure = LoadFailure::OutOfMemory {
            needed_bytes: 2_304_109_159_680,
            available_bytes: 16_000_000_000,
        };
        let want = Phrase::new(
            "the model needs 2.3 TB of memory, 16.0 GB are free",
            "das Modell braucht 2,3 TB Speicher, frei sind 16,0 GB",
        );
        assert_eq!(load_failure(&failure), want);
    }

    #[test]
    fn a_day_is_written_as_the_standard_says() {
        for (now_ms, want) in [(0, "1970-01-01"), (1_796_083_199_000, "2026-11-30")] {
            assert_eq!(day(now_ms), want);
        }
    }

    #[test]
    fn sizes_are_decimal() {
        let cases = [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1_000, "1 kB"),
            (97_700_000, "98 MB"),
            (999_600_000, "1.0 GB"),
            (4_683_000_000, "4.7 GB"),
            (470_000_000_000, "470 GB"),
            (2_000_000_000_000, "2.0 TB"),
        ];
        for (bytes, want) in cases {
            assert_eq!(size(bytes), want);
        }
    }

    #[test]
    fn counts_have_commas() {
        for (value, want) in [
            (0, "0"),
            (512, "512"),
            (8_192, "8,192"),
            (1_048_576, "1,048,576"),
        ] {
            assert_eq!(count(value), want);
        }
    }
}
