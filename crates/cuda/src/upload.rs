//! The way of the weights onto the device: from the mapped file through pinned memory, a piece at a
//! time, so that it can be stopped and the file's pages need not stay in memory.

use std::rc::Rc;

use candor_arch::{Op, WeightId, WeightKind};
use candor_backend::{LoadError, Model, Progress, Step};
use candor_modelfile::{Index, TensorInfo};

use crate::buffer::{Arena, DevicePtr, Layout};
use crate::device::{Device, Event, Fault, Pinned};
use crate::weights::{Matrix, Vector};

/// Bytes between two looks at the caller's progress: two milliseconds of a slow disk.
const PIECE_BYTES: usize = 1 << 20;

/// Pieces of pinned memory: some are read from the file while others are on their way.
const PIECES: usize = 4;

/// Behind every weight, since kernels read blocks as whole words.
const TAIL_BYTES: usize = 16;

/// One weight on the device.
#[derive(Clone, Copy, Debug)]
enum Weight {
    Matrix(Matrix),
    Vector(Vector),
}

/// Where the weights of a model lie on the device, or would.
pub(crate) struct Weights {
    all: Vec<Weight>,
    bytes: usize,
    /// Values of the vectors of which a step needs to know more than where they are.
    host: Vec<(WeightId, Vec<f32>)>,
    /// None while nothing but their places is decided.
    arena: Option<Arena>,
}

impl Weights {
    /// Decides where everything is to lie; the addresses are offsets. The graph was checked
    /// against the file.
    pub(crate) fn plan(model: &Model) -> Self {
        let (graph, index) = (&model.graph, model.file.index());
        let mut layout = Layout::default();
        // Routers are multiplied in float32, since a small change may choose another expert.
        let routers = graph.nodes.iter().filter_map(|node| match node.op {
            Op::Experts { router, .. } => Some(router),
            _ => None,
        });
        let routers: Vec<WeightId> = routers.collect();
        let all = graph.weights.iter().enumerate().map(|(id, weight)| {
            let tensor = tensor_of(index, &weight.name);
            let mut place = |bytes| DevicePtr(layout.place(bytes + TAIL_BYTES) as u64);
            if weight.kind == WeightKind::Vector || routers.contains(&WeightId(id)) {
                let len = weight.dims.iter().product();
                let ptr = place(len * 4);
                return Weight::Vector(Vector { ptr, len });
            }
            let row_bytes = tensor_bytes(tensor) / tensor.rows();
            let (experts, rows) = match weight.dims[..] {
                [experts, rows, _] => (experts, rows),
                [rows, _] => (1, rows),
                _ => (1, 1),
            };
            let expert_bytes = rows * row_bytes;
            Weight::Matrix(Matrix {
                ptr: place(experts * expert_bytes),
                quant: tensor.quant,
                rows,
                cols: tensor.cols(),
                row_bytes,
                expert_bytes,
            })
        });
        let all = all.collect();
        let rotations = graph.nodes.iter().filter_map(|node| match &node.op {
            op @ Op::Rope(_) => Some(op.weights()),
            _ => None,
        });
        let mut host: Vec<(WeightId, Vec<f32>)> = Vec::new();
        for id in rotations.flatten() {
            if !host.iter().any(|(known, _)| *known == id) {
                host.push((id, values_of(model, id)));
            }
        }
        Self {
            all,
            bytes: layout.bytes(),
            host,
            arena: None,
        }
    }

    /// The values of a vector that a rotation reads.
    pub(crate) fn host_vector(&self, id: WeightId) -> &[f32] {
        let found = self.host.iter().find(|(known, _)| *known == id);
        found.map_or(&[], |(_, values)| values)
    }

    /// Memory that they take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn matrix(&self, id: WeightId) -> Matrix {
        match self.all[id.0] {
            Weight::Matrix(matrix) => matrix,
            Weight::Vector(_) => unreachable!("the graph says that it is a matrix"),
        }
    }

    pub(crate) fn vector(&self, id: WeightId) -> Vector {
        match self.all[id.0] {
            Weight::Vector(vector) => vector,
            Weight::Matrix(_) => unreachable!("the graph says that it is a vector"),
        }
    }

    /// Takes the memory.
    pub(crate) fn take(mut self, device: &Rc<Device>) -> Result<Self, Fault> {
        let arena = Arena::new(device, self.bytes)?;
        for weight in &mut self.all {
            let ptr = match weight {
                Weight::Matrix(matrix) => &mut matrix.ptr,
                Weight::Vector(vector) => &mut vector.ptr,
            };
            *ptr = arena.ptr().plus(ptr.0 as usize);
        }
        self.arena = Some(arena);
        Ok(self)
    }

    /// Fills the memory that was taken.
    pub(crate) fn send(
        &self,
        device: &Rc<Device>,
        model: &Model,
        progress: &mut dyn Progress,
    ) -> Result<(), LoadError> {
        let mut lift = Lift::new(device, self.bytes as u64, progress)?;
        let sent = send_all(&self.all, model, &mut lift);
        // Pieces under way read pinned memory, and write the arena.
        let landed = device.synchronize();
        sent?;
        landed?;
        report(progress, self.bytes as u64, self.bytes as u64)
    }
}

fn send_all(all: &[Weight], model: &Model, lift: &mut Lift<'_>) -> Result<(), LoadError> {
    let index = model.file.index();
    for (id, place) in all.iter().enumerate() {
        let weight = &model.graph.weights[id];
        let tensor = tensor_of(index, &weight.name);
        match place {
            Weight::Matrix(matrix) => {
                let bytes = model.file.bytes(tensor);
                lift.send(matrix.ptr, &bytes[weight.bytes_of(0..bytes.len())])?;
            }
            Weight::Vector(vector) => {
                let values = values_of(model, WeightId(id));
                let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
                lift.send(vector.ptr, &bytes)?;
            }
        }
        model.file.release(tensor);
    }
    Ok(())
}

/// The values of a vector.
fn values_of(model: &Model, id: WeightId) -> Vec<f32> {
    let weight = model.graph.weight(id);
    let tensor = tensor_of(model.file.index(), &weight.name);
    let mut values = vec![0.0; tensor.elems()];
    (tensor.quant.dequantize)(model.file.bytes(tensor), &mut values);
    values[weight.bytes_of(0..values.len())].to_vec()
}

fn tensor_of<'a>(index: &'a Index, name: &str) -> &'a TensorInfo {
    index
        .tensor(name)
        .expect("the graph was checked against the index")
}

fn tensor_bytes(tensor: &TensorInfo) -> usize {
    (tensor.range.end - tensor.range.start) as usize
}

fn report(progress: &mut dyn Progress, done: u64, total: u64) -> Result<(), LoadError> {
    match progress.report(done.min(total), total) {
        Step::Go => Ok(()),
        Step::Stop => Err(LoadError::Stopped),
    }
}

impl From<Fault> for LoadError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::OutOfMemory {
                needed_bytes,
                available_bytes,
            } => Self::OutOfMemory {
                needed_bytes,
                available_bytes,
            },
            fault => Self::Device {
                reason: fault.to_string(),
            },
        }
    }
}

/// Pinned memory that carries one piece after the other.
struct Lift<'a> {
    device: Rc<Device>,
    pieces: Vec<(Pinned, Event)>,
    next: usize,
    done: u64,
    total: u64,
    progress: &'a mut dyn Progress,
}

impl<'a> Lift<'a> {
    fn new(
        device: &Rc<Device>,
        total: u64,
        progress: &'a mut dyn Progress,
    ) -> Result<Self, LoadError> {
        report(progress, 0, total)?;
        let piece = || Ok((Pinned::new(device, PIECE_BYTES)?, Event::new(device)?));
        let pieces: Result<Vec<_>, Fault> = std::iter::repeat_with(piece).take(PIECES).collect();
        Ok(Self {
            device: Rc::clone(device),
            pieces: pieces?,
            next: 0,
            done: 0,
            total,
            progress,
        })
    }

    fn send(&mut self, to: DevicePtr, bytes: &[u8]) -> Result<(), LoadError> {
        for (i, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
            let (pinned, sent) = &mut self.pieces[self.next];
            // An event that was never recorded has passed.
            sent.wait()?;
            pinned.bytes_mut()[..piece.len()].copy_from_slice(piece);
            let to = to.plus(i * PIECE_BYTES);
            self.device.copy_in(to, pinned, 0..piece.len())?;
            sent.record()?;
            self.next = (self.next + 1) % PIECES;
            self.done += piece.len() as u64;
            report(self.progress, self.done, self.total)?;
        }
        Ok(())
    }
}
