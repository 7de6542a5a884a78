//! Experts in tensors of their own, one for each expert, become one stack of all experts.

use std::collections::BTreeMap;

use crate::error::AprError;

use super::entries::Entry;

/// What Hugging Face calls the matrices of an expert, and what their stacks are called here.
const PARTS: &[(&str, &str)] = &[
    ("gate_proj", "ffn_gate_exps"),
    ("up_proj", "ffn_up_exps"),
    ("down_proj", "ffn_down_exps"),
];

/// The stack that a tensor belongs to and its place in it, by its canonical name
/// (`blk.0.mlp.experts.3.up_proj.weight`).
fn place_of(name: &str) -> Option<(String, usize)> {
    let (layer, rest) = name.strip_prefix("blk.")?.split_once(".mlp.experts.")?;
    let (expert, rest) = rest.split_once('.')?;
    let (part, end) = rest.split_once('.')?;
    let (_, ours) = PARTS.iter().find(|(theirs, _)| *theirs == part)?;
    Some((format!("blk.{layer}.{ours}.{end}"), expert.parse().ok()?))
}

/// Puts the experts of each layer together; everything else stays as it is.
pub(super) fn stack(entries: Vec<Entry>) -> Result<Vec<Entry>, AprError> {
    let mut stacks: BTreeMap<String, BTreeMap<usize, Entry>> = BTreeMap::new();
    let mut all = Vec::with_capacity(entries.len());
    for entry in entries {
        match place_of(&entry.name) {
            Some((stack, expert)) => {
                let tensor = stack.clone();
                let before = stacks.entry(stack).or_default().insert(expert, entry);
                if before.is_some() {
                    return Err(AprError::LooseExperts { tensor });
                }
            }
            None => all.push(entry),
        }
    }
    for (name, experts) in stacks {
        all.push(one(name, &experts)?);
    }
    Ok(all)
}

/// The stack of experts that are all there and all alike.
fn one(name: String, experts: &BTreeMap<usize, Entry>) -> Result<Entry, AprError> {
    let alike = |entry: &Entry| (entry.code, entry.dims.clone(), entry.size);
    let mut each = experts.iter().enumerate();
    let (_, (_, first)) = each.clone().next().expect("a stack has an expert");
    let is_whole = each.all(|(place, (expert, entry))| {
        place == *expert && alike(entry) == alike(first) && entry.dims.len() == 2
    });
    if !is_whole || first.size == 0 {
        return Err(AprError::LooseExperts { tensor: name });
    }
    Ok(Entry {
        name,
        starts: experts
            .values()
            .flat_map(|entry| entry.starts.clone())
            .collect(),
        ..first.clone()
    })
}
