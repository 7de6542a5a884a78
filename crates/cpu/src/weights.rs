//! The weights of a model as the two paths read them.

use std::ops::Range;
use std::sync::Arc;

use candor_arch::{WeightId, WeightKind};
use candor_backend::{LoadError, Model, Progress, Step};
use candor_modelfile::TensorInfo;
use candor_quant::QuantType;

use crate::backend::multiplied;
use crate::simd::{Arena, InputKind, Packed};
use crate::threads::{Pool, cores};

/// A matrix in the form of one of the paths.
#[derive(Clone, Copy)]
pub(crate) enum Matrix<'a> {
    /// As it lies in the file, for the exact path.
    Stored(Stored<'a>),
    /// Repacked, for the fast one.
    Packed(&'a Packed),
}

impl Matrix<'_> {
    /// Output rows.
    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::Stored(stored) => stored.rows,
            Self::Packed(packed) => packed.rows(),
        }
    }

    /// Values of a row.
    pub(crate) fn cols(&self) -> usize {
        match self {
            Self::Stored(stored) => stored.cols,
            Self::Packed(packed) => packed.cols(),
        }
    }

    /// What it is multiplied with.
    pub(crate) fn input(&self) -> InputKind {
        match self {
            Self::Stored(_) => InputKind::Floats,
            Self::Packed(packed) => packed.input(),
        }
    }
}

/// A matrix in the file.
#[derive(Clone, Copy)]
pub(crate) struct Stored<'a> {
    bytes: &'a [u8],
    quant: &'static QuantType,
    row_bytes: usize,
    rows: usize,
    pub(crate) cols: usize,
}

impl Stored<'_> {
    /// The values of some rows, one after the other.
    pub(crate) fn dequantize(&self, rows: Range<usize>, out: &mut [f32]) {
        let bytes = &self.bytes[rows.start * self.row_bytes..rows.end * self.row_bytes];
        (self.quant.dequantize)(bytes, out);
    }
}

/// Linux maps so much of a file with a page that is touched (its default).
const MAPPED_AROUND_BYTES: usize = 64 << 10;

/// What both paths share: the model, and the vectors as float32.
pub(crate) struct Weights {
    pub(crate) model: Arc<Model>,
    /// By weight; empty for matrices.
    vectors: Vec<Vec<f32>>,
}

impl Weights {
    /// Of a model whose graph was checked against its file.
    pub(crate) fn new(model: Arc<Model>) -> Self {
        let vectors = model.graph.weights.iter().map(|weight| match weight.kind {
            WeightKind::Matrix => Vec::new(),
            WeightKind::Vector => {
                let tensor = tensor_of(&model, &weight.name);
                let mut values = vec![0.0; tensor.elems()];
                (tensor.quant.dequantize)(model.file.bytes(tensor), &mut values);
                values
            }
        });
        let vectors = vectors.collect();
        Self { model, vectors }
    }

    pub(crate) fn vector(&self, id: WeightId) -> &[f32] {
        &self.vectors[id.0]
    }

    /// Lets go of the pages of some rows of a matrix, which are read from the file when they are
    /// needed again.
    pub(crate) fn release_rows(&self, id: WeightId, rows: Range<usize>) {
        let weight = self.model.graph.weight(id);
        let tensor = tensor_of(&self.model, &weight.name);
        let bytes = self.model.file.bytes(tensor).len();
        let row_bytes = bytes / tensor.rows();
        let place = weight.bytes_of(0..bytes);
        let start = (place.start + rows.start * row_bytes).saturating_sub(MAPPED_AROUND_BYTES);
        let end = (place.start + rows.end * row_bytes + MAPPED_AROUND_BYTES).min(bytes);
        self.model.file.release_part(tensor, start..end);
    }

    pub(crate) fn stored(&self, id: WeightId) -> Stored<'_> {
        let weight = self.model.graph.weight(id);
        let tensor = tensor_of(&self.model, &weight.name);
        let bytes = self.model.file.bytes(tensor);
        let row_bytes = bytes.len() / tensor.rows();
        let bytes = &bytes[weight.bytes_of(0..bytes.len())];
        Stored {
            bytes,
            quant: tensor.quant,
            row_bytes,
            rows: bytes.len() / row_bytes,
            cols: tensor.cols(),
        }
    }

    /// The matrices of a weight: one, or one for each expert.
    pub(crate) fn each_stored(&self, id: WeightId) -> impl Iterator<Item = Stored<'_>> {
        let all = self.stored(id);
        let n = match self.model.graph.weight(id).dims[..] {
            [n_experts, _, _] => n_experts,
            _ => 1,
        };
        let rows = all.rows / n;
        all.bytes
            .chunks_exact(rows * all.row_bytes)
            .map(move |bytes| Stored { bytes, rows, ..all })
    }

    /// Bytes of the vectors.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.vectors
            .iter()
            .map(|v| size_of_val(&v[..]) as u64)
            .sum()
    }
}

fn tensor_of<'a>(model: &'a Model, name: &str) -> &'a TensorInfo {
    model
        .file
        .index()
        .tensor(name)
        .expect("the graph was checked against the index")
}

/// The matrices of the fast path. A type for which the kernels have no form stays as it is in the
/// file and is multiplied as on the exact path: slower, and right.
pub(crate) struct PackedWeights {
    /// By weight, one for each expert; none for what is not multiplied with, or has no repacked
    /// form.
    matrices: Vec<Vec<Packed>>,
}

/// Groups of rows that one thread repacks between two looks at the caller's progress: about a
/// millisecond.
const PART_GROUPS: usize = 16;

/// Parts between two reports of progress, for each thread.
const PARTS_PER_REPORT: usize = 4;

impl PackedWeights {
    /// Repacks every matrix that is multiplied with, and lets go of the file's pages behind it.
    pub(crate) fn new(
        weights: &Weights,
        pool: &Pool,
        progress: &mut dyn Progress,
    ) -> Result<Self, LoadError> {
        let model = &weights.model;
        let mut wanted = multiplied(&model.graph);
        wanted.retain(|id| {
            weights
                .each_stored(*id)
                .all(|it| packed_bytes(&it).is_some())
        });
        let bytes = |id: &WeightId| weights.stored(*id).bytes.len() as u64;
        let total: u64 = wanted.iter().map(bytes).sum();
        let mut matrices: Vec<Vec<Packed>> =
            model.graph.weights.iter().map(|_| Vec::new()).collect();
        let each = wanted.iter().flat_map(|id| weights.each_stored(*id));
        let size = each.filter_map(|it| packed_bytes(&it)).sum();
        let mut arena = room(size)?;
        let mut done = 0;
        report(progress, done, total)?;
        for id in wanted {
            let tensor = tensor_of(model, &model.graph.weight(id).name);
            let place = model
                .graph
                .weight(id)
                .bytes_of(0..model.file.bytes(tensor).len());
            let mut first = place.start;
            for stored in weights.each_stored(id) {
                // Behind the rows that are done, so that no matrix is held twice: the output
                // matrix alone can be two thirds of a model.
                let mut released = 0;
                let packed = pack(&stored, &mut arena, pool, &mut |rows| {
                    let end = rows * stored.row_bytes;
                    let part = first + released..first + end;
                    model.file.release_part(tensor, part);
                    released = end;
                    report(progress, done + end as u64, total)
                })?;
                done += stored.bytes.len() as u64;
                first += stored.bytes.len();
                matrices[id.0].push(packed);
            }
            // What lies around the pages was mapped with them.
            model.file.release_part(tensor, place);
        }
        report(progress, total, total)?;
        Ok(Self { matrices })
    }

    /// A weight's matrix, or that of one of its experts. None for a type that has no repacked form.
    pub(crate) fn matrix(&self, id: WeightId, expert: usize) -> Option<Matrix<'_>> {
        self.matrices[id.0].get(expert).map(Matrix::Packed)
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.matrices
            .iter()
            .flatten()
            .map(|packed| packed.size_bytes() as u64)
            .sum()
    }
}

fn report(progress: &mut dyn Progress, done: u64, total: u64) -> Result<(), LoadError> {
    match progress.report(done, total) {
        Step::Go => Ok(()),
        Step::Stop => Err(LoadError::Stopped),
    }
}

/// What a matrix takes in its repacked form, if there is one for its type.
fn packed_bytes(stored: &Stored<'_>) -> Option<usize> {
    Packed::bytes_for(stored.quant, stored.rows, stored.cols)
}

/// Memory for all of them, if there is so much that nobody else is pushed out.
fn room(needed: usize) -> Result<Arena, LoadError> {
    let needed_bytes = needed as u64;
    let available_bytes = cores::available_memory().unwrap_or(u64::MAX);
    let too_large = LoadError::OutOfMemory {
        needed_bytes,
        available_bytes,
    };
    if needed_bytes > available_bytes {
        return Err(too_large);
    }
    Arena::new(needed).ok_or(too_large)
}

/// Repacks one matrix; `report` hears how many of its rows are done.
fn pack(
    stored: &Stored<'_>,
    arena: &mut Arena,
    pool: &Pool,
    report: &mut dyn FnMut(usize) -> Result<(), LoadError>,
) -> Result<Packed, LoadError> {
    let packed = Packed::new_in(arena, stored.quant, stored.rows, stored.cols);
    let mut packed = packed.expect("the arena has room for every type that has this form");
    let mut parts: Vec<_> = packed.parts(PART_GROUPS).map(Some).collect();
    let mut scratch = vec![(); pool.threads()];
    let never = candor_backend::CancelToken::new();
    for parts in parts.chunks_mut(PARTS_PER_REPORT * pool.threads()) {
        let rows = parts
            .iter()
            .flatten()
            .map(|part| part.rows().end)
            .max()
            .unwrap_or(0);
        pool.each(parts, &mut scratch, &never, |(), part| {
            if let Some(part) = part.take() {
                part.fill(stored.bytes);
            }
        })
        .map_err(|_| LoadError::Stopped)?;
        report(rows)?;
    }
    drop(parts);
    Ok(packed)
}
