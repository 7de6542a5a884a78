//! Linear: one or several matrices times the same rows. Those of one storage type are one launch.

use candor_arch::{NodeId, Op};

use super::products::{Multiply, Product, Rounding, Rows};
use crate::device::Fault;
use crate::forward::{Forward, Launch};
use crate::prepare::Prepare;
use crate::weights::Matrix;

struct Linear {
    rounding: Option<Rounding>,
    multiply: Multiply,
}

pub(crate) fn prepare(p: &mut Prepare<'_>, nodes: &[NodeId]) -> Result<Box<dyn Launch>, Fault> {
    let products = nodes.iter().map(|node| {
        let Op::Linear { weight, bias } = p.node(*node).op else {
            unreachable!("only linear nodes come here");
        };
        Product::new(p, weight, bias, p.value(*node))
    });
    let products: Vec<Product> = products.collect();
    let matrices: Vec<Matrix> = products.iter().map(|product| product.matrix).collect();
    let input = p.node(nodes[0]).inputs[0];
    Ok(Box::new(Linear {
        rounding: Rounding::of_node(p, input, &matrices)?,
        multiply: Multiply::new(p, Rows::of_node(p, input), &products)?,
    }))
}

impl Launch for Linear {
    fn launch(&self, f: &Forward<'_>) -> Result<(), Fault> {
        if let Some(rounding) = &self.rounding {
            rounding.launch(f, f.rows)?;
        }
        self.multiply.launch(f, f.rows)
    }
}
