//! `candor render`: a conversation as the model reads it.

use std::path::PathBuf;

use candor_app::headless::{Generation, LocalTime, RenderOptions, Vocabulary, utc};
use serde_json::{Map, Value, json};

use crate::environment;
use crate::failure::{Exit, Failure};
use crate::input;
use crate::output::{Form, Output, notice};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The model file; it may lack weights
    model: PathBuf,
    /// A JSON list of messages, passed to the template whole
    #[arg(long, value_name = "FILE")]
    messages: PathBuf,
    /// Ends the prompt behind the last message
    #[arg(long)]
    no_generation_prompt: bool,
    /// A JSON object of template variables; they override the model's
    #[arg(long, value_name = "JSON")]
    variables: Option<String>,
    /// A template in place of the model's own
    #[arg(long, value_name = "FILE")]
    template: Option<PathBuf>,
    /// The time that templates see, such as 2026-01-31T12:00 [default: now]
    #[arg(long, value_name = "ISO", value_parser = time)]
    now: Option<LocalTime>,
}

pub(crate) fn run(args: &Args, output: &mut Output) -> Result<Exit, Failure> {
    let messages = input::messages(&args.messages)?;
    let template = args.template.as_deref().map(input::file_text).transpose()?;
    let now = args
        .now
        .unwrap_or_else(|| utc((environment::clock().now_ms)()));
    let generation = if args.no_generation_prompt {
        Generation::None
    } else {
        Generation::Prompt
    };
    let options = RenderOptions {
        variables: variables(args.variables.as_deref())?,
        template,
        generation,
        now: Some(now),
    };
    let vocabulary = Vocabulary::open(&args.model)?;
    let rendered = vocabulary.render(&messages, &options)?;
    match output.form() {
        Form::Json => output.json(&json!({
            "prompt": rendered.prompt,
            "ids": rendered.ids,
            "fallback": rendered.fallback,
        }))?,
        Form::Text => {
            output.bytes(rendered.prompt.as_bytes())?;
            if let Some(fallback) = rendered.fallback {
                notice(&fallback);
            }
        }
    }
    Ok(Exit::Done)
}

fn variables(text: Option<&str>) -> Result<Map<String, Value>, Failure> {
    let Some(text) = text else {
        return Ok(Map::new());
    };
    match serde_json::from_str(text) {
        Ok(Value::Object(variables)) => Ok(variables),
        Ok(_) => Err(Failure::usage("the variables are not a JSON object")),
        Err(error) => Err(Failure::usage(format!(
            "the variables are not JSON: {error}"
        ))),
    }
}

/// A date, with a time or without one; a zone is not read, since templates write none.
fn time(text: &str) -> Result<LocalTime, String> {
    let parse = || {
        let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
        let date: Vec<&str> = date.split('-').collect();
        let time: Vec<&str> = time.trim_end_matches('Z').split(':').collect();
        let [year, month, day] = date[..] else {
            return None;
        };
        let (hour, minute, second) = match time[..] {
            [hour, minute] => (hour, minute, "0"),
            [hour, minute, second] => (hour, minute, second),
            _ => return None,
        };
        let found = LocalTime {
            year: year.parse().ok()?,
            month: month.parse().ok()?,
            day: day.parse().ok()?,
            hour: hour.parse().ok()?,
            minute: minute.parse().ok()?,
            second: second.parse().ok()?,
        };
        let fits = (1..=12).contains(&found.month)
            && (1..=31).contains(&found.day)
            && found.hour < 24
            && found.minute < 60
            && found.second < 61;
        fits.then_some(found)
    };
    parse().ok_or_else(|| String::from("expected a time such as 2026-01-31T12:00"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_written() {
        let cases = [
            ("2026-01-31T12:00", Some((2026, 1, 31, 12, 0, 0))),
            ("2026-01-31 23:59:58", Some((2026, 1, 31, 23, 59, 58))),
            ("2026-01-31T12:00:01Z", Some((2026, 1, 31, 12, 0, 1))),
            ("2026-01-31", Some((2026, 1, 31, 0, 0, 0))),
            ("2026-13-31", None),
            ("2026-01-31T25:00", None),
            ("yesterday", None),
            ("", None),
        ];
        for (text, want) in cases {
            let found = time(text).ok();
            let found = found.map(|t| (t.year, t.month, t.day, t.hour, t.minute, t.second));
            assert_eq!(found, want, "{text}");
        }
    }
}
