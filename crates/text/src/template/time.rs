//! Dates for templates that write today's date into the system turn.

use std::fmt::Write;

/// A local date and time, passed in by the shell: this crate reads no clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalTime {
    /// Year, such as 2026.
    pub year: i32,
    /// Month, 1 to 12.
    pub month: u8,
    /// Day of the month, 1 to 31.
    pub day: u8,
    /// Hour, 0 to 23.
    pub hour: u8,
    /// Minute, 0 to 59.
    pub minute: u8,
    /// Second, 0 to 60.
    pub second: u8,
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

impl LocalTime {
    /// Writes the time as C's `strftime` does in the C locale. A directive that is not known is
    /// written as it stands.
    pub fn format(&self, format: &str) -> String {
        let mut out = String::new();
        let mut chars = format.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            let after = chars.clone();
            let (padding, directive) = match chars.next() {
                Some('-') => (Padding::None, chars.next()),
                directive => (Padding::Zero, directive),
            };
            if directive
                .and_then(|directive| self.write(directive, padding, &mut out))
                .is_none()
            {
                out.push('%');
                chars = after;
            }
        }
        out
    }

    /// Appends one directive; `None` if it is not known.
    fn write(&self, directive: char, padding: Padding, out: &mut String) -> Option<()> {
        let hour12 = (u32::from(self.hour) + 11) % 12 + 1;
        let (number, width) = match directive {
            'Y' => (u32::try_from(self.year).ok()?, 4),
            'm' => (self.month.into(), 2),
            'd' => (self.day.into(), 2),
            'H' => (self.hour.into(), 2),
            'I' => (hour12, 2),
            'M' => (self.minute.into(), 2),
            'S' => (self.second.into(), 2),
            'y' => (u32::try_from(self.year.rem_euclid(100)).ok()?, 2),
            'j' => (self.day_of_year(), 3),
            _ => {
                out.push_str(&self.words(directive)?);
                return Some(());
            }
        };
        let width = if padding == Padding::Zero { width } else { 0 };
        write!(out, "{number:0width$}").ok()
    }

    /// The directives that are not one number.
    fn words(&self, directive: char) -> Option<String> {
        let month = MONTHS.get(usize::from(self.month).checked_sub(1)?)?;
        let weekday = WEEKDAYS[self.weekday()];
        Some(match directive {
            'B' => (*month).to_owned(),
            'b' | 'h' => month[..3].to_owned(),
            'A' => weekday.to_owned(),
            'a' => weekday[..3].to_owned(),
            'p' => if self.hour < 12 { "AM" } else { "PM" }.to_owned(),
            'e' => format!("{:2}", self.day),
            'F' => self.format("%Y-%m-%d"),
            'D' => self.format("%m/%d/%y"),
            'T' => self.format("%H:%M:%S"),
            'R' => self.format("%H:%M"),
            'n' => "\n".to_owned(),
            '%' => "%".to_owned(),
            _ => return None,
        })
    }

    fn is_leap_year(&self) -> bool {
        self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0)
    }

    fn day_of_year(&self) -> u32 {
        const DAYS_BEFORE: [u32; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
        let month = usize::from(self.month.clamp(1, 12)) - 1;
        let leap_day = u32::from(month > 1 && self.is_leap_year());
        DAYS_BEFORE[month] + leap_day + u32::from(self.day)
    }

    /// 0 is Sunday (Sakamoto's rule for the Gregorian calendar).
    fn weekday(&self) -> usize {
        const SHIFTS: [i32; 12] = [0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4];
        let month = usize::from(self.month.clamp(1, 12)) - 1;
        let year = if month < 2 { self.year - 1 } else { self.year };
        let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        (year + leaps + SHIFTS[month] + i32::from(self.day)).rem_euclid(7) as usize
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Padding {
    Zero,
    None,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ymd: (i32, u8, u8), hms: (u8, u8, u8), format: &str, expected: &str) {
        let (year, month, day) = ymd;
        let (hour, minute, second) = hms;
        let time = LocalTime {
            year,
            month,
            day,
            hour,
            minute,
            second,
        };
        assert_eq!(time.format(format), expected, "{format}");
    }

    #[test]
    fn dates_are_written_as_strftime_writes_them() {
        let noon = (12, 0, 0);
        check(
            (2026, 1, 31),
            noon,
            "%d %B %Y, %A %-d %b %y",
            "31 January 2026, Saturday 31 Jan 26",
        );
        check(
            (2024, 3, 1),
            (0, 5, 9),
            "%j %a %I:%M:%S %p %e|%-m",
            "061 Fri 12:05:09 AM  1|3",
        );
        check(
            (2000, 2, 29),
            (23, 59, 60),
            "%F %T %R %D%%",
            "2000-02-29 23:59:60 23:59 02/29/00%",
        );
        check((2026, 1, 31), noon, "100% %Q %-", "100% %Q %-");
        check((1900, 3, 1), noon, "%A %j", "Thursday 060");
    }
}
