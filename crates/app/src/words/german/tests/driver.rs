//! Drivers.

use candor_backend::{DriverFault, Unavailable};

use super::*;
use crate::compose;

#[test]
fn what_is_wrong_with_a_driver_is_said_in_german_with_the_same_facts() {
    let message = || text(1);
    check([
        DriverFault::DoesNotLoad { message: message() },
        DriverFault::Incomplete {
            function: String::from("cuInit"),
        },
        DriverFault::Failed {
            words: None,
            call: String::from("cuInit"),
            code: 77,
        },
        DriverFault::Late { seconds: 8 },
        DriverFault::Crashed {
            end: String::from("signal 11"),
        },
        DriverFault::Crashed {
            end: String::from("code 3"),
        },
        DriverFault::NoAnswer,
        DriverFault::Unread { message: message() },
        DriverFault::NotAsked { message: message() },
    ]);
    let said = DriverFault::Failed {
        words: Some("the system is still starting it"),
        call: String::from("cuInit"),
        code: 802,
    };
    assert_eq!(
        said.german(),
        "das System startet ihn noch; cuInit gab den Code 802"
    );
}

/// Every code that has English words has German ones.
#[test]
fn every_code_with_words_has_german_words() {
    for code in 0..=1_000 {
        let line = format!(r#"{{"found":"failed","call":"cuInit","code":{code}}}"#);
        let Err(Unavailable::DriverBroken { reason }) = compose::understand(&line) else {
            panic!("{line} is no answer");
        };
        let DriverFault::Failed { words, .. } = &reason else {
            panic!("{reason}");
        };
        if let Some(words) = words {
            let german = reason.german();
            assert!(!german.contains(words), "{code}: {german}");
        }
    }
}
