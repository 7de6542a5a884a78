//! What can be known of a file without its weights.

use std::path::Path;
use std::sync::Arc;

use candor_arch::{Footprint, FootprintOptions, Graph, Node, Op, PAGE_TOKENS, StateSizes};
use candor_backend::{Backend, KvType, Model, OpenOptions, Precision, Step};
use candor_modelfile::{Index, ModelFile};
use candor_text::{Tokenizer, TokenizerError};

use super::reference::Source;
use super::{
    CONTEXT_TOKENS_DEFAULT, CONTEXT_TOKENS_LEAST, LoadFailure, LoadOptions, LoadSpec, TextSide,
    Watch,
};
use crate::guard::Subject;
use crate::message::LoadStage;
use crate::schedule::CHUNK_TOKENS;

/// A file that was read and checked. Nothing of the model's size was taken yet.
pub(crate) struct Prepared {
    pub(crate) spec: LoadSpec,
    pub(crate) model: Arc<Model>,
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) options: OpenOptions,
}

impl Prepared {
    /// What is to be served.
    pub(crate) fn source(&self) -> Source<'_> {
        Source {
            path: &self.spec.path,
            model: &self.model,
            options: self.options,
        }
    }

    /// What a probe is for.
    pub(crate) fn subject(&self, options: OpenOptions) -> Subject<'_> {
        Subject {
            model: &self.model,
            tokenizer: &self.tokenizer,
            ctx_len: options.ctx_len,
        }
    }

    /// How a session may be opened, the best first: shorter where nobody said how long.
    pub(crate) fn wishes(&self) -> Vec<OpenOptions> {
        let least = CONTEXT_TOKENS_LEAST / PAGE_TOKENS;
        let shorter = least..self.options.ctx_len.div_ceil(PAGE_TOKENS);
        let shorter = shorter.rev().map(|pages| {
            let ctx_len = Some(pages * PAGE_TOKENS);
            let options = LoadOptions {
                ctx_len,
                ..self.spec.options
            };
            open_options(&options, self.model.graph.hparams.context_length)
        });
        let nobody_said = self.spec.options.ctx_len.is_none();
        let shorter = shorter.filter(|_| nobody_said);
        [self.options].into_iter().chain(shorter).collect()
    }

    /// Threads of the reference.
    pub(crate) fn threads(&self, backends: &[Box<dyn Backend>]) -> usize {
        let device = backends.last().and_then(|reference| reference.probe().ok());
        device.map_or(1, |device| device.threads)
    }

    /// What it takes if so many threads of the reference compute, opened like this.
    pub(crate) fn footprint(&self, options: OpenOptions, threads: usize) -> Footprint {
        let state = StateSizes {
            kv: options.kv,
            ctx_len: options.ctx_len,
            slots: options.slots_max,
            tokens: options.state_tokens,
            threads,
        };
        let rows_max = CHUNK_TOKENS;
        let options = FootprintOptions { state, rows_max };
        candor_arch::footprint(&self.model.graph, self.model.file.index(), options)
    }

    /// Memory that it takes if the reference serves; the exact path reads weights where they are
    /// mapped.
    pub(crate) fn needed_bytes(&self, backends: &[Box<dyn Backend>]) -> u64 {
        let footprint = self.footprint(self.options, self.threads(backends));
        match self.options.precision {
            Precision::Exact => footprint.total_bytes() - footprint.weights_bytes,
            Precision::Fast => footprint.total_bytes(),
        }
    }
}

/// Reads the file and checks all that can be known without its weights.
pub(crate) fn prepare(spec: &LoadSpec, watch: &mut Watch<'_>) -> Result<Prepared, LoadFailure> {
    let path = spec.path.clone();
    go(watch(LoadStage::File, 0, 0))?;
    let file = ModelFile::open_as(&path, &spec.assumed)?;
    let index = file.index();
    let refused = |source| LoadFailure::Architecture {
        path: path.clone(),
        source,
    };
    let graph = candor_arch::build(index).map_err(refused)?;
    let problems = candor_arch::check(&graph, index);
    if !problems.is_empty() {
        return Err(LoadFailure::Problems { path, problems });
    }
    let mut spec = spec.clone();
    if keeps_sums(&graph) {
        spec.options.kept = 0;
    }
    let options = open_options(&spec.options, graph.hparams.context_length);
    go(watch(LoadStage::Tokenizer, 0, 0))?;
    let tokenizer = Arc::new(tokenizer(index, spec.options.text, &path)?);
    go(watch(LoadStage::Tokenizer, 0, 0))?;
    let model = Arc::new(Model { file, graph });
    Ok(Prepared {
        spec,
        model,
        tokenizer,
        options,
    })
}

fn tokenizer(index: &Index, text: TextSide, path: &Path) -> Result<Tokenizer, LoadFailure> {
    let spec = index.tokenizer.as_ref();
    let found = spec.map_or(Err(TokenizerError::Absent), Tokenizer::from_spec);
    let path = path.to_owned();
    match (found, text) {
        (Ok(tokenizer), _) => Ok(tokenizer),
        (Err(reason), TextSide::IdsOnly) => Ok(Tokenizer::ids_only(spec, reason)),
        (Err(TokenizerError::Absent), TextSide::Needed) => Err(LoadFailure::NoTokenizer { path }),
        (Err(source), TextSide::Needed) => Err(LoadFailure::Tokenizer { path, source }),
    }
}

pub(super) fn go(step: Step) -> Result<(), LoadFailure> {
    match step {
        Step::Go => Ok(()),
        Step::Stop => Err(LoadFailure::Stopped),
    }
}

/// Whether every slot of its state takes memory of its own, however little it holds.
fn keeps_sums(graph: &Graph) -> bool {
    let is_sum = |node: &Node| matches!(node.op, Op::DeltaNet(_) | Op::CausalConv { .. });
    graph.nodes.iter().any(is_sum)
}

fn open_options(options: &LoadOptions, trained: usize) -> OpenOptions {
    let ctx_len = options
        .ctx_len
        .unwrap_or_else(|| trained.min(CONTEXT_TOKENS_DEFAULT));
    let pages = ctx_len.div_ceil(PAGE_TOKENS).saturating_mul(options.slots);
    OpenOptions {
        ctx_len,
        slots_max: options.slots.saturating_add(options.kept),
        state_tokens: pages.saturating_mul(PAGE_TOKENS),
        kv: options.kv.unwrap_or(match options.precision {
            Precision::Exact => KvType::F32,
            Precision::Fast => KvType::F16,
        }),
        precision: options.precision,
    }
}
