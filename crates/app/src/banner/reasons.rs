//! Why the processor computes: each reason in plain words, what to do about it, and whether it is
//! a fault at all.

use candor_backend::{Unavailable, Unsupported};
use candor_engine::{NotJudged, PassedOver, Report, WhyNot};

use crate::wire::BannerAction;
use crate::words;

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
pub(crate) fn why_cpu(passed: &PassedOver) -> String {
    let why = why_not(passed);
    match passed.why {
        WhyNot::Rejected(_) => format!("{why}, so the CPU is used"),
        WhyNot::FailedLater { .. } => format!("{why}; replies go on here"),
        _ => why,
    }
}

/// Why a card does not compute, in plain words.
pub(crate) fn why_not(passed: &PassedOver) -> String {
    let card = passed.device.as_ref().map(|device| device.name.as_str());
    let card = card.unwrap_or("the GPU");
    match &passed.why {
        WhyNot::Unavailable(why) => no_card(why),
        WhyNot::Unsupported(missing) => cannot_run(missing),
        WhyNot::OutOfMemory {
            needed_bytes,
            available_bytes,
        } => {
            let (needed, free) = (words::size(*needed_bytes), words::size(*available_bytes));
            format!("the model needs {needed} on the card, {free} are free")
        }
        WhyNot::Failed { reason } => format!("{card} could not be made ready ({reason})"),
        WhyNot::Rejected(report) => {
            let place = place(report);
            format!("GPU found ({card}), but its answers differed{place}")
        }
        WhyNot::NotJudged(NotJudged::Stopped) => format!("you stopped the check of {card}"),
        WhyNot::NotJudged(why) => format!("the check of {card} could not run ({why})"),
        WhyNot::FailedLater { reason } => {
            format!("{card} stopped working ({reason})")
        }
        WhyNot::ChosenByUser => String::from("chosen by you"),
    }
}

fn no_card(why: &Unavailable) -> String {
    match why {
        Unavailable::NoDriver => String::from("no NVIDIA driver found"),
        Unavailable::DriverTooOld { found, needed } => {
            format!("the NVIDIA driver is too old ({found}; {needed} or newer is needed)")
        }
        Unavailable::DriverBroken { reason } => {
            format!("the NVIDIA driver does not answer ({reason})")
        }
        Unavailable::NoDevice => String::from("the driver sees no NVIDIA card"),
        Unavailable::DeviceTooOld {
            device,
            found,
            needed,
        } => format!("{device} is too old (compute capability {found}; {needed} is needed)"),
        Unavailable::NoSuchDevice { asked, found } => {
            let cards = match found {
                1 => String::from("there is 1 card"),
                many => format!("there are {many} cards"),
            };
            format!("there is no card number {asked}; {cards}, counted from 0")
        }
        Unavailable::ChosenByUser => String::from("chosen by you"),
    }
}

fn cannot_run(missing: &[Unsupported]) -> String {
    match missing {
        [] => String::from("this model does not run on the GPU yet"),
        [Unsupported::Type(name), ..] => {
            format!("this model's {name} weights do not run on the GPU yet")
        }
        [Unsupported::Option(name), ..] => format!("this version has no {name}"),
        [what, ..] => format!("{what} of this model does not run on the GPU yet"),
    }
}

/// Where the answers parted, as far as that is known.
fn place(report: &Report) -> String {
    let located = report
        .first_bad
        .as_ref()
        .and_then(|bad| bad.located.first());
    located.map_or_else(String::new, |node| {
        format!(" (first at {})", node_words(node))
    })
}

/// "layer 7, attention" of "blk.7.attn_out".
fn node_words(node: &str) -> String {
    /// How names of nodes begin, and what those do.
    const PARTS: [(&str, &str); 4] = [
        ("attn", "attention"),
        ("ffn", "feed-forward"),
        ("ssm", "recurrent state"),
        ("exp", "experts"),
    ];
    let words = |name: &str| {
        let part = PARTS.iter().find(|(start, _)| name.starts_with(start));
        part.map_or_else(|| name.to_owned(), |(_, words)| (*words).to_owned())
    };
    let Some((layer, name)) = node
        .strip_prefix("blk.")
        .and_then(|rest| rest.split_once('.'))
    else {
        return words(node);
    };
    format!("layer {layer}, {}", words(name))
}

/// What to do, if anything.
pub(super) fn advice(passed: &PassedOver) -> Option<&'static str> {
    Some(match &passed.why {
        WhyNot::Unavailable(why) => match why {
            Unavailable::NoDriver => {
                "fine if there is no NVIDIA card; otherwise install the driver"
            }
            Unavailable::DriverTooOld { .. } => "update the NVIDIA driver",
            Unavailable::DriverBroken { .. } => "restart the computer; reinstall the driver",
            Unavailable::NoSuchDevice { .. } => "choose another number in the settings",
            Unavailable::NoDevice
            | Unavailable::DeviceTooOld { .. }
            | Unavailable::ChosenByUser => return None,
        },
        WhyNot::OutOfMemory { .. } => {
            "close what else uses the card; a shorter context or a smaller file of the model may fit"
        }
        WhyNot::Rejected(_) => {
            "update the driver, or try another file of the model; copy the report to pass it on"
        }
        WhyNot::Failed { .. } | WhyNot::FailedLater { .. } => {
            "check again; if it stays so, restart the computer or update the driver"
        }
        WhyNot::NotJudged(_) => "check again",
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
