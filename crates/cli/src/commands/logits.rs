//! `candor logits`: what the model thinks of every next token.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use candor_app::headless::{Ends, Prompt, Setup, TextSide, Vocabulary, caveats};
use serde_json::json;

use crate::args::{Common, Stated};
use crate::bounds;
use crate::environment;
use crate::failure::{Exit, Failure};
use crate::input;
use crate::interrupt::Interrupts;
use crate::output::{Form, Output, notice};
use crate::session::{backend_json, choose, setup};

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("source").required(true).args(["ids", "text"]))]
#[command(group = clap::ArgGroup::new("sink").required(true).args(["output", "top"]))]
pub(crate) struct Args {
    /// The model file
    model: PathBuf,
    /// The tokens; nothing is added
    #[arg(long, value_name = "LIST|@FILE")]
    ids: Option<String>,
    /// The text
    #[arg(long, value_name = "STR", allow_hyphen_values = true)]
    text: Option<String>,
    /// Writes little-endian float32, one row a position, without a header
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Of the last positions only
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = bounds::whole(1, u32::MAX))]
    last: Option<u32>,
    /// Prints the best tokens of each position
    #[arg(long, value_name = "K", allow_negative_numbers = true,
        value_parser = bounds::whole(1, u32::MAX))]
    top: Option<u32>,
    #[command(flatten)]
    stated: Stated,
}

pub(crate) fn run(
    args: &Args,
    common: &Common,
    interrupts: &Arc<Interrupts>,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let cancel = interrupts.listen()?;
    let choice = choose(common)?;
    let ids = match (&args.ids, &args.text) {
        (Some(ids), _) => input::ids(ids)?,
        (None, text) => {
            let prompt = Prompt::typed(text.clone().unwrap_or_default());
            let assumed = args.stated.assumed();
            Vocabulary::open_as(&args.model, &assumed, TextSide::Needed)?
                .encode(&prompt, Ends::Model)?
        }
    };
    let setup = Setup {
        assumed: args.stated.assumed(),
        ..setup(
            common,
            &choice,
            &environment::clock(),
            Some(ids.len().max(1)),
        )
    };
    let mut model = setup.direct(&args.model, &cancel, &mut |_, _, _| super::GO)?;
    caveats(model.model())
        .iter()
        .for_each(|caveat| notice(caveat));
    let rows = args
        .last
        .map_or(ids.len(), |last| ids.len().min(last as usize));
    let first = ids.len() - rows;
    let backend = backend_json(&choice, Some(model.model()));
    let columns = model.model().vocabulary;
    if let Some(path) = &args.output {
        let mut sink = Sink::create(path)?;
        model.logits(&ids, first, &cancel, &mut |_, logits| sink.write(logits))?;
        sink.finish()?;
        match output.form() {
            Form::Json => {
                output.json(&json!({ "rows": rows, "columns": columns, "backend": backend }))?;
            }
            Form::Text => output.line(&format!("{rows} rows of {columns}"))?,
        }
    }
    if let Some(k) = args.top {
        let mut positions = Vec::with_capacity(rows);
        model.logits(&ids, first, &cancel, &mut |position, logits| {
            positions.push(Best::of(position, logits, k as usize));
        })?;
        print_best(&positions, output)?;
    }
    Ok(Exit::Done)
}

/// The file of logits.
struct Sink<'a> {
    path: &'a Path,
    file: BufWriter<File>,
    bytes: Vec<u8>,
    /// The first thing that went wrong.
    wrong: Option<std::io::Error>,
}

impl<'a> Sink<'a> {
    fn create(path: &'a Path) -> Result<Self, Failure> {
        let file = File::create(path).map_err(|error| Failure::file(path, &error))?;
        Ok(Self {
            path,
            file: BufWriter::new(file),
            bytes: Vec::new(),
            wrong: None,
        })
    }

    fn write(&mut self, logits: &[f32]) {
        self.bytes.clear();
        self.bytes
            .extend(logits.iter().flat_map(|logit| logit.to_le_bytes()));
        if self.wrong.is_none() {
            self.wrong = self.file.write_all(&self.bytes).err();
        }
    }

    fn finish(mut self) -> Result<(), Failure> {
        let ended = match self.wrong.take() {
            Some(error) => Err(error),
            None => self.file.flush(),
        };
        ended.map_err(|error| Failure::file(self.path, &error))
    }
}

/// The best tokens of one position.
struct Best {
    position: usize,
    ids: Vec<usize>,
    logits: Vec<f32>,
    lse: f64,
}

impl Best {
    fn of(position: usize, logits: &[f32], k: usize) -> Self {
        let mut order: Vec<usize> = (0..logits.len()).collect();
        let k = k.min(order.len());
        // The lower id comes first on ties, as in the sampler.
        let better = |&a: &usize, &b: &usize| logits[b].total_cmp(&logits[a]).then(a.cmp(&b));
        if k < order.len() {
            order.select_nth_unstable_by(k, better);
            order.truncate(k);
        }
        order.sort_unstable_by(better);
        let best = order.iter().map(|&id| logits[id]).collect();
        Self {
            position,
            ids: order,
            logits: best,
            lse: super::log_sum_exp(logits),
        }
    }
}

fn print_best(positions: &[Best], output: &mut Output) -> Result<(), Failure> {
    if output.form() == Form::Json {
        let rows = positions.iter().map(|best| {
            json!({
                "position": best.position,
                "ids": best.ids,
                "logits": best.logits,
                "lse": best.lse,
            })
        });
        return Ok(output.json(&json!({ "positions": rows.collect::<Vec<_>>() }))?);
    }
    for best in positions {
        let pairs = best
            .ids
            .iter()
            .zip(&best.logits)
            .map(|(id, logit)| format!("{id}:{logit:.3}"));
        output.line(&format!(
            "{}: {}",
            best.position,
            pairs.collect::<Vec<_>>().join(" ")
        ))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_come_in_order_and_ties_go_to_the_lower_id() {
        let logits = [0.0, 2.0, 1.0, 2.0, -1.0];
        let cases: [(usize, &[usize]); 3] = [(1, &[1]), (3, &[1, 3, 2]), (9, &[1, 3, 2, 0, 4])];
        for (k, want) in cases {
            let best = Best::of(7, &logits, k);
            assert_eq!((best.position, &best.ids[..]), (7, want));
            assert!((best.lse - 2.937_270).abs() < 1e-5, "{}", best.lse);
        }
    }
}
