//! What the child process answers, and the words it becomes.

use candor_backend::Unavailable;
use serde::{Deserialize, Serialize};

/// The oldest driver that will do, as CUDA counts: the kernels to come are PTX 8.0, which drivers
/// know since CUDA 12.0.
pub(crate) const CUDA_VERSION_NEEDED: i32 = 12_000;

/// The driver branch that brought [`CUDA_VERSION_NEEDED`].
const BRANCH_NEEDED: &str = "525";

/// CUDA versions and the driver branches that brought them: the number a user knows. From the
/// table "CUDA Toolkit and Corresponding Driver Versions" of NVIDIA's CUDA release notes.
const BRANCHES: [(i32, &str); 14] = [
    (9_000, "384"),
    (9_010, "387"),
    (9_020, "396"),
    (10_000, "410"),
    (10_010, "418"),
    (10_020, "440"),
    (11_000, "450"),
    (11_010, "455"),
    (11_020, "460"),
    (11_030, "465"),
    (11_040, "470"),
    (11_050, "495"),
    (11_060, "510"),
    (11_070, "515"),
];

/// What one look at the driver gave. Crosses from the child process as one line of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "found")]
pub(crate) enum Answer {
    /// The library is not there.
    NoDriver,
    /// The library is there and does not load.
    DoesNotLoad { message: String },
    /// The library lacks a function that every driver has.
    Incomplete { function: String },
    /// The driver speaks an older CUDA than is needed.
    TooOld { version: i32 },
    /// A call failed.
    Failed { call: String, code: i32 },
    /// It works and sees no card.
    NoDevice,
    /// It works and sees a card.
    Device { name: String },
}

impl Answer {
    pub(crate) fn into_reason(self) -> Unavailable {
        let broken = |reason| Unavailable::DriverBroken { reason };
        match self {
            Self::NoDriver => Unavailable::NoDriver,
            Self::DoesNotLoad { message } => {
                broken(format!("its library does not load: {message}"))
            }
            Self::Incomplete { function } => broken(format!("its library lacks {function}")),
            Self::TooOld { version } => Unavailable::DriverTooOld {
                found: branch(version),
                needed: String::from(BRANCH_NEEDED),
            },
            Self::Failed { call, code } => broken(failure(&call, code)),
            Self::NoDevice => Unavailable::NoDevice,
            Self::Device { name } => Unavailable::NotUsedYet { device: name },
        }
    }
}

/// The driver's number as users know it, else CUDA's.
fn branch(version: i32) -> String {
    // Minor updates count in the last digit (11.4.1 is 11041).
    let release = version - version % 10;
    match BRANCHES.iter().find(|(cuda, _)| *cuda == release) {
        Some((_, branch)) => String::from(*branch),
        None => format!("CUDA {}.{}", version / 1000, version % 1000 / 10),
    }
}

/// A failed call in plain words. The codes are those of `CUresult` in NVIDIA's driver interface.
fn failure(call: &str, code: i32) -> String {
    let plain = match code {
        2 => "the card has no memory left",
        34 => "only a stand-in of its library is installed",
        46 => "the card is in use by another program alone",
        802 => "the system is still starting it",
        803 => "its parts are of different versions, as after an update without a restart",
        804 => "its compatibility package does not suit this card",
        999 => "it could not start and gives no reason",
        _ => return format!("{call} failed with code {code}"),
    };
    format!("{plain}; {call} failed with code {code}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(answer: Answer, want: Unavailable) {
        let line = serde_json::to_string(&answer).unwrap();
        let back: Answer = serde_json::from_str(&line).unwrap();
        assert_eq!(back, answer);
        assert_eq!(back.into_reason(), want);
    }

    #[test]
    fn each_answer_crosses_and_becomes_its_own_reason() {
        let broken = |reason: &str| Unavailable::DriverBroken {
            reason: String::from(reason),
        };
        let old = |found: &str| Unavailable::DriverTooOld {
            found: String::from(found),
            needed: String::from("525"),
        };
        let failed = |code| Answer::Failed {
            call: String::from("cuInit"),
            code,
        };
        check(Answer::NoDriver, Unavailable::NoDriver);
        check(Answer::NoDevice, Unavailable::NoDevice);
        check(Answer::TooOld { version: 11_040 }, old("470"));
        check(Answer::TooOld { version: 11_041 }, old("470"));
        check(Answer::TooOld { version: 8_000 }, old("CUDA 8.0"));
        check(Answer::TooOld { version: 6_050 }, old("CUDA 6.5"));
        check(
            Answer::Device {
                name: String::from("RTX 4090"),
            },
            Unavailable::NotUsedYet {
                device: String::from("RTX 4090"),
            },
        );
        check(
            failed(999),
            broken("it could not start and gives no reason; cuInit failed with code 999"),
        );
        check(failed(77), broken("cuInit failed with code 77"));
        check(
            Answer::Incomplete {
                function: String::from("cuInit"),
            },
            broken("its library lacks cuInit"),
        );
        check(
            Answer::DoesNotLoad {
                message: String::from("wrong class"),
            },
            broken("its library does not load: wrong class"),
        );
    }
}
