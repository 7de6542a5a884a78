//! `candor tokenize`: text to ids, or ids to text.

use std::path::PathBuf;

use candor_app::headless::{Ends, Prompt, Vocabulary};
use serde_json::json;

use crate::failure::{Exit, Failure};
use crate::input;
use crate::output::{Form, Output};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The model file; it may lack weights
    model: PathBuf,
    /// The text [default: standard input, byte for byte]
    #[arg(
        long,
        value_name = "STR",
        conflicts_with = "ids",
        allow_hyphen_values = true
    )]
    text: Option<String>,
    /// Ids to turn into text
    #[arg(long, value_name = "LIST|@FILE", conflicts_with_all = ["parse_special", "no_bos"])]
    ids: Option<String>,
    /// Lets spellings in the text become control tokens
    #[arg(long)]
    parse_special: bool,
    /// Leaves out every token that the model wants around a text
    #[arg(long)]
    no_bos: bool,
}

pub(crate) fn run(args: &Args, output: &mut Output) -> Result<Exit, Failure> {
    match &args.ids {
        Some(ids) => to_text(args, &input::ids(ids)?, output),
        None => to_ids(args, output),
    }
}

fn to_ids(args: &Args, output: &mut Output) -> Result<Exit, Failure> {
    let vocabulary = Vocabulary::open(&args.model)?;
    let text = match &args.text {
        Some(text) => text.clone(),
        None => input::standard_input()?,
    };
    let prompt = if args.parse_special {
        Prompt::markup(text)
    } else {
        Prompt::typed(text)
    };
    let ends = if args.no_bos { Ends::None } else { Ends::Model };
    let ids = vocabulary.encode(&prompt, ends)?;
    let pieces = vocabulary.pieces(&ids);
    match output.form() {
        Form::Json => {
            let shown = pieces.iter().map(|piece| String::from_utf8_lossy(piece));
            output.json(&json!({
                "ids": ids,
                "pieces": shown.collect::<Vec<_>>(),
                "pieces_hex": hex_of_each(&pieces),
            }))?;
        }
        Form::Text => {
            let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
            output.line(&ids.join(","))?;
        }
    }
    Ok(Exit::Done)
}

fn to_text(args: &Args, ids: &[u32], output: &mut Output) -> Result<Exit, Failure> {
    let vocabulary = Vocabulary::open(&args.model)?;
    let len = vocabulary.tokenizer().vocab_len();
    if let Some(id) = ids.iter().find(|&&id| id as usize >= len) {
        let message = format!("token {id} is outside the vocabulary of {len}");
        return Err(Failure::usage(message));
    }
    let pieces = vocabulary.pieces(ids);
    let bytes = pieces.concat();
    match output.form() {
        Form::Json => output.json(&json!({
            "text": String::from_utf8_lossy(&bytes),
            "pieces_hex": hex_of_each(&pieces),
        }))?,
        Form::Text => output.bytes(&bytes)?,
    }
    Ok(Exit::Done)
}

fn hex_of_each(pieces: &[&[u8]]) -> Vec<String> {
    let hex = |piece: &&[u8]| piece.iter().map(|byte| format!("{byte:02x}")).collect();
    pieces.iter().map(hex).collect()
}
