//! The command line.

use std::path::PathBuf;

use candor_app::headless::{
    Assumed, AssumedError, BackendWish, CONTEXT_MAX, KvType, Mode, Precision,
};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::bounds;
use crate::commands::{
    bench, chat, doctor, generate, inspect, logits, perplexity, render, serve, tokenize, verify,
};
use crate::output::Form;

/// Chat with language models on your own machine, from the command line.
#[derive(Debug, Parser)]
#[command(name = "candor", version)]
pub(crate) struct Cli {
    /// What every command understands.
    #[command(flatten)]
    pub(crate) common: Common,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Says what a model file is and whether it can be used; loads nothing
    Inspect(inspect::Args),
    /// Turns text into token ids, or ids into text
    Tokenize(tokenize::Args),
    /// Writes a conversation as the model reads it
    Render(render::Args),
    /// Computes the logits of every position
    Logits(logits::Args),
    /// Computes how well the model predicts a text
    Perplexity(perplexity::Args),
    /// Writes one reply
    Generate(generate::Args),
    /// Holds a conversation in the terminal
    Chat(chat::Args),
    /// Holds the GPU against the CPU
    Verify(verify::Args),
    /// Answers other programs over HTTP
    Serve(serve::Args),
    /// Measures speed and memory
    Bench(bench::Args),
    /// Looks at the machine, the driver and the folders
    Doctor(doctor::Args),
}

/// What every command understands.
#[derive(Clone, Debug, Args)]
pub(crate) struct Common {
    /// What computes; `auto` falls back to the CPU, `gpu` never does [default: what the settings of
    /// the window say, else auto]
    #[arg(long, global = true, value_enum)]
    backend: Option<WishArg>,
    /// When a GPU is held against the CPU before it writes: at the load on a built-in text, on the
    /// first prompt, or on every prompt [default: what the settings say, else probe]
    #[arg(long, global = true, value_enum, value_name = "WHEN")]
    check: Option<CheckArg>,
    /// Which graphics card, counted from 0
    #[arg(long, global = true, value_name = "N", allow_negative_numbers = true,
        value_parser = bounds::whole(0, u32::MAX))]
    pub(crate) device: Option<u32>,
    /// Threads that compute [default: the cores that help]
    #[arg(long, global = true, value_name = "N", allow_negative_numbers = true,
        value_parser = bounds::whole(1, u16::MAX))]
    threads: Option<u16>,
    /// Tokens of context
    #[arg(long, global = true, value_name = "N", allow_negative_numbers = true,
        value_parser = bounds::whole(1, CONTEXT_MAX))]
    context: Option<usize>,
    /// The arithmetic; `exact` keeps activations in float32
    #[arg(long, global = true, value_enum, default_value = "fast")]
    precision: PrecisionArg,
    /// How keys and values are kept: `q8_0` takes about half the memory of `f16` [default: f16, or
    /// float32 with `--precision exact`]
    #[arg(long, global = true, value_enum)]
    kv: Option<KvArg>,
    /// Prints each result as one JSON object on one line
    #[arg(long, global = true)]
    json: bool,
    /// Keeps everything of this program in one folder
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

impl Common {
    pub(crate) fn form(&self) -> Form {
        if self.json { Form::Json } else { Form::Text }
    }

    /// What was asked for, if anything was.
    pub(crate) fn wish(&self) -> Option<BackendWish> {
        self.backend.map(|backend| match backend {
            WishArg::Auto => BackendWish::Auto,
            WishArg::Cpu => BackendWish::Cpu,
            WishArg::Gpu => BackendWish::Gpu,
        })
    }

    /// When a card is to be checked, if that was said.
    pub(crate) fn check(&self) -> Option<Mode> {
        self.check.map(|check| match check {
            CheckArg::Probe => Mode::Probe,
            CheckArg::FirstPrompt => Mode::FirstPrompt,
            CheckArg::EveryPrompt => Mode::EveryPrompt,
        })
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
            .map_or_else(candor_app::compose::default_threads, usize::from)
    }

    pub(crate) fn context(&self) -> Option<usize> {
        self.context
    }

    pub(crate) fn kv(&self) -> Option<KvType> {
        self.kv.map(|kv| match kv {
            KvArg::F16 => KvType::F16,
            KvArg::Q8_0 => KvType::Q8_0,
        })
    }

    pub(crate) fn precision(&self) -> Precision {
        match self.precision {
            PrecisionArg::Exact => Precision::Exact,
            PrecisionArg::Fast => Precision::Fast,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum KvArg {
    F16,
    #[value(name = "q8_0")]
    Q8_0,
}

/// What a person states about a model file.
#[derive(Clone, Debug, Args)]
pub(crate) struct Stated {
    /// A fact that the file lacks or has wrong, such as `expert_used_count=2`; may be given several
    /// times
    #[arg(long, value_name = "KEY=VALUE", value_parser = fact)]
    assume: Vec<String>,
}

fn fact(text: &str) -> Result<String, AssumedError> {
    Assumed::default().add(text).map(|()| text.to_owned())
}

impl Stated {
    pub(crate) fn assumed(&self) -> Assumed {
        let mut assumed = Assumed::default();
        for text in &self.assume {
            assumed.add(text).expect("it was read before");
        }
        assumed
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum WishArg {
    Auto,
    Cpu,
    Gpu,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CheckArg {
    Probe,
    FirstPrompt,
    EveryPrompt,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PrecisionArg {
    Exact,
    Fast,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_holds_together() {
        Cli::command().debug_assert();
    }
}
