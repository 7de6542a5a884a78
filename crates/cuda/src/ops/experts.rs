//! Experts: each row goes through a few feed-forwards of many, chosen by a router.
//!
//! The choice stays on the device. While a reply is written, every pair of a row and one of its
//! experts is computed on its own, and a row's experts are added up where they are multiplied. For a
//! prompt the pairs are sorted by expert, and the tiles of the products are a list in memory.

use candor_arch::{NodeId, Op, Routing, Shares};

use super::gated_ffn::{GATED_THREADS, GateUp, Gating, gated_blocks, gated_out};
use super::products::{Product, Rounding, Rows, TileList, Tiled, Tiles};
use crate::buffer::DevicePtr;
use crate::device::Fault;
use crate::forward::{DECODE_ROWS_MAX, Forward, Launch, Path};
use crate::launch::{Args, Grid, Kernel};
use crate::prepare::{CodePanel, HalfPanel, Panels, Prepare, ROWS_MAX};
use crate::values::PANEL_COLS;
use crate::weights::Matrix;

/// Of kernels/ops/experts_route.cu: rows and experts of a block of the router, and threads.
const ROUTER_ROWS: usize = 4;
const ROUTER_EXPERTS: usize = 8;
const ROUTER_THREADS: u32 = 256;
const SORT_THREADS: u32 = 1024;
const COMBINE_THREADS: u32 = 256;

/// Of kernels/ops/experts.cu.
const SUM_OUTPUTS: usize = 8;
const SUM_THREADS: u32 = 256;

/// Places of a tile of the sorted pairs: the rows that a block of `tiles_product` takes.
const TILE_PLACES: usize = 128;

struct Experts {
    rounding: Option<Rounding>,
    router: Router,
    x: Rows,
    gate_up: GateUp,
    down: Product,
    replies: Replies,
    prompts: Prompts,
    gating: Gating,
    /// What lies between, for every pair.
    inner: Rows,
    inner_rounding: Rounding,
    /// The products with `up`, and later in a prompt those with `down`, for every pair.
    ups: DevicePtr,
    position: DevicePtr,
}

pub(crate) fn prepare(p: &mut Prepare<'_>, nodes: &[NodeId]) -> Result<Box<dyn Launch>, Fault> {
    let node = p.node(nodes[0]);
    let Op::Experts {
        gate,
        up,
        down,
        biases,
        routing,
        inner: width,
        activation,
        ..
    } = node.op
    else {
        unreachable!("only experts come here");
    };
    let input = node.inputs[0];
    let widest = width.max(node.width);
    let inner = Rows {
        floats: p.scratch(ROWS_MAX * routing.n_used * width * 4),
        panels: panels(p, width, routing.n_used),
        width,
    };
    let ups = p.scratch(ROWS_MAX * routing.n_used * widest * 4);
    let gate_up = GateUp {
        gate: p.matrix(gate),
        up: p.matrix(up),
        biases: biases.map(|all| [p.vector(all.gate).ptr, p.vector(all.up).ptr]),
        activation,
    };
    let down = Product::new(p, down, biases.map(|all| all.down), p.value(nodes[0]));
    let router = Router::prepare(p, nodes[0])?;
    Ok(Box::new(Experts {
        rounding: Rounding::of_node(p, input, &[gate_up.gate, gate_up.up])?,
        x: Rows::of_node(p, input),
        replies: Replies::prepare(p, &gate_up, &down.matrix)?,
        prompts: Prompts::prepare(p, &router, [&gate_up.gate, &gate_up.up, &down.matrix])?,
        gating: Gating::new(p, activation)?,
        inner_rounding: Rounding::new(p, inner, down.matrix.takes_codes())?,
        position: p.step.position,
        router,
        gate_up,
        down,
        inner,
        ups,
    }))
}

/// Both forms of what lies between, for every pair.
fn panels(p: &mut Prepare<'_>, width: usize, n_used: usize) -> Panels {
    let stride = width.next_multiple_of(PANEL_COLS);
    let (reply, prompt) = (DECODE_ROWS_MAX * n_used, ROWS_MAX * n_used);
    Panels {
        codes: CodePanel {
            codes: p.scratch(reply * stride),
            scales: p.scratch(reply * stride / 32 * 4),
            stride,
        },
        halves: HalfPanel {
            halves: p.scratch(prompt * stride * 2),
            row_scales: p.scratch(prompt * 4),
            stride,
        },
    }
}

impl Launch for Experts {
    fn launch(&self, f: &Forward<'_>) -> Result<(), Fault> {
        if let Some(rounding) = &self.rounding {
            rounding.launch(f, f.rows)?;
        }
        self.router.launch(f, self.x.floats)?;
        match f.path {
            Path::Decode => self.reply(f),
            Path::Prefill => self.prompt(f),
        }
    }
}

impl Experts {
    fn pairs(&self, f: &Forward<'_>) -> usize {
        f.rows * self.router.routing.n_used
    }

    fn reply(&self, f: &Forward<'_>) -> Result<(), Fault> {
        let (replies, pairs) = (&self.replies, self.pairs(f));
        match &replies.together {
            Some(kernel) => self.reply_together(f, kernel)?,
            None => {
                let products = [self.inner.floats, self.ups];
                let matrices = [self.gate_up.gate, self.gate_up.up];
                for (i, (matrix, out)) in matrices.into_iter().zip(products).enumerate() {
                    let bias = self.gate_up.biases.map(|biases| biases[i]);
                    let product = Product { matrix, bias, out };
                    self.sum(f, &replies.apart[i], &product, Terms::Pair)?;
                }
                self.gating.launch(f, products, pairs * self.inner.width)?;
                self.inner_rounding.launch(f, pairs)?;
            }
        }
        self.sum(f, &replies.down, &self.down, Terms::Row)
    }

    /// Gate and up in one launch, which rounds what lies between.
    fn reply_together(&self, f: &Forward<'_>, kernel: &Kernel) -> Result<(), Fault> {
        let blocks = gated_blocks(&self.inner, &self.down.matrix);
        let router = &self.router;
        let args = Args::new()
            .words(&self.gate_up.words())
            .words(&self.x.factor(&self.gate_up.gate))
            .words(&gated_out(&self.inner, &self.down.matrix))
            .words(&[
                router.chosen.0,
                self.position.0,
                self.gate_up.gate.expert_bytes as u64,
                router.routing.n_used as u64,
            ]);
        let grid = Grid::of3([blocks, self.pairs(f), 1], GATED_THREADS);
        f.device.launch(kernel, grid, args)
    }

    /// Products with what a row's experts have.
    fn sum(
        &self,
        f: &Forward<'_>,
        kernel: &Kernel,
        product: &Product,
        terms: Terms,
    ) -> Result<(), Fault> {
        let (router, n_used) = (&self.router, self.router.routing.n_used);
        let (x, rows, terms, divide, shares) = match terms {
            Terms::Pair => (&self.x, self.pairs(f), 1, n_used, None),
            Terms::Row => (&self.inner, f.rows, n_used, 1, Some(router.shares)),
        };
        let matrix = &product.matrix;
        let args = Args::new()
            .words(&[
                matrix.ptr.0,
                matrix.expert_bytes as u64,
                product.bias.map_or(0, |bias| bias.0),
                matrix.rows as u64 | (matrix.cols as u64) << 32,
            ])
            .words(&x.factor(matrix))
            .ptr(router.chosen)
            .ptr_or_null(shares)
            .ptr(self.position)
            .ptr(product.out)
            .size(terms)
            .size(divide)
            .size(n_used);
        let blocks = [matrix.rows.div_ceil(SUM_OUTPUTS), rows, 1];
        f.device
            .launch(kernel, Grid::of3(blocks, SUM_THREADS), args)
    }

    fn prompt(&self, f: &Forward<'_>) -> Result<(), Fault> {
        let (prompts, pairs) = (&self.prompts, self.pairs(f));
        let n_tiles = prompts.sort(f, &self.router, pairs)?;
        let GateUp { gate, up, .. } = self.gate_up;
        let bias = |i: usize| self.gate_up.biases.map(|biases| biases[i]);
        let gate = Product {
            matrix: gate,
            bias: bias(0),
            out: self.inner.floats,
        };
        let up = Product {
            matrix: up,
            bias: bias(1),
            out: self.ups,
        };
        let tiled = |x, row_of, matrix: &Matrix| Tiled {
            x,
            n_rows: pairs,
            n_tiles,
            list: Some(TileList {
                tiles: prompts.tiles,
                row_of,
                expert_bytes: matrix.expert_bytes,
            }),
        };
        let [of_gate, of_up, of_down] = &prompts.products;
        let x = &self.x.panels;
        if self.gate_up.is_one_type() {
            let rows = tiled(x, Some(prompts.row_of), &gate.matrix);
            of_gate.launch(f, &[gate, up], &rows)?;
        } else {
            for (kernel, product) in [(of_gate, gate), (of_up, up)] {
                let rows = tiled(x, Some(prompts.row_of), &product.matrix);
                kernel.launch(f, &[product], &rows)?;
            }
        }
        self.gating
            .launch(f, [gate.out, up.out], pairs * self.inner.width)?;
        self.inner_rounding.launch(f, pairs)?;
        let given = Product {
            out: self.ups,
            ..self.down
        };
        let rows = tiled(&self.inner.panels, None, &given.matrix);
        of_down.launch(f, &[given], &rows)?;
        prompts.combine(f, &self.router, &given, self.down.out)
    }
}

/// Of what a row of a product in a reply is the sum.
#[derive(Clone, Copy)]
enum Terms {
    /// One pair.
    Pair,
    /// All pairs of a row, with their shares.
    Row,
}

/// Chooses the experts of rows.
struct Router {
    kernel: Kernel,
    /// float32 `[experts][width]`, whatever it is stored as.
    weights: DevicePtr,
    bias: Option<DevicePtr>,
    n_experts: usize,
    width: usize,
    routing: Routing,
    logits: DevicePtr,
    /// `int [rows][n_used]`.
    chosen: DevicePtr,
    /// `float [rows][n_used]`.
    shares: DevicePtr,
    /// `u32 [groups of rows]`: blocks of a group that are done, zero between launches.
    arrived: DevicePtr,
}

impl Router {
    fn prepare(p: &mut Prepare<'_>, id: NodeId) -> Result<Self, Fault> {
        let node = p.node(id);
        let Op::Experts {
            router,
            biases,
            routing,
            ..
        } = node.op
        else {
            unreachable!("only experts come here");
        };
        let width = p.node(node.inputs[0]).width;
        let weights = p.vector(router);
        let n_experts = weights.len / width;
        Ok(Self {
            kernel: p.kernel("experts_route", "experts_router")?,
            weights: weights.ptr,
            bias: biases.map(|all| p.vector(all.router).ptr),
            n_experts,
            width,
            routing,
            logits: p.scratch(ROWS_MAX * n_experts * 4),
            chosen: p.scratch(ROWS_MAX * routing.n_used * 4),
            shares: p.scratch(ROWS_MAX * routing.n_used * 4),
            // All layers have the same ones, since one comes after the other.
            arrived: p.constant(vec![0.0; ROWS_MAX.div_ceil(ROUTER_ROWS)]),
        })
    }

    fn launch(&self, f: &Forward<'_>, x: DevicePtr) -> Result<(), Fault> {
        let blocks = [
            self.n_experts.div_ceil(ROUTER_EXPERTS),
            f.rows.div_ceil(ROUTER_ROWS),
            1,
        ];
        let args = Args::new()
            .ptr(self.weights)
            .ptr_or_null(self.bias)
            .ptr(x)
            .words(&self.choice())
            .size(self.width)
            .size(f.rows);
        f.device
            .launch(&self.kernel, Grid::of3(blocks, ROUTER_THREADS), args)
    }

    /// `struct Choice` of kernels/ops/experts_route.cu.
    fn choice(&self) -> [u64; 6] {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let (experts, used) = (self.n_experts as u32, self.routing.n_used as u32);
        let of_all = u32::from(self.routing.shares == Shares::OfAll);
        [
            self.logits.0,
            self.chosen.0,
            self.shares.0,
            self.arrived.0,
            pair(experts, used),
            pair(of_all, self.routing.scale.to_bits()),
        ]
    }
}

/// Kernels for a few rows.
struct Replies {
    /// Gate and up, where they are of one type.
    together: Option<Kernel>,
    /// Gate and up on their own.
    apart: [Kernel; 2],
    down: Kernel,
}

impl Replies {
    fn prepare(p: &Prepare<'_>, gate_up: &GateUp, down: &Matrix) -> Result<Self, Fault> {
        let GateUp { gate, up, .. } = gate_up;
        let sum = |matrix: &Matrix| p.kernel(&matrix.module("experts"), "experts_sum");
        let together = match gate_up.is_one_type() {
            true => Some(p.kernel(&gate.module("gated_ffn"), "gated_ffn_decode_1")?),
            false => None,
        };
        Ok(Self {
            together,
            apart: [sum(gate)?, sum(up)?],
            down: sum(down)?,
        })
    }
}

/// Kernels for many rows, and the order of their pairs.
struct Prompts {
    sort: Kernel,
    combine: Kernel,
    /// Of gate, up and down.
    products: [Tiles; 3],
    /// `int [pairs]`: the row of a place.
    row_of: DevicePtr,
    /// `int [pairs]`: the place of a pair.
    place_of: DevicePtr,
    /// `int [tiles][4]`.
    tiles: DevicePtr,
}

impl Prompts {
    fn prepare(
        p: &mut Prepare<'_>,
        router: &Router,
        matrices: [&Matrix; 3],
    ) -> Result<Self, Fault> {
        let pairs = ROWS_MAX * router.routing.n_used;
        let [gate, up, down] = matrices.map(|matrix| Tiles::new(p, matrix));
        Ok(Self {
            sort: p.kernel_with_shared("experts_route", "experts_sort", sort_bytes(router))?,
            combine: p.kernel("experts_route", "experts_combine")?,
            products: [gate?, up?, down?],
            row_of: p.scratch(pairs * 4),
            place_of: p.scratch(pairs * 4),
            tiles: p.scratch(tiles_max(pairs, router.n_experts) * 16),
        })
    }

    /// Sorts the pairs by expert; gives how many tiles the list has places for.
    fn sort(&self, f: &Forward<'_>, router: &Router, pairs: usize) -> Result<usize, Fault> {
        let tiles = tiles_max(pairs, router.n_experts);
        let args = Args::new()
            .ptr(router.chosen)
            .words(&[self.row_of.0, self.place_of.0, router.routing.n_used as u64])
            .ptr(self.tiles)
            .size(pairs)
            .size(router.n_experts)
            .size(TILE_PLACES)
            .size(tiles);
        let grid = Grid::of(1, SORT_THREADS).shared(sort_bytes(router));
        f.device.launch(&self.sort, grid, args)?;
        Ok(tiles)
    }

    /// Adds up what the experts of each row gave.
    fn combine(
        &self,
        f: &Forward<'_>,
        router: &Router,
        given: &Product,
        out: DevicePtr,
    ) -> Result<(), Fault> {
        let width = given.matrix.rows;
        let args = Args::new()
            .ptr(given.out)
            .ptr(self.place_of)
            .ptr(router.shares)
            .ptr(out)
            .size(width)
            .size(router.routing.n_used);
        let blocks = [width.div_ceil(COMBINE_THREADS as usize), f.rows, 1];
        f.device
            .launch(&self.combine, Grid::of3(blocks, COMBINE_THREADS), args)
    }
}

/// A count and a first place for each expert.
fn sort_bytes(router: &Router) -> usize {
    2 * router.n_experts * 4
}

/// Tiles of one expert each that so many pairs fill at most: full ones, and a last one for each
/// expert that has pairs.
fn tiles_max(pairs: usize, n_experts: usize) -> usize {
    pairs / TILE_PLACES + n_experts.min(pairs)
}
