//! The table of kernels, and how one is chosen.

use std::ops::Range;

use super::attention::{AttendTask, Join, KV_PAGE, key_place, page_numbers};
use super::check;
use super::coded::Unfold;
use super::delta::DeltaStep;
use super::format::{FORMATS, GROUP_ROWS, each_type};
use super::interleave::Interleave;
use super::number::Number;
use super::packed::{InputKind, Packed};
use super::panel::{Panel, PanelPart, PanelRow, PanelView};
use super::portable;
use super::tiles::Tile;

/// A family of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    /// AVX-512 F, BW, VL and VNNI.
    Avx512,
    /// AVX2, FMA and F16C.
    Avx2,
    /// Whatever the compiler makes for the target.
    Portable,
}

/// One table of kernels, all of one instruction family.
#[derive(Clone, Copy)]
pub(crate) struct Kernels {
    /// As it is shown to people.
    pub(crate) name: &'static str,
    pub(crate) isa: Isa,
    /// In the order of [`FORMATS`].
    pub(super) linear: [LinearFn; FORMATS.len()],
    pub(super) quantize: unsafe fn(&[f32], PanelRow<'_>),
    pub(super) rms_norm: unsafe fn(&[f32], &[f32], f32, &mut [f32]),
    pub(super) silu_mul: unsafe fn(&mut [f32], &[f32]),
    pub(super) add: unsafe fn(&mut [f32], &[f32]),
    pub(super) to_half: unsafe fn(&[f32], &mut [u16]),
    pub(super) attend: unsafe fn(&AttendTask),
    pub(super) join: unsafe fn(&mut Join<'_>),
    pub(super) delta: unsafe fn(&mut DeltaStep<'_>),
    pub(super) unfold: unsafe fn(&mut Unfold<'_>),
}

/// # Safety
/// The machine must have the instructions of the table; the task's pointers and ranges must be
/// those of live buffers of the stated shapes, and nobody else may touch the outputs.
pub(super) type LinearFn = unsafe fn(&LinearTask);

/// The products with the two kinds of types, by some instructions.
///
/// # Safety
/// See [`LinearFn`].
pub(super) trait Linear {
    unsafe fn floats<N: Number>(task: &LinearTask);
    unsafe fn integers<B: Interleave>(task: &LinearTask);
}

/// The products with each type, in the order of [`FORMATS`].
pub(super) const fn linear_table<L: Linear>() -> [LinearFn; FORMATS.len()] {
    macro_rules! floats {
        ($file:ident, $number:ident) => {
            L::floats::<super::number::$number>
        };
    }
    macro_rules! integers {
        ($file:ident, $block:ident) => {
            L::integers::<candor_quant::types::$file::$block>
        };
    }
    each_type!(floats, integers)
}

/// One tile of a product with a weight matrix.
pub(super) struct LinearTask {
    /// The first group of the matrix.
    pub(super) weights: *const u8,
    pub(super) group_bytes: usize,
    /// Elements of a row.
    pub(super) cols: usize,
    /// The 8-bit activations, for types of small integers.
    pub(super) panel: PanelView,
    /// The float activations, for float types, in rows of `cols`.
    pub(super) floats: *const f32,
    pub(super) out: *mut f32,
    /// Numbers from one row of `out` to the next, and output rows of the matrix.
    pub(super) width: usize,
    pub(super) rows: Range<usize>,
    pub(super) groups: Range<usize>,
}

impl LinearTask {
    /// How many outputs of a group exist; the last group may be partly empty.
    pub(super) fn lanes(&self, group: usize) -> usize {
        (self.width - group * GROUP_ROWS).min(GROUP_ROWS)
    }
}

/// What a matrix is multiplied with; [`Packed::input`] says which it takes.
#[derive(Clone, Copy)]
pub(crate) enum Input<'a> {
    /// 8-bit activations.
    Codes(&'a Panel),
    /// float32 activations, row after row.
    Floats(&'a [f32]),
}

impl Kernels {
    /// One tile of `input` times the transposed matrix.
    ///
    /// Panics if the shapes do not belong together, or if a tile cuts a group of
    /// [`GROUP_ROWS`] outputs.
    pub(crate) fn linear(&self, matrix: &Packed, input: Input<'_>, tile: &mut Tile<'_>) {
        assert_eq!(matrix.rows(), tile.width, "one column for each output");
        assert!(tile.cols.start.is_multiple_of(GROUP_ROWS), "whole groups");
        assert!(
            tile.cols.end.is_multiple_of(GROUP_ROWS) || tile.cols.end == tile.width,
            "whole groups"
        );
        let empty = Panel::new(0, 0);
        let (panel, floats) = match input {
            Input::Codes(panel) => {
                assert_eq!(matrix.input(), InputKind::Codes);
                assert_eq!(panel.cols(), matrix.cols());
                assert!(tile.rows.end <= panel.rows());
                (panel.view(), std::ptr::null())
            }
            Input::Floats(floats) => {
                assert_eq!(matrix.input(), InputKind::Floats);
                assert!(tile.rows.end * matrix.cols() <= floats.len());
                (empty.view(), floats.as_ptr())
            }
        };
        let task = LinearTask {
            weights: matrix.bytes().as_ptr(),
            group_bytes: matrix.group_bytes(),
            cols: matrix.cols(),
            panel,
            floats,
            out: tile.out,
            width: tile.width,
            rows: tile.rows.clone(),
            groups: tile.cols.start / GROUP_ROWS..tile.cols.end.div_ceil(GROUP_ROWS),
        };
        // SAFETY: `choose` gives a table only to a machine that has its instructions; the shapes
        // were compared above, and a tile is the only one with its piece of the output.
        unsafe { (self.linear[matrix.format_idx])(&task) }
    }

    /// Rounds the rows of a part to 8 bits. `rows` holds the rows of the part.
    pub(crate) fn quantize(&self, rows: &[f32], part: &mut PanelPart<'_>) {
        let cols = part.cols();
        assert_eq!(rows.len(), part.rows() * cols, "the rows of the part");
        for (row_idx, row) in rows.chunks_exact(cols).enumerate() {
            // SAFETY: as above; both sides have `cols` elements.
            unsafe { (self.quantize)(row, part.row(row_idx)) }
        }
    }

    /// One row over its root mean square, times `weight`.
    pub(crate) fn rms_norm(&self, row: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
        assert!(row.len() == weight.len() && row.len() == out.len());
        // SAFETY: the machine has the instructions; the lengths are equal.
        unsafe { (self.rms_norm)(row, weight, eps, out) }
    }

    /// `gate` becomes silu(gate) * up, where silu(x) = x / (1 + exp(-x)).
    pub(crate) fn silu_mul(&self, gate: &mut [f32], up: &[f32]) {
        assert_eq!(gate.len(), up.len());
        // SAFETY: the machine has the instructions; the lengths are equal.
        unsafe { (self.silu_mul)(gate, up) }
    }

    /// `sum` becomes sum + addend.
    pub(crate) fn add(&self, sum: &mut [f32], addend: &[f32]) {
        assert_eq!(sum.len(), addend.len());
        // SAFETY: the machine has the instructions; the lengths are equal.
        unsafe { (self.add)(sum, addend) }
    }

    /// The nearest half-precision numbers, as bits.
    pub(crate) fn half_bits(&self, values: &[f32], out: &mut [u16]) {
        assert_eq!(values.len(), out.len());
        // SAFETY: the machine has the instructions; the lengths are equal.
        unsafe { (self.to_half)(values, out) }
    }

    /// Puts the key and the value of one position into the pages of their head.
    pub(crate) fn append(
        &self,
        position: usize,
        key: &[f32],
        value: &[f32],
        keys: &mut [u16],
        values: &mut [u16],
    ) {
        let head_dim = key.len();
        let in_page = position % KV_PAGE;
        assert_eq!(head_dim, value.len());
        assert_eq!(keys.len(), page_numbers(head_dim), "one page of keys");
        let mut half = [0u16; 64];
        for (at, part) in key.chunks(half.len()).enumerate() {
            let half = &mut half[..part.len()];
            self.half_bits(part, half);
            for (d, number) in half.iter().enumerate() {
                keys[key_place(head_dim, in_page, at * 64 + d)] = *number;
            }
        }
        self.half_bits(value, &mut values[in_page * head_dim..][..head_dim]);
    }

    /// One token of the gated delta rule for one head.
    pub(crate) fn delta(&self, mut step: DeltaStep<'_>) {
        assert!(step.fits(), "shapes that belong together");
        // SAFETY: the machine has the instructions.
        unsafe { (self.delta)(&mut step) }
    }
}

/// The kernels for this machine, and why they are not the wanted ones, or not the best.
pub(crate) struct Chosen {
    pub(crate) kernels: &'static Kernels,
    /// In words for people; `None` if these are the wanted ones, or the best.
    pub(crate) reason: Option<String>,
}

/// Takes the wanted kernels, or the best that the machine has. They are checked first; if one of
/// them is wrong, or the machine lacks the wanted ones, the portable ones are taken instead.
pub(crate) fn choose(wanted: Option<Isa>) -> Chosen {
    let best = || tables().find(|(_, present)| *present).map(|(k, _)| k);
    let found = match wanted {
        None => best(),
        Some(isa) => tables()
            .find(|(k, present)| k.isa == isa && *present)
            .map(|(k, _)| k),
    };
    let Some(kernels) = found else {
        return Chosen {
            kernels: &portable::KERNELS,
            reason: Some("this machine does not have the instructions asked for".to_owned()),
        };
    };
    match check::first_miss(kernels) {
        None => Chosen {
            kernels,
            reason: None,
        },
        Some(miss) => Chosen {
            kernels: &portable::KERNELS,
            reason: Some(format!(
                "the {} instructions of this machine gave a wrong result ({miss})",
                kernels.name
            )),
        },
    }
}

/// All tables, best first, and whether this machine can run them.
pub(super) fn tables() -> impl Iterator<Item = (&'static Kernels, bool)> {
    #[cfg(target_arch = "x86_64")]
    let fast = [
        (&super::avx512::KERNELS, super::avx512::present()),
        (&super::avx2::KERNELS, super::avx2::present()),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let fast: [(&Kernels, bool); 0] = [];
    fast.into_iter().chain([(&portable::KERNELS, true)])
}
