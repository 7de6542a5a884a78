//! Holds a graph against a file's index, before anything is allocated.

use std::collections::HashSet;
use std::fmt;

use candor_modelfile::{Index, TensorInfo};

use crate::graph::{Graph, Weight, WeightKind};

/// One way in which a file does not hold what its graph needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A tensor is not there.
    Missing {
        /// Its name.
        name: String,
        /// A tensor of the same shape that nothing asks for, which may be it under another name.
        perhaps: Option<String>,
    },
    /// A tensor is not there, and in its place there is one of experts.
    Experts {
        /// Its name.
        name: String,
        /// The name of the other.
        found: String,
    },
    /// A tensor that nothing asks for is not known to leave the results as they are.
    Unused {
        /// Its name.
        name: String,
    },
    /// A tensor has another shape.
    Shape {
        /// Its name.
        name: String,
        /// Outermost first.
        expected: Vec<usize>,
        /// As in the file.
        found: Vec<usize>,
    },
    /// A tensor is stored in a type that cannot stand in its place.
    Type {
        /// Its name.
        name: String,
        /// What may stand there.
        expected: &'static str,
        /// The type's name.
        found: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing {
                name,
                perhaps: None,
            } => write!(f, "the tensor {name} is missing"),
            Self::Missing {
                name,
                perhaps: Some(other),
            } => write!(
                f,
                "the tensor {name} is missing (the file has {other}, of the same shape), \
                 which is not supported by this version"
            ),
            Self::Experts { name, found } => write!(
                f,
                "the tensor {name} is missing, since the file has experts there ({found}): with \
                 them this architecture is not supported by this version"
            ),
            Self::Unused { name } => write!(
                f,
                "the file has the tensor {name}, which changes the results and is not supported by \
                 this version"
            ),
            Self::Shape {
                name,
                expected,
                found,
            } => write!(
                f,
                "the tensor {name} has the shape {}, expected {}",
                shape(found),
                shape(expected)
            ),
            Self::Type {
                name,
                expected,
                found,
            } => {
                write!(
                    f,
                    "the tensor {name} is stored as {found}, expected {expected}"
                )
            }
        }
    }
}

fn shape(dims: &[usize]) -> String {
    let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
    dims.join(" × ")
}

/// What a layer may hold that nothing asks for. Anything else could change what the layer gives, and
/// left out it would leave a model that runs and writes nonsense. These are the inverse frequencies
/// of the rotation, which follow from its base: old checkpoints held them for each layer, and
/// llama.cpp's converter passed them on until May 2024 (ChatQA-1.5 8B has them).
const IDLE_IN_LAYERS: [&str; 2] = [
    // GGUF's name.
    "attn_rot_embd",
    // Hugging Face's, which files keep whose converter did not know it.
    "self_attn.rotary_emb.inv_freq",
];

/// How the names of tensors end that belong to no layer and change products or rows.
const NEEDED_ENDS: [&str; 3] = [".bias", ".scale", "norm.weight"];

/// How the names of tensors begin that turn queries and keys in another way.
const ROPE_FACTORS: &str = "rope_factors";

/// How the names of tensors begin that belong to no layer and change rows.
const BEFORE_AND_BEHIND: [&str; 2] = ["token_embd", "output"];

/// Every problem of the file with this graph; empty if it can be run. What its layers hold has to be
/// asked for; other tensors that the graph does not ask for are a problem only if they are known to
/// change the results.
pub fn check(graph: &Graph, index: &Index) -> Vec<Problem> {
    let wanted: HashSet<&str> = graph.weights.iter().map(|w| w.name.as_str()).collect();
    let mut extra: Vec<&TensorInfo> = index
        .tensors
        .iter()
        .filter(|t| !wanted.contains(t.name.as_str()))
        .collect();
    let mut problems = Vec::new();
    for weight in &graph.weights {
        if weight.part.is_some_and(|part| part.first > 0) {
            // The tensor was compared for the part that has its first rows.
            continue;
        }
        match index.tensor(&weight.name) {
            Some(tensor) => problems.extend(compare(weight, tensor)),
            None => problems.push(missing(weight, &mut extra, index)),
        }
    }
    let n_layers = graph.hparams.n_layers;
    let unused = extra
        .into_iter()
        .filter(|tensor| may_change(&tensor.name, n_layers));
    problems.extend(unused.map(|tensor| Problem::Unused {
        name: tensor.name.clone(),
    }));
    problems
}

/// Whether the results may be others without a tensor of this name.
fn may_change(name: &str, n_layers: usize) -> bool {
    let Some(rest) = name.strip_prefix("blk.") else {
        let outside = BEFORE_AND_BEHIND.iter().any(|at| name.starts_with(at));
        let ends = NEEDED_ENDS.iter().any(|end| name.ends_with(end));
        return name.starts_with(ROPE_FACTORS) || (outside && ends);
    };
    let Some((layer, part)) = rest.split_once('.') else {
        return false;
    };
    let part = part.strip_suffix(".weight").unwrap_or(part);
    // Layers behind the last are another model's, which guesses what this one will say.
    let belongs = layer.parse().is_ok_and(|layer: usize| layer < n_layers);
    belongs && !IDLE_IN_LAYERS.contains(&part)
}

fn compare(weight: &Weight, tensor: &TensorInfo) -> Option<Problem> {
    let expected = weight.tensor_dims();
    if tensor.dims != expected {
        return Some(Problem::Shape {
            name: weight.name.clone(),
            expected,
            found: tensor.dims.clone(),
        });
    }
    // The types whose blocks are single values are the floating-point ones.
    if weight.kind == WeightKind::Vector && tensor.quant.block_elems != 1 {
        return Some(Problem::Type {
            name: weight.name.clone(),
            expected: "F32, F16 or BF16",
            found: tensor.quant.name.to_owned(),
        });
    }
    None
}

fn missing(weight: &Weight, extra: &mut Vec<&TensorInfo>, index: &Index) -> Problem {
    let name = weight.name.clone();
    let stack = name
        .strip_suffix(".weight")
        .map(|stem| format!("{stem}_exps.weight"));
    match stack.filter(|stack| index.tensor(stack).is_some()) {
        Some(found) => {
            extra.retain(|tensor| tensor.name != found);
            Problem::Experts { name, found }
        }
        None => Problem::Missing {
            name,
            perhaps: take_alike(weight, extra),
        },
    }
}

/// Of the tensors that nobody asks for, the one of this weight's shape whose name is most like
/// its name; it is taken, so that it explains one absence only.
fn take_alike(weight: &Weight, extra: &mut Vec<&TensorInfo>) -> Option<String> {
    let alike = |tensor: &TensorInfo| common_ends(&weight.name, &tensor.name);
    let (at, _) = extra
        .iter()
        .enumerate()
        .filter(|(_, tensor)| tensor.dims == weight.tensor_dims())
        .max_by_key(|(_, tensor)| alike(tensor))?;
    Some(extra.swap_remove(at).name.clone())
}

/// Bytes that two names have in common at their ends.
fn common_ends(a: &str, b: &str) -> usize {
    let front = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    let back = a
        .bytes()
        .rev()
        .zip(b.bytes().rev())
        .take_while(|(x, y)| x == y)
        .count();
    front + back
}
