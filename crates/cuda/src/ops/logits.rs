//! Logits: the output matrix, for the rows of which somebody wants it, and their bound.

use candor_arch::{NodeId, Op};

use super::products::{Multiply, Product, Rounding, Rows};
use crate::buffer::DevicePtr;
use crate::device::Fault;
use crate::forward::{DECODE_ROWS_MAX, Forward, Launch, Path};
use crate::launch::{Args, Grid, Kernel};
use crate::prepare::Prepare;

/// Threads of a block of the kernels that go value by value.
const THREADS: u32 = 256;

struct Logits {
    /// The input where its only row is the wanted one and a step before has rounded it.
    direct: Option<Multiply>,
    /// The wanted rows.
    rounding: Rounding,
    multiply: Multiply,
    /// Copies the wanted rows where the matrix takes floats; and whither.
    gather: Option<(Kernel, DevicePtr)>,
    softcap: Option<(Kernel, f32)>,
    input: Rows,
    want: DevicePtr,
    out: DevicePtr,
    vocabulary: usize,
}

pub(crate) fn prepare(p: &mut Prepare<'_>, nodes: &[NodeId]) -> Result<Box<dyn Launch>, Fault> {
    let node = p.node(nodes[0]);
    let Op::Logits { weight, softcap } = node.op else {
        unreachable!("only logits come here");
    };
    let out = p.value(nodes[0]);
    let product = Product::new(p, weight, None, out);
    let takes_codes = product.matrix.takes_codes();
    let input = Rows::of_node(p, node.inputs[0]);
    // The decode path alone reads gathered floats.
    let wanted = Rows {
        floats: p.scratch(DECODE_ROWS_MAX * input.width * 4),
        panels: p.scratch_panels(input.width),
        width: input.width,
    };
    let gather = match takes_codes {
        true => None,
        false => Some((p.kernel("quantize", "quantize_gather")?, wanted.floats)),
    };
    let is_ready = p.has_panels(node.inputs[0]) || !takes_codes;
    let softcap = softcap.map(|cap| Ok((p.kernel("logits", "logits_softcap")?, cap)));
    Ok(Box::new(Logits {
        direct: match is_ready {
            true => Some(Multiply::new(p, input, &[product])?),
            false => None,
        },
        rounding: Rounding::new(p, wanted, takes_codes)?,
        multiply: Multiply::new(p, wanted, &[product])?,
        gather,
        softcap: softcap.transpose()?,
        input,
        want: p.step.want,
        out,
        vocabulary: node.width,
    }))
}

impl Launch for Logits {
    fn launch(&self, f: &Forward<'_>) -> Result<(), Fault> {
        match &self.direct {
            Some(direct) if f.path == Path::Decode && f.rows == 1 && f.wanted == 1 => {
                direct.launch(f, 1)?;
            }
            _ => self.multiply_wanted(f)?,
        }
        let Some((kernel, cap)) = &self.softcap else {
            return Ok(());
        };
        let count = f.wanted * self.vocabulary;
        let args = Args::new().ptr(self.out).f32(*cap).u64(count as u64);
        let grid = Grid::of(count.div_ceil(THREADS as usize), THREADS);
        f.device.launch(kernel, grid, args)
    }
}

impl Logits {
    fn multiply_wanted(&self, f: &Forward<'_>) -> Result<(), Fault> {
        let list = Some(self.want);
        self.rounding.gather(f, self.input.floats, list, f.wanted)?;
        if let (Path::Decode, Some((kernel, to))) = (f.path, &self.gather) {
            let args = Args::new()
                .ptr(self.input.floats)
                .size(self.input.width)
                .ptr(self.want)
                .ptr(*to);
            let parts = self.input.width.div_ceil(THREADS as usize);
            let grid = Grid::of3([f.wanted, parts, 1], THREADS);
            f.device.launch(kernel, grid, args)?;
        }
        self.multiply.launch(f, f.wanted)
    }
}
