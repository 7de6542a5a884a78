//! Sentences in every language that the window speaks, made of the same facts at the same place.

use std::borrow::Cow;
use std::fmt;

/// A language that the window speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tongue {
    /// English, which the command line, the server and logs always speak.
    #[default]
    English,
    /// German.
    German,
}

/// Words in every language. `Display` is the English.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phrase {
    english: String,
    german: String,
}

impl Phrase {
    /// The English, and the German.
    pub fn new(english: impl Into<String>, german: impl Into<String>) -> Self {
        Self {
            english: english.into(),
            german: german.into(),
        }
    }

    /// What is the same in all languages: a name, an address.
    pub fn same(text: impl Into<String>) -> Self {
        let english = text.into();
        let german = english.clone();
        Self { english, german }
    }

    /// What every language writes in its own way: a size, a count.
    pub(crate) fn written(value: impl Spoken) -> Self {
        let in_tongue = |tongue| value.spoken(tongue).into_owned();
        Self::new(in_tongue(Tongue::English), in_tongue(Tongue::German))
    }

    /// The words in one language.
    pub fn in_tongue(&self, tongue: Tongue) -> &str {
        match tongue {
            Tongue::English => &self.english,
            Tongue::German => &self.german,
        }
    }

    /// The same, to be kept.
    pub fn to(&self, tongue: Tongue) -> String {
        self.in_tongue(tongue).to_owned()
    }

    /// Whether nothing is said.
    pub(crate) fn is_empty(&self) -> bool {
        self.english.is_empty()
    }

    /// Every language's words changed alike.
    pub(crate) fn map(&self, change: impl Fn(&str) -> String) -> Self {
        Self::new(change(&self.english), change(&self.german))
    }

    /// With what follows them.
    #[must_use]
    pub(crate) fn then(mut self, more: &Self) -> Self {
        self.english.push_str(&more.english);
        self.german.push_str(&more.german);
        self
    }

    /// Several in one line; those that say nothing are left out.
    pub(crate) fn joined(parts: impl IntoIterator<Item = Self>, between: &str) -> Self {
        let said = parts.into_iter().filter(|part| !part.is_empty());
        let all: Vec<Self> = said.collect();
        let line = |tongue| {
            let words: Vec<&str> = all.iter().map(|part| part.in_tongue(tongue)).collect();
            words.join(between)
        };
        Self::new(line(Tongue::English), line(Tongue::German))
    }

    /// As a sentence for a person.
    pub(crate) fn sentence(&self) -> Self {
        self.map(super::sentence)
    }

    /// With a sign at its end.
    pub(crate) fn closed(&self) -> Self {
        self.map(super::closed)
    }
}

impl fmt::Display for Phrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.english)
    }
}

/// What can be filled in to a phrase, as each language writes it.
pub(crate) trait Spoken {
    /// In this language.
    fn spoken(&self, tongue: Tongue) -> Cow<'_, str>;
}

impl<T: Spoken + ?Sized> Spoken for &T {
    fn spoken(&self, tongue: Tongue) -> Cow<'_, str> {
        (**self).spoken(tongue)
    }
}

impl Spoken for Phrase {
    fn spoken(&self, tongue: Tongue) -> Cow<'_, str> {
        Cow::Borrowed(self.in_tongue(tongue))
    }
}

impl Spoken for str {
    fn spoken(&self, _: Tongue) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
}

impl Spoken for String {
    fn spoken(&self, _: Tongue) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
}

/// What every language takes as it is: small numbers, and what the system or a library said.
macro_rules! spoken_as_it_is {
    ($($kind:ty),* $(,)?) => {
        $(impl Spoken for $kind {
            fn spoken(&self, _: Tongue) -> Cow<'_, str> {
                Cow::Owned(self.to_string())
            }
        })*
    };
}

spoken_as_it_is!(
    u8,
    u16,
    u32,
    u64,
    usize,
    i64,
    std::io::Error,
    rusqlite::Error,
    serde_json::Error,
    std::path::Display<'_>,
);

/// Bytes in decimal units: "4.7 GB", "4,7 GB".
#[derive(Clone, Copy)]
pub(crate) struct Bytes(pub(crate) u64);

impl Spoken for Bytes {
    fn spoken(&self, tongue: Tongue) -> Cow<'_, str> {
        Cow::Owned(numbers(super::size(self.0), tongue))
    }
}

/// A count grouped by thousands: "8,192", "8.192".
#[derive(Clone, Copy)]
pub(crate) struct Count(pub(crate) u64);

impl Count {
    /// Of things in memory.
    pub(crate) fn of(count: usize) -> Self {
        Self(count as u64)
    }
}

impl Spoken for Count {
    fn spoken(&self, tongue: Tongue) -> Cow<'_, str> {
        Cow::Owned(numbers(super::count(self.0), tongue))
    }
}

/// A number with a point in it, already cut to its digits: "0.9998", "0,9998".
pub(crate) struct Digits(pub(crate) String);

impl Spoken for Digits {
    fn spoken(&self, tongue: Tongue) -> Cow<'_, str> {
        Cow::Owned(numbers(self.0.clone(), tongue))
    }
}

/// An English number, with its unit, as a language writes it.
pub(crate) fn numbers(english: String, tongue: Tongue) -> String {
    match tongue {
        Tongue::English => english,
        Tongue::German => {
            let turned = english.chars().map(|sign| match sign {
                '.' => ',',
                ',' => '.',
                other => other,
            });
            let turned: String = turned.collect();
            turned.replace(" bytes", " Byte").replace(" byte", " Byte")
        }
    }
}

/// Whether two texts are the same, while the program is compiled.
pub(crate) const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// A phrase: the English, the German, and what is filled in to both. Like `format!`, but that each
/// language says what is filled in its own way. What one of them forgets to say is an unused
/// variable, and words that nobody translated do not compile.
macro_rules! phrase {
    (@value $name:ident = $value:expr) => { $value };
    (@value $name:ident) => { &$name };
    ($english:literal, $german:literal $(, $name:ident $(= $value:expr)?)* $(,)?) => {{
        const {
            assert!(!$crate::words::phrase::is_same($english, $german), "nobody translated it");
        }
        $(let $name = $crate::words::phrase!(@value $name $(= $value)?);)*
        let english = {
            $(let $name = $crate::words::phrase::Spoken::spoken(
                &$name,
                $crate::words::Tongue::English,
            );)*
            std::fmt::format(format_args!($english))
        };
        let german = {
            $(let $name = $crate::words::phrase::Spoken::spoken(
                &$name,
                $crate::words::Tongue::German,
            );)*
            std::fmt::format(format_args!($german))
        };
        $crate::words::Phrase::new(english, german)
    }};
}
pub(crate) use phrase;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_language_says_what_is_filled_in_its_own_way() {
        let inner = phrase!("so it is", "so ist es");
        let size = Bytes(4_700_000_000);
        let found = phrase!(
            "{name}: {size}, {tokens} tokens, {inner}",
            "{name}: {size}, {tokens} Tokens, {inner}",
            name = "a.gguf",
            size,
            tokens = Count(8_192),
            inner,
        );
        let want = [
            (Tongue::English, "a.gguf: 4.7 GB, 8,192 tokens, so it is"),
            (Tongue::German, "a.gguf: 4,7 GB, 8.192 Tokens, so ist es"),
        ];
        for (tongue, want) in want {
            assert_eq!(found.in_tongue(tongue), want);
        }
        assert_eq!(found.to_string(), want[0].1);
    }

    #[test]
    fn numbers_are_turned_with_their_units() {
        for (english, want) in [
            ("2.1 GB", "2,1 GB"),
            ("1,234,567 bytes", "1.234.567 Byte"),
            ("1 byte", "1 Byte"),
            ("0 bytes", "0 Byte"),
        ] {
            assert_eq!(numbers(String::from(english), Tongue::German), want);
        }
    }

    #[test]
    fn parts_that_say_nothing_are_left_out_of_a_line() {
        let parts = [
            phrase!("one", "eins"),
            Phrase::default(),
            Phrase::same("AVX-512"),
        ];
        let line = Phrase::joined(parts, " · ");
        assert_eq!(line, Phrase::new("one · AVX-512", "eins · AVX-512"));
    }
}
