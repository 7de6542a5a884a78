use candor_backend::DeviceKind;

use super::*;

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
        memory_bytes: 431_000_000,
        kv: "16 bits",
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
    let banner = banner(scene);
    assert_eq!(line(&banner), want);
    assert_eq!(banner.advice.as_deref(), advice, "{want}");
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
    let message = "llama-3.gguf: the file is incomplete: it has 2.1 GB of 4.7 GB";
    check(
        &Scene::Refused {
            file: "llama-3.gguf",
            message,
            advice: Some("download it again"),
            kept: Some("qwen.gguf"),
        },
        "Not loaded · llama-3.gguf: the file is incomplete: it has 2.1 GB of 4.7 GB",
        Some("download it again; qwen.gguf stays open"),
    );
    let message = "the model needs 9 bytes of memory, 3 are available";
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
    check(
        &Scene::Loading {
            model: "qwen",
            progress: Some(0.379),
            left,
        },
        "Loading qwen · 37 % · 4 s left",
        None,
    );
    check(
        &Scene::Loading {
            model: "qwen",
            progress: None,
            left: None,
        },
        "Loading qwen",
        None,
    );
    check(
        &Scene::Waiting {
            conversation: "Birds",
        },
        "Waiting for the reply in Birds",
        None,
    );
    check(
        &Scene::Restarting {
            reason: "out of range",
        },
        "Restarting · the engine stopped (out of range); your text is kept",
        None,
    );
}

#[track_caller]
fn check_cpu(why: Option<Unavailable>, want: &str, advice: Option<&str>, tone: Tone) {
    let model = facts();
    let scene = Scene::Cpu {
        model: &model,
        why: why.as_ref(),
    };
    check(
        &scene,
        &format!("CPU · {want} · AVX-512 · 2 threads"),
        advice,
    );
    assert_eq!(banner(&scene).tone, tone, "{want}");
}

#[test]
fn each_reason_for_the_cpu_has_its_own_words() {
    use Tone::{Attention, Neutral};
    let text = String::from;
    let advice = "fine if there is no NVIDIA card; otherwise install the driver";
    check_cpu(
        Some(Unavailable::NoDriver),
        "no NVIDIA driver found",
        Some(advice),
        Neutral,
    );
    check_cpu(
        Some(Unavailable::DriverTooOld {
            found: text("470"),
            needed: text("525"),
        }),
        "the NVIDIA driver is too old (470; 525 or newer is needed)",
        Some("update it"),
        Attention,
    );
    check_cpu(
        Some(Unavailable::DriverBroken {
            reason: text("it hangs"),
        }),
        "the NVIDIA driver does not answer (it hangs)",
        Some("restart the computer; reinstall the driver"),
        Attention,
    );
    check_cpu(
        Some(Unavailable::NoDevice),
        "the driver sees no NVIDIA card",
        None,
        Neutral,
    );
    check_cpu(
        Some(Unavailable::NotUsedYet {
            device: text("RTX 4090"),
        }),
        "this version does not use the GPU yet",
        None,
        Neutral,
    );
    check_cpu(
        Some(Unavailable::ChosenByUser),
        "chosen by you",
        None,
        Neutral,
    );
    check_cpu(None, "looking for an NVIDIA driver", None, Neutral);
}

#[test]
fn details_say_every_number() {
    let mut model = facts();
    let rows = |model: &ModelFacts| {
        let why = Unavailable::NoDriver;
        let banner = banner(&Scene::Cpu {
            model,
            why: Some(&why),
        });
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
    model.template_fallback = Some(String::from("no template"));
    let rows = rows(&model);
    assert_eq!(rows[3], "Threads: 1");
    assert_eq!(
        rows[5],
        "Context: 4,096 tokens (8,192 do not fit in memory)"
    );
    assert_eq!(rows[10], "Template: no template");
}

#[test]
fn a_context_that_was_limited_is_said_in_the_line_and_in_the_details() {
    let cases = [
        (
            ContextLimit::Memory { wanted: 8_192 },
            "context 4,096 (more does not fit in memory)",
            "4,096 tokens (8,192 do not fit in memory)",
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
        let why = Some(&Unavailable::NoDriver);
        let banner = banner(&Scene::Cpu { model: &model, why });
        assert!(
            banner.reason.ends_with(&format!(" · {line_end}")),
            "{}",
            banner.reason
        );
        assert_eq!(banner.details[5].value, detail);
    }
}
