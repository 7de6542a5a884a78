//! What commands need that open no store: files described, text as tokens, models computed.
//!
//! Everything here works in the calling thread, but for [`Setup::engine`], which starts the engine
//! that replies come from. Nothing is printed and nothing is looked up in the environment: the
//! command line passes clocks, threads and how the driver is asked for.

mod bandwidth;
mod chosen;
mod codes;
mod device;
mod failure;
mod findings;
mod inspection;
mod rows;
mod setup;
mod told;
mod verification;
mod vocabulary;

pub use bandwidth::read_bandwidth;
pub use candor_arch::limits::CONTEXT_MAX;
pub use candor_backend::{
    DeviceInfo, DeviceKind, DriverFault, KvType, Precision, Step, Unavailable,
};
pub use candor_engine::direct::{DecodeRun, Direct, DirectError};
pub use candor_engine::{
    CONTEXT_TOKENS_DEFAULT, CancelToken, Constraint, EndTokens, EngineHandle, Event, FinishReason,
    GenerateOptions, GenerateRequest, LoadedModel, Logprobs, Priority, REPEAT_PENALTY_MAX,
    REPEAT_PENALTY_MIN, REPLY_TOKENS_MAX, Repeated, RequestError, Reuse, Sampling, Stats,
    TEMPERATURE_MAX, TextSide, TurnCode, TurnLog,
};
pub use candor_engine::{
    DRY_BASE_MAX, DRY_BASE_MIN, DRY_LENGTH_MAX, DRY_MULTIPLIER_MAX, DRY_WINDOW_MAX, PENALTY_MAX,
};
pub use candor_engine::{FirstBad, LoadStage, Located, Mode, NodeDistance, Proof, Report, Served};
pub use candor_modelfile::{Assumed, AssumedError};
pub use candor_text::{
    ChatFormat, Ends, Generation, LocalTime, Prompt, STOP_BYTES_MAX, STOP_STRINGS_MAX, Show,
    Tokenizer, TokenizerError,
};
pub use chosen::ChosenCards;
pub use device::{BackendWish, Choice, Judgement, VerdictKind, choose, look};
pub use failure::{Failure, Kind};
pub use findings::{Finding, Weight, describe, findings};
pub use inspection::{InspectOptions, Inspection, Memory, TemplateSource, inspect};
pub use rows::rows;
pub use setup::{Cards, Setup, caveats, load_failure};
pub use told::{judgement_json, memory_json, not_needed_json, report_json};
pub use verification::{Verification, verify};
pub(crate) use vocabulary::render_with;
pub use vocabulary::{RenderOptions, Rendered, Vocabulary, utc};

pub use crate::compose::CudaDevice;
pub use crate::verdicts::{Kept, Recall, Verdicts};
pub use crate::words::{count, size};
