//! Faults that a card could have, and where they are found.

use candor_arch::{Graph, Op, StateLayout};
use candor_backend::Precision;

use super::faulty::{Fault, Faulty};
use super::*;

const DENSE: &str = "s11-qwen3-q5_k_m";

#[test]
fn a_session_that_is_right_is_accepted_everywhere() {
    let subject = Subjected::golden(DENSE);
    let session = Faulty::new(subject.session(Precision::Exact), Fault::None);
    let verdict = subject.verdict(session, None);
    let report = report(&verdict);
    assert!(matches!(verdict, Verdict::Accepted { .. }), "{report}");
    assert_eq!(
        (report.positions, report.asked),
        (PROBE_TOKENS + 1, PROBE_TOKENS + 1)
    );
    assert!(
        report.min_cosine > 0.999_99 && report.max_kl < 1e-4,
        "{report}"
    );
}

/// Plants a fault and expects it to be rejected by `rule` at `position`.
fn check(fault: Fault, rule: &str, position: usize) {
    let subject = Subjected::golden(DENSE);
    let session = Faulty::new(subject.session(Precision::Exact), fault);
    let verdict = subject.verdict(session, None);
    let report = report(&verdict);
    let Verdict::Rejected(_) = verdict else {
        panic!("{fault:?} was accepted: {report}");
    };
    let bad = report.first_bad.as_ref().unwrap();
    assert_eq!(
        (bad.rule, bad.position),
        (rule, position),
        "{fault:?}: {report}"
    );
}

#[test]
fn what_comes_out_is_judged_at_every_position_and_on_every_path() {
    let prefill = 260;
    let cases = [
        // The seed took NaN for agreement.
        (Fault::AllNotANumber, "logits are numbers", 0),
        (Fault::NotANumber(201), "logits are numbers", 201),
        // It compared as far as the shorter side went.
        (Fault::Short(10), "every logit is there", 0),
        (Fault::Missing(200), "every position is there", 200),
        // It excused position 0.
        (Fault::Position(0), "cosine", 0),
        (Fault::Position(1), "cosine", 1),
        // It judged nothing from position 65 on, and so no second part of the attention.
        (Fault::Position(257), "cosine", 257),
        (
            Fault::Position(PROBE_TOKENS - 1),
            "cosine",
            PROBE_TOKENS - 1,
        ),
        (Fault::Position(PROBE_TOKENS), "cosine", PROBE_TOKENS),
        (Fault::Prefill, "cosine", 0),
        (Fault::Decode, "cosine", prefill),
        (Fault::Best, "own best token", PROBE_TOKENS),
    ];
    for (fault, rule, position) in cases {
        check(fault, rule, position);
    }
}

/// Lengths of context between which a card's graphs differ.
const WAYS: [usize; 4] = [256, 1_024, 4_096, 8_192];

#[test]
fn what_is_wrong_only_in_long_contexts_is_rejected_before_one_is_long() {
    let subject = Subjected::golden(DENSE);
    let prefill = 260;
    for (way, rejected) in [
        (1_025, Some(4_096)),
        (5_000, Some(8_192)),
        // As it comes: no longer context is needed to see it.
        (0, None),
    ] {
        let session = Faulty::new(subject.session(Precision::Exact), Fault::Way(way));
        let verdict = subject.verdict(session.in_ways(&WAYS), None);
        let bad = report(&verdict).first_bad.clone().expect("it is rejected");
        assert_eq!((bad.position, bad.way), (prefill, rejected), "{way}");
        assert_eq!(bad.rule, "cosine");
    }
    let right = Faulty::new(subject.session(Precision::Exact), Fault::None);
    let verdict = subject.verdict(right.in_ways(&WAYS), None);
    assert!(matches!(verdict, Verdict::Accepted { .. }));
    // Eight rows, four, two and one, each in two longer ways. The first is too short to serve here.
    let found = report(&verdict);
    assert_eq!((found.positions, found.ways), (PROBE_TOKENS + 1, 8));
}

/// A state that cannot be cut anywhere is brought back to where a forward is repeated.
#[test]
fn recurrent_states_are_judged_in_every_way_too() {
    let subject = Subjected::golden("s18-qwen35-f16");
    for (fault, accepted) in [(Fault::None, true), (Fault::Way(8_192), false)] {
        let session = Faulty::new(subject.session(Precision::Exact), fault);
        let verdict = subject.verdict(session.in_ways(&WAYS), None);
        let found = report(&verdict);
        assert_eq!(found.first_bad.is_none(), accepted, "{found}");
        assert!(!accepted || found.min_cosine > 0.999_99, "{found}");
    }
}

#[test]
fn a_check_is_stopped_within_a_forward_that_shows_nodes() {
    let subject = Subjected::golden(DENSE);
    let stopped = |session: Box<Faulty>, cancel| {
        let verdict = subject.verdict_until(session, cancel);
        matches!(
            verdict,
            Verdict::NotJudged {
                reason: NotJudged::Stopped,
                ..
            }
        )
    };
    // The last forward of all shows where the fault begins: nothing else asks after it.
    let cancel = CancelToken::new();
    let session = Faulty::new(subject.session(Precision::Exact), Fault::Decode);
    assert!(!stopped(session, cancel.clone()));
    let session = Faulty::new(subject.session(Precision::Exact), Fault::Decode);
    assert!(stopped(session.stopping(&cancel), cancel));
}

#[test]
fn faults_that_leave_the_direction_right_are_rejected_too() {
    let subject = Subjected::golden(DENSE);
    for fault in [Fault::Scaled(1.5), Fault::LastLogits, Fault::NotWhenTapped] {
        let session = Faulty::new(subject.session(Precision::Exact), fault);
        let verdict = subject.verdict(session, None);
        assert!(
            matches!(verdict, Verdict::Rejected(_)),
            "{fault:?}: {}",
            report(&verdict)
        );
    }
}

#[test]
fn a_fault_that_is_none_step_by_step_is_laid_on_how_the_steps_run_together() {
    let subject = Subjected::golden(DENSE);
    let session = Faulty::new(subject.session(Precision::Exact), Fault::NotWhenTapped);
    let verdict = subject.verdict(session, None);
    let bad = report(&verdict).first_bad.clone().unwrap();
    assert_eq!(bad.located, Located::OnlyTogether);
}

#[test]
fn a_stale_row_in_the_context_is_found_at_the_attention_that_reads_it() {
    let subject = Subjected::golden(DENSE);
    // The last row of the first chunk.
    let session = Faulty::new(subject.session(Precision::Exact), Fault::StaleRow(96));
    let verdict = subject.verdict(session, None);
    let bad = report(&verdict).first_bad.clone().expect("it is rejected");
    assert!(bad.position > 96, "{}", report(&verdict));
    let first = bad.located.first().expect("it is located").to_owned();
    let node = subject
        .model
        .graph
        .nodes
        .iter()
        .find(|node| node.name == first);
    let node = node.expect("a node of the graph");
    assert!(
        matches!(node.op, Op::Attention { .. }),
        "{first}: {}",
        report(&verdict)
    );
}

#[test]
fn a_session_that_says_itself_that_it_has_no_number_is_located() {
    let subject = Subjected::golden(DENSE);
    let mut spoiled = String::new();
    let wrong = subject.spoiled(|graph| {
        let norms = graph
            .nodes
            .iter_mut()
            .rev()
            .filter(|node| node.layer == Some(1));
        for node in norms {
            if let Op::RmsNorm { eps, .. } = &mut node.op {
                *eps = f32::NAN;
                spoiled = node.name.clone();
                break;
            }
        }
    });
    let session = Faulty::new(wrong.session(Precision::Exact), Fault::Raises);
    let verdict = subject.verdict(session, None);
    let report = report(&verdict);
    let bad = report.first_bad.as_ref().expect("it is rejected");
    assert_eq!(
        (bad.rule, bad.position),
        ("logits are numbers", 0),
        "{report}"
    );
    assert_eq!(bad.located.first(), Some(spoiled.as_str()), "{report}");
    assert_eq!((report.min_cosine, report.argmax_agreement), (0.0, 0.0));
}

#[test]
fn near_ties_of_experts_excuse_no_fault() {
    let subject = Subjected::golden("s14-qwen3moe-q4_k_m");
    let right = subject.verdict(subject.session(Precision::Fast), None);
    assert!(
        matches!(right, Verdict::Accepted { .. }),
        "{}",
        report(&right)
    );
    assert!(report(&right).near_ties > 0, "{}", report(&right));
    // Behind the tie, and without one of its own.
    for fault in [Fault::Position(200), Fault::NotANumber(200), Fault::Decode] {
        let session = Faulty::new(subject.session(Precision::Fast), fault);
        let verdict = subject.verdict(session, None);
        assert!(
            matches!(verdict, Verdict::Rejected(_)),
            "{fault:?}: {}",
            report(&verdict)
        );
    }
}

/// Spoils the last node that `spoil` changes, and expects it to be named.
fn check_node(model: &str, what: &str, spoil: impl Fn(&mut Op) -> bool) {
    let subject = Subjected::golden(model);
    let mut spoiled = None;
    let wrong = subject.spoiled(|graph: &mut Graph| {
        for node in graph.nodes.iter_mut().rev() {
            if !spoil(&mut node.op) {
                continue;
            }
            spoiled = Some(node.name.clone());
            if let (
                Op::Attention {
                    n_kv_heads,
                    head_dim,
                    ..
                },
                Some(layer),
            ) = (&node.op, node.layer)
                && let StateLayout::Full {
                    n_kv_heads: kept,
                    head_dim: dim,
                } = &mut graph.state[layer]
            {
                (*kept, *dim) = (*n_kv_heads, *head_dim);
            }
            break;
        }
    });
    let spoiled = spoiled.unwrap_or_else(|| panic!("{model} has no place for {what}"));
    let verdict = subject.verdict(wrong.session(Precision::Exact), None);
    let report = report(&verdict);
    let Verdict::Rejected(_) = verdict else {
        panic!("{model}: {what} at {spoiled} was accepted: {report}");
    };
    let bad = report.first_bad.as_ref().unwrap();
    assert_eq!(
        bad.located.first(),
        Some(spoiled.as_str()),
        "{model}, {what}: {report}"
    );
}

#[test]
fn what_is_wrong_in_one_node_is_rejected_and_the_node_is_named() {
    check_node(DENSE, "another head of the keys", |op| match op {
        Op::Attention {
            n_heads,
            n_kv_heads,
            head_dim,
            ..
        } => {
            // As many values, and every query reads another part of the keys.
            (*n_heads, *n_kv_heads, *head_dim) = (2 * *n_heads, 2 * *n_kv_heads, *head_dim / 2);
            true
        }
        _ => false,
    });
    check_node(DENSE, "other frequencies", |op| match op {
        Op::Rope(rope) => {
            rope.base /= 10.0;
            true
        }
        _ => false,
    });
    check_node(DENSE, "scores twice as large", |op| match op {
        Op::Attention { scale, .. } => {
            *scale *= 2.0;
            true
        }
        _ => false,
    });
    check_node(DENSE, "a norm that overflows", |op| match op {
        Op::RmsNorm { eps, .. } => {
            *eps = f32::INFINITY;
            true
        }
        _ => false,
    });
    check_node(DENSE, "another activation", |op| match op {
        Op::GatedFfn { activation, .. } => {
            *activation = candor_arch::Activation::Sigmoid;
            true
        }
        _ => false,
    });
    check_node("s14-qwen3moe-q4_k_m", "an expert left out", |op| match op {
        Op::Experts { routing, .. } => {
            routing.n_used -= 1;
            true
        }
        _ => false,
    });
    check_node("s18-qwen35-f16", "another sum of squares", |op| match op {
        Op::DeltaNet(net) => {
            net.eps = 10.0;
            true
        }
        _ => false,
    });
    check_node("s16-gemma3-q4_0", "a factor", |op| match op {
        Op::Scale { factor } => {
            *factor *= 1.5;
            true
        }
        _ => false,
    });
}

/// Both sides go over every position; whoever waits hears of each once.
#[test]
fn positions_are_counted_once_however_many_passes_there_are() {
    let subject = Subjected::golden(DENSE);
    let probe = Probe::built_in(subject.subject()).unwrap();
    let mut heard = Vec::new();
    let mut progress = |done, total| {
        heard.push((done, total));
        Step::Go
    };
    let mut watching = Watching {
        cancel: CancelToken::new(),
        progress: &mut progress,
        now: &Instant::now,
    };
    let mut reference = Reference {
        model: &subject.model,
        open: &mut || Ok(subject.session(Precision::Exact)),
        remembered: None,
    };
    let policy = Policy {
        id: VerdictId(1),
        mode: Mode::Probe,
        judged_ms: 0,
    };
    let candidate = Candidate::new(subject.session(Precision::Exact), device());
    let verdict = verify(&mut reference, candidate, &probe, policy, &mut watching);
    assert!(matches!(verdict, Verdict::Accepted { .. }));
    let positions = PROBE_TOKENS + 1;
    assert!(
        heard
            .iter()
            .all(|(done, total)| *total == positions && *done < positions)
    );
    assert!(heard.is_sorted());
    // Half of it is the reference's.
    let begun = heard
        .iter()
        .filter(|(done, _)| *done < positions / 2)
        .count();
    assert!(begun > 3 && heard.len() - begun > 3, "{heard:?}");
}
