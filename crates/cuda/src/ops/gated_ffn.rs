//! GatedFfn: down · (activation(gate · x) ⊙ (up · x)).
//!
//! While a reply is written, gate and up of one type are one launch, which rounds what lies between
//! for `down`. Otherwise both products are written out, then taken together and rounded.

use candor_arch::{Activation, NodeId, Op};

use super::products::{DECODE_GROUP, Multiply, Product, Rounding, Rows};
use crate::buffer::DevicePtr;
use crate::device::Fault;
use crate::forward::{Forward, Launch, Path};
use crate::launch::{Args, Grid, Kernel};
use crate::prepare::{Prepare, ROWS_MAX};
use crate::weights::Matrix;

/// Values between that one block computes, and its threads (kernels/include/linear.cuh).
pub(super) const GATED_ELEMS: usize = 32;
pub(super) const GATED_THREADS: u32 = 512;

/// Threads of a block of `quantize_gated`.
const THREADS: u32 = 256;

/// How the kernels number the functions (kernels/include/activation.cuh).
pub(super) fn number_of(activation: Activation) -> u32 {
    match activation {
        Activation::Silu => 0,
        Activation::Gelu => 1,
        Activation::Sigmoid => 2,
        Activation::ClampedSwiglu => 3,
    }
}

/// A gate and what it is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct GateUp {
    pub(super) gate: Matrix,
    pub(super) up: Matrix,
    /// Of both.
    pub(super) biases: Option<[DevicePtr; 2]>,
    pub(super) activation: Activation,
}

impl GateUp {
    /// Whether one kernel can take both.
    pub(super) fn is_one_type(&self) -> bool {
        self.gate.quant == self.up.quant
    }

    /// `struct GateUp` of kernels/include/linear.cuh.
    pub(super) fn words(&self) -> [u64; 6] {
        let [gate_bias, up_bias] = self.biases.map_or([0; 2], |biases| biases.map(|it| it.0));
        [
            self.gate.ptr.0,
            self.up.ptr.0,
            gate_bias,
            up_bias,
            self.gate.rows as u64 | (self.gate.cols as u64) << 32,
            u64::from(number_of(self.activation)),
        ]
    }
}

/// `struct GatedOut`: as codes for a matrix that takes them, else as floats.
pub(super) fn gated_out(to: &Rows, down: &Matrix) -> [u64; 4] {
    let codes = &to.panels.codes;
    if down.takes_codes() {
        [codes.codes.0, codes.scales.0, codes.stride as u64, 0]
    } else {
        [0, 0, 0, to.floats.0]
    }
}

/// Blocks that compute a row of what `gated_out` says, with its zeroes.
pub(super) fn gated_blocks(to: &Rows, down: &Matrix) -> usize {
    let width = if down.takes_codes() {
        to.panels.codes.stride
    } else {
        to.width
    };
    width.div_ceil(GATED_ELEMS)
}

/// gate becomes activation(gate) ⊙ up, both in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gating {
    kernel: Kernel,
    activation: Activation,
}

impl Gating {
    pub(super) fn new(p: &Prepare<'_>, activation: Activation) -> Result<Self, Fault> {
        Ok(Self {
            kernel: p.kernel("quantize", "quantize_gated")?,
            activation,
        })
    }

    pub(super) fn launch(
        &self,
        f: &Forward<'_>,
        [gate, up]: [DevicePtr; 2],
        count: usize,
    ) -> Result<(), Fault> {
        let args = Args::new()
            .ptr(gate)
            .ptr(up)
            .u32(number_of(self.activation))
            .u64(count as u64);
        let grid = Grid::of(count.div_ceil(THREADS as usize), THREADS);
        f.device.launch(&self.kernel, grid, args)
    }
}

struct GatedFfn {
    rounding: Option<Rounding>,
    /// Both products in one launch, for a row and for four.
    together: Option<[Kernel; 2]>,
    gate_up: GateUp,
    x: Rows,
    /// Both products, written out.
    apart: Multiply,
    ups: DevicePtr,
    gating: Gating,
    /// What lies between.
    inner: Rows,
    inner_rounding: Rounding,
    down: Matrix,
    multiply_down: Multiply,
}

pub(crate) fn prepare(p: &mut Prepare<'_>, nodes: &[NodeId]) -> Result<Box<dyn Launch>, Fault> {
    let node = p.node(nodes[0]);
    let Op::GatedFfn {
        gate,
        up,
        down,
        inner: width,
        activation,
    } = node.op
    else {
        unreachable!("only gated feed-forward nodes come here");
    };
    let inner = Rows {
        floats: p.scratch(ROWS_MAX * width * 4),
        panels: p.scratch_panels(width),
        width,
    };
    let ups = p.scratch(ROWS_MAX * width * 4);
    let down = Product::new(p, down, None, p.value(nodes[0]));
    let gate = Product::new(p, gate, None, inner.floats);
    let up = Product::new(p, up, None, ups);
    let gate_up = GateUp {
        gate: gate.matrix,
        up: up.matrix,
        biases: None,
        activation,
    };
    let module = gate.matrix.module("gated_ffn");
    let together = match gate_up.is_one_type() {
        true => Some([
            p.kernel(&module, "gated_ffn_decode_1")?,
            p.kernel(&module, "gated_ffn_decode_4")?,
        ]),
        false => None,
    };
    let x = Rows::of_node(p, node.inputs[0]);
    Ok(Box::new(GatedFfn {
        rounding: Rounding::of_node(p, node.inputs[0], &[gate.matrix, up.matrix])?,
        together,
        gate_up,
        x,
        apart: Multiply::new(p, x, &[gate, up])?,
        ups,
        gating: Gating::new(p, activation)?,
        inner,
        inner_rounding: Rounding::new(p, inner, down.matrix.takes_codes())?,
        down: down.matrix,
        multiply_down: Multiply::new(p, inner, &[down])?,
    }))
}

impl Launch for GatedFfn {
    fn launch(&self, f: &Forward<'_>) -> Result<(), Fault> {
        if let Some(rounding) = &self.rounding {
            rounding.launch(f, f.rows)?;
        }
        match (f.path, &self.together) {
            (Path::Decode, Some(kernels)) => self.launch_together(f, kernels)?,
            _ => {
                self.apart.launch(f, f.rows)?;
                let both = [self.inner.floats, self.ups];
                self.gating.launch(f, both, f.rows * self.inner.width)?;
                self.inner_rounding.launch(f, f.rows)?;
            }
        }
        self.multiply_down.launch(f, f.rows)
    }
}

impl GatedFfn {
    fn launch_together(&self, f: &Forward<'_>, kernels: &[Kernel; 2]) -> Result<(), Fault> {
        let blocks = gated_blocks(&self.inner, &self.down);
        let args = Args::new()
            .words(&self.gate_up.words())
            .words(&self.x.factor(&self.gate_up.gate))
            .words(&gated_out(&self.inner, &self.down));
        let (kernel, groups, args) = match f.rows {
            // No expert is chosen.
            1 => (&kernels[0], 1, args.words(&[0; 4])),
            rows => (&kernels[1], rows.div_ceil(DECODE_GROUP), args),
        };
        let grid = Grid::of3([blocks, groups, 1], GATED_THREADS);
        f.device.launch(kernel, grid, args)
    }
}
