//! DeltaNet.

use candor_arch::{DeltaNet, KeyOrder, Node, Op, StateLayout, WeightId};

use super::bench::{Bench, around, compare, quant, tokens};
use super::{Subject, Tolerance, reference};

/// float32 sums that go on over all rows.
const TOLERANCE: Tolerance = Tolerance {
    exact: 1e-5,
    fast: 1e-5,
};

/// Both orders of the keys, a head for each key and several, many rows.
pub fn delta_net_matches_the_reference(subject: &Subject) {
    let shapes = [
        (1, 1, 16, 1),
        (2, 4, 32, 50),
        (3, 3, 24, 20),
        (2, 6, 8, 300),
    ];
    let rows_max = subject.size.pick(usize::MAX, 60);
    for (n_key_heads, n_value_heads, state_size, n_rows) in shapes {
        let n_rows = n_rows.min(rows_max);
        for key_order in [KeyOrder::Grouped, KeyOrder::Cyclic] {
            let net = DeltaNet {
                a: WeightId(0),
                dt: WeightId(0),
                n_key_heads,
                n_value_heads,
                state_size,
                key_order,
                eps: 1e-6,
            };
            check(subject, net, n_rows);
        }
    }
}

/// The embedding is cut into queries, keys and values, alpha and beta.
fn check(subject: &Subject, mut net: DeltaNet, n_rows: usize) {
    let (n, heads) = (net.state_size, net.n_value_heads);
    let keys = net.n_key_heads * n;
    let channels = 2 * keys + heads * n;
    let width = channels + 2 * heads;
    let mut graph = around(width, |builder, embed| {
        let mut part = |name: &str, start: usize, len: usize| {
            builder.node(Node {
                name: name.to_owned(),
                op: Op::Part {
                    period: width,
                    start,
                    len,
                },
                inputs: vec![embed],
                layer: Some(0),
                width: len,
            })
        };
        let inputs = vec![
            part("mixed", 0, channels),
            part("alpha", channels, heads),
            part("beta", channels + heads, heads),
        ];
        net.a = builder.vector("ssm_a", heads);
        net.dt = builder.vector("dt.bias", heads);
        builder.state(StateLayout::Recurrent {
            channels,
            taps: 1,
            n_heads: heads,
            state_size: n,
        });
        builder.node(Node {
            name: "net".to_owned(),
            op: Op::DeltaNet(net),
            inputs,
            layer: Some(0),
            width: heads * n,
        })
    });
    graph.hparams.n_layers = 1;
    let bench = Bench::new(graph, |_| quant("F32"));
    let seen = bench.outputs_in_parts(subject, &tokens("delta", n_rows));
    let expected = told(&bench, net, &seen["embed"]);
    let what = format!("{net:?}, {n_rows} rows");
    compare(subject, &what, &seen["net"], &expected, TOLERANCE);
}

fn told(bench: &Bench, net: DeltaNet, rows: &[f32]) -> Vec<f64> {
    let (n, heads) = (net.state_size, net.n_value_heads);
    let keys = net.n_key_heads * n;
    let channels = 2 * keys + heads * n;
    let mut states = vec![vec![vec![0.0; n]; n]; heads];
    let mut expected = Vec::new();
    for row in rows.chunks_exact(channels + 2 * heads).map(reference::wide) {
        for (head, state) in states.iter_mut().enumerate() {
            let key_head = match net.key_order {
                KeyOrder::Grouped => head * net.n_key_heads / heads,
                KeyOrder::Cyclic => head % net.n_key_heads,
            };
            let q = reference::unit(&row[key_head * n..][..n], net.eps);
            let k = reference::unit(&row[keys + key_head * n..][..n], net.eps);
            let v = &row[2 * keys + head * n..][..n];
            let alpha = row[channels + head] + f64::from(bench.values(net.dt)[head]);
            let decay = (f64::from(bench.values(net.a)[head]) * alpha.exp().ln_1p()).exp();
            let beta = reference::sigmoid(row[channels + heads + head]);
            expected.extend(reference::delta_step(state, [&q, &k, v], (decay, beta)));
        }
    }
    expected
}
