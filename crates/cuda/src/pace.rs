//! How far the program runs ahead of the card.

use std::rc::Rc;

use crate::device::{Device, Event, Fault};

/// Steps between two marks in the stream: some four layers, so that a stop does not wait for more
/// than eight.
const STEPS_PER_MARK: usize = 32;

/// Marks in the stream, the older of which has to be passed before the next is set: the card always
/// has work, and what was enqueued and is not wanted any more is soon done.
pub(crate) struct Pace {
    marks: [Event; 2],
    steps: usize,
}

impl Pace {
    pub(crate) fn new(device: &Rc<Device>) -> Result<Self, Fault> {
        Ok(Self {
            marks: [Event::new(device)?, Event::new(device)?],
            steps: 0,
        })
    }

    /// A step was enqueued.
    pub(crate) fn step(&mut self) -> Result<(), Fault> {
        self.steps += 1;
        if !self.steps.is_multiple_of(STEPS_PER_MARK) {
            return Ok(());
        }
        let mark = &self.marks[self.steps / STEPS_PER_MARK % 2];
        mark.wait()?;
        mark.record()
    }
}
