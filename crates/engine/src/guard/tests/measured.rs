//! The distributions that the limits come from: 8-bit activations on the processor against
//! float32. Run with `--nocapture` to see them.

use candor_backend::Precision;

use super::super::locate::{Place, distances};
use super::super::run::Runner;
use super::*;

/// Tiny models of every kind: each family, each way to choose experts, each kind of state.
const GOLDEN: &[&str] = &[
    "s01-llama-f32",
    "s05-llama-q4_0",
    "s10-qwen2-q4_k_m",
    "s11-qwen3-q5_k_m",
    "s14-qwen3moe-q4_k_m",
    "s16-gemma3-q4_0",
    "s19-qwen35-q4_k_m",
    "s22-llama-iq2-iq3",
    "s23-phi3-q4_0",
    "s27-gpt-oss-mxfp4",
    "s33-granitemoe-q8_0",
    "s20-qwen35moe-q8_0",
];

fn check(name: &str, subject: &Subjected) {
    let verdict = subject.verdict(subject.session(Precision::Fast), None);
    let report = report(&verdict);
    eprintln!(
        "{name}: cosine {:.5}, kl max {:.5} mean {:.6}, same {:.1} %, ties {} ({:.4}, gap {:.4}), reference {:.0} ms, fast {:.0} ms",
        report.min_cosine,
        report.max_kl,
        report.mean_kl,
        100.0 * report.argmax_agreement,
        report.near_ties,
        report.tie_distance,
        report.tie_gap,
        report.reference_ms,
        report.candidate_ms,
    );
    let (largest, at, growth, grown) = nodes(subject);
    eprintln!("{name}: node {largest:.4} at {at}, growth {growth:.2} at {grown}");
    assert!(
        matches!(verdict, Verdict::Accepted { .. }),
        "{name}: {report}"
    );
}

/// The largest distance of a node at some positions, and by how much one exceeds its inputs' where
/// that matters.
fn nodes(subject: &Subjected) -> (f64, String, f64, String) {
    let probe = Probe::built_in(subject.subject()).unwrap();
    let cuts = probe.all_cuts(&[]);
    let mut watching = Watching {
        cancel: CancelToken::new(),
        progress: &mut |_, _| Step::Go,
        now: &Instant::now,
    };
    let (mut largest, mut growth) = ((0.0, String::new()), (0.0, String::new()));
    for (at, row) in [(0, 60), (2, 70), (6, 0)] {
        let place = Place {
            ids: probe.ids(),
            cuts: &cuts,
            at,
            position: cuts[at].rows.start + row,
        };
        let mut read = |precision| {
            let mut session = subject.session(precision);
            let mut runner = Runner::new(&mut *session).unwrap();
            place.read(&mut runner, &mut watching).unwrap()
        };
        let (reference, candidate) = (read(Precision::Exact), read(Precision::Fast));
        for off in distances(&subject.model.graph, &reference, &candidate) {
            if off.distance > largest.0 {
                largest = (off.distance, off.node.to_owned());
            }
            let grown = off.distance / off.of_inputs;
            if off.distance > 0.05 && grown > growth.0 {
                growth = (grown, off.node.to_owned());
            }
        }
    }
    (largest.0, largest.1, growth.0, growth.1)
}

#[test]
fn eight_bit_activations_are_accepted_on_tiny_models_of_every_kind() {
    for name in GOLDEN {
        check(name, &Subjected::golden(name));
    }
}
