//! `candor generate`: one reply.

use std::path::PathBuf;
use std::sync::Arc;

use candor_app::headless::{
    CancelToken, Choice, EndTokens, Ends, FinishReason, GenerateOptions, GenerateRequest,
    Generation, LoadedModel, Prompt, Proof, REPEAT_PENALTY_MAX, REPEAT_PENALTY_MIN,
    REPLY_TOKENS_MAX, RenderOptions, Rendered, RequestError, STOP_STRINGS_MAX, Sampling, Setup,
    Stats, TEMPERATURE_MAX, TextSide, Vocabulary, utc,
};
use candor_app::{Clock, headless};
use serde_json::{Map, Value, json};

use crate::args::{Common, Stated};
use crate::bounds;
use crate::environment;
use crate::failure::{Exit, Failure, Report};
use crate::input;
use crate::interrupt::Interrupts;
use crate::output::{Form, Output, notice};
use crate::reply::{Reply, finish_name, follow, stats_json, stats_line};
use crate::sampling::{FurtherArgs, HeldArgs};
use crate::session::{choose, reply_backend_json, setup};

/// Far more than any vocabulary has; what keeps all is 0.
const TOP_K_MAX: usize = u32::MAX as usize;

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("source").required(true).args(["prompt", "messages", "ids"]))]
pub(crate) struct Args {
    /// The model file
    model: PathBuf,
    /// One message of the user, written through the chat template
    #[arg(long, value_name = "STR", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// Takes the prompt as plain text, without the chat template
    #[arg(long, requires = "prompt")]
    raw: bool,
    /// A JSON list of messages
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,
    /// The tokens; nothing is added
    #[arg(long, value_name = "LIST|@FILE")]
    ids: Option<String>,
    /// Most tokens of the reply
    #[arg(long, value_name = "N", default_value_t = 512, allow_negative_numbers = true,
        value_parser = bounds::whole(1, REPLY_TOKENS_MAX))]
    max_tokens: usize,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    held: HeldArgs,
    /// A text that ends the reply and is not shown; may be given several times
    #[arg(long, value_name = "STR", allow_hyphen_values = true,
        value_parser = bounds::stop_string)]
    stop: Vec<String>,
    /// Writes on where the model ends its reply
    #[arg(long)]
    ignore_eos: bool,
    #[command(flatten)]
    stated: Stated,
}

/// How tokens are chosen.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SamplingArgs {
    /// 0 takes the best token, the lowest id on ties
    #[arg(long, value_name = "T", default_value_t = 0.7, allow_hyphen_values = true,
        value_parser = bounds::number(0.0, TEMPERATURE_MAX))]
    temperature: f32,
    /// Keeps the K best tokens; 0 keeps all
    #[arg(long, value_name = "K", default_value_t = 40, allow_negative_numbers = true,
        value_parser = bounds::whole(0, TOP_K_MAX))]
    top_k: usize,
    /// Keeps the best tokens that together reach this probability
    #[arg(long, value_name = "P", default_value_t = 0.95, allow_hyphen_values = true,
        value_parser = bounds::number(0.0, 1.0))]
    top_p: f32,
    /// Keeps tokens with at least this share of the best one's probability
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_hyphen_values = true,
        value_parser = bounds::number(0.0, 1.0))]
    min_p: f32,
    /// Divides the logits of tokens seen lately
    #[arg(long, value_name = "X", default_value_t = 1.0, allow_hyphen_values = true,
        value_parser = bounds::number(REPEAT_PENALTY_MIN, REPEAT_PENALTY_MAX))]
    repeat_penalty: f32,
    #[command(flatten)]
    further: FurtherArgs,
    /// Same seed, same reply [default: random, and reported]
    #[arg(long, value_name = "S", allow_negative_numbers = true,
        value_parser = bounds::whole(0, u64::MAX))]
    seed: Option<u64>,
}

impl SamplingArgs {
    pub(crate) fn sampling(&self, seed: u64) -> Sampling {
        Sampling {
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            repeat_penalty: self.repeat_penalty,
            seed,
            ..self.further.sampling()
        }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(environment::fresh_seed)
    }
}

impl Args {
    /// Ids need no vocabulary.
    fn text_side(&self) -> TextSide {
        match &self.ids {
            Some(_) => TextSide::IdsOnly,
            None => TextSide::Needed,
        }
    }
}

pub(crate) fn run(
    args: &Args,
    common: &Common,
    interrupts: &Arc<Interrupts>,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let cancel = interrupts.listen()?;
    let question = Question::of(args)?;
    let constraint = args.held.constraint()?;
    let choice = choose(common)?;
    let clock = environment::clock();
    let text = args.text_side();
    let assumed = args.stated.assumed();
    let vocabulary = Vocabulary::open_as(&args.model, &assumed, text)?;
    let Asked {
        ids,
        mut stop,
        fallback,
    } = question.ask(&vocabulary, &clock)?;
    fits(ids.len(), common.context())?;
    stop.extend(args.stop.iter().cloned());
    let seed = args.sampling.seed();
    let options = GenerateOptions {
        stop,
        constraint,
        ends: if args.ignore_eos {
            EndTokens::Ignore
        } else {
            EndTokens::Heed
        },
        ..GenerateOptions::new(ids, args.sampling.sampling(seed), args.max_tokens)
    };
    // Past what it was trained for a model writes nonsense, so that takes an explicit --context.
    let need = options.prompt.len().saturating_add(options.max_tokens);
    let context = vocabulary
        .context_length()
        .map_or(need, |trained| need.min(trained))
        .max(1);
    drop(vocabulary);
    let setup = Setup {
        text,
        assumed,
        ..setup(common, &choice, &clock, Some(context))
    };
    let mut said = Said {
        choice,
        seed,
        fallback,
        model: None,
    };
    let prompt_tokens = options.prompt.len();
    let reply = match write(args, &setup, options, &cancel, &mut said, output) {
        Err(Failure::Report(report)) if report.exit == Exit::Interrupted => {
            // Stopped while the model was being loaded: a reply without a word.
            let stats = Stats {
                prompt_tokens,
                ..Stats::default()
            };
            let (text, ids) = (String::new(), Vec::new());
            Reply {
                finish: FinishReason::Cancelled,
                text,
                ids,
                stats,
                moved: None,
            }
        }
        other => other?,
    };
    said.conclude(&reply, output)?;
    let stopped = reply.finish == FinishReason::Cancelled;
    Ok(if stopped {
        Exit::Interrupted
    } else {
        Exit::Done
    })
}

/// What was asked, read before the model file is opened.
enum Question {
    Ids(Vec<u32>),
    Raw(String),
    Messages(Vec<Value>),
}

/// What the model reads, and what ends its turn beside its end tokens.
struct Asked {
    ids: Vec<u32>,
    stop: Vec<String>,
    /// Why the template was not used as it is.
    fallback: Option<String>,
}

impl Question {
    fn of(args: &Args) -> Result<Self, Failure> {
        let given = args.stop.len();
        if given > STOP_STRINGS_MAX {
            return Err(Failure::usage(format!(
                "--stop was given {given} times; it can be given {STOP_STRINGS_MAX} times"
            )));
        }
        Ok(match (&args.ids, &args.prompt, &args.messages) {
            (Some(ids), _, _) => Self::Ids(input::ids(ids)?),
            (None, Some(prompt), _) if args.raw => Self::Raw(prompt.clone()),
            (None, Some(prompt), _) => {
                Self::Messages(vec![json!({ "role": "user", "content": prompt })])
            }
            (None, None, Some(path)) => Self::Messages(input::messages(path)?),
            (None, None, None) => Self::Messages(Vec::new()),
        })
    }

    fn ask(self, vocabulary: &Vocabulary, clock: &Clock) -> Result<Asked, Failure> {
        let plain = |ids| Asked {
            ids,
            stop: Vec::new(),
            fallback: None,
        };
        let messages = match self {
            Self::Ids(ids) => return Ok(plain(ids)),
            Self::Raw(text) => {
                return Ok(plain(vocabulary.encode(&Prompt::typed(text), Ends::Chat)?));
            }
            Self::Messages(messages) => messages,
        };
        let rendered = render(vocabulary, &messages, clock)?;
        if let Some(fallback) = &rendered.fallback {
            notice(fallback);
        }
        Ok(Asked {
            ids: rendered.ids,
            stop: rendered.end_strings,
            fallback: rendered.fallback,
        })
    }
}

/// What can be known of a prompt before the weights are loaded.
fn fits(tokens: usize, context: Option<usize>) -> Result<(), Failure> {
    let error = match context {
        _ if tokens == 0 => RequestError::EmptyPrompt,
        Some(ctx_len) if tokens > ctx_len => RequestError::PromptTooLong { tokens, ctx_len },
        _ => return Ok(()),
    };
    Err(headless::Failure::from(error).into())
}

/// A conversation as the model reads it, with the beginning of the reply.
pub(crate) fn render(
    vocabulary: &Vocabulary,
    messages: &[Value],
    clock: &Clock,
) -> Result<Rendered, Failure> {
    let options = RenderOptions {
        variables: Map::new(),
        template: None,
        generation: Generation::Prompt,
        now: Some(utc((clock.now_ms)())),
    };
    Ok(vocabulary.render(messages, &options)?)
}

/// Loads the model and writes the reply.
fn write(
    args: &Args,
    setup: &Setup,
    options: GenerateOptions,
    cancel: &CancelToken,
    said: &mut Said,
    output: &mut Output,
) -> Result<Reply, Failure> {
    let engine = setup.engine().map_err(|error| {
        let message = format!("the engine could not be started: {error}");
        Failure::from(Report::new(Exit::Failed, "engine", message))
    })?;
    let model = setup.load(&engine, &args.model, cancel)?;
    notice(&said.choice.line(&model));
    headless::caveats(&model)
        .iter()
        .for_each(|caveat| notice(caveat));
    said.model = Some(Arc::clone(&model));
    let request = GenerateRequest::new(&model, options, cancel.clone());
    let reply = follow(
        &engine,
        request.map_err(headless::Failure::from)?,
        &model.tokenizer,
        output,
    );
    // What was to be judged by the prompt has been.
    if let (Proof::Awaited(_), Some(judged)) = (&model.proof, engine.state().borrow().model()) {
        notice(&said.choice.line(judged));
        said.model = Some(Arc::clone(judged));
    }
    engine.shutdown();
    reply
}

/// What is said beside the reply.
struct Said {
    choice: Choice,
    seed: u64,
    fallback: Option<String>,
    model: Option<Arc<LoadedModel>>,
}

impl Said {
    fn conclude(&self, reply: &Reply, output: &mut Output) -> Result<(), Failure> {
        if output.form() == Form::Json {
            return Ok(output.json(&json!({
                "finish": finish_name(reply.finish),
                "text": reply.text,
                "ids": reply.ids,
                "stats": stats_json(&reply.stats),
                "seed": self.seed,
                "fallback": self.fallback,
                "backend": reply_backend_json(
                    &self.choice,
                    self.model.as_deref(),
                    &reply.stats.served,
                    reply.moved.as_deref(),
                ),
            }))?);
        }
        if !reply.text.ends_with('\n') {
            output.line("")?;
        }
        output.flush()?;
        notice(&format!("{} · seed {}", stats_line(reply), self.seed));
        Ok(())
    }
}
