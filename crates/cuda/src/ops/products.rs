//! What the operations that multiply with matrices have in common: rows of activations in the form
//! that a path takes, and launches of products.

use candor_arch::{NodeId, WeightId};

use crate::buffer::DevicePtr;
use crate::device::Fault;
use crate::forward::{Forward, Path};
use crate::launch::{Args, Grid, Kernel};
use crate::prepare::{Panels, Prepare};
use crate::weights::Matrix;

/// Matrices of one launch (`MATRICES_MAX` of kernels/include/products.cuh).
const MATRICES_MAX: usize = 3;

/// Lanes of a warp.
const WARP: usize = 32;

/// Warps of a block of `linear_decode`.
const DECODE_WARPS: usize = 4;

/// Rows that a decode kernel computes together where there is more than one.
pub(super) const DECODE_GROUP: usize = 4;

/// Rows and outputs of a tile, and its threads (kernels/include/tiles.cuh).
const TILE_ROWS: usize = 128;
const TILE_OUTPUTS: usize = 64;
const TILE_THREADS: u32 = 128;

/// Threads of the kernels of the module `quantize`, and the values that a block takes at once.
const QUANTIZE_THREADS: u32 = 256;
const QUANTIZE_VALUES: usize = 1024;

/// Rows of activations in every form: float32, and the panels that the paths take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    pub(super) floats: DevicePtr,
    pub(super) panels: Panels,
    pub(super) width: usize,
}

impl Rows {
    /// What a node gave.
    pub(super) fn of_node(p: &Prepare<'_>, node: NodeId) -> Self {
        Self {
            floats: p.value(node),
            panels: p.panels(node),
            width: p.node(node).width,
        }
    }

    /// `struct Factor` of kernels/include/linear.cuh.
    pub(super) fn factor(&self, matrix: &Matrix) -> [u64; 4] {
        let codes = &self.panels.codes;
        if matrix.takes_codes() {
            [codes.codes.0, codes.scales.0, 0, codes.stride as u64]
        } else {
            [0, 0, self.floats.0, self.width as u64]
        }
    }
}

/// Rounds rows of float32 values to the form in which matrices take them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounding {
    codes: Kernel,
    halves: Kernel,
    to: Rows,
    /// Whether a matrix takes 8-bit activations; the decode path has nothing to do otherwise.
    takes_codes: bool,
}

impl Rounding {
    /// The values are at `to.floats`, the panels are `to.panels`.
    pub(super) fn new(p: &Prepare<'_>, to: Rows, takes_codes: bool) -> Result<Self, Fault> {
        Ok(Self {
            codes: p.kernel("quantize", "quantize_q8")?,
            halves: p.kernel("quantize", "quantize_f16")?,
            to,
            takes_codes,
        })
    }

    /// Of a node's value, if no step before has done it.
    pub(super) fn of_node(
        p: &mut Prepare<'_>,
        node: NodeId,
        matrices: &[Matrix],
    ) -> Result<Option<Self>, Fault> {
        if p.has_panels(node) {
            return Ok(None);
        }
        let takes_codes = matrices.iter().any(Matrix::takes_codes);
        if takes_codes {
            p.fills_panels(node);
        }
        Self::new(p, Rows::of_node(p, node), takes_codes).map(Some)
    }

    /// Rounds the first rows.
    pub(super) fn launch(&self, f: &Forward<'_>, n_rows: usize) -> Result<(), Fault> {
        self.gather(f, self.to.floats, None, n_rows)
    }

    /// Rounds rows of `from`, chosen by a list on the device.
    pub(super) fn gather(
        &self,
        f: &Forward<'_>,
        from: DevicePtr,
        list: Option<DevicePtr>,
        n_rows: usize,
    ) -> Result<(), Fault> {
        let args = Args::new().ptr(from).size(self.to.width).ptr_or_null(list);
        match f.path {
            Path::Decode if self.takes_codes => {
                let panel = &self.to.panels.codes;
                let parts = panel.stride.div_ceil(QUANTIZE_VALUES);
                let grid = Grid::of3([n_rows, parts, 1], QUANTIZE_THREADS);
                let args = args.ptr(panel.codes).ptr(panel.scales).size(panel.stride);
                f.device.launch(&self.codes, grid, args)
            }
            Path::Decode => Ok(()),
            Path::Prefill => {
                let panel = &self.to.panels.halves;
                let args = args.ptr(panel.halves).ptr(panel.row_scales);
                let grid = Grid::of(n_rows, QUANTIZE_THREADS);
                f.device.launch(&self.halves, grid, args.size(panel.stride))
            }
        }
    }
}

/// A matrix, what is added to its product, and where that goes: float32 `[rows][outputs]`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product {
    pub(super) matrix: Matrix,
    pub(super) bias: Option<DevicePtr>,
    pub(super) out: DevicePtr,
}

impl Product {
    pub(super) fn new(
        p: &Prepare<'_>,
        weight: WeightId,
        bias: Option<WeightId>,
        out: DevicePtr,
    ) -> Self {
        Self {
            matrix: p.matrix(weight),
            bias: bias.map(|bias| p.vector(bias).ptr),
            out,
        }
    }
}

/// Products of one launch: matrices of one type.
struct Group {
    decode_1: Kernel,
    decode_4: Kernel,
    tiles: Tiles,
    products: Vec<Product>,
}

/// Several matrices times the same rows.
pub(super) struct Multiply {
    groups: Vec<Group>,
    x: Rows,
}

impl Multiply {
    pub(super) fn new(p: &Prepare<'_>, x: Rows, products: &[Product]) -> Result<Self, Fault> {
        let mut sorted: Vec<Vec<Product>> = Vec::new();
        for product in products {
            let fits = |group: &&mut Vec<Product>| {
                group.len() < MATRICES_MAX && group[0].matrix.quant == product.matrix.quant
            };
            match sorted.iter_mut().find(fits) {
                Some(group) => group.push(*product),
                None => sorted.push(vec![*product]),
            }
        }
        let groups = sorted.into_iter().map(|products| {
            let module = products[0].matrix.module("linear");
            Ok(Group {
                decode_1: p.kernel(&module, "linear_decode_1")?,
                decode_4: p.kernel(&module, "linear_decode_4")?,
                tiles: Tiles::new(p, &products[0].matrix)?,
                products,
            })
        });
        Ok(Self {
            groups: groups.collect::<Result<_, Fault>>()?,
            x,
        })
    }

    /// Multiplies the first rows, which have to be there in the form of the path.
    pub(super) fn launch(&self, f: &Forward<'_>, n_rows: usize) -> Result<(), Fault> {
        for group in &self.groups {
            match f.path {
                Path::Decode => group.decode(f, &self.x, n_rows)?,
                Path::Prefill => {
                    let tiles = Tiled {
                        x: &self.x.panels,
                        n_rows,
                        n_tiles: n_rows.div_ceil(TILE_ROWS),
                        list: None,
                    };
                    group.tiles.launch(f, &group.products, &tiles)?;
                }
            }
        }
        Ok(())
    }
}

impl Group {
    fn decode(&self, f: &Forward<'_>, x: &Rows, n_rows: usize) -> Result<(), Fault> {
        let matrix = &self.products[0].matrix;
        let k_shift = k_shift(matrix);
        let outputs: usize = self.products.iter().map(|it| it.matrix.rows).sum();
        let (kernel, groups) = match n_rows {
            1 => (&self.decode_1, 1),
            _ => (&self.decode_4, n_rows.div_ceil(DECODE_GROUP)),
        };
        let blocks = [outputs.div_ceil(DECODE_WARPS >> k_shift), groups, 1];
        let args = Args::new()
            .words(&words(&self.products))
            .words(&x.factor(matrix))
            .size(n_rows)
            .size(k_shift);
        let grid = Grid::of3(blocks, (DECODE_WARPS * WARP) as u32);
        f.device.launch(kernel, grid, args)
    }
}

/// How many warps share a row of the matrix, as a power of two: as many as have a unit of it for
/// every lane.
fn k_shift(matrix: &Matrix) -> usize {
    let unit = if matrix.takes_codes() { 32 } else { 4 };
    let warps = matrix.cols.div_ceil(unit) / WARP;
    match warps {
        0 | 1 => 0,
        2 | 3 => 1,
        _ => 2,
    }
}

/// `struct Products` of kernels/include/products.cuh.
fn words(products: &[Product]) -> [u64; 11] {
    let mut words = [0; 11];
    let mut sizes = [0u64; 4];
    for (i, product) in products.iter().enumerate() {
        words[i] = product.matrix.ptr.0;
        words[MATRICES_MAX + i] = product.bias.map_or(0, |bias| bias.0);
        words[2 * MATRICES_MAX + i] = product.out.0;
        sizes[i] = product.matrix.rows as u64;
    }
    sizes[3] = products[0].matrix.cols as u64;
    words[9] = sizes[0] | sizes[1] << 32;
    words[10] = sizes[2] | sizes[3] << 32;
    words
}

/// The kernel on the tensor cores.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiles {
    kernel: Kernel,
}

/// Which rows it multiplies.
pub(super) struct Tiled<'a> {
    pub(super) x: &'a Panels,
    /// Not read where there is a list.
    pub(super) n_rows: usize,
    /// Of rows, or of the list.
    pub(super) n_tiles: usize,
    pub(super) list: Option<TileList>,
}

/// `struct TileList` of kernels/ops/tiles.cu.
#[derive(Clone, Copy, Debug)]
pub(super) struct TileList {
    /// Expert, first place and number of places of each tile, four `int`.
    pub(super) tiles: DevicePtr,
    /// Which row of the panel a place is; none where they are the same.
    pub(super) row_of: Option<DevicePtr>,
    /// From one expert's matrix to the next.
    pub(super) expert_bytes: usize,
}

impl Tiles {
    /// For matrices of this one's type.
    pub(super) fn new(p: &Prepare<'_>, matrix: &Matrix) -> Result<Self, Fault> {
        let kernel = p.kernel(&matrix.module("tiles"), "tiles_product")?;
        Ok(Self { kernel })
    }

    /// At most three products, all with matrices of that type.
    pub(super) fn launch(
        &self,
        f: &Forward<'_>,
        products: &[Product],
        rows: &Tiled<'_>,
    ) -> Result<(), Fault> {
        let outputs = products
            .iter()
            .map(|it| it.matrix.rows.div_ceil(TILE_OUTPUTS));
        let blocks = [rows.n_tiles, outputs.sum(), 1];
        let list = rows.list.map_or([0; 3], |list| {
            let row_of = list.row_of.map_or(0, |row_of| row_of.0);
            [list.tiles.0, row_of, list.expert_bytes as u64]
        });
        let args = Args::new()
            .words(&words(products))
            .halves(Some(&rows.x.halves))
            .size(rows.n_rows)
            .words(&list);
        f.device
            .launch(&self.kernel, Grid::of3(blocks, TILE_THREADS), args)
    }
}
