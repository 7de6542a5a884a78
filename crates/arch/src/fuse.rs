//! From nodes to steps: which neighbours a backend computes together.

use crate::graph::{Graph, Node, NodeId, Op};

/// A group of nodes that can be one step. Its meaning is the composition of the nodes' operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// Several `Linear` of one input: the activations are quantised once.
    SharedInput,
    /// `Add` and the `RmsNorm` of its sum: one pass over the row.
    AddNorm,
    /// `Rope` of query and key, and their `Attention`.
    RopeAttention,
    /// The same, after every head of query and key was normalised.
    NormRopeAttention,
}

/// One thing a backend does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which pattern matched; none for a node on its own.
    pub pattern: Option<Pattern>,
    /// The nodes it covers, in the graph's order.
    pub nodes: Vec<NodeId>,
}

/// A graph in the order and the groups in which it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Every node of the graph is in exactly one.
    pub steps: Vec<Step>,
}

/// How a pattern is found.
struct Rule {
    pattern: Pattern,
    /// How many of the graph's nodes, from `first` on, it covers.
    matches: fn(graph: &Graph, first: usize) -> Option<usize>,
}

/// The patterns, the one that covers most first where two begin with the same operation.
const RULES: &[Rule] = &[
    Rule {
        pattern: Pattern::SharedInput,
        matches: shared_input,
    },
    Rule {
        pattern: Pattern::AddNorm,
        matches: add_norm,
    },
    Rule {
        pattern: Pattern::RopeAttention,
        matches: rope_attention,
    },
    Rule {
        pattern: Pattern::NormRopeAttention,
        matches: norm_rope_attention,
    },
];

/// Groups the nodes by the patterns that the backend has.
pub fn fuse(graph: &Graph, patterns: &[Pattern]) -> Plan {
    let mut steps = Vec::new();
    let mut at = 0;
    while at < graph.nodes.len() {
        let hit = RULES
            .iter()
            .filter(|rule| patterns.contains(&rule.pattern))
            .find_map(|rule| Some((rule.pattern, (rule.matches)(graph, at)?)));
        let (pattern, n) = hit.map_or((None, 1), |(pattern, n)| (Some(pattern), n));
        steps.push(Step {
            pattern,
            nodes: (at..at + n).map(NodeId).collect(),
        });
        at += n;
    }
    Plan { steps }
}

fn shared_input(graph: &Graph, first: usize) -> Option<usize> {
    let nodes = &graph.nodes[first..];
    let input = &nodes[0].inputs;
    let n = nodes
        .iter()
        .take_while(|node| matches!(node.op, Op::Linear { .. }) && node.inputs == *input)
        .count();
    (n >= 2).then_some(n)
}

fn add_norm(graph: &Graph, first: usize) -> Option<usize> {
    let [sum, normed, ..] = &graph.nodes[first..] else {
        return None;
    };
    let fits = matches!(sum.op, Op::Add)
        && matches!(normed.op, Op::RmsNorm { .. })
        && normed.inputs == [NodeId(first)];
    fits.then_some(2)
}

fn rope_attention(graph: &Graph, first: usize) -> Option<usize> {
    let [q, k, mixed, ..] = &graph.nodes[first..] else {
        return None;
    };
    let fits = matches!((&q.op, &k.op), (Op::Rope(a), Op::Rope(b)) if a == b)
        && matches!(mixed.op, Op::Attention { .. })
        && mixed.inputs[..2] == [NodeId(first), NodeId(first + 1)];
    fits.then_some(3)
}

fn norm_rope_attention(graph: &Graph, first: usize) -> Option<usize> {
    let [q_norm, k_norm, q, k, ..] = &graph.nodes[first..] else {
        return None;
    };
    let n = 2 + rope_attention(graph, first + 2)?;
    let Op::Rope(rope) = q.op else {
        return None;
    };
    let eps_per_head = |node: &Node| match node.op {
        Op::RmsNorm { weight, eps } => {
            (graph.weight(weight).dims == [rope.head_dim]).then_some(eps)
        }
        _ => None,
    };
    let eps = eps_per_head(q_norm);
    let fits = eps.is_some()
        && eps == eps_per_head(k_norm)
        && q.inputs == [NodeId(first)]
        && k.inputs == [NodeId(first + 1)];
    fits.then_some(n)
}
