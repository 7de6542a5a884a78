//! How fast a download is, and how long it will take.

use std::time::{Duration, Instant};

/// Over how long the speed is taken: long enough to be calm, short enough to follow.
const WINDOW: Duration = Duration::from_secs(8);
/// Before that nothing is said: the first moments say nothing about the rest.
const WINDOW_MIN: Duration = Duration::from_secs(1);
/// Readings that are kept; at four a second they cover the window.
const READINGS_MAX: usize = 64;

/// Readings of the last seconds.
#[derive(Debug, Default)]
pub(super) struct Pace {
    readings: Vec<(Instant, u64)>,
}

impl Pace {
    /// So many bytes are here now.
    pub(super) fn read(&mut self, now: Instant, bytes: u64) {
        // What was thrown away does not count backwards.
        if self.readings.last().is_some_and(|(_, last)| *last > bytes) {
            self.readings.clear();
        }
        self.readings
            .retain(|(then, _)| now.saturating_duration_since(*then) <= WINDOW);
        if self.readings.len() >= READINGS_MAX {
            self.readings.remove(0);
        }
        self.readings.push((now, bytes));
    }

    pub(super) fn clear(&mut self) {
        self.readings.clear();
    }

    /// Bytes a second.
    pub(super) fn speed(&self) -> Option<f64> {
        let (first, last) = (self.readings.first()?, self.readings.last()?);
        let time = last.0.saturating_duration_since(first.0);
        (time >= WINDOW_MIN).then(|| (last.1 - first.1) as f64 / time.as_secs_f64())
    }

    /// Seconds for so many bytes.
    pub(super) fn left(&self, bytes: u64) -> Option<f64> {
        let speed = self.speed().filter(|speed| *speed > 0.0)?;
        Some(bytes as f64 / speed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_speed_is_that_of_the_last_seconds() {
        let start = Instant::now();
        let mut pace = Pace::default();
        let at = |second: u64| start + Duration::from_secs(second);
        pace.read(at(0), 0);
        assert_eq!((pace.speed(), pace.left(100)), (None, None));
        pace.read(at(2), 200);
        assert_eq!((pace.speed(), pace.left(500)), (Some(100.0), Some(5.0)));
        // A slow beginning is forgotten.
        for second in 10..20 {
            pace.read(at(second), 200 + (second - 9) * 1_000);
        }
        assert_eq!(pace.speed(), Some(1_000.0));
        // What was thrown away is no negative speed.
        pace.read(at(20), 0);
        assert_eq!(pace.speed(), None);
        // Nothing comes: no time left can be told.
        pace.read(at(25), 0);
        assert_eq!((pace.speed(), pace.left(1)), (Some(0.0), None));
    }
}
