//! From what a file says to what is true of the model, as far as the file can tell.
//!
//! The canonical metadata has GGUF's keys. What shapes can tell is taken from them; what they
//! contradict is refused; what is doubtful becomes a note.

use std::collections::HashMap;

use crate::error::{AprError, ParseError};
use crate::index::{Layout, Note, TensorInfo};
use crate::metadata::{Metadata, MetadataError};
use crate::unpack::{How, Unpack};

use super::entries::Entry;
use super::experts;
use super::names;
use super::numbers::Numbers;
use super::storage::{self, Storage};

/// A model on its way into an index.
pub(super) struct Model {
    pub(super) architecture: String,
    pub(super) metadata: Metadata,
    pub(super) tensors: Vec<TensorInfo>,
    pub(super) notes: Vec<Note>,
    /// Of the tensors with these places.
    unpacks: Vec<(usize, Unpack)>,
}

/// A file's entries by their canonical names.
pub(super) type ByName<'a> = HashMap<&'a str, &'a Entry>;

/// The families whose numbers these files state. Of others they leave out what changes every
/// result: windows, the rotated part of a head, the parameters of recurrent layers.
pub const FAMILIES: &[&str] = &["llama", "qwen2", "qwen3", "qwen3moe"];

/// Who answers for numbers that a converter made up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    Nobody,
    /// A person stated some facts of the file.
    Person,
}

/// The description that `apr convert --quantize q4k` writes into each file, together with head
/// counts, frequency base and family that it made up.
const STAMPED: &str = "Q4K quantized from SafeTensors";

impl Model {
    /// Of the metadata as it is in the file, and the tensor index.
    pub(super) fn new(
        raw: &Metadata,
        mut entries: Vec<Entry>,
        trust: Trust,
    ) -> Result<Self, ParseError> {
        let has_gguf_names = entries.iter().any(|entry| names::is_gguf(&entry.name));
        for entry in &mut entries {
            entry.name = names::canonical(&entry.name);
        }
        let entries = experts::stack(entries)?;
        let mut notes = Vec::new();
        let by_name: ByName<'_> = entries.iter().map(|e| (e.name.as_str(), e)).collect();
        let architecture = architecture(raw, &by_name, &mut notes)?;
        if raw.find_str("description")? == Some(STAMPED) {
            match trust {
                Trust::Nobody => return Err(AprError::Stamped.into()),
                Trust::Person => notes.push(Note::Stamped),
            }
        }
        let numbers = Numbers::read(raw, &by_name, &architecture)?;
        let from_gguf = has_gguf_names || came_from_gguf(raw)?;
        // Who converts a llama to GGUF reorders the rows of Q and K; in Hugging Face's order
        // the two halves of a head are rotated together.
        let has_halves = architecture == "llama" && !from_gguf;
        let is_adjacent = architecture == "llama" && from_gguf;
        if let Some(stated) = raw.find_u64("rope_type")?
            && (stated == 0) != is_adjacent
        {
            notes.push(Note::RopeType { stated });
        }
        let metadata = numbers.metadata(&architecture, raw, &mut notes)?;
        let mut model = Self {
            architecture,
            metadata,
            tensors: Vec::new(),
            notes,
            unpacks: Vec::new(),
        };
        let has_output = by_name
            .get("output.weight")
            .is_some_and(|entry| entry.size > 0);
        for entry in &entries {
            let name = match entry.name.as_str() {
                "lm_head.weight" if has_output => continue,
                "lm_head.weight" => "output.weight",
                other => other,
            };
            let halves = has_halves.then(|| numbers.heads_of(name)).flatten();
            model.add(name, entry, &numbers, halves)?;
        }
        Ok(model)
    }

    /// Adds a tensor; `halves` is its number of heads, if their halves have to be interleaved.
    fn add(
        &mut self,
        name: &str,
        entry: &Entry,
        numbers: &Numbers,
        halves: Option<usize>,
    ) -> Result<(), ParseError> {
        let mut dims = true_dims(name, &entry.dims, numbers);
        let cols = dims.last().copied().unwrap_or(1);
        let rows = entry.part_elems() / cols;
        let how = match storage::of(entry, cols)? {
            // A tied output matrix; any other tensor would be missed by the graph.
            Storage::Nothing => return Ok(()),
            Storage::Rows(quant) => How::Keep(quant),
            Storage::Unpack(how) => how,
        };
        let place = |start: &u64| *start..start.saturating_add(entry.size);
        let sources: Vec<_> = entry.starts.iter().map(place).collect();
        let range = sources[0].clone();
        let quant = how.quant();
        let is_stacked = sources.len() > 1;
        if is_stacked || halves.is_some() || !matches!(how, How::Keep(_)) {
            // A bias has one value for each row of its matrix.
            let (rows, cols) = if dims.len() == 1 {
                (cols, 1)
            } else {
                (rows, cols)
            };
            if is_stacked {
                dims.insert(0, sources.len());
            }
            let unpack = Unpack {
                sources,
                rows,
                cols,
                how,
                interleaved_heads: halves,
            };
            if !unpack.can_interleave() {
                return Err(AprError::Halves {
                    tensor: entry.name.clone(),
                }
                .into());
            }
            self.unpacks.push((self.tensors.len(), unpack));
        }
        let name = name.to_owned();
        self.tensors.push(TensorInfo {
            name,
            dims,
            quant,
            range,
            layout: Layout::Rows,
        });
        Ok(())
    }

    /// Gives the tensors that have to be laid out anew their places behind the file.
    pub(super) fn place(&mut self, file_len: u64) -> Result<Vec<Unpack>, ParseError> {
        let mut end = file_len;
        let mut all = Vec::new();
        for (at, unpack) in std::mem::take(&mut self.unpacks) {
            let tensor = &mut self.tensors[at];
            let start = end;
            let size = unpack.size().and_then(|size| start.checked_add(size));
            let bad_shape = || ParseError::BadShape {
                tensor: tensor.name.clone(),
                dims: tensor.dims.iter().map(|dim| *dim as u64).collect(),
            };
            end = size.ok_or_else(bad_shape)?;
            tensor.range = start..end;
            all.push(unpack);
        }
        if end > file_len {
            self.notes.push(Note::Unpacked {
                tensors: all.len(),
                bytes: end - file_len,
            });
        }
        Ok(all)
    }
}

/// The family, from what the file says and what its tensors allow.
fn architecture(
    raw: &Metadata,
    by_name: &ByName<'_>,
    notes: &mut Vec<Note>,
) -> Result<String, ParseError> {
    let mut stated = None;
    for key in ["architecture", "model.architecture", "hf_model_type"] {
        stated = stated.or(raw.find_str(key)?);
    }
    let stated = stated.ok_or(AprError::Missing {
        what: "architecture",
    })?;
    let name = match stated {
        "mistral" => "llama",
        "qwen" | "qwen2.5" => "qwen2",
        "qwen3_moe" => "qwen3moe",
        other => other,
    };
    if !FAMILIES.contains(&name) {
        return Err(AprError::Family {
            name: stated.to_owned(),
        }
        .into());
    }
    // The importer knows a family by its Q norms, and takes one with experts for a dense one.
    if name == "qwen3" && by_name.contains_key("blk.0.ffn_gate_inp.weight") {
        notes.push(Note::Family {
            stated: stated.to_owned(),
            read_as: "qwen3moe",
        });
        return Ok("qwen3moe".to_owned());
    }
    if name == "qwen2" && !by_name.contains_key("blk.0.attn_q.bias") {
        if !by_name.contains_key("blk.0.attn_q_norm.weight") {
            return Err(AprError::NotQwen2.into());
        }
        notes.push(Note::Family {
            stated: stated.to_owned(),
            read_as: "qwen3",
        });
        return Ok("qwen3".to_owned());
    }
    Ok(name.to_owned())
}

/// Whether the model was a GGUF file before.
fn came_from_gguf(raw: &Metadata) -> Result<bool, MetadataError> {
    let has = |key: &str| raw.value(key).is_some();
    Ok(raw.find_str("original_format")? == Some("gguf")
        || has("tokenizer.pre_type")
        || has("tokenizer.architecture"))
}

/// Dimensions from the role of a tensor: some writers turn them round and some do not, and
/// none turns the bytes.
fn true_dims(name: &str, dims: &[usize], numbers: &Numbers) -> Vec<usize> {
    let width = numbers.width;
    let is_reduction = ["attn_output.", "ffn_down.", "ffn_down_exps."]
        .iter()
        .any(|part| name.contains(part));
    match dims {
        [a, b] => {
            let (wanted, other) = if is_reduction { (a, b) } else { (b, a) };
            let is_turned = *wanted != width && *other == width;
            if is_turned {
                vec![*b, *a]
            } else {
                dims.to_vec()
            }
        }
        [a, b, c] if name.contains("_exps.") => {
            // Stacked experts: [experts, out, in], or [in, out, experts] from other writers.
            let n_experts = numbers.n_experts();
            let is_turned = match (Some(*a) == n_experts, Some(*c) == n_experts) {
                (first, last) if first != last => last,
                // As many experts as an expert has columns: its other side is the width.
                _ => *c != width && *a == width,
            };
            if is_turned {
                vec![*c, *b, *a]
            } else {
                dims.to_vec()
            }
        }
        _ => dims.to_vec(),
    }
}
