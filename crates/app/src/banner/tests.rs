use std::sync::Arc;

use candor_backend::{Arithmetic, DeviceKind, DriverFault, Numerics, Unavailable, Unsupported};
use candor_engine::{
    Basis, FirstBad, Located, Mode, NodeDistance, NotJudged, Report, VerdictId, WhyNot, guard::Path,
};

use super::*;
use crate::words::says_the_same;

mod german;

fn facts() -> ModelFacts {
    ModelFacts {
        name: String::from("qwen.gguf"),
        file: String::from("/models/qwen.gguf"),
        architecture: String::from("qwen2"),
        quantization: String::from("Q4_K_M"),
        context: 8_192,
        trained: 32_768,
        context_limit: None,
        template_fallback: None,
        device: DeviceInfo {
            kind: DeviceKind::Cpu,
            name: String::from("Some CPU"),
            isa: String::from("AVX-512 VNNI"),
            threads: 2,
            memory_bytes: None,
        },
        proof: Proof::Reference,
        audits: Audits::default(),
        why: Some(unavailable(Unavailable::NoDriver)),
        card: None,
        day: String::from("2026-12-01"),
        memory_bytes: 431_000_000,
        kv: phrase!("16 bits", "16 Bit"),
    }
}

/// The line as a window joins it: the states that are a sentence of their own go on with a space.
fn line(banner: &Banner) -> String {
    let joint = match banner.kind {
        BannerKind::NoModel
        | BannerKind::Loading
        | BannerKind::Moving
        | BannerKind::Proving
        | BannerKind::Waiting => " ",
        BannerKind::Refused | BannerKind::Gpu | BannerKind::Cpu | BannerKind::Restarting => " · ",
    };
    [banner.state.as_str(), &banner.reason].join(joint)
}

#[track_caller]
fn check(scene: &Scene<'_>, want: &str, advice: Option<&str>) {
    let english = banner(scene, Tongue::English);
    assert_eq!(line(&english), want);
    assert_eq!(english.advice.as_deref(), advice, "{want}");
    let german = banner(scene, Tongue::German);
    says_the_same(&line(&english), &line(&german));
    let advices = [&english, &german].map(|banner| banner.advice.clone().unwrap_or_default());
    says_the_same(&advices[0], &advices[1]);
}

#[test]
fn lines_are_those_of_the_design() {
    let id = String::from("x");
    let starter = Starter::Ready {
        id,
        size_bytes: 97_900_000,
    };
    check(
        &Scene::NoModel { starter: &starter },
        "No model open. Open a model file, or the starter model on disk (98 MB).",
        None,
    );
    let absent = Starter::Absent {
        why: String::from("no"),
    };
    check(
        &Scene::NoModel { starter: &absent },
        "No model open. Open a model file.",
        None,
    );
    let message = &Phrase::new(
        "llama-3.gguf: the file is incomplete: it has 2.1 GB of 4.7 GB",
        "llama-3.gguf: die Datei ist unvollständig: Sie hat 2,1 GB von 4,7 GB",
    );
    let again = phrase!("download it again", "lade sie noch einmal herunter");
    check(
        &Scene::Refused {
            file: "llama-3.gguf",
            message,
            advice: Some(&again),
            kept: Some("qwen.gguf"),
        },
        "Not loaded · llama-3.gguf: the file is incomplete: it has 2.1 GB of 4.7 GB",
        Some("download it again; qwen.gguf stays open"),
    );
    let message = &Phrase::new(
        "the model needs 9 bytes of memory, 3 are available",
        "das Modell braucht 9 Byte Speicher, frei sind 3",
    );
    check(
        &Scene::Refused {
            file: "a.gguf",
            message,
            advice: None,
            kept: None,
        },
        "Not loaded · a.gguf: the model needs 9 bytes of memory, 3 are available",
        None,
    );
}

#[test]
fn lines_of_what_is_under_way_are_those_of_the_design() {
    let left = Some(Duration::from_millis(3_200));
    let card = || String::from("RTX 4090");
    let phases = [
        (
            Phase::Loading {
                progress: Some(0.379),
                left,
            },
            "Loading qwen · 37 % · 4 s left",
        ),
        (
            Phase::Loading {
                progress: None,
                left: None,
            },
            "Loading qwen",
        ),
        (
            Phase::Moving {
                card: card(),
                progress: Some(0.62),
            },
            "Moving the model to RTX 4090 · 62 %",
        ),
        (
            Phase::Checking {
                card: card(),
                done: 0,
                total: 0,
            },
            "Checking RTX 4090 against the CPU",
        ),
        (
            Phase::Checking {
                card: card(),
                done: 120,
                total: 330,
            },
            "Checking RTX 4090 against the CPU · 120 of 330",
        ),
    ];
    for (phase, want) in &phases {
        let model = "qwen";
        check(&Scene::Loading { model, phase }, want, None);
    }
    check(
        &Scene::Waiting {
            conversation: "Birds",
            action: BannerAction::StopOther,
        },
        "Waiting for the reply in Birds",
        None,
    );
    check(
        &Scene::Restarting {
            reason: &Phrase::same("out of range"),
        },
        "Restarting · the engine stopped (out of range); your text is kept",
        None,
    );
}

fn report(first_bad: Option<FirstBad>) -> Arc<Report> {
    Arc::new(Report {
        id: VerdictId(1),
        mode: Mode::Probe,
        basis: Basis::Computed,
        device: card(),
        numerics: Numerics {
            prefill: Arithmetic::F16,
            decode: Arithmetic::Q8Block32,
            kv: Arithmetic::F16,
        },
        positions: 289,
        asked: 289,
        reach: 288,
        ways: 8,
        min_cosine: 0.999_87,
        max_kl: 0.001,
        mean_kl: 0.000_1,
        argmax_agreement: 1.0,
        near_ties: 0,
        tie_distance: 0.0,
        tie_gap: 0.0,
        judged_ms: 0,
        first_bad,
        reference_ms: 900.0,
        candidate_ms: 100.0,
    })
}

fn rejected(located: Located) -> WhyNot {
    WhyNot::Rejected(report(Some(FirstBad {
        position: 12,
        path: Path::Prefill,
        way: None,
        rule: "cosine",
        found: String::from("a cosine of 0.31"),
        cosine: Some(0.31),
        kl: Some(2.0),
        reference_token: Some(1),
        candidate_token: Some(2),
        located,
    })))
}

fn card() -> DeviceInfo {
    DeviceInfo {
        kind: DeviceKind::Gpu,
        name: String::from("RTX 4090"),
        isa: String::from("compute capability 8.9"),
        threads: 1,
        memory_bytes: Some(24_000_000_000),
    }
}

/// A row: why, its words, advice, tone, button.
type Reason = (
    WhyNot,
    &'static str,
    Option<&'static str>,
    Tone,
    Option<BannerAction>,
);

fn no_driver() -> Vec<Reason> {
    use Tone::{Attention, Neutral};
    use WhyNot::Unavailable as No;
    let text = String::from;
    let again = Some(BannerAction::CheckAgain);
    let install = "fine if there is no NVIDIA card; otherwise install the driver";
    let old = Unavailable::DriverTooOld {
        found: text("470"),
        needed: text("525"),
    };
    let broken = Unavailable::DriverBroken {
        reason: DriverFault::Late { seconds: 8 },
    };
    vec![
        (
            No(Unavailable::NoDriver),
            "no NVIDIA driver found",
            Some(install),
            Neutral,
            None,
        ),
        (
            No(old),
            "the NVIDIA driver is too old (470; 525 or newer is needed)",
            Some("update the NVIDIA driver"),
            Attention,
            None,
        ),
        (
            No(broken),
            "the NVIDIA driver does not answer (it did not answer within 8 seconds)",
            Some("restart the computer; reinstall the driver"),
            Attention,
            again,
        ),
    ]
}

fn no_card() -> Vec<Reason> {
    use Tone::{Attention, Neutral};
    use WhyNot::Unavailable as No;
    let old_card = Unavailable::DeviceTooOld {
        device: String::from("GTX 1080"),
        found: String::from("6.1"),
        needed: String::from("7.5"),
    };
    let none_of = |asked, found| No(Unavailable::NoSuchDevice { asked, found });
    let number = Some("choose another number in the settings");
    vec![
        (
            No(Unavailable::NoDevice),
            "the driver sees no NVIDIA card",
            None,
            Neutral,
            None,
        ),
        (
            No(old_card),
            "GTX 1080 is too old (compute capability 6.1; 7.5 is needed)",
            None,
            Neutral,
            None,
        ),
        (
            none_of(3, 2),
            "there is no card number 3; there are 2 cards, counted from 0",
            number,
            Attention,
            None,
        ),
        (
            none_of(1, 1),
            "there is no card number 1; there is 1 card, counted from 0",
            number,
            Attention,
            None,
        ),
        (
            WhyNot::ChosenByUser,
            "chosen by you",
            None,
            Neutral,
            Some(BannerAction::UseGpu),
        ),
    ]
}

fn model_not_for_the_card() -> Vec<Reason> {
    use Tone::Neutral;
    let again = Some(BannerAction::CheckAgain);
    let lacks = |what| WhyNot::Unsupported(vec![what]);
    vec![
        (
            lacks(Unsupported::Type(String::from("IQ1_S"))),
            "this model's IQ1_S weights do not run on the GPU yet",
            None,
            Neutral,
            None,
        ),
        (
            lacks(Unsupported::Op("ShortConv")),
            "the operation ShortConv of this model does not run on the GPU yet",
            None,
            Neutral,
            None,
        ),
        (
            WhyNot::OutOfMemory {
                needed_bytes: 9_100_000_000,
                available_bytes: 3_200_000_000,
            },
            "the model needs 9.1 GB on the card, 3.2 GB are free",
            Some(
                "close what else uses the card; a shorter context or a smaller file of the model \
                 may fit",
            ),
            Neutral,
            again,
        ),
    ]
}

fn card_not_right() -> Vec<Reason> {
    use Tone::{Attention, Neutral};
    let text = String::from;
    let again = Some(BannerAction::CheckAgain);
    let differed =
        "update the driver, or try another file of the model; copy the report to pass it on";
    let stays = "check again; if it stays so, restart the computer or update the driver";
    let nodes = Located::Nodes(vec![NodeDistance {
        node: text("blk.7.attn_out"),
        distance: 0.9,
        limit: 0.02,
    }]);
    vec![
        (
            rejected(nodes),
            "GPU found (RTX 4090), but its answers differed (first at layer 7, attention), so the \
             CPU is used",
            Some(differed),
            Attention,
            again,
        ),
        (
            rejected(Located::OnlyTogether),
            "GPU found (RTX 4090), but its answers differed, so the CPU is used",
            Some(differed),
            Attention,
            again,
        ),
        (
            WhyNot::NotJudged(NotJudged::Stopped),
            "you stopped the check of RTX 4090",
            Some("check again"),
            Neutral,
            again,
        ),
        (
            WhyNot::NotJudged(NotJudged::Candidate {
                reason: text("lost"),
            }),
            "the check of RTX 4090 could not run (the device failed: lost)",
            Some("check again"),
            Attention,
            again,
        ),
        (
            WhyNot::Failed {
                reason: text("code 1"),
            },
            "RTX 4090 could not be made ready (code 1)",
            Some(stays),
            Attention,
            again,
        ),
        (
            WhyNot::FailedLater {
                reason: text("code 719"),
            },
            "RTX 4090 stopped working (code 719); replies go on here",
            Some(stays),
            Attention,
            again,
        ),
    ]
}

#[test]
fn each_reason_for_the_cpu_has_its_own_words() {
    let with_card = |device: Option<DeviceInfo>| move |row| (device.clone(), row);
    let all = no_driver()
        .into_iter()
        .chain(no_card())
        .map(with_card(None));
    let all = all.chain(
        model_not_for_the_card()
            .into_iter()
            .chain(card_not_right())
            .map(with_card(Some(card()))),
    );
    let mut lines = Vec::new();
    for (device, (why, want, advice, tone, action)) in all {
        let has_report = matches!(why, WhyNot::Rejected(_));
        let model = ModelFacts {
            why: Some(PassedOver { device, why }),
            ..facts()
        };
        let (model, wish) = (&model, DeviceChoice::Auto);
        let line = format!("CPU · {want} · AVX-512 · 2 threads");
        check(&Scene::Open { model, wish }, &line, advice);
        let banner = banner(&Scene::Open { model, wish }, Tongue::English);
        assert_eq!(banner.tone, tone, "{want}");
        assert_eq!(banner.actions, Vec::from_iter(action), "{want}");
        assert_eq!(banner.report.is_some(), has_report, "{want}");
        assert!(!lines.contains(&line), "{line}");
        lines.push(line);
        // Who asks for a card is told loudly, but for what they chose themselves.
        let wish = DeviceChoice::Gpu;
        let chosen = want == "chosen by you" || want.starts_with("you stopped");
        let loud = super::banner(&Scene::Open { model, wish }, Tongue::English).tone;
        assert_eq!(loud == Tone::Attention, !chosen, "{want}");
    }
}

#[test]
fn a_card_that_computes_says_by_what_right() {
    let proven = "GPU · RTX 4090 · proven on 289 positions (lowest match 0.9998) · 2026-12-01";
    let cases = [
        (Proof::Proven(report(None)), proven, Tone::Proven),
        (
            Proof::Awaited(Mode::FirstPrompt),
            "GPU · RTX 4090 · to be checked on your next message",
            Tone::Neutral,
        ),
        (
            Proof::Awaited(Mode::EveryPrompt),
            "GPU · RTX 4090 · to be checked on every message",
            Tone::Neutral,
        ),
        (
            Proof::Skipped {
                reason: "asked for",
            },
            "GPU, not checked · RTX 4090 · not checked: asked for",
            Tone::Attention,
        ),
    ];
    for (proof, want, tone) in cases {
        let model = ModelFacts {
            device: card(),
            proof,
            why: None,
            ..facts()
        };
        let (model, wish) = (&model, DeviceChoice::Auto);
        check(&Scene::Open { model, wish }, want, None);
        let banner = banner(&Scene::Open { model, wish }, Tongue::English);
        assert_eq!(
            (banner.kind, banner.tone),
            (BannerKind::Gpu, tone),
            "{want}"
        );
        assert_eq!(banner.report.is_some(), tone == Tone::Proven, "{want}");
    }
}

#[test]
fn details_say_every_number() {
    let mut model = facts();
    let rows = |model: &ModelFacts| {
        let wish = DeviceChoice::Auto;
        let banner = banner(&Scene::Open { model, wish }, Tongue::English);
        let rows = banner
            .details
            .iter()
            .map(|row| format!("{}: {}", row.name, row.value));
        rows.collect::<Vec<_>>()
    };
    let want = [
        "Device: Some CPU",
        "Why: no NVIDIA driver found",
        "Instruction set: AVX-512 VNNI",
        "Threads: 2",
        "Memory used: 431 MB",
        "Context: 8,192 tokens (trained for 32,768)",
        "Keys and values: 16 bits",
        "File: /models/qwen.gguf",
        "Architecture: qwen2",
        "Quantisation: Q4_K_M",
        "Template: the model's own",
    ];
    assert_eq!(rows(&model), want);
    model.context_limit = Some(ContextLimit::Memory { wanted: 8_192 });
    model.context = 4_096;
    model.device.threads = 1;
    model.template_fallback = Some(Phrase::same("no template"));
    let rows = rows(&model);
    assert_eq!(rows[3], "Threads: 1");
    assert_eq!(
        rows[5],
        "Context: 4,096 tokens (8,192 do not fit in memory)"
    );
    assert_eq!(rows[10], "Template: no template");
}

#[test]
fn a_card_that_was_audited_says_on_how_much() {
    let check = |prompts, position, proof, want: &str| {
        let model = ModelFacts {
            device: card(),
            proof,
            audits: Audits { prompts, position },
            why: None,
            ..facts()
        };
        let (model, wish) = (&model, DeviceChoice::Auto);
        assert_eq!(
            banner(&Scene::Open { model, wish }, Tongue::English).reason,
            want
        );
    };
    let proven = || Proof::Proven(report(None));
    let so_far = "RTX 4090 · proven on 289 positions (lowest match 0.9998)";
    let of = |rest: &str| format!("{so_far}{rest} · 2026-12-01");
    check(0, 0, proven(), &of(""));
    let one = " and on one of your prompts, to position 64";
    check(1, 64, proven(), &of(one));
    let three = " and on 3 of your prompts, to position 2,811";
    check(3, 2_811, proven(), &of(three));
    // What is not proven in this run is not proven by what was seen in another.
    let awaited = "RTX 4090 · to be checked on your next message";
    check(3, 2_811, Proof::Awaited(Mode::FirstPrompt), awaited);
}

#[test]
fn details_of_a_card_say_what_was_checked_and_when() {
    let model = ModelFacts {
        device: card(),
        proof: Proof::Proven(report(None)),
        why: None,
        card: Some(CudaDevice {
            ordinal: 0,
            name: String::from("RTX 4090"),
            capability: (8, 9),
            total_bytes: 24_000_000_000,
            free_bytes: 20_000_000_000,
            driver_version: 12_040,
        }),
        ..facts()
    };
    let (model, wish) = (&model, DeviceChoice::Auto);
    let rows = banner(&Scene::Open { model, wish }, Tongue::English).details;
    let rows: Vec<String> = rows
        .iter()
        .map(|row| format!("{}: {}", row.name, row.value))
        .collect();
    let want = [
        "Device: RTX 4090",
        "Driver: 550",
        "Compute capability: 8.9",
        "Memory of the card: 20.0 GB were free of 24.0 GB",
        "Memory used: 431 MB",
        "Checked: 289 positions, 2026-12-01, against the CPU",
        "Lowest match: 0.999870",
        "Largest divergence: 0.001000",
        "Same best token: 100.0 %",
        "When: probe",
        "Took: 1.0 s",
    ];
    assert_eq!(rows[..want.len()], want);
}

#[test]
fn a_context_that_was_limited_is_said_in_the_line_and_in_the_details() {
    let cases = [
        (
            ContextLimit::Memory { wanted: 8_192 },
            "context 4,096 (more does not fit in memory)",
            "4,096 tokens (8,192 do not fit in memory)",
        ),
        // Also once the processor goes on, which had the room.
        (
            ContextLimit::Card { wanted: 8_192 },
            "context 4,096 (the graphics card had no room for more)",
            "4,096 tokens (the graphics card had no room for 8,192)",
        ),
        (
            ContextLimit::Trained { asked: 131_072 },
            "context 4,096 (the model was trained for no more)",
            "4,096 tokens (you chose 131,072; the model was trained for 4,096)",
        ),
    ];
    for (limit, line_end, detail) in cases {
        let model = ModelFacts {
            context: 4_096,
            trained: 4_096,
            context_limit: Some(limit),
            ..facts()
        };
        let (model, wish) = (&model, DeviceChoice::Auto);
        let banner = banner(&Scene::Open { model, wish }, Tongue::English);
        assert!(
            banner.reason.ends_with(&format!(" · {line_end}")),
            "{}",
            banner.reason
        );
        assert_eq!(banner.details[5].value, detail);
    }
}
