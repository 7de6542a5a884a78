//! A JSON object read field by field: what is unknown is ignored, what is null is absent, and what
//! is of the wrong type is said by name.

use std::ops::RangeInclusive;

use candor_app::headless::STOP_BYTES_MAX;
use serde_json::{Map, Value};

use crate::fault::Fault;

/// Most texts that end a reply. OpenAI's interface allows four, others say nothing; with those of a
/// template they stay below the engine's own limit.
const STOPS_MAX: usize = 16;

/// The fields of an object, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    map: &'a Map<String, Value>,
    at: String,
}

impl<'a> Fields<'a> {
    /// Of a whole body.
    pub(crate) fn of_body(body: &'a Value) -> Result<Self, Fault> {
        match body {
            Value::Object(map) => Ok(Self {
                map,
                at: String::new(),
            }),
            _ => Err(Fault::new(
                crate::fault::FaultKind::Invalid,
                "the body has to be a JSON object",
            )),
        }
    }

    /// Of a value that stands at a place.
    pub(crate) fn of(value: &'a Value, at: impl Into<String>) -> Result<Self, Fault> {
        let at = at.into();
        match value {
            Value::Object(map) => Ok(Self { map, at }),
            _ => Err(Fault::field(at, "has to be an object")),
        }
    }

    /// Where a field stands, as errors say it.
    pub(crate) fn place(&self, name: &str) -> String {
        match self.at.as_str() {
            "" => name.to_owned(),
            at => format!("{at}.{name}"),
        }
    }

    /// An error about a field.
    pub(crate) fn wrong(&self, name: &str, what: &str) -> Fault {
        Fault::field(self.place(name), what)
    }

    pub(crate) fn map(&self) -> &'a Map<String, Value> {
        self.map
    }

    /// A field as it is.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<&'a str>, Fault> {
        self.read(name, "has to be a string", Value::as_str)
    }

    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, Fault> {
        self.read(name, "has to be true or false", Value::as_bool)
    }

    pub(crate) fn list(&self, name: &str) -> Result<Option<&'a [Value]>, Fault> {
        self.read(name, "has to be a list", |value| {
            value.as_array().map(Vec::as_slice)
        })
    }

    pub(crate) fn object(&self, name: &str) -> Result<Option<Fields<'a>>, Fault> {
        let value = self.raw(name);
        value
            .map(|value| Self::of(value, self.place(name)))
            .transpose()
    }

    /// A number within bounds.
    pub(crate) fn number(
        &self,
        name: &str,
        bounds: RangeInclusive<f64>,
    ) -> Result<Option<f64>, Fault> {
        let Some(value) = self.raw(name) else {
            return Ok(None);
        };
        let found = value.as_f64().filter(|found| bounds.contains(found));
        found.map(Some).ok_or_else(|| {
            let (min, max) = (bounds.start(), bounds.end());
            self.wrong(name, &format!("has to be a number from {min} to {max}"))
        })
    }

    /// A whole number within bounds. `1.0` is one.
    pub(crate) fn whole(
        &self,
        name: &str,
        bounds: RangeInclusive<i64>,
    ) -> Result<Option<i64>, Fault> {
        let Some(value) = self.raw(name) else {
            return Ok(None);
        };
        let whole = |number: f64| {
            // Every whole number up to here has exactly one float64.
            (number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0)
                .then_some(number as i64)
        };
        let found = value.as_i64().or_else(|| value.as_f64().and_then(whole));
        let found = found.filter(|found| bounds.contains(found));
        found.map(Some).ok_or_else(|| {
            let (min, max) = (bounds.start(), bounds.end());
            let bounds = match (*min, *max) {
                (i64::MIN, i64::MAX) => String::new(),
                (min, i64::MAX) => format!(" of at least {min}"),
                (min, max) => format!(" from {min} to {max}"),
            };
            self.wrong(name, &format!("has to be a whole number{bounds}"))
        })
    }

    /// One text, or a list of texts.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, Fault> {
        let wrong = || self.wrong(name, "has to be a string or a list of strings");
        match self.raw(name) {
            None => Ok(Vec::new()),
            Some(Value::String(text)) => Ok(vec![text.clone()]),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong))
                .collect(),
            Some(_) => Err(wrong()),
        }
    }

    /// Texts that end the reply.
    pub(crate) fn stops(&self, name: &str) -> Result<Vec<String>, Fault> {
        let stops = self.texts(name)?;
        if stops.len() > STOPS_MAX {
            return Err(self.wrong(name, &format!("may have {STOPS_MAX} texts")));
        }
        for stop in &stops {
            if stop.is_empty() {
                return Err(self.wrong(name, "has an empty text, which would end every reply"));
            }
            if stop.len() > STOP_BYTES_MAX {
                let what = format!("has a text of more than {STOP_BYTES_MAX} bytes");
                return Err(self.wrong(name, &what));
            }
        }
        Ok(stops)
    }

    fn read<T>(
        &self,
        name: &str,
        what: &str,
        fits: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        let Some(value) = self.raw(name) else {
            return Ok(None);
        };
        fits(value).map(Some).ok_or_else(|| self.wrong(name, what))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_is_read_or_named() {
        let body = json!({
            "text": "a", "flag": true, "list": [1], "number": 0.5, "whole": 3, "float": 3.0,
            "half": 2.5, "none": null, "huge": 1e300, "negative": -1, "texts": ["a", "b"],
            "mixed": ["a", 1], "object": {"inner": "x"},
        });
        let fields = Fields::of_body(&body).unwrap();
        assert_eq!(fields.text("text").unwrap(), Some("a"));
        assert_eq!(fields.text("none").unwrap(), None);
        assert_eq!(fields.text("absent").unwrap(), None);
        assert_eq!(fields.whole("float", 1..=9).unwrap(), Some(3));
        assert_eq!(fields.number("whole", 0.0..=9.0).unwrap(), Some(3.0));
        assert_eq!(fields.texts("texts").unwrap(), ["a", "b"]);
        assert_eq!(fields.texts("text").unwrap(), ["a"]);
        let inner = fields.object("object").unwrap().unwrap();
        let wrong: [(Result<(), Fault>, &str); 8] = [
            (fields.text("flag").map(drop), "`flag` has to be a string"),
            (
                fields.flag("text").map(drop),
                "`text` has to be true or false",
            ),
            (fields.list("text").map(drop), "`text` has to be a list"),
            (
                fields.number("number", 1.0..=2.0).map(drop),
                "`number` has to be a number from 1 to 2",
            ),
            (
                fields.whole("half", 1..=9).map(drop),
                "`half` has to be a whole number from 1 to 9",
            ),
            (
                fields.whole("huge", 1..=i64::MAX).map(drop),
                "`huge` has to be a whole number of at least 1",
            ),
            (
                fields.texts("mixed").map(drop),
                "`mixed` has to be a string or a list of strings",
            ),
            (
                inner.flag("inner").map(drop),
                "`object.inner` has to be true or false",
            ),
        ];
        for (found, want) in wrong {
            assert_eq!(found.unwrap_err().message, want);
        }
        assert!(Fields::of_body(&json!([])).is_err());
    }
}
