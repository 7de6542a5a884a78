//! The workbench: makes models out of graphs and seeds, and runs them.

use std::collections::HashMap;
use std::sync::Arc;

use candor_arch::{
    Architecture, Features, Graph, GraphBuilder, HParams, Node, NodeId, Op, WeightId, WeightKind,
};
use candor_quant::QuantType;

use super::{Subject, Tolerance};
use crate::{
    Batch, CancelToken, Loaded, Model, OpenOptions, Outcome, Part, Progress, RowOutput, Rows,
    Session, SlotId, Step, Tap, Want,
};

/// A tensor as it goes into a file.
pub struct TensorBytes {
    /// Its name.
    pub name: String,
    /// Outermost first.
    pub dims: Vec<usize>,
    /// Its storage type.
    pub quant: &'static QuantType,
    /// Its data.
    pub bytes: Vec<u8>,
}

/// A graph with weights.
pub(super) struct Bench {
    pub(super) graph: Graph,
    tensors: Vec<TensorBytes>,
    /// What the tensors stand for.
    values: HashMap<String, Vec<f32>>,
}

/// The type of that name.
pub(super) fn quant(name: &str) -> &'static QuantType {
    candor_quant::by_name(name).expect("the suite names types of the table")
}

/// Numbers from -1 to 1 that depend on a name alone (splitmix64 after Steele, Lea and Flood,
/// started with FNV-1a).
pub(super) fn numbers(name: &str, n: usize) -> Vec<f32> {
    let start = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
    });
    let number = |i: u64| {
        let mut z = start.wrapping_add((i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..n as u64).map(number).collect()
}

impl Bench {
    /// Gives a graph seeded weights; `stored` says the type of a matrix by its name.
    pub(super) fn new(graph: Graph, stored: impl Fn(&str) -> &'static QuantType) -> Self {
        let mut bench = Self {
            graph,
            tensors: Vec::new(),
            values: HashMap::new(),
        };
        for weight in bench.graph.weights.clone() {
            let dims = weight.tensor_dims();
            let n = dims.iter().product();
            let raw = numbers(&weight.name, n);
            let (quant, raw): (_, Vec<f32>) = match weight.kind {
                // Sums over a row keep the size of what goes in.
                WeightKind::Matrix => {
                    let columns = weight.dims.last().copied().unwrap_or(1);
                    let scale = (3.0 / columns as f32).sqrt();
                    (
                        stored(&weight.name),
                        raw.iter().map(|v| v * scale).collect(),
                    )
                }
                WeightKind::Vector if weight.name.ends_with("bias") => (quant("F32"), raw),
                // What is kept fades.
                WeightKind::Vector if weight.name.ends_with("ssm_a") => {
                    (quant("F32"), raw.iter().map(|v| -1.5 - v).collect())
                }
                WeightKind::Vector => (quant("F32"), raw.iter().map(|v| 1.5 + v).collect()),
            };
            bench.set(&weight.name, &dims, quant, &raw);
        }
        bench
    }

    /// Replaces a tensor.
    pub(super) fn set(
        &mut self,
        name: &str,
        dims: &[usize],
        quant: &'static QuantType,
        raw: &[f32],
    ) {
        let size = quant.bytes_for(raw.len()).expect("whole blocks");
        let mut bytes = vec![0; size];
        (quant.quantize)(raw, &mut bytes);
        let mut values = vec![0.0; raw.len()];
        (quant.dequantize)(&bytes, &mut values);
        self.tensors.retain(|tensor| tensor.name != name);
        self.tensors.push(TensorBytes {
            name: name.to_owned(),
            dims: dims.to_vec(),
            quant,
            bytes,
        });
        self.values.insert(name.to_owned(), values);
    }

    /// What a weight stands for.
    pub(super) fn values(&self, id: WeightId) -> &[f32] {
        let weight = self.graph.weight(id);
        let values = &self.values[&weight.name];
        &values[weight.bytes_of(0..values.len())]
    }

    /// What a tensor stands for, if there is one of that name.
    pub(super) fn named(&self, name: &str) -> Option<&[f32]> {
        self.values.get(name).map(Vec::as_slice)
    }

    pub(super) fn model(&self, subject: &Subject) -> Arc<Model> {
        Arc::new(Model {
            file: (subject.file)(&self.tensors),
            graph: self.graph.clone(),
        })
    }

    pub(super) fn load(&self, subject: &Subject) -> Box<dyn Loaded> {
        let loaded = (subject.backend)().load(self.model(subject), Part::All, &mut Unwatched);
        loaded.expect("the model loads")
    }

    /// Runs the tokens in one forward and gives what each node gave.
    pub(super) fn outputs(&self, subject: &Subject, tokens: &[u32]) -> HashMap<String, Vec<f32>> {
        self.outputs_of(subject, &[tokens])
    }

    /// The same with the last tokens in forwards of their own, where those of few rows have an
    /// arithmetic of their own.
    pub(super) fn outputs_in_parts(
        &self,
        subject: &Subject,
        tokens: &[u32],
    ) -> HashMap<String, Vec<f32>> {
        if subject.few_rows == 0 || tokens.len() <= LAST_ROWS {
            return self.outputs(subject, tokens);
        }
        let (most, last) = tokens.split_at(tokens.len() - LAST_ROWS);
        let (two, one) = last.split_at(LAST_ROWS - 1);
        self.outputs_of(subject, &[most, two, one])
    }

    fn outputs_of(&self, subject: &Subject, parts: &[&[u32]]) -> HashMap<String, Vec<f32>> {
        let mut session = open(subject, &*self.load(subject), 1, 1024);
        let mut seen = Seen::default();
        for tokens in parts {
            let batch = Batch::of_slot(SLOT, tokens, Want::Logits);
            let showing = (&mut seen as &mut dyn Tap, &CancelToken::new());
            let outcome = session.tapped(&batch, showing, &mut Rows::default());
            assert_eq!(outcome.expect("the forward succeeds"), Outcome::Done);
        }
        seen.0
    }
}

/// Rows that [`Bench::outputs_in_parts`] computes behind the others.
const LAST_ROWS: usize = 3;

/// The first slot.
pub(super) const SLOT: SlotId = SlotId(0);

/// Nobody watches.
pub(super) struct Unwatched;

impl Progress for Unwatched {
    fn report(&mut self, _done_bytes: u64, _total_bytes: u64) -> Step {
        Step::Go
    }
}

/// What each node gave.
#[derive(Default)]
pub(super) struct Seen(pub(super) HashMap<String, Vec<f32>>);

impl Tap for Seen {
    fn output(&mut self, node: &str, rows: usize, width: usize, values: &[f32]) {
        assert_eq!(values.len(), rows * width, "{node}: rows of its width");
        self.0
            .entry(node.to_owned())
            .or_default()
            .extend_from_slice(values);
    }
}

/// A session of slots that can all be full.
pub(super) fn open(
    subject: &Subject,
    loaded: &dyn Loaded,
    slots: usize,
    ctx_len: usize,
) -> Box<dyn Session> {
    let options = OpenOptions {
        ctx_len,
        slots_max: slots,
        state_tokens: slots * ctx_len.next_multiple_of(256),
        kv: subject.kv,
        precision: subject.precision,
    };
    loaded.open(options).expect("the session opens")
}

/// Runs a batch to its end.
pub(super) fn run(session: &mut dyn Session, batch: &Batch) -> Vec<RowOutput> {
    let mut rows = Rows::default();
    let ticket = session
        .submit(batch, &CancelToken::new())
        .expect("the batch is accepted");
    let outcome = session
        .collect(ticket, &mut rows)
        .expect("the forward succeeds");
    assert_eq!(outcome, Outcome::Done);
    rows.outputs
}

/// A graph of one operation between the embedding and an output matrix. `node` gets the builder
/// and the embedding, whose rows have `width` values.
pub(super) fn around(
    width: usize,
    node: impl FnOnce(&mut GraphBuilder<'_>, NodeId) -> NodeId,
) -> Graph {
    let mut builder = GraphBuilder::new(&|_| true);
    let table = builder.matrix("token_embd.weight", VOCABULARY, width);
    let embed = builder.node(Node {
        name: "embed".to_owned(),
        op: Op::Embed { table },
        inputs: Vec::new(),
        layer: None,
        width,
    });
    let last = node(&mut builder, embed);
    let weight = builder.matrix("output.weight", VOCABULARY, builder.width(last));
    builder.node(Node {
        name: "logits".to_owned(),
        op: Op::Logits {
            weight,
            softcap: None,
        },
        inputs: vec![last],
        layer: None,
        width: VOCABULARY,
    });
    builder.finish(
        "llama",
        HParams {
            n_layers: 0,
            width,
            ..SMALL
        },
    )
}

/// Tokens of the suite's models: no multiple of a power of two, so that there is a tail.
pub(super) const VOCABULARY: usize = 203;

/// A model that is small, and whose rows are whole blocks of every type.
pub(super) const SMALL: HParams = HParams {
    n_layers: 2,
    width: 256,
    n_heads: 8,
    n_kv_heads: 2,
    head_dim: 32,
    n_rot: 32,
    ffn_width: 512,
    vocabulary: VOCABULARY,
    context_length: 1024,
    norm_eps: 1e-5,
    rope_base: 10_000.0,
    attention_scale: 0.18,
    features: Features::SMALL,
};

/// The whole graph of an architecture for [`SMALL`], all tensors there.
pub(super) fn small(architecture: &Architecture) -> Graph {
    let mut builder = GraphBuilder::new(&|name| !name.ends_with("attn_output.bias"));
    (architecture.build)(&SMALL, &mut builder);
    builder.finish(architecture.names[0], SMALL)
}

/// Some tokens of the suite's vocabulary.
pub(super) fn tokens(name: &str, n: usize) -> Vec<u32> {
    let token = |v: &f32| ((v + 1.0) / 2.0 * (VOCABULARY - 1) as f32) as u32;
    numbers(name, n).iter().map(token).collect()
}

/// Holds a result against the reference.
pub(super) fn compare(
    subject: &Subject,
    what: &str,
    found: &[f32],
    expected: &[f64],
    tolerance: Tolerance,
) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let off = |(f, e): (&f32, &f64)| (f64::from(*f) - e).powi(2);
    let distance = found.iter().zip(expected).map(off).sum::<f64>().sqrt();
    let length = expected.iter().map(|e| e * e).sum::<f64>().sqrt();
    let limit = tolerance.of(subject.precision) * length;
    assert!(
        distance <= limit,
        "{what}: off by {distance:e}, {limit:e} is allowed"
    );
}

/// Where values are moved or multiplied one by one.
pub(super) const ONE_BY_ONE: Tolerance = Tolerance {
    exact: 1e-6,
    fast: 1e-6,
};

/// Holds one operation without weights, on the embedding, against what is expected of a row.
pub(super) fn check_op(
    subject: &Subject,
    op: Op,
    (input_width, width): (usize, usize),
    expected: impl Fn(&[f64]) -> Vec<f64>,
) {
    let what = op.name();
    let graph = around(input_width, |builder, embed| {
        builder.node(Node {
            name: "out".to_owned(),
            op,
            inputs: vec![embed],
            layer: None,
            width,
        })
    });
    let bench = Bench::new(graph, |_| quant("F32"));
    let seen = bench.outputs(subject, &tokens(what, 9));
    let rows = seen["embed"].chunks_exact(input_width);
    let expected: Vec<f64> = rows
        .flat_map(|row| expected(&super::reference::wide(row)))
        .collect();
    compare(subject, what, &seen["out"], &expected, ONE_BY_ONE);
}
