//! What computes and what the guard said, as scripts and programs read it: one form for the command
//! line and the server.

use candor_engine::{FirstBad, LoadedModel, Located, Report};
use serde_json::{Map, Value, json};

use super::device::{Judgement, VerdictKind};
use crate::words;

/// What the guard said of what serves, and what it saw; [`VerdictKind::NotNeeded`] of the reference.
pub fn judgement_json(judged: &Judgement) -> Value {
    let mut all = Map::new();
    all.insert("verdict".to_owned(), json!(judged.kind.name()));
    let mode = judged.mode.map(|mode| mode.name());
    all.insert("mode".to_owned(), json!(mode));
    if let Some(report) = &judged.report {
        all.extend(report_json(report));
    }
    Value::Object(all)
}

/// The same where nothing was there to be judged.
pub fn not_needed_json() -> Value {
    judgement_json(&Judgement {
        kind: VerdictKind::NotNeeded,
        mode: None,
        report: None,
    })
}

/// What the guard saw.
pub fn report_json(report: &Report) -> Map<String, Value> {
    let found = json!({
        "date": words::day(report.judged_ms),
        "positions": report.positions,
        "ways": report.ways,
        "min_cosine": number(report.min_cosine),
        "max_kl": number(report.max_kl),
        "mean_kl": number(report.mean_kl),
        "argmax_agreement": number(report.argmax_agreement),
        "near_ties": report.near_ties,
        "first_bad": report.first_bad.as_ref().map(first_bad_json),
        "reference_ms": report.reference_ms,
        "candidate_ms": report.candidate_ms,
    });
    match found {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// Bytes: of the device, where it says so, and what the model takes of them.
pub fn memory_json(model: &LoadedModel) -> Value {
    json!({
        "device_bytes": model.device.memory_bytes,
        "needed_bytes": model.footprint.total_bytes(),
    })
}

/// What is no number is none in JSON.
fn number(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn first_bad_json(bad: &FirstBad) -> Value {
    let (nodes, reason) = match &bad.located {
        Located::Nodes(nodes) => (nodes.as_slice(), None),
        Located::OnlyTogether => (&[][..], Some("only_together")),
        Located::Unknown { reason } => (&[][..], Some(reason.as_str())),
    };
    let names: Vec<&str> = nodes.iter().map(|node| node.node.as_str()).collect();
    let distances: Vec<Option<f64>> = nodes.iter().map(|node| number(node.distance)).collect();
    json!({
        "position": bad.position,
        "step": bad.path.to_string(),
        "way": bad.way,
        "rule": bad.rule,
        "found": bad.found,
        "cosine": bad.cosine.and_then(number),
        "kl": bad.kl.and_then(number),
        "reference_token": bad.reference_token,
        "candidate_token": bad.candidate_token,
        "nodes": names,
        "distances": distances,
        "not_located": reason,
    })
}
