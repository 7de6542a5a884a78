//! Linear: rows of activations times a matrix, plus a bias.
//!
//! Exact: sixteen rows of the matrix at a time are dequantised and multiplied with every row of
//! activations. Fast: the activations are rounded to 8 bits once, whatever is multiplied with
//! them, and the kernels read the repacked matrix.

use candor_arch::{NodeId, Op};
use candor_backend::CancelToken;

use crate::forward::{Forward, Machine, Stopped};
use crate::simd::{GROUP_ROWS, Input, InputKind, Panel, Tile, TileQueue, exact};
use crate::weights::{Matrix, Stored};

/// Rows of activations that a thread multiplies before it takes other weights (fast path).
const TILE_ROWS: usize = 64;

/// Groups of outputs of such a tile.
const TILE_GROUPS: usize = 4;

/// Tiles for each thread where there is only one row: enough that a thread that was kept from
/// working does not leave the others waiting long.
const DECODE_TILES: usize = 4;

/// Rows of activations between two copies of exact products.
const EXACT_ROWS: usize = 32;

/// One or several matrices times the same input.
pub(crate) fn run(f: &mut Forward<'_>, nodes: &[NodeId]) -> Result<(), Stopped> {
    let graph = &f.machine.weights.model.graph;
    let n_rows = f.rows.len();
    let mut outs: Vec<Vec<f32>> = nodes
        .iter()
        .map(|node| f.work.values.take(*node, n_rows * graph.node(*node).width))
        .collect();
    let products = nodes.iter().zip(&mut outs).map(|(node, out)| {
        let Op::Linear { weight, bias } = graph.node(*node).op else {
            unreachable!("only linear nodes come here");
        };
        let bias = bias.map(|bias| f.machine.weights.vector(bias));
        Product {
            matrix: f.machine.matrix(weight),
            bias,
            out,
        }
    });
    let mut products: Vec<Product<'_>> = products.collect();
    let x = f.work.values.of(graph.node(nodes[0]).inputs[0]);
    let mut tools = Tools {
        machine: &f.machine,
        cancel: f.cancel,
        threads: &mut f.work.threads,
        panel: &mut f.work.panel,
    };
    let done = multiply(&mut tools, x, &mut products);
    for (node, out) in nodes.iter().zip(outs) {
        f.work.values.put(*node, out);
    }
    done
}

/// What a product needs beside its factors.
pub(crate) struct Tools<'a> {
    pub(crate) machine: &'a Machine<'a>,
    pub(crate) cancel: &'a CancelToken,
    pub(crate) threads: &'a mut [Vec<f32>],
    pub(crate) panel: &'a mut Panel,
}

/// A matrix, and where its product goes.
pub(crate) struct Product<'a> {
    pub(crate) matrix: Matrix<'a>,
    pub(crate) bias: Option<&'a [f32]>,
    pub(crate) out: &'a mut [f32],
}

/// Multiplies every matrix with the rows of `x`.
pub(crate) fn multiply(
    tools: &mut Tools<'_>,
    x: &[f32],
    products: &mut [Product<'_>],
) -> Result<(), Stopped> {
    let total: usize = products.iter().map(|p| p.matrix.rows()).sum();
    let n_rows = products[0].out.len() / products[0].matrix.rows();
    prepare(tools, x, n_rows, products.iter().map(|p| p.matrix))?;
    let mut items = Vec::new();
    for product in products {
        let (matrix, bias) = (product.matrix, product.bias);
        let size = tile_size(tools.machine, matrix, n_rows, total);
        let tiles = tiles(product.out, matrix.rows(), size);
        items.extend(tiles.map(|tile| (matrix, bias, tile)));
    }
    let (machine, panel) = (tools.machine, &*tools.panel);
    machine
        .pool
        .each(&mut items, tools.threads, tools.cancel, |scratch, item| {
            let (matrix, bias, tile) = item;
            multiply_tile(machine, *matrix, Factor { floats: x, panel }, scratch, tile);
            if let Some(bias) = bias {
                add_bias(machine, bias, tile);
            }
        })?;
    Ok(())
}

/// Adds a bias to the rows of a tile of a product.
pub(crate) fn add_bias(machine: &Machine<'_>, bias: &[f32], tile: &mut Tile<'_>) {
    let bias = &bias[tile.cols()];
    for row in tile.rows() {
        machine.kernels.add(tile.row(row), bias);
    }
}

/// The rows of activations in both forms; the panel is filled if a matrix needs it.
#[derive(Clone, Copy)]
pub(crate) struct Factor<'a> {
    pub(crate) floats: &'a [f32],
    pub(crate) panel: &'a Panel,
}

/// Rounds the activations to 8 bits if one of the matrices needs it.
pub(crate) fn prepare<'m>(
    tools: &mut Tools<'_>,
    x: &[f32],
    n_rows: usize,
    mut matrices: impl Iterator<Item = Matrix<'m>>,
) -> Result<(), Stopped> {
    if !matrices.any(|matrix| matrix.input() == InputKind::Codes) {
        return Ok(());
    }
    let cols = x.len() / n_rows;
    tools.panel.reshape(n_rows, cols);
    let rows_per_part = n_rows.div_ceil(DECODE_TILES * tools.machine.pool.threads());
    let kernels = tools.machine.kernels;
    let mut parts: Vec<_> = tools.panel.parts(rows_per_part).collect();
    tools
        .machine
        .pool
        .each(&mut parts, tools.threads, tools.cancel, |_, part| {
            let first = part.first_row() * cols;
            kernels.quantize(&x[first..first + part.rows() * cols], part);
        })?;
    Ok(())
}

/// Rows and columns of a tile of a product; `total` columns are computed at once.
pub(crate) fn tile_size(
    machine: &Machine<'_>,
    matrix: Matrix<'_>,
    n_rows: usize,
    total: usize,
) -> (usize, usize) {
    match matrix {
        Matrix::Stored(_) => (n_rows, GROUP_ROWS),
        Matrix::Packed(_) if n_rows >= TILE_ROWS / 4 => (TILE_ROWS, TILE_GROUPS * GROUP_ROWS),
        Matrix::Packed(_) => {
            let columns = total.div_ceil(DECODE_TILES * machine.pool.threads());
            (n_rows, columns.next_multiple_of(GROUP_ROWS))
        }
    }
}

/// Cuts an output into tiles of that size.
pub(crate) fn tiles(
    out: &mut [f32],
    width: usize,
    size: (usize, usize),
) -> impl Iterator<Item = Tile<'_>> {
    let queue = TileQueue::new(out, width, size.0, size.1);
    std::iter::from_fn(move || queue.take())
}

/// One tile of a product, without the bias.
pub(crate) fn multiply_tile(
    machine: &Machine<'_>,
    matrix: Matrix<'_>,
    x: Factor<'_>,
    scratch: &mut Vec<f32>,
    tile: &mut Tile<'_>,
) {
    match matrix {
        Matrix::Stored(stored) => exact_tile(&stored, x.floats, scratch, tile),
        Matrix::Packed(packed) => {
            let input = match packed.input() {
                InputKind::Codes => Input::Codes(x.panel),
                InputKind::Floats => Input::Floats(x.floats),
            };
            machine.kernels.linear(packed, input, tile);
        }
    }
}

fn exact_tile(stored: &Stored<'_>, x: &[f32], scratch: &mut Vec<f32>, tile: &mut Tile<'_>) {
    let (cols, outputs) = (stored.cols, tile.cols());
    let n = outputs.len();
    scratch.resize(n * (cols + EXACT_ROWS), 0.0);
    let (weights, products) = scratch.split_at_mut(n * cols);
    stored.dequantize(outputs, weights);
    let rows = tile.rows();
    for first in rows.clone().step_by(EXACT_ROWS) {
        let last = (first + EXACT_ROWS).min(rows.end);
        exact::products(weights, &x[first * cols..last * cols], cols, products);
        for (row, products) in (first..last).zip(products.chunks_exact(n)) {
            tile.row(row).copy_from_slice(products);
        }
    }
}
