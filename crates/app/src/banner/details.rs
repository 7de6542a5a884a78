//! The rows behind "Details".

use candor_engine::{Basis, Proof, Report};

use super::{ContextLimit, ModelFacts};
use crate::compose::CudaDevice;
use crate::wire::Detail;
use crate::words;

/// The rows where the processor computes.
pub(super) fn of_cpu(model: &ModelFacts, reason: &str) -> Vec<Detail> {
    let device = &model.device;
    let mut rows = vec![
        row("Device", &device.name),
        row("Why", reason),
        row("Instruction set", &device.isa),
        row("Threads", device.threads.to_string()),
        row("Memory used", words::size(model.memory_bytes)),
    ];
    rows.extend(of_model(model));
    rows.extend(model.card.iter().flat_map(of_card));
    rows
}

/// The rows where a card computes.
pub(super) fn of_gpu(model: &ModelFacts) -> Vec<Detail> {
    let mut rows = vec![row("Device", &model.device.name)];
    rows.extend(model.card.iter().flat_map(of_driver));
    rows.push(row("Memory used", words::size(model.memory_bytes)));
    if let Proof::Proven(report) = &model.proof {
        rows.extend(of_report(report, &model.day));
    }
    rows.extend(of_model(model));
    rows
}

fn of_card(card: &CudaDevice) -> Vec<Detail> {
    let mut rows = vec![row("Card", &card.name)];
    rows.extend(of_driver(card));
    rows
}

fn of_driver(card: &CudaDevice) -> Vec<Detail> {
    let (major, minor) = card.capability;
    let (free, total) = (words::size(card.free_bytes), words::size(card.total_bytes));
    vec![
        row("Driver", card.driver_branch()),
        row("Compute capability", format!("{major}.{minor}")),
        row("Memory of the card", format!("{free} were free of {total}")),
    ]
}

fn of_report(report: &Report, day: &str) -> Vec<Detail> {
    let Report {
        positions,
        min_cosine,
        max_kl,
        argmax_agreement,
        reference_ms,
        candidate_ms,
        ..
    } = report;
    let against = match report.basis {
        Basis::Computed => "against the CPU",
        Basis::Remembered => "against what the CPU gave before",
        Basis::Skipped { .. } => "not compared",
    };
    let positions = words::count(*positions as u64);
    let took = (reference_ms + candidate_ms) / 1_000.0;
    vec![
        row(
            "Checked",
            format!("{positions} positions, {day}, {against}"),
        ),
        row("Lowest match", format!("{min_cosine:.6}")),
        row("Largest divergence", format!("{max_kl:.6}")),
        row(
            "Same best token",
            format!("{:.1} %", 100.0 * argmax_agreement),
        ),
        row("When", report.mode.name()),
        row("Took", format!("{took:.1} s")),
    ]
}

fn of_model(model: &ModelFacts) -> Vec<Detail> {
    let template = model.template_fallback.as_deref();
    vec![
        row("Context", context(model)),
        row("Keys and values", model.kv),
        row("File", &model.file),
        row("Architecture", &model.architecture),
        row("Quantisation", &model.quantization),
        row("Template", template.unwrap_or("the model's own")),
    ]
}

fn context(model: &ModelFacts) -> String {
    let trained = words::count(model.trained);
    let why = match model.context_limit {
        Some(ContextLimit::Memory { wanted }) => {
            format!("{} do not fit in memory", words::count(wanted as u64))
        }
        Some(ContextLimit::Card { wanted }) => {
            let wanted = words::count(wanted as u64);
            format!("the graphics card had no room for {wanted}")
        }
        Some(ContextLimit::Trained { asked }) => {
            let asked = words::count(asked as u64);
            format!("you chose {asked}; the model was trained for {trained}")
        }
        None => format!("trained for {trained}"),
    };
    format!("{} tokens ({why})", words::count(model.context))
}

fn row(name: &str, value: impl Into<String>) -> Detail {
    Detail {
        name: name.to_owned(),
        value: value.into(),
    }
}
