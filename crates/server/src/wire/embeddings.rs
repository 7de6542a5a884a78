//! Embeddings, as OpenAI's and Ollama's clients ask for them.

use serde_json::{Value, json};

use super::fields::Fields;
use super::ollama::unloads;
use crate::fault::Fault;

/// Most texts of one request.
const TEXTS_MAX: usize = 256;

/// A text, or its tokens.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Text {
    Words(String),
    Ids(Vec<u32>),
}

/// How vectors are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Floats,
    /// Little-endian float32.
    Base64,
}

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request {
    pub(crate) model: Option<String>,
    pub(crate) texts: Vec<Text>,
    pub(crate) encoding: Encoding,
    /// So many numbers have to come out.
    pub(crate) dimensions: Option<usize>,
    /// A text that is longer than the context is cut there.
    pub(crate) truncates: bool,
    /// The model's memory is to be given back afterwards.
    pub(crate) unloads: bool,
}

/// A body of Ollama's `/api/embed`.
pub(crate) fn ollama_request(body: &Value) -> Result<Request, Fault> {
    let fields = Fields::of_body(body)?;
    Ok(Request {
        truncates: fields.flag("truncate")?.unwrap_or(true),
        unloads: unloads(&fields)?,
        ..request(body)?
    })
}

/// A body of `/v1/embeddings`.
pub(crate) fn request(body: &Value) -> Result<Request, Fault> {
    let fields = Fields::of_body(body)?;
    let encoding = match fields.text("encoding_format")? {
        None | Some("float") => Encoding::Floats,
        Some("base64") => Encoding::Base64,
        Some(_) => {
            let what = "has to be \"float\" or \"base64\"";
            return Err(fields.wrong("encoding_format", what));
        }
    };
    let dimensions = fields.whole("dimensions", 1..=i64::MAX)?;
    Ok(Request {
        model: super::plain::model(&fields)?,
        texts: texts(&fields)?,
        encoding,
        dimensions: dimensions.map(|dimensions| dimensions as usize),
        truncates: false,
        unloads: false,
    })
}

/// A body of Ollama's older `/api/embeddings`.
pub(crate) fn old_request(body: &Value) -> Result<Request, Fault> {
    let fields = Fields::of_body(body)?;
    let Some(prompt) = fields.text("prompt")? else {
        return Err(fields.wrong("prompt", "is missing"));
    };
    Ok(Request {
        model: super::plain::model(&fields)?,
        texts: vec![Text::Words(prompt.to_owned())],
        encoding: Encoding::Floats,
        dimensions: None,
        truncates: true,
        unloads: unloads(&fields)?,
    })
}

fn texts(fields: &Fields<'_>) -> Result<Vec<Text>, Fault> {
    let wrong = || fields.wrong("input", "has to be texts, or lists of tokens");
    let ids = |ids: &[Value]| {
        let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
        let ids: Option<Vec<u32>> = ids.iter().map(id).collect();
        ids.map(Text::Ids).ok_or_else(wrong)
    };
    let items = match fields.raw("input") {
        None => return Err(fields.wrong("input", "is missing")),
        Some(Value::String(text)) => return Ok(vec![Text::Words(text.clone())]),
        Some(Value::Array(items)) if !items.is_empty() => items,
        Some(_) => return Err(wrong()),
    };
    if items.iter().all(Value::is_number) {
        return Ok(vec![ids(items)?]);
    }
    if items.len() > TEXTS_MAX {
        return Err(fields.wrong("input", &format!("may have {TEXTS_MAX} texts")));
    }
    let text = |value: &Value| match value {
        Value::String(text) => Ok(Text::Words(text.clone())),
        Value::Array(list) => ids(list),
        _ => Err(wrong()),
    };
    items.iter().map(text).collect()
}

/// A vector as it was asked for.
pub(crate) fn written(vector: &[f32], encoding: Encoding) -> Value {
    match encoding {
        Encoding::Floats => json!(vector),
        Encoding::Base64 => {
            let bytes: Vec<u8> = vector
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect();
            json!(base64(&bytes))
        }
    }
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            match digit <= three.len() {
                true => text.push(char::from(DIGITS[(bits >> (18 - 6 * digit)) as usize & 63])),
                false => text.push('='),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        // RFC 4648, section 10.
        let cases = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (text, want) in cases {
            assert_eq!(base64(text.as_bytes()), want);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn texts_and_tokens_are_read_in_every_form() {
        let check = |input: Value, want: Option<Vec<Text>>| {
            let found = request(&json!({ "input": input }))
                .ok()
                .map(|found| found.texts);
            assert_eq!(found, want, "{input}");
        };
        let words = |text: &str| Text::Words(text.to_owned());
        check(json!("a"), Some(vec![words("a")]));
        check(json!(["a", "b"]), Some(vec![words("a"), words("b")]));
        check(json!([1, 2]), Some(vec![Text::Ids(vec![1, 2])]));
        check(
            json!([[1], [2]]),
            Some(vec![Text::Ids(vec![1]), Text::Ids(vec![2])]),
        );
        check(json!([]), None);
        check(json!([-1]), None);
        check(json!([{}]), None);
        check(json!(vec!["a"; 300]), None);
        check(Value::Null, None);
    }
}
