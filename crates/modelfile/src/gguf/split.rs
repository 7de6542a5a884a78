//! One model in several files: `name-00001-of-00003.gguf` and so on.
//!
//! Each part is a GGUF file with its own tensors and the entries `split.no` (from 0),
//! `split.count` and `split.tensors.count`; the first one has the metadata of the model.
//! Source: ggml's `gguf-split` tool and the writer of the `gguf` Python package.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::error::{OpenError, ParseError, PartsDifference, Refusal};
use crate::index::Index;
use crate::limits;
use crate::map::Map;
use crate::metadata::{Metadata, MetadataError, Value};
use crate::segments::Segments;

use super::Part;

/// What a part says about the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Split {
    /// Which part, from 0.
    pub(super) no: u64,
    /// How many parts there are; at least two.
    pub(super) count: u64,
    /// How many tensors all parts have together, if the file says so.
    tensors: Option<u64>,
}

impl Split {
    /// Of the metadata; `None` if the file is a whole model.
    pub(super) fn of(metadata: &Metadata) -> Result<Option<Self>, MetadataError> {
        let count = metadata.find_u64("split.count")?.unwrap_or(1);
        if count <= 1 {
            return Ok(None);
        }
        Ok(Some(Self {
            no: metadata.find_u64("split.no")?.unwrap_or(0),
            count,
            tensors: metadata.find_u64("split.tensors.count")?,
        }))
    }
}

/// The name of a part of a split model, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartName<'a> {
    /// What the parts' names begin with.
    pub stem: &'a str,
    /// Which part, from 1.
    pub part: u64,
    /// How many there are.
    pub parts: u64,
}

impl<'a> PartName<'a> {
    /// Of a file name such as `stem-00001-of-00003.gguf`.
    pub fn of(file_name: &'a str) -> Option<Self> {
        let name = file_name.strip_suffix(".gguf")?;
        let (rest, parts) = name.rsplit_once("-of-")?;
        let (stem, part) = rest.rsplit_once('-')?;
        let number = |digits: &str| {
            let is_number = digits.len() == 5 && digits.bytes().all(|b| b.is_ascii_digit());
            digits.parse().ok().filter(|_| is_number)
        };
        let (part, parts) = (number(part)?, number(parts)?);
        (1..=parts)
            .contains(&part)
            .then_some(Self { stem, part, parts })
    }

    /// The name of another part.
    pub fn file_name(&self, part: u64) -> String {
        format!("{}-{part:05}-of-{:05}.gguf", self.stem, self.parts)
    }
}

/// Opens all parts of a model, of which one is open and read.
pub(super) fn open(
    path: &Path,
    map: Map,
    first_read: Part,
    split: Split,
) -> Result<(Index, Segments), OpenError> {
    let refuse = |reason: Refusal| OpenError {
        path: path.to_owned(),
        reason,
    };
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(PartName::of);
    let part = split.no.saturating_add(1);
    let nameless = Refusal::PartName {
        part,
        parts: split.count,
    };
    let name = name.filter(|name| name.parts == split.count);
    let name = name.ok_or(nameless).map_err(refuse)?;
    if split.count > limits::SPLIT_PARTS_MAX {
        return Err(refuse(Refusal::Parse(ParseError::LimitExceeded {
            what: "parts",
            found: split.count,
            limit: limits::SPLIT_PARTS_MAX,
        })));
    }
    let mut opened = Some((map, first_read));
    let mut parts = Vec::new();
    for number in 1..=split.count {
        let path = path.with_file_name(name.file_name(number));
        let (map, read) = match opened.take_if(|_| number == name.part) {
            Some(opened) => opened,
            None => open_part(&path, number, split.count)?,
        };
        parts.push(OpenPart { path, map, read });
    }
    for (i, part) in parts.iter().enumerate() {
        belongs(part, i as u64, &split, &parts[0].read.metadata).map_err(refuse)?;
    }
    join(parts, &split).map_err(refuse)
}

/// One part.
struct OpenPart {
    path: PathBuf,
    map: Map,
    read: Part,
}

impl OpenPart {
    fn stranger(&self, why: PartsDifference) -> Refusal {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        Refusal::PartsDiffer {
            part: name.to_string_lossy().into_owned(),
            why,
        }
    }
}

fn open_part(path: &Path, part: u64, parts: u64) -> Result<(Map, Part), OpenError> {
    let refuse = |reason: Refusal| OpenError {
        path: path.to_owned(),
        reason,
    };
    let map = Map::open(path).map_err(|reason| match reason {
        Refusal::NotFound => refuse(Refusal::PartMissing { part, parts }),
        other => refuse(other),
    })?;
    let read = super::read(map.bytes(), map.len()).map_err(|e| refuse(e.into()))?;
    Ok((map, read))
}

/// Refuses a part that is not the one of this place in this model.
fn belongs(part: &OpenPart, no: u64, whole: &Split, first: &Metadata) -> Result<(), Refusal> {
    let metadata = &part.read.metadata;
    let Some(split) = part.read.split else {
        return Err(part.stranger(PartsDifference::Whole));
    };
    if (split.no, split.count) != (no, whole.count) {
        return Err(part.stranger(PartsDifference::Number {
            part: split.no.saturating_add(1),
            parts: split.count,
        }));
    }
    if split.tensors != whole.tensors {
        return Err(part.stranger(PartsDifference::Tensors));
    }
    // Parts behind the first repeat little or nothing; what they repeat has to be the same.
    let differs = |(key, value): &(&str, &Value)| match first.value(key) {
        Some(of_first) => *key != "split.no" && of_first != *value,
        None => key.starts_with("general."),
    };
    match metadata.iter().find(differs) {
        Some((key, _)) => {
            let key = key.to_owned();
            Err(part.stranger(PartsDifference::Entry { key }))
        }
        None => Ok(()),
    }
}

/// One index over the tensors of all parts.
fn join(parts: Vec<OpenPart>, whole: &Split) -> Result<(Index, Segments), Refusal> {
    let n_tensors: u64 = parts
        .iter()
        .map(|part| part.read.tensors.len() as u64)
        .sum();
    if let Some(expected) = whole.tensors.filter(|expected| *expected != n_tensors) {
        return Err(parts[0].stranger(PartsDifference::Count {
            found: n_tensors,
            expected,
        }));
    }
    if let Some((part, tensor)) = repeated(&parts) {
        return Err(part.stranger(PartsDifference::Repeats {
            tensor: tensor.to_owned(),
        }));
    }
    let mut segments = Segments::default();
    let mut joined: Option<Part> = None;
    for mut part in parts {
        let start = segments.end();
        for tensor in &mut part.read.tensors {
            tensor.range = tensor.range.start + start..tensor.range.end + start;
        }
        match &mut joined {
            None => joined = Some(part.read),
            Some(first) => first.tensors.append(&mut part.read.tensors),
        }
        segments.push_file(part.path, part.map);
    }
    let first = joined.expect("a split model has at least two parts");
    let index = first.into_index(segments.end()).map_err(Refusal::Parse)?;
    Ok((index, segments))
}

/// The first part that has a tensor of a part before it. Looked up, since hostile parts have so
/// many tensors that to compare each with each would take hours.
fn repeated(parts: &[OpenPart]) -> Option<(&OpenPart, &str)> {
    let mut before: HashSet<&str> = HashSet::new();
    for part in parts {
        let names = || part.read.tensors.iter().map(|tensor| tensor.name.as_str());
        if let Some(name) = names().find(|name| before.contains(name)) {
            return Some((part, name));
        }
        before.extend(names());
    }
    None
}
