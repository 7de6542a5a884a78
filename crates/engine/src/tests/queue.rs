//! Who comes first where more ask than can be served.

use super::*;
use crate::testing::{end_of, options, prompt};

#[test]
fn a_person_comes_before_more_programs_than_the_engine_takes() {
    let (running, model) = Running::loaded(1);
    running.script.at_forward(0, Fault::Stall);
    let program = |seed| GenerateOptions {
        priority: Priority::Background,
        ..options(prompt(seed, 5), 2)
    };
    let first = running.generate(&model, program(0)).1;
    running.script.wait_until_stalled();
    // The first is being written; with these the engine has more than it takes.
    let programs: Vec<_> = (1..SEQUENCES_MAX as u32)
        .map(|seed| running.generate(&model, program(seed)).1)
        .collect();
    let person = {
        let (request, _, log) = request(&model, options(prompt(99, 5), 2));
        // The inbox has one place left.
        running.handle.generate(request).unwrap();
        log
    };
    assert!(
        running
            .handle
            .generate(request(&model, program(77)).0)
            .is_err(),
        "it is bounded"
    );
    // The first has two forwards, and so has the person.
    running.script.at_forward(4, Fault::Stall);
    running.script.release();
    running.script.wait_until_stalled();
    assert!(first.has_ended() && person.has_ended());
    assert!(!programs.iter().any(|log| log.has_ended()));
    running.script.release();
    programs.iter().for_each(|log| drop(end_of(log)));
}
