//! Why the processor computes: each reason in plain words, what to do about it, and whether it is
//! a fault at all.

use candor_backend::{Unavailable, Unsupported};
use candor_engine::{NotJudged, PassedOver, Report, WhyNot};

use crate::wire::BannerAction;
use crate::words::{Bytes, Phrase, phrase};

/// A reason that was found before any card was tried.
pub(crate) fn unavailable(why: Unavailable) -> PassedOver {
    let why = match why {
        Unavailable::ChosenByUser => WhyNot::ChosenByUser,
        other => WhyNot::Unavailable(other),
    };
    PassedOver { device: None, why }
}

/// Whether the user wanted it so.
pub(crate) fn chosen_by_user(passed: &PassedOver) -> bool {
    matches!(
        passed.why,
        WhyNot::ChosenByUser
            | WhyNot::Unavailable(Unavailable::ChosenByUser)
            | WhyNot::NotJudged(NotJudged::Stopped)
    )
}

/// Why the processor computes, in plain words.
pub(crate) fn why_cpu(passed: &PassedOver) -> Phrase {
    let why = why_not(passed);
    match passed.why {
        WhyNot::Rejected(_) => phrase!(
            "{why}, so the CPU is used",
            "{why}, deshalb rechnet die CPU",
            why,
        ),
        WhyNot::FailedLater { .. } => phrase!(
            "{why}; replies go on here",
            "{why}; Antworten gehen hier weiter",
            why,
        ),
        _ => why,
    }
}

/// Why a card does not compute, in plain words.
pub(crate) fn why_not(passed: &PassedOver) -> Phrase {
    let name = passed.device.as_ref().map(|device| device.name.as_str());
    let card = name.map_or_else(|| phrase!("the GPU", "die GPU"), Phrase::same);
    let of_card = name.map_or_else(
        || phrase!("of the GPU", "der GPU"),
        |name| phrase!("of {name}", "von {name}", name),
    );
    match &passed.why {
        WhyNot::Unavailable(why) => no_card(why),
        WhyNot::Unsupported(missing) => cannot_run(missing),
        WhyNot::OutOfMemory {
            needed_bytes,
            available_bytes,
        } => phrase!(
            "the model needs {needed} on the card, {free} are free",
            "das Modell braucht {needed} auf der Karte, frei sind {free}",
            needed = Bytes(*needed_bytes),
            free = Bytes(*available_bytes),
        ),
        WhyNot::Failed { reason } => phrase!(
            "{card} could not be made ready ({reason})",
            "{card} ließ sich nicht vorbereiten ({reason})",
            card,
            reason,
        ),
        WhyNot::Rejected(report) => phrase!(
            "GPU found ({card}), but its answers differed{place}",
            "GPU gefunden ({card}), aber ihre Antworten wichen ab{place}",
            card,
            place = place(report),
        ),
        WhyNot::NotJudged(NotJudged::Stopped) => phrase!(
            "you stopped the check {of_card}",
            "du hast die Prüfung {of_card} angehalten",
            of_card,
        ),
        WhyNot::NotJudged(why) => phrase!(
            "the check {of_card} could not run ({why})",
            "die Prüfung {of_card} konnte nicht laufen ({why})",
            of_card,
            why = Phrase::of(why),
        ),
        WhyNot::FailedLater { reason } => phrase!(
            "{card} stopped working ({reason})",
            "{card} arbeitet nicht mehr ({reason})",
            card,
            reason,
        ),
        WhyNot::ChosenByUser => by_you(),
    }
}

fn by_you() -> Phrase {
    phrase!("chosen by you", "von dir gewählt")
}

fn no_card(why: &Unavailable) -> Phrase {
    match why {
        Unavailable::NoDriver => {
            phrase!("no NVIDIA driver found", "kein NVIDIA-Treiber gefunden")
        }
        Unavailable::DriverTooOld { found, needed } => phrase!(
            "the NVIDIA driver is too old ({found}; {needed} or newer is needed)",
            "der NVIDIA-Treiber ist zu alt ({found}; nötig ist {needed} oder neuer)",
            found,
            needed,
        ),
        Unavailable::DriverBroken { reason } => phrase!(
            "the NVIDIA driver does not answer ({reason})",
            "der NVIDIA-Treiber antwortet nicht ({reason})",
            reason = Phrase::of(reason),
        ),
        Unavailable::NoDevice => phrase!(
            "the driver sees no NVIDIA card",
            "der Treiber sieht keine NVIDIA-Karte",
        ),
        Unavailable::DeviceTooOld {
            device,
            found,
            needed,
        } => phrase!(
            "{device} is too old (compute capability {found}; {needed} is needed)",
            "{device} ist zu alt (Compute Capability {found}; nötig ist {needed})",
            device,
            found,
            needed,
        ),
        Unavailable::NoSuchDevice { asked, found } => {
            let cards = match found {
                1 => phrase!("there is 1 card", "es gibt 1 Karte"),
                _ => phrase!("there are {found} cards", "es gibt {found} Karten", found),
            };
            phrase!(
                "there is no card number {asked}; {cards}, counted from 0",
                "eine Karte mit der Nummer {asked} gibt es nicht; {cards}, ab 0 gezählt",
                asked,
                cards,
            )
        }
        Unavailable::ChosenByUser => by_you(),
    }
}

fn cannot_run(missing: &[Unsupported]) -> Phrase {
    match missing {
        [] => phrase!(
            "this model does not run on the GPU yet",
            "dieses Modell läuft noch nicht auf der GPU",
        ),
        [Unsupported::Type(name), ..] => phrase!(
            "this model's {name} weights do not run on the GPU yet",
            "die {name}-Gewichte dieses Modells laufen noch nicht auf der GPU",
            name,
        ),
        [what @ Unsupported::Option(_), ..] => phrase!(
            "this version has no {what}",
            "das gibt es in dieser Version nicht: {what}",
            what = Phrase::of(what),
        ),
        [what, ..] => phrase!(
            "{what} of this model does not run on the GPU yet",
            "in diesem Modell läuft das noch nicht auf der GPU: {what}",
            what = Phrase::of(what),
        ),
    }
}

/// Where the answers parted, as far as that is known.
fn place(report: &Report) -> Phrase {
    let located = report
        .first_bad
        .as_ref()
        .and_then(|bad| bad.located.first());
    let place = located.map(|node| {
        let node = node_words(node);
        phrase!(" (first at {node})", " (zuerst bei {node})", node)
    });
    place.unwrap_or_default()
}

/// "layer 7, attention" of "blk.7.attn_out".
fn node_words(node: &str) -> Phrase {
    /// How names of nodes begin, and what those do, in English and German.
    const PARTS: [(&str, &str, &str); 4] = [
        ("attn", "attention", "Attention"),
        ("ffn", "feed-forward", "Feed-forward"),
        ("ssm", "recurrent state", "rekurrenter Zustand"),
        ("exp", "experts", "Experten"),
    ];
    let words = |name: &str| {
        let part = PARTS.iter().find(|(start, ..)| name.starts_with(start));
        part.map_or_else(
            || Phrase::same(name),
            |(_, english, german)| Phrase::new(*english, *german),
        )
    };
    let Some((layer, name)) = node
        .strip_prefix("blk.")
        .and_then(|rest| rest.split_once('.'))
    else {
        return words(node);
    };
    let part = words(name);
    phrase!(
        "layer {layer}, {part}",
        "Schicht {layer}, {part}",
        layer,
        part
    )
}

/// What to do, if anything.
pub(super) fn advice(passed: &PassedOver) -> Option<Phrase> {
    Some(match &passed.why {
        WhyNot::Unavailable(why) => match why {
            Unavailable::NoDriver => phrase!(
                "fine if there is no NVIDIA card; otherwise install the driver",
                "in Ordnung, wenn es keine NVIDIA-Karte gibt; sonst installiere den Treiber",
            ),
            Unavailable::DriverTooOld { .. } => phrase!(
                "update the NVIDIA driver",
                "bringe den NVIDIA-Treiber auf den neuesten Stand",
            ),
            Unavailable::DriverBroken { .. } => phrase!(
                "restart the computer; reinstall the driver",
                "starte den Rechner neu; installiere den Treiber noch einmal",
            ),
            Unavailable::NoSuchDevice { .. } => phrase!(
                "choose another number in the settings",
                "wähle in den Einstellungen eine andere Nummer",
            ),
            Unavailable::NoDevice
            | Unavailable::DeviceTooOld { .. }
            | Unavailable::ChosenByUser => return None,
        },
        WhyNot::OutOfMemory { .. } => phrase!(
            "close what else uses the card; a shorter context or a smaller file of the model may \
             fit",
            "schließe, was die Karte sonst benutzt; ein kürzerer Kontext oder eine kleinere Datei \
             des Modells könnte passen",
        ),
        WhyNot::Rejected(_) => phrase!(
            "update the driver, or try another file of the model; copy the report to pass it on",
            "bringe den Treiber auf den neuesten Stand oder versuche eine andere Datei des \
             Modells; kopiere den Bericht, um ihn weiterzugeben",
        ),
        WhyNot::Failed { .. } | WhyNot::FailedLater { .. } => phrase!(
            "check again; if it stays so, restart the computer or update the driver",
            "prüfe noch einmal; bleibt es dabei, starte den Rechner neu oder bringe den Treiber \
             auf den neuesten Stand",
        ),
        WhyNot::NotJudged(_) => phrase!("check again", "prüfe noch einmal"),
        WhyNot::Unsupported(_) | WhyNot::ChosenByUser => return None,
    })
}

/// The button that belongs to it.
pub(super) fn action(passed: &PassedOver) -> Option<BannerAction> {
    match &passed.why {
        WhyNot::ChosenByUser | WhyNot::Unavailable(Unavailable::ChosenByUser) => {
            Some(BannerAction::UseGpu)
        }
        WhyNot::Unavailable(Unavailable::DriverBroken { .. })
        | WhyNot::OutOfMemory { .. }
        | WhyNot::Failed { .. }
        | WhyNot::Rejected(_)
        | WhyNot::NotJudged(_)
        | WhyNot::FailedLater { .. } => Some(BannerAction::CheckAgain),
        WhyNot::Unavailable(_) | WhyNot::Unsupported(_) => None,
    }
}

/// What a check found, to pass on.
pub(super) fn report(passed: &PassedOver) -> Option<String> {
    match &passed.why {
        WhyNot::Rejected(report) => Some(report.to_string()),
        _ => None,
    }
}

/// Whether something is wrong that a person may want to put right.
pub(super) fn is_fault(passed: &PassedOver) -> bool {
    match &passed.why {
        WhyNot::Unavailable(
            Unavailable::DriverTooOld { .. }
            | Unavailable::DriverBroken { .. }
            | Unavailable::NoSuchDevice { .. },
        )
        | WhyNot::Failed { .. }
        | WhyNot::Rejected(_)
        | WhyNot::FailedLater { .. } => true,
        WhyNot::NotJudged(why) => *why != NotJudged::Stopped,
        WhyNot::Unavailable(_)
        | WhyNot::Unsupported(_)
        | WhyNot::OutOfMemory { .. }
        | WhyNot::ChosenByUser => false,
    }
}
