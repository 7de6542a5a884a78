//! The lines and details of a German window, whole: they are read aloud when they change.

use super::*;

#[track_caller]
fn check(scene: &Scene<'_>, want: &str, advice: Option<&str>) {
    let banner = banner(scene, Tongue::German);
    assert_eq!(line(&banner), want);
    assert_eq!(banner.advice.as_deref(), advice, "{want}");
}

#[test]
fn a_german_window_reads_so_before_a_model_is_open() {
    let starter = Starter::Download {
        size_bytes: 97_900_000,
    };
    check(
        &Scene::NoModel { starter: &starter },
        "Kein Modell geöffnet. Öffne eine Modelldatei oder lade das Startmodell herunter (98 MB).",
        None,
    );
    let (message, advice) = (
        phrase!("a.gguf: it is gone", "a.gguf: sie ist weg"),
        phrase!("look for it", "suche sie"),
    );
    check(
        &Scene::Refused {
            file: "a.gguf",
            message: &message,
            advice: Some(&advice),
            kept: Some("qwen"),
        },
        "Nicht geladen · a.gguf: sie ist weg",
        Some("suche sie; qwen bleibt geöffnet"),
    );
    let left = Some(Duration::from_millis(3_200));
    let phase = &Phase::Loading {
        progress: Some(0.379),
        left,
    };
    let model = "qwen";
    let scene = Scene::Loading { model, phase };
    check(&scene, "Lädt qwen · 37 % · noch 4 s", None);
    let phase = &Phase::Checking {
        card: String::from("RTX 4090"),
        done: 120,
        total: 1_330,
    };
    let scene = Scene::Loading { model, phase };
    check(&scene, "Prüft RTX 4090 gegen die CPU · 120 von 1.330", None);
}

#[test]
fn a_german_window_reads_so_with_a_model() {
    let open = |model: &ModelFacts, want: &str, advice: Option<&str>| {
        let wish = DeviceChoice::Auto;
        check(&Scene::Open { model, wish }, want, advice);
    };
    open(
        &facts(),
        "CPU · kein NVIDIA-Treiber gefunden · AVX-512 · 2 Threads",
        Some("in Ordnung, wenn es keine NVIDIA-Karte gibt; sonst installiere den Treiber"),
    );
    let (device, why) = (
        Some(card()),
        WhyNot::OutOfMemory {
            needed_bytes: 9_100_000_000,
            available_bytes: 3_200_000_000,
        },
    );
    let small = ModelFacts {
        why: Some(PassedOver { device, why }),
        context: 4_096,
        context_limit: Some(ContextLimit::Memory { wanted: 8_192 }),
        ..facts()
    };
    open(
        &small,
        "CPU · das Modell braucht 9,1 GB auf der Karte, frei sind 3,2 GB · AVX-512 · 2 Threads · \
         Kontext 4.096 (mehr passt nicht in den Speicher)",
        Some(
            "schließe, was die Karte sonst benutzt; ein kürzerer Kontext oder eine kleinere Datei \
             des Modells könnte passen",
        ),
    );
    let why = WhyNot::NotJudged(NotJudged::Stopped);
    let stopped = ModelFacts {
        why: Some(PassedOver { device: None, why }),
        ..facts()
    };
    open(
        &stopped,
        "CPU · du hast die Prüfung der GPU angehalten · AVX-512 · 2 Threads",
        Some("prüfe noch einmal"),
    );
    let proven = ModelFacts {
        device: card(),
        proof: Proof::Proven(report(None)),
        audits: Audits {
            prompts: 3,
            position: 2_811,
        },
        why: None,
        ..facts()
    };
    open(
        &proven,
        "GPU · RTX 4090 · nachgewiesen an 289 Stellen (geringste Übereinstimmung 0,9998) und an 3 \
         deiner Fragen, bis zur Stelle 2.811 · 2026-12-01",
        None,
    );
}

#[test]
fn details_have_german_names_and_the_same_numbers() {
    let proven = ModelFacts {
        device: card(),
        proof: Proof::Proven(report(None)),
        why: None,
        template_fallback: Some(phrase!("no template", "keine Vorlage")),
        ..facts()
    };
    // What is the same in both languages, and right so.
    let alike = ["Threads", "Compute Capability"];
    for model in [facts(), proven] {
        let wish = DeviceChoice::Auto;
        let scene = Scene::Open {
            model: &model,
            wish,
        };
        let [english, german] =
            [Tongue::English, Tongue::German].map(|tongue| banner(&scene, tongue).details);
        assert_eq!(english.len(), german.len());
        for (english, german) in english.iter().zip(&german) {
            if !alike.contains(&german.name.as_str()) {
                says_the_same(&english.name, &german.name);
            }
            let digits = |text: &str| text.replace(|sign: char| !sign.is_ascii_digit(), "");
            assert_eq!(digits(&english.value), digits(&german.value));
        }
    }
}
