//! What the child process answers, and the words it becomes.

use candor_backend::{DriverFault, Unavailable};
use serde::{Deserialize, Serialize};

use crate::codes::words;

/// The oldest driver that will do, as CUDA counts: the kernels are PTX 8.0, which drivers know since
/// CUDA 12.0.
pub(crate) const CUDA_VERSION_NEEDED: i32 = 12_000;

/// The driver branch that brought [`CUDA_VERSION_NEEDED`].
const BRANCH_NEEDED: &str = "525";

/// CUDA versions and the driver branches that brought them: the number a user knows. From the
/// table "CUDA Toolkit and Corresponding Driver Versions" of NVIDIA's CUDA release notes.
const BRANCHES: [(i32, &str); 25] = [
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
    (11_080, "520"),
    (12_000, "525"),
    (12_010, "530"),
    (12_020, "535"),
    (12_030, "545"),
    (12_040, "550"),
    (12_050, "555"),
    (12_060, "560"),
    (12_080, "570"),
    (12_090, "575"),
    (13_000, "580"),
];

/// The oldest cards that the kernels are made for, by their compute capability: those with tensor
/// cores that ordinary people have (Turing: RTX 20, GTX 16).
pub(crate) const CAPABILITY_NEEDED: (i32, i32) = (7, 5);

/// A card that can be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CudaDevice {
    /// The driver's number of the card.
    pub ordinal: usize,
    /// As NVIDIA names it.
    pub name: String,
    /// Compute capability, such as 8 and 9.
    pub capability: (i32, i32),
    /// The card's memory.
    pub total_bytes: u64,
    /// What was free of it when it was looked at.
    pub free_bytes: u64,
    /// The CUDA version that the driver speaks, as CUDA counts: 12040 is 12.4.
    pub driver_version: i32,
}

impl CudaDevice {
    /// The driver's branch as users know it ("550"), or the CUDA version where it is not known.
    pub fn driver_branch(&self) -> String {
        branch(self.driver_version)
    }
}

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
    /// It works, and sees no card but those that are too old.
    CardTooOld {
        name: String,
        capability: (i32, i32),
    },
    /// It works and sees cards.
    Devices { devices: Vec<CudaDevice> },
}

impl Answer {
    pub(crate) fn into_devices(self) -> Result<Vec<CudaDevice>, Unavailable> {
        let broken = |reason: DriverFault| Unavailable::DriverBroken { reason };
        Err(match self {
            Self::Devices { devices } => return Ok(devices),
            Self::NoDriver => Unavailable::NoDriver,
            Self::DoesNotLoad { message } => broken(DriverFault::DoesNotLoad { message }),
            Self::Incomplete { function } => broken(DriverFault::Incomplete { function }),
            Self::TooOld { version } => Unavailable::DriverTooOld {
                found: branch(version),
                needed: String::from(BRANCH_NEEDED),
            },
            Self::Failed { call, code } => {
                let code = code.unsigned_abs();
                let words = words(code);
                broken(DriverFault::Failed { words, call, code })
            }
            Self::NoDevice => Unavailable::NoDevice,
            Self::CardTooOld { name, capability } => Unavailable::DeviceTooOld {
                device: name,
                found: version_of(capability),
                needed: version_of(CAPABILITY_NEEDED),
            },
        })
    }
}

fn version_of((major, minor): (i32, i32)) -> String {
    format!("{major}.{minor}")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(answer: Answer, want: Unavailable) {
        check_devices(answer, Err(want));
    }

    /// With a broken driver's fault in the words that are read.
    fn as_said(
        found: Result<Vec<CudaDevice>, Unavailable>,
    ) -> Result<Vec<CudaDevice>, Unavailable> {
        found.map_err(|why| match why {
            Unavailable::DriverBroken { reason } => Unavailable::DriverBroken {
                reason: DriverFault::Lost {
                    reason: reason.to_string(),
                },
            },
            other => other,
        })
    }

    #[track_caller]
    fn check_devices(answer: Answer, want: Result<Vec<CudaDevice>, Unavailable>) {
        let line = serde_json::to_string(&answer).unwrap();
        let back: Answer = serde_json::from_str(&line).unwrap();
        assert_eq!(back, answer);
        assert_eq!(as_said(back.into_devices()), as_said(want));
    }

    #[test]
    fn each_answer_crosses_and_becomes_its_own_reason() {
        let broken = |reason: &str| Unavailable::DriverBroken {
            reason: DriverFault::Lost {
                reason: String::from(reason),
            },
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
            Answer::CardTooOld {
                name: String::from("GTX 1080"),
                capability: (6, 1),
            },
            Unavailable::DeviceTooOld {
                device: String::from("GTX 1080"),
                found: String::from("6.1"),
                needed: String::from("7.5"),
            },
        );
        let device = CudaDevice {
            ordinal: 1,
            name: String::from("RTX 4090"),
            capability: (8, 9),
            total_bytes: 24 << 30,
            free_bytes: 23 << 30,
            driver_version: 12_040,
        };
        assert_eq!(device.driver_branch(), "550");
        let devices = vec![device];
        check_devices(
            Answer::Devices {
                devices: devices.clone(),
            },
            Ok(devices),
        );
        check(
            failed(999),
            broken("it failed and gives no reason; cuInit failed with code 999"),
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
