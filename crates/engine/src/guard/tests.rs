//! The guard over processors with planted faults.

mod faulty;
mod measured;
mod planted;
mod rules;
mod stored;
mod ties;

use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Instant;

use candor_backend::{
    Backend, CancelToken, DeviceInfo, DeviceKind, KvType, Loaded, Model, OpenOptions, Part,
    Precision, Progress, Session, Step,
};
use candor_cpu::{CpuBackend, CpuConfig};
use candor_modelfile::ModelFile;
use candor_text::Tokenizer;

use super::*;

/// Tokens of the sessions: the built-in probe and one more, with room.
const CTX_LEN: usize = 512;

struct Unwatched;

impl Progress for Unwatched {
    fn report(&mut self, _: u64, _: u64) -> Step {
        Step::Go
    }
}

/// A model with what computes it.
struct Subjected {
    model: Arc<Model>,
    tokenizer: Tokenizer,
    loaded: Box<dyn Loaded>,
}

impl Subjected {
    fn open(path: &FilePath) -> Self {
        let file = ModelFile::open(path).unwrap();
        let graph = candor_arch::build(file.index()).unwrap();
        Self::of(Model { file, graph })
    }

    fn golden(name: &str) -> Self {
        let folder = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/models");
        Self::open(&folder.join(format!("{name}.gguf")))
    }

    fn of(model: Model) -> Self {
        let model = Arc::new(model);
        let spec = model.file.index().tokenizer.as_ref();
        let tokenizer = match spec.map(Tokenizer::from_spec) {
            Some(Ok(tokenizer)) => tokenizer,
            Some(Err(reason)) => Tokenizer::ids_only(spec, reason),
            None => Tokenizer::ids_only(None, candor_text::TokenizerError::Absent),
        };
        let mut backend = CpuBackend::new(CpuConfig {
            prepare: Precision::Exact,
            ..CpuConfig::new(2)
        });
        let loaded = backend
            .load(Arc::clone(&model), Part::All, &mut Unwatched)
            .unwrap();
        Self {
            model,
            tokenizer,
            loaded,
        }
    }

    /// The same file with another graph.
    fn spoiled(&self, spoil: impl FnOnce(&mut candor_arch::Graph)) -> Self {
        let file = ModelFile::open(self.model.file.path()).unwrap();
        let mut graph = self.model.graph.clone();
        spoil(&mut graph);
        Self::of(Model { file, graph })
    }

    fn session(&self, precision: Precision) -> Box<dyn Session> {
        let kv = match precision {
            Precision::Exact => KvType::F32,
            Precision::Fast => KvType::F16,
        };
        let options = OpenOptions {
            ctx_len: CTX_LEN,
            slots_max: 1,
            state_tokens: CTX_LEN,
            kv,
            precision,
        };
        self.loaded.open(options).unwrap()
    }

    fn subject(&self) -> Subject<'_> {
        Subject {
            model: &self.model,
            tokenizer: &self.tokenizer,
            ctx_len: CTX_LEN,
        }
    }

    /// Judges a session against the exact path of this model.
    fn verdict(&self, session: Box<dyn Session>, remembered: Option<Arc<Remembered>>) -> Verdict {
        let probe = Probe::built_in(self.subject()).unwrap();
        self.verdict_on(session, &probe, remembered)
    }

    fn verdict_on(
        &self,
        session: Box<dyn Session>,
        probe: &Probe,
        remembered: Option<Arc<Remembered>>,
    ) -> Verdict {
        self.verdict_of(session, (probe, remembered), CancelToken::new())
    }

    /// The same until somebody stops it.
    fn verdict_until(&self, session: Box<dyn Session>, cancel: CancelToken) -> Verdict {
        let probe = Probe::built_in(self.subject()).unwrap();
        self.verdict_of(session, (&probe, None), cancel)
    }

    fn verdict_of(
        &self,
        session: Box<dyn Session>,
        (probe, remembered): (&Probe, Option<Arc<Remembered>>),
        cancel: CancelToken,
    ) -> Verdict {
        let mut reference = Reference {
            model: &self.model,
            open: &mut || Ok(self.session(Precision::Exact)),
            remembered,
        };
        let policy = Policy {
            id: VerdictId(1),
            mode: Mode::Probe,
            judged_ms: 0,
        };
        let mut watching = Watching {
            cancel,
            progress: &mut |_, _| Step::Go,
            now: &Instant::now,
        };
        let candidate = Candidate::new(session, device());
        verify(&mut reference, candidate, probe, policy, &mut watching)
    }
}

fn device() -> DeviceInfo {
    DeviceInfo {
        kind: DeviceKind::Gpu,
        name: String::from("Planted card"),
        isa: String::from("none"),
        threads: 1,
        memory_bytes: None,
    }
}

/// The report of a candidate that was judged.
fn report(verdict: &Verdict) -> &Report {
    match verdict {
        Verdict::Accepted { report, .. } | Verdict::Rejected(report) => report,
        Verdict::NotJudged { reason, .. } => panic!("not judged: {reason}"),
    }
}
