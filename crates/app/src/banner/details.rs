//! The rows behind "Details".

use candor_engine::{Basis, Mode, Proof, Report};

use super::{ContextLimit, ModelFacts};
use crate::compose::CudaDevice;
use crate::wire::Detail;
use crate::words::{Bytes, Count, Digits, Phrase, Tongue, phrase};

/// A name and what stands beside it.
type Row = (Phrase, Phrase);

/// The rows where the processor computes.
pub(super) fn of_cpu(model: &ModelFacts, reason: Phrase, tongue: Tongue) -> Vec<Detail> {
    let device = &model.device;
    let mut rows = vec![
        device_row(model),
        (phrase!("Why", "Warum"), reason),
        (
            phrase!("Instruction set", "Befehlssatz"),
            Phrase::same(device.isa.as_str()),
        ),
        (
            Phrase::same("Threads"),
            Phrase::same(device.threads.to_string()),
        ),
        memory_row(model),
    ];
    rows.extend(of_model(model));
    rows.extend(model.card.iter().flat_map(of_card));
    told(rows, tongue)
}

/// The rows where a card computes.
pub(super) fn of_gpu(model: &ModelFacts, tongue: Tongue) -> Vec<Detail> {
    let mut rows = vec![device_row(model)];
    rows.extend(model.card.iter().flat_map(of_driver));
    rows.push(memory_row(model));
    if let Proof::Proven(report) = &model.proof {
        rows.extend(of_report(report, &model.day));
    }
    rows.extend(of_model(model));
    told(rows, tongue)
}

fn told(rows: Vec<Row>, tongue: Tongue) -> Vec<Detail> {
    let rows = rows.into_iter().map(|(name, value)| Detail {
        name: name.to(tongue),
        value: value.to(tongue),
    });
    rows.collect()
}

fn device_row(model: &ModelFacts) -> Row {
    (
        phrase!("Device", "Gerät"),
        Phrase::same(model.device.name.as_str()),
    )
}

fn memory_row(model: &ModelFacts) -> Row {
    let used = Bytes(model.memory_bytes);
    (
        phrase!("Memory used", "Belegter Speicher"),
        Phrase::written(used),
    )
}

fn of_card(card: &CudaDevice) -> Vec<Row> {
    let name = Phrase::same(card.name.as_str());
    let mut rows = vec![(phrase!("Card", "Karte"), name)];
    rows.extend(of_driver(card));
    rows
}

fn of_driver(card: &CudaDevice) -> Vec<Row> {
    let (major, minor) = card.capability;
    let memory = phrase!(
        "{free} were free of {total}",
        "{free} von {total} waren frei",
        free = Bytes(card.free_bytes),
        total = Bytes(card.total_bytes),
    );
    vec![
        (
            phrase!("Driver", "Treiber"),
            Phrase::same(card.driver_branch()),
        ),
        (
            phrase!("Compute capability", "Compute Capability"),
            Phrase::same(format!("{major}.{minor}")),
        ),
        (phrase!("Memory of the card", "Speicher der Karte"), memory),
    ]
}

fn of_report(report: &Report, day: &str) -> Vec<Row> {
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
        Basis::Computed => phrase!("against the CPU", "gegen die CPU"),
        Basis::Remembered => phrase!(
            "against what the CPU gave before",
            "gegen das, was die CPU früher ergab",
        ),
        Basis::Skipped { .. } => phrase!("not compared", "nicht verglichen"),
    };
    let checked = phrase!(
        "{positions} positions, {day}, {against}",
        "{positions} Stellen, {day}, {against}",
        positions = Count::of(*positions),
        day,
        against,
    );
    let took = (reference_ms + candidate_ms) / 1_000.0;
    let digits = |digits| Phrase::written(Digits(digits));
    vec![
        (phrase!("Checked", "Geprüft"), checked),
        (
            phrase!("Lowest match", "Geringste Übereinstimmung"),
            digits(format!("{min_cosine:.6}")),
        ),
        (
            phrase!("Largest divergence", "Größte Abweichung"),
            digits(format!("{max_kl:.6}")),
        ),
        (
            phrase!("Same best token", "Gleiches bestes Token"),
            digits(format!("{:.1} %", 100.0 * argmax_agreement)),
        ),
        (phrase!("When", "Wann"), mode(report.mode)),
        (phrase!("Took", "Dauer"), digits(format!("{took:.1} s"))),
    ]
}

fn mode(mode: Mode) -> Phrase {
    let german = match mode {
        Mode::Probe => "beim Öffnen",
        Mode::FirstPrompt => "bei der ersten Nachricht",
        Mode::EveryPrompt => "bei jeder Nachricht",
    };
    Phrase::new(mode.name(), german)
}

fn of_model(model: &ModelFacts) -> Vec<Row> {
    let template = model.template_fallback.clone();
    let template = template.unwrap_or_else(|| phrase!("the model's own", "die des Modells"));
    vec![
        (phrase!("Context", "Kontext"), context(model)),
        (
            phrase!("Keys and values", "Schlüssel und Werte"),
            model.kv.clone(),
        ),
        (phrase!("File", "Datei"), Phrase::same(model.file.as_str())),
        (
            phrase!("Architecture", "Architektur"),
            Phrase::same(model.architecture.as_str()),
        ),
        (
            phrase!("Quantisation", "Quantisierung"),
            Phrase::same(model.quantization.as_str()),
        ),
        (phrase!("Template", "Gesprächsvorlage"), template),
    ]
}

fn context(model: &ModelFacts) -> Phrase {
    let trained = Count(model.trained);
    let why = match model.context_limit {
        Some(ContextLimit::Memory { wanted }) => phrase!(
            "{wanted} do not fit in memory",
            "{wanted} passen nicht in den Speicher",
            wanted = Count::of(wanted),
        ),
        Some(ContextLimit::Card { wanted }) => phrase!(
            "the graphics card had no room for {wanted}",
            "auf der Grafikkarte war kein Platz für {wanted}",
            wanted = Count::of(wanted),
        ),
        Some(ContextLimit::Trained { asked }) => phrase!(
            "you chose {asked}; the model was trained for {trained}",
            "du hast {asked} gewählt; trainiert wurde das Modell für {trained}",
            asked = Count::of(asked),
            trained,
        ),
        None => phrase!("trained for {trained}", "trainiert für {trained}", trained),
    };
    phrase!(
        "{tokens} tokens ({why})",
        "{tokens} Tokens ({why})",
        tokens = Count(model.context),
        why,
    )
}
