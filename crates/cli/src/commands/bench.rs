//! `candor bench`: speed and memory.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use candor_app::headless::{CancelToken, DecodeRun, Direct, read_bandwidth, size};
use serde_json::{Value, json};

use crate::args::Common;
use crate::bounds;
use crate::environment;
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::output::{Form, Output, notice};
use crate::session::{backend_json, choose, setup};

/// Tokens of a measurement where none are asked for.
const PREFILL_TOKENS: usize = 512;
const DECODE_TOKENS: usize = 128;

/// Tokens of context beside those that are measured.
const SPARE_TOKENS: usize = 8;

/// Most tokens of a measurement: the context is counted in 32 bits.
const TOKENS_MAX: usize = u32::MAX as usize;

/// Most sequences at once: more do not fit a session.
const PARALLEL_MAX: u16 = 256;

/// Why a card is measured that was not judged.
const UNPROVEN: &str = "measured without a check, as asked for";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The model file
    model: PathBuf,
    /// Measures reading a prompt of N tokens; 0 does not [default: 512]
    #[arg(short = 'p', value_name = "N", allow_negative_numbers = true,
        value_parser = bounds::whole(0, TOKENS_MAX))]
    prefill: Vec<usize>,
    /// Measures writing N tokens; 0 does not [default: 128]
    #[arg(short = 'n', value_name = "N", allow_negative_numbers = true,
        value_parser = bounds::whole(0, TOKENS_MAX))]
    decode: Vec<usize>,
    /// Tokens in the context before writing
    #[arg(long, value_name = "D", default_value_t = 0, allow_negative_numbers = true,
        value_parser = bounds::whole(0, TOKENS_MAX))]
    depth: usize,
    /// Sequences that are written at once
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true,
        value_parser = bounds::whole(1, PARALLEL_MAX))]
    parallel: u16,
    /// Rounds of each measurement, after one to warm up
    #[arg(short = 'r', value_name = "REPS", default_value_t = 5, allow_negative_numbers = true,
        value_parser = bounds::whole(1, u16::MAX))]
    reps: u16,
    /// Measures a GPU without holding it against the CPU first, and says so
    #[arg(long)]
    unproven: bool,
}

/// What is measured.
struct Plan {
    prefill: Vec<usize>,
    decode: Vec<usize>,
    depth: usize,
    parallel: usize,
    reps: usize,
}

impl Plan {
    fn of(args: &Args) -> Self {
        let or = |asked: &[usize], otherwise: usize| match asked {
            [] => vec![otherwise],
            asked => asked.iter().copied().filter(|&tokens| tokens > 0).collect(),
        };
        Self {
            prefill: or(&args.prefill, PREFILL_TOKENS),
            decode: or(&args.decode, DECODE_TOKENS),
            depth: args.depth,
            parallel: usize::from(args.parallel),
            reps: usize::from(args.reps),
        }
    }

    /// Tokens of context that it needs.
    fn context(&self) -> usize {
        let prefill = self.prefill.iter().copied().max().unwrap_or(0);
        let decode = self.decode.iter().copied().max().unwrap_or(0);
        prefill
            .max(self.depth.max(1).saturating_add(decode))
            .saturating_add(SPARE_TOKENS)
    }
}

pub(crate) fn run(
    args: &Args,
    common: &Common,
    interrupts: &Arc<Interrupts>,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let cancel = interrupts.listen()?;
    let choice = choose(common)?;
    let clock = environment::clock();
    let plan = Plan::of(args);
    let mut setup = setup(common, &choice, &clock, Some(plan.context()));
    setup.cards.unproven = args.unproven.then_some(UNPROVEN);
    setup.slots = plan.parallel;
    let mut model = setup.direct(&args.model, &cancel, &mut |_, _, _| super::GO)?;
    let device = model.model().device.clone();
    let backend = backend_json(&choice, Some(model.model()));
    let load_ms = milliseconds(model.model().load_time);
    notice(&choice.line(model.model()));
    let prefill = prefill(&plan, &mut model, &cancel)?;
    let decode = decode(&plan, &mut model, &cancel)?;
    // Before the block that the bandwidth is measured with.
    let peak_rss = environment::peak_rss();
    drop(model);
    let bandwidth = read_bandwidth(device.threads, &clock);
    if output.form() == Form::Json {
        output.json(&json!({
            "prefill": prefill,
            "decode": decode,
            "load_ms": load_ms,
            "peak_rss_bytes": peak_rss,
            "bandwidth_bytes_per_second": bandwidth,
            "threads": device.threads,
            "backend": backend,
            "device": device.name,
            "isa": device.isa,
        }))?;
        return Ok(Exit::Done);
    }
    let speed = |row: &Value| {
        row["tokens_per_second"]["median"]
            .as_f64()
            .unwrap_or_default()
    };
    for row in &prefill {
        output.line(&format!(
            "read {} tokens: {:.1} tokens/s",
            row["tokens"],
            speed(row)
        ))?;
    }
    for row in &decode {
        let (tokens, depth, parallel) = (&row["tokens"], &row["depth"], &row["parallel"]);
        output.line(&format!(
            "write {tokens} tokens after {depth}, {parallel} at once: {:.1} tokens/s",
            speed(row)
        ))?;
    }
    let peak = peak_rss.map_or_else(String::new, |peak| format!(" · {} at most", size(peak)));
    let bandwidth = bandwidth / 1e9;
    output.line(&format!(
        "loaded in {load_ms:.0} ms{peak} · memory read at {bandwidth:.1} GB/s"
    ))?;
    Ok(Exit::Done)
}

fn prefill(plan: &Plan, model: &mut Direct, cancel: &CancelToken) -> Result<Vec<Value>, Failure> {
    let vocabulary = model.model().vocabulary;
    let mut rows = Vec::new();
    for &tokens in &plan.prefill {
        let ids: Vec<u32> = (0..tokens)
            .map(|place| token(vocabulary, 0, place))
            .collect();
        let rates = rates(plan.reps, tokens, || model.time_prefill(&ids, cancel))?;
        rows.push(json!({ "tokens": tokens, "tokens_per_second": rates }));
    }
    Ok(rows)
}

fn decode(plan: &Plan, model: &mut Direct, cancel: &CancelToken) -> Result<Vec<Value>, Failure> {
    let vocabulary = model.model().vocabulary;
    let (depth, parallel) = (plan.depth, plan.parallel);
    let mut rows = Vec::new();
    for &tokens in &plan.decode {
        let run = DecodeRun {
            tokens,
            depth,
            parallel,
        };
        let token = |sequence, place| token(vocabulary, sequence, place);
        let time = || model.time_decode(run, &token, cancel);
        let rates = rates(plan.reps, tokens * parallel, time)?;
        rows.push(json!({
            "tokens": tokens,
            "depth": depth,
            "parallel": parallel,
            "tokens_per_second": rates,
        }));
    }
    Ok(rows)
}

/// Tokens per second over some rounds, after one that is not counted.
fn rates<E: Into<candor_app::headless::Failure>>(
    reps: usize,
    tokens: usize,
    mut time: impl FnMut() -> Result<Duration, E>,
) -> Result<Value, Failure> {
    let mut rates = Vec::with_capacity(reps);
    for round in 0..=reps {
        let took = time().map_err(Into::into)?;
        if round > 0 {
            rates.push(tokens as f64 / took.as_secs_f64().max(f64::MIN_POSITIVE));
        }
    }
    rates.sort_by(f64::total_cmp);
    let middle = rates.len() / 2;
    let median = if rates.len().is_multiple_of(2) {
        f64::midpoint(rates[middle - 1], rates[middle])
    } else {
        rates[middle]
    };
    Ok(json!({ "median": median, "min": rates[0], "max": rates[rates.len() - 1] }))
}

/// A fixed token for a place: spread over the vocabulary, no two neighbours alike, and other ones
/// for each sequence.
fn token(vocabulary: usize, sequence: usize, place: usize) -> u32 {
    let spread = place
        .wrapping_mul(7_919)
        .wrapping_add(sequence.wrapping_mul(104_729))
        + 13;
    u32::try_from(spread % vocabulary.max(1)).unwrap_or(0)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
