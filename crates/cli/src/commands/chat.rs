//! `candor chat`: a conversation in the terminal.

use std::io::{self, BufRead};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread;

use candor_app::headless::{
    Choice, EngineHandle, FinishReason, GenerateOptions, GenerateRequest, LoadedModel, Proof,
    REPLY_TOKENS_MAX, RequestError, Vocabulary,
};
use serde_json::{Value, json};

use super::generate::{SamplingArgs, render};
use crate::args::Common;
use crate::bounds;
use crate::environment;
use crate::failure::{Exit, Failure, Report};
use crate::interrupt::Interrupts;
use crate::output::{Output, notice};
use crate::reply::{follow, stats_line};
use crate::session::{choose, setup};

/// What can be done beside typing a message.
const COMMANDS: &str = "Ctrl-C stops a reply; /clear starts anew; /exit leaves.";

/// Longest message in bytes that is read from the terminal: far more than any context holds.
const LINE_BYTES_MAX: usize = 1 << 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The model file
    model: PathBuf,
    /// What the model is told before the conversation
    #[arg(long, value_name = "STR", allow_hyphen_values = true)]
    system: Option<String>,
    /// Most tokens of one reply
    #[arg(long, value_name = "N", default_value_t = 2_048, allow_negative_numbers = true,
        value_parser = bounds::whole(1, REPLY_TOKENS_MAX))]
    max_tokens: usize,
    #[command(flatten)]
    sampling: SamplingArgs,
}

/// What the person did.
enum Heard {
    Line(String),
    End,
    Interrupt,
}

/// A conversation under way.
struct Chat<'a> {
    args: &'a Args,
    choice: Choice,
    engine: EngineHandle,
    model: Arc<LoadedModel>,
    vocabulary: Vocabulary,
    interrupts: &'a Interrupts,
    messages: Vec<Value>,
    /// Why the template was last not used as it is, so that it is said once.
    fallback: Option<String>,
}

pub(crate) fn run(
    args: &Args,
    common: &Common,
    interrupts: &Arc<Interrupts>,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let cancel = interrupts.listen()?;
    let choice = choose(common)?;
    let vocabulary = Vocabulary::open(&args.model)?;
    // The engine decides on the context unless the user did.
    let setup = setup(common, &choice, &environment::clock(), None);
    let engine = setup.engine().map_err(|error| {
        let message = format!("the engine could not be started: {error}");
        Failure::from(Report::new(Exit::Failed, "engine", message))
    })?;
    let model = setup.load(&engine, &args.model, &cancel)?;
    notice(&choice.line(&model));
    notice(&format!("Type a message. {COMMANDS}"));
    let mut chat = Chat {
        args,
        choice,
        engine,
        model,
        vocabulary,
        interrupts,
        messages: Vec::new(),
        fallback: None,
    };
    chat.clear();
    let ended = chat.talk(output);
    chat.engine.shutdown();
    ended
}

impl Chat<'_> {
    fn clear(&mut self) {
        let system = self.args.system.iter();
        let system = system.map(|text| json!({ "role": "system", "content": text }));
        self.messages = system.collect();
    }

    fn talk(&mut self, output: &mut Output) -> Result<Exit, Failure> {
        let (sender, heard) = mpsc::channel();
        let typed = sender.clone();
        // It waits for input until the program ends.
        thread::spawn(move || read_lines(&typed));
        loop {
            let sender = sender.clone();
            self.interrupts.when_idle(Some(Box::new(move || {
                // The loop that would hear it may have ended.
                let _ = sender.send(Heard::Interrupt);
            })));
            // It may have been said just before anybody was told.
            if self.interrupts.want_to_leave() {
                return Ok(Exit::Interrupted);
            }
            output.model_text("> ")?;
            let line = heard.recv().unwrap_or(Heard::End);
            self.interrupts.when_idle(None);
            match line {
                Heard::Interrupt => {
                    output.line("")?;
                    return Ok(Exit::Interrupted);
                }
                Heard::End => {
                    output.line("")?;
                    return Ok(Exit::Done);
                }
                Heard::Line(line) => match line.trim() {
                    "" => {}
                    "/exit" | "/quit" => return Ok(Exit::Done),
                    "/clear" => self.clear(),
                    "/help" => notice(COMMANDS),
                    text if is_command(text) => {
                        notice(&format!("{text} is not a command. {COMMANDS}"));
                    }
                    // The first press stops the reply; a second one leaves.
                    text => self.turn(text, output)?,
                },
            }
        }
    }

    /// The model by the proof that its prompt has just brought, or as something else computes it.
    fn judged(&mut self) -> Option<Arc<LoadedModel>> {
        let state = self.engine.state();
        let now = state.borrow().model().cloned()?;
        let before = &self.model;
        let was_open = matches!(before.proof, Proof::Awaited(_)) && now.proof != before.proof;
        let is_news = now.id == before.id && (was_open || now.device != before.device);
        is_news.then(|| {
            self.model = Arc::clone(&now);
            now
        })
    }

    /// What helps where a message does not fit.
    fn way_out(&self) -> &'static str {
        if self
            .messages
            .iter()
            .any(|message| message["role"] == "user")
        {
            "; /clear starts anew"
        } else {
            "; write a shorter message, or start with a larger --context"
        }
    }

    fn turn(&mut self, text: &str, output: &mut Output) -> Result<(), Failure> {
        let cancel = self.interrupts.renew();
        self.messages
            .push(json!({ "role": "user", "content": text }));
        let rendered = render(&self.vocabulary, &self.messages, &environment::clock())?;
        if let Some(fallback) = &rendered.fallback
            && self.fallback != rendered.fallback
        {
            notice(fallback);
        }
        self.fallback = rendered.fallback;
        let options = GenerateOptions {
            stop: rendered.end_strings,
            ..GenerateOptions::new(
                rendered.ids,
                self.args.sampling.sampling(self.args.sampling.seed()),
                self.args.max_tokens,
            )
        };
        let request = match GenerateRequest::new(&self.model, options, cancel) {
            Ok(request) => request,
            Err(error @ RequestError::PromptTooLong { .. }) => {
                // The conversation stays as it was before this message.
                self.messages.pop();
                notice(&format!("{error}{}", self.way_out()));
                return Ok(());
            }
            Err(error) => return Err(candor_app::headless::Failure::from(error).into()),
        };
        let reply = follow(&self.engine, request, &self.model.tokenizer, output)?;
        let judged = self.judged();
        if reply.text.is_empty() {
            // A template could not tell a reply without a word from an answer.
            self.messages.pop();
        } else {
            self.messages
                .push(json!({ "role": "assistant", "content": reply.text }));
        }
        output.line("")?;
        // The notice goes another way, and must not come before the end of the line.
        output.flush()?;
        if let Some(judged) = judged {
            notice(&self.choice.line(&judged));
        }
        notice(&stats_line(&reply));
        if reply.finish == FinishReason::ContextFull {
            notice("The context is full: the next message may not fit. /clear starts anew.");
        }
        Ok(())
    }
}

/// One word behind a slash, as commands look. A path has more of them, a message more words.
fn is_command(text: &str) -> bool {
    let word = text.strip_prefix('/').unwrap_or_default();
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase())
}

fn read_lines(sender: &mpsc::Sender<Heard>) {
    let mut input = io::stdin().lock();
    loop {
        let mut bytes = Vec::new();
        let mut bounded = io::Read::take(&mut input, LINE_BYTES_MAX as u64);
        let heard = match bounded.read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => Heard::End,
            Ok(_) => Heard::Line(String::from_utf8_lossy(&bytes).into_owned()),
        };
        let ends = matches!(heard, Heard::End);
        if sender.send(heard).is_err() || ends {
            return;
        }
    }
}
