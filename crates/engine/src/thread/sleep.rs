//! Whether the machine has slept since the device was proven. A device may come back from a sleep
//! with other memory than it had, so it is proven again before its next token.

use std::time::{Duration, Instant};

use crate::config::EngineConfig;

/// How much further the clock that counts sleep has to be than the other one. They are read one
/// after the other, and one of them counts hundredths.
const SLEPT_MIN: Duration = Duration::from_secs(2);

/// The two clocks, and what they have shown.
#[derive(Debug, Default)]
pub(super) struct Sleep {
    /// Both clocks at one moment when the machine was awake. They stay until a sleep is seen, so
    /// that short ones add up.
    awake: Option<(Instant, Duration)>,
    /// A sleep was seen and the device was not proven since.
    owes_proof: bool,
}

impl Sleep {
    /// A device is about to be proven: only what is slept from here on counts.
    pub(super) fn begin(config: &EngineConfig) -> Self {
        Self {
            awake: read(config),
            owes_proof: false,
        }
    }

    /// Whether a device that serves has to be proven first.
    pub(super) fn owes_proof(&mut self, config: &EngineConfig) -> bool {
        if self.owes_proof {
            return true;
        }
        let Some((now, with_sleep)) = read(config) else {
            return false;
        };
        let (then, then_with_sleep) = *self.awake.get_or_insert((now, with_sleep));
        let awake = now.saturating_duration_since(then);
        self.owes_proof = with_sleep.saturating_sub(then_with_sleep) > awake + SLEPT_MIN;
        self.owes_proof
    }
}

fn read(config: &EngineConfig) -> Option<(Instant, Duration)> {
    let with_sleep = (config.with_sleep)()?;
    Some(((config.clock)(), with_sleep))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::testing::config;

    #[test]
    fn a_sleep_is_when_only_one_of_two_clocks_goes_on() {
        let begun = Instant::now();
        let seconds = Duration::from_secs;
        let clocks = Arc::new(Mutex::new((0, None)));
        let (awake, all) = (Arc::clone(&clocks), Arc::clone(&clocks));
        let config = EngineConfig {
            clock: Arc::new(move || begun + seconds(awake.lock().unwrap().0)),
            with_sleep: Arc::new(move || all.lock().unwrap().1.map(seconds)),
            today: Arc::new(|| 0),
            ..config()
        };
        let mut sleep = Sleep::default();
        let cases = [
            ("nobody counts", 0, None, false),
            ("the first look", 0, Some(10), false),
            ("both go on", 3, Some(13), false),
            ("they were read a little apart", 6, Some(17), false),
            ("one of them has stood still", 9, Some(4_000), true),
            ("it is owed until it was given", 12, Some(4_003), true),
            ("also where nobody counts any more", 12, None, true),
        ];
        let check = |sleep: &mut Sleep, (what, awake, with_sleep, owes)| {
            *clocks.lock().unwrap() = (awake, with_sleep);
            assert_eq!(sleep.owes_proof(&config), owes, "{what}");
        };
        for case in cases {
            check(&mut sleep, case);
        }
        *clocks.lock().unwrap() = (12, Some(4_003));
        sleep = Sleep::begin(&config);
        for case in [
            ("it was given", 15, Some(4_006), false),
            ("a nap that is too short to be told", 15, Some(4_008), false),
            ("and one more", 15, Some(4_010), true),
        ] {
            check(&mut sleep, case);
        }
    }
}
