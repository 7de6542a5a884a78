//! What Linux says of sleep and of power. Pure: a composition root reads the files.

use std::time::Duration;

use candor_engine::guard::Power;

/// Where the time since the start stands, that in which the machine slept included.
pub const UPTIME: &str = "/proc/uptime";

/// Where each supply of power has a folder, with the files `type` and `online`.
pub const SUPPLIES: &str = "/sys/class/power_supply";

/// The time that [`UPTIME`] says: its first number, in seconds with two places.
pub fn uptime(text: &str) -> Option<Duration> {
    let seconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Where the power comes from, by what each supply says of its `type` and whether it is `online`. A
/// machine without a battery has the mains. One whose mouse has a battery may be taken to be on it,
/// which costs an audit and nothing else.
pub fn power<'a>(supplies: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> Power {
    let (mut battery, mut mains) = (false, false);
    for (kind, online) in supplies {
        match kind.trim() {
            "Battery" => battery = true,
            _ => mains |= online.is_some_and(|online| online.trim() == "1"),
        }
    }
    match battery && !mains {
        true => Power::Battery,
        false => Power::Mains,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_with_sleep_is_the_first_number() {
        let cases = [
            ("350735.47 234388.90\n", Some(350_735_470)),
            ("0.00 0.00", Some(0)),
            ("", None),
            ("long ago", None),
            ("-3.0 1.0", None),
            ("NaN 1.0", None),
        ];
        for (text, ms) in cases {
            assert_eq!(uptime(text), ms.map(Duration::from_millis), "{text:?}");
        }
    }

    #[test]
    fn a_machine_is_on_its_battery_where_nothing_else_gives_power() {
        let (mains, battery) = (Power::Mains, Power::Battery);
        type Supplies<'a> = &'a [(&'a str, Option<&'a str>)];
        let cases: [(Supplies<'_>, Power); 6] = [
            (&[], mains),
            (&[("Mains\n", Some("1\n"))], mains),
            (&[("Battery\n", None), ("Mains\n", Some("1\n"))], mains),
            (&[("Battery\n", None), ("Mains\n", Some("0\n"))], battery),
            (&[("USB\n", Some("1\n")), ("Battery\n", None)], mains),
            (&[("Battery\n", None)], battery),
        ];
        for (supplies, want) in cases {
            assert_eq!(power(supplies.iter().copied()), want, "{supplies:?}");
        }
    }
}
