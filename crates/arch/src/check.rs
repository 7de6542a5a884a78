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
    /// A tensor that nothing asks for is one of those that change the results.
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

/// How the names of tensors end that change products or rows: left out, they would leave a model that
/// runs and writes nonsense.
const NEEDED_ENDS: [&str; 3] = [".bias", ".scale", "norm.weight"];

/// How the names of tensors begin that turn queries and keys in another way.
const ROPE_FACTORS: &str = "rope_factors";

/// How the names of tensors begin that belong to no layer and change rows.
const BEFORE_AND_BEHIND: [&str; 2] = ["token_embd", "output"];

/// Every problem of the file with this graph; empty if it can be run. Tensors that the graph does
/// not ask for are no problem, unless they change what its layers give.
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
    let belongs = |name: &str| match name.strip_prefix("blk.") {
        // Layers behind the last are another model's, which guesses what this one will say.
        Some(rest) => {
            let layer = rest.split('.').next().and_then(|layer| layer.parse().ok());
            layer.is_some_and(|layer: usize| layer < graph.hparams.n_layers)
        }
        None => BEFORE_AND_BEHIND
            .iter()
            .any(|start| name.starts_with(start)),
    };
    let changes = |name: &str| {
        let ends = NEEDED_ENDS.iter().any(|end| name.ends_with(end));
        name.starts_with(ROPE_FACTORS) || (ends && belongs(name))
    };
    let unused = extra.into_iter().filter(|tensor| changes(&tensor.name));
    problems.extend(unused.map(|tensor| Problem::Unused {
        name: tensor.name.clone(),
    }));
    problems
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
        Some(found) => Problem::Experts { name, found },
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
