//! What the simulated machine is like and what goes wrong on it, as a value and as the small text
//! that crosses to the library: `capability=8.6,memory=8G,kernel=rms_norm:nan`.

use std::fmt;
use std::str::FromStr;

use crate::exec::Races;
use crate::mutation::Mutation;

/// The machine. The text form is a list of `key=value`, separated by commas; a key that is left
/// out keeps its value of before, and `reset` alone puts everything back to the default. A key that
/// can be repeated says all of its list; with nothing behind it the list is empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// `name`: what the device calls itself.
    pub name: String,
    /// `capability`: major and minor number of the compute capability.
    pub capability: (u32, u32),
    /// `memory`: bytes of device memory, with `K`, `M` or `G` after the number.
    pub memory: u64,
    /// `used`: bytes of it that other programs hold.
    pub used: u64,
    /// `fresh`: what every byte of device memory holds that nobody has written. All ones is a NaN in
    /// every format of floating point; a card has what others left there, mostly numbers.
    pub fresh: u8,
    /// `driver`: what `cuDriverGetVersion` answers, 12040 for CUDA 12.4.
    pub driver: i32,
    /// `devices`: how many there are, all alike. With none, `cuInit` answers 100.
    pub devices: usize,
    /// `multiprocessors`: how many each device has.
    pub multiprocessors: u32,
    /// `workers`: host threads over which a kernel's blocks are spread.
    pub workers: usize,
    /// `seed`: the order in which warps run; without one it is the order of their numbers.
    pub seed: Option<u64>,
    /// `races`, `on` or `off`: whether a race in shared memory is a fault or runs on as it would on
    /// a card.
    pub races: Races,
    /// `init`: the code that `cuInit` answers with.
    pub init: Option<i32>,
    /// `hang`: the entry point that does not return for as long as this stands here; `any` for the
    /// first that is called, nothing for none.
    pub hang: Option<String>,
    /// `crash`: the entry point in which the process dies; `any` for the first that is called.
    pub crash: Option<String>,
    /// `fail`, as `name:n:code`, repeatable: the n-th call from now of an entry point fails.
    pub fail: Vec<FailedCall>,
    /// `launch`, as `n:code`, repeatable: the n-th launch of a kernel from now fails. With a
    /// sticky code it fails when it runs, else the call itself does.
    pub launch: Vec<FailedLaunch>,
    /// `allocation`, as `n`, repeatable: the n-th allocation from now finds no memory.
    pub allocation: Vec<u64>,
    /// `kernel`, as `name:what` or `name:what:n`, repeatable: a kernel that goes wrong, every time
    /// or in its n-th run from now alone. A `*` at the end of the name stands for any end.
    pub kernel: Vec<WrongKernel>,
    /// `mutate`, as `kernel:drop:instruction:n`, `kernel:shift:instruction:n:bytes` or
    /// `kernel:swap:instruction:n:other`, repeatable: a bug in a kernel of each module that is
    /// loaded from now on.
    pub mutate: Vec<Mutation>,
}

/// The n-th call of an entry point, counted from one, that fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedCall {
    /// The entry point's exported name.
    pub name: String,
    /// Which call of it.
    pub nth: u64,
    /// The code it answers with.
    pub code: i32,
}

/// The n-th launch of a kernel, counted from one, that fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedLaunch {
    /// Which launch.
    pub nth: u64,
    /// The code.
    pub code: i32,
}

/// A kernel that silently goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongKernel {
    /// Its name, or how its name begins with a `*` after it.
    pub name: String,
    /// What it does.
    pub what: Wrong,
    /// Which of its runs, counted from one; all of them without a number.
    pub nth: Option<u64>,
}

impl WrongKernel {
    /// Whether a kernel of this name is meant.
    pub(crate) fn fits(&self, kernel: &str) -> bool {
        fits(&self.name, kernel)
    }
}

/// Whether a name is meant: it is that name, or begins as what stands before a `*`.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

/// How a kernel goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// `nothing`: it writes nothing.
    Nothing,
    /// `nan`: every word that it changed becomes NaN.
    Nan,
    /// `scaled`: every word that it changed is half as large again, read as float32.
    Scaled,
    /// `first`: of each allocation, the first word that it changed is one more, read as float32.
    First,
}

const WRONG: [(&str, Wrong); 4] = [
    ("nothing", Wrong::Nothing),
    ("nan", Wrong::Nan),
    ("scaled", Wrong::Scaled),
    ("first", Wrong::First),
];

impl Default for Settings {
    /// A middling card: the two flavours of kernels load on it, and little runs at once, because
    /// every block costs the host time.
    fn default() -> Self {
        Self {
            name: String::from("Simulated GPU"),
            capability: (8, 6),
            memory: 8 << 30,
            used: 0,
            fresh: u8::MAX,
            driver: 12_040,
            devices: 1,
            multiprocessors: 4,
            workers: 2,
            seed: None,
            races: Races::Checked,
            init: None,
            hang: None,
            crash: None,
            fail: Vec::new(),
            launch: Vec::new(),
            allocation: Vec::new(),
            kernel: Vec::new(),
            mutate: Vec::new(),
        }
    }
}

/// A piece of the text that means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{piece:?} is no setting of the simulated driver: {expected}")]
pub struct SettingsError {
    /// The piece as written.
    pub piece: String,
    /// What would have been right.
    pub expected: &'static str,
}

impl Settings {
    /// Takes over what the text says.
    ///
    /// # Errors
    /// The first piece that is not understood. What stands before it has then been taken over.
    pub fn apply(&mut self, text: &str) -> Result<(), SettingsError> {
        self.forget_lists_in(text);
        for piece in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            if piece == "reset" {
                *self = Self::default();
                continue;
            }
            let taken = match piece.split_once('=') {
                Some((key, value)) => self.set(key.trim(), value.trim()),
                None => Err("key=value"),
            };
            taken.map_err(|expected| SettingsError {
                piece: String::from(piece),
                expected,
            })?;
        }
        Ok(())
    }

    fn forget_lists_in(&mut self, text: &str) {
        let keys = text.split(',').filter_map(|piece| piece.split_once('='));
        for (key, _) in keys {
            match key.trim() {
                "fail" => self.fail.clear(),
                "launch" => self.launch.clear(),
                "allocation" => self.allocation.clear(),
                "kernel" => self.kernel.clear(),
                "mutate" => self.mutate.clear(),
                _ => {}
            }
        }
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), &'static str> {
        match key {
            "fail" | "launch" | "allocation" | "kernel" | "mutate" if value.is_empty() => {}
            "name" => self.name = String::from(value),
            "capability" => self.capability = capability(value).ok_or("capability=8.6")?,
            "memory" => self.memory = bytes(value).ok_or("memory=8G")?,
            "used" => self.used = bytes(value).ok_or("used=200M")?,
            "fresh" => self.fresh = number(value).ok_or("fresh=255")?,
            "driver" => self.driver = number(value).ok_or("driver=12040")?,
            "devices" => self.devices = number(value).ok_or("devices=1")?,
            "multiprocessors" => {
                self.multiprocessors = number(value).ok_or("multiprocessors=4")?;
            }
            "workers" => self.workers = number(value).ok_or("workers=2")?,
            "seed" => self.seed = Some(number(value).ok_or("seed=1")?),
            "races" => self.races = races(value).ok_or("races=on|off")?,
            "init" => self.init = Some(number(value).ok_or("init=999")?),
            "hang" => self.hang = (!value.is_empty()).then(|| String::from(value)),
            "crash" => self.crash = Some(String::from(value)),
            "fail" => self
                .fail
                .push(failed_call(value).ok_or("fail=cuInit:1:999")?),
            "launch" => self
                .launch
                .push(failed_launch(value).ok_or("launch=3:719")?),
            "allocation" => self.allocation.push(number(value).ok_or("allocation=3")?),
            "kernel" => {
                let wrong = wrong_kernel(value);
                self.kernel
                    .push(wrong.ok_or("kernel=name:nothing|nan|scaled|first[:n]")?);
            }
            "mutate" => {
                let mutation = Mutation::parse(value);
                self.mutate
                    .push(mutation.ok_or("mutate=kernel:drop:bar.sync:1")?);
            }
            _ => return Err("an unknown key"),
        }
        Ok(())
    }
}

fn number<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

fn races(text: &str) -> Option<Races> {
    match text {
        "on" => Some(Races::Checked),
        "off" => Some(Races::Ignored),
        _ => None,
    }
}

fn capability(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((number(major)?, number(minor)?))
}

fn bytes(text: &str) -> Option<u64> {
    let units = [('K', 10), ('M', 20), ('G', 30)];
    let unit = units.iter().find(|(letter, _)| text.ends_with(*letter));
    match unit {
        Some((letter, shift)) => number::<u64>(text.trim_end_matches(*letter))?.checked_shl(*shift),
        None => number(text),
    }
}

fn failed_call(text: &str) -> Option<FailedCall> {
    let mut parts = text.split(':');
    let name = String::from(parts.next()?);
    let nth = number(parts.next()?)?;
    let code = number(parts.next()?)?;
    parts
        .next()
        .is_none()
        .then_some(FailedCall { name, nth, code })
}

fn failed_launch(text: &str) -> Option<FailedLaunch> {
    let (nth, code) = text.split_once(':')?;
    Some(FailedLaunch {
        nth: number(nth)?,
        code: number(code)?,
    })
}

fn wrong_kernel(text: &str) -> Option<WrongKernel> {
    let mut parts = text.split(':');
    let name = String::from(parts.next()?);
    let word = parts.next()?;
    let what = WRONG.iter().find(|(text, _)| *text == word)?.1;
    let nth = match parts.next() {
        Some(nth) => Some(number(nth)?),
        None => None,
    };
    parts
        .next()
        .is_none()
        .then_some(WrongKernel { name, what, nth })
}

impl fmt::Display for Settings {
    /// The text that makes exactly these settings of any others.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.capability;
        write!(f, "reset,name={},capability={major}.{minor}", self.name)?;
        write!(f, ",memory={},used={}", self.memory, self.used)?;
        write!(f, ",fresh={},driver={}", self.fresh, self.driver)?;
        write!(f, ",devices={}", self.devices)?;
        write!(f, ",multiprocessors={}", self.multiprocessors)?;
        let races = match self.races {
            Races::Checked => "on",
            Races::Ignored => "off",
        };
        write!(f, ",workers={},races={races}", self.workers)?;
        let numbers = [
            ("seed", self.seed.map(|s| s.to_string())),
            ("init", self.init.map(|i| i.to_string())),
        ];
        let names = [("hang", self.hang.clone()), ("crash", self.crash.clone())];
        for (key, value) in numbers.iter().chain(&names) {
            if let Some(value) = value {
                write!(f, ",{key}={value}")?;
            }
        }
        for FailedCall { name, nth, code } in &self.fail {
            write!(f, ",fail={name}:{nth}:{code}")?;
        }
        for FailedLaunch { nth, code } in &self.launch {
            write!(f, ",launch={nth}:{code}")?;
        }
        for nth in &self.allocation {
            write!(f, ",allocation={nth}")?;
        }
        for WrongKernel { name, what, nth } in &self.kernel {
            let word = WRONG
                .iter()
                .find(|(_, w)| w == what)
                .map_or("", |(word, _)| word);
            write!(f, ",kernel={name}:{word}")?;
            if let Some(nth) = nth {
                write!(f, ":{nth}")?;
            }
        }
        for mutation in &self.mutate {
            write!(f, ",mutate={mutation}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: impl FnOnce(&mut Settings)) {
        let mut settings = Settings::default();
        settings.apply(text).unwrap();
        let mut wanted = Settings::default();
        want(&mut wanted);
        assert_eq!(settings, wanted);
        let mut back = Settings {
            name: String::from("other"),
            ..Settings::default()
        };
        back.apply(&settings.to_string()).unwrap();
        assert_eq!(back, settings);
    }

    #[test]
    fn the_text_says_what_the_value_says() {
        check("", |_| {});
        check("name=RTX 4090, capability=8.9", |s| {
            s.name = String::from("RTX 4090");
            s.capability = (8, 9);
        });
        check("memory=200M,used=3K,driver=11040,devices=0", |s| {
            s.memory = 200 << 20;
            s.used = 3 << 10;
            s.driver = 11_040;
            s.devices = 0;
        });
        check("fresh=44", |s| s.fresh = 44);
        check("races=off", |s| s.races = Races::Ignored);
        check("multiprocessors=7,workers=1,seed=9,init=999", |s| {
            s.multiprocessors = 7;
            s.workers = 1;
            s.seed = Some(9);
            s.init = Some(999);
        });
        check("hang=cuInit,crash=any", |s| {
            s.hang = Some(String::from("cuInit"));
            s.crash = Some(String::from("any"));
        });
        check("fail=cuMemAlloc_v2:2:2,launch=3:719,allocation=4", |s| {
            s.fail = vec![FailedCall {
                name: String::from("cuMemAlloc_v2"),
                nth: 2,
                code: 2,
            }];
            s.launch = vec![FailedLaunch { nth: 3, code: 719 }];
            s.allocation = vec![4];
        });
        check("kernel=a*:nan,kernel=b:first:2", |s| {
            let wrong = |name: &str, what, nth| WrongKernel {
                name: String::from(name),
                what,
                nth,
            };
            s.kernel = vec![
                wrong("a*", Wrong::Nan, None),
                wrong("b", Wrong::First, Some(2)),
            ];
        });
        check("mutate=a*:shift:ld.global:2:-4", |s| {
            s.mutate = vec![Mutation::parse("a*:shift:ld.global:2:-4").unwrap()];
        });
        check("hang=cuInit,hang=", |_| {});
        check("devices=3,reset", |_| {});
        check("kernel=", |_| {});
    }

    #[test]
    fn a_list_is_said_whole() {
        let mut settings = Settings::default();
        for (text, expected) in [
            ("allocation=1,allocation=2", vec![1, 2]),
            ("memory=1M", vec![1, 2]),
            ("allocation=3", vec![3]),
            ("allocation=", vec![]),
        ] {
            settings.apply(text).unwrap();
            assert_eq!(settings.allocation, expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for piece in [
            "x=1",
            "memory",
            "memory=8T",
            "capability=8",
            "launch=1",
            "fail=a:1",
            "kernel=a",
            "kernel=a:odd",
            "kernel=a:nan:1:2",
            "devices=-1",
            "races=no",
            "mutate=a:drop",
        ] {
            let error = Settings::default().apply(piece).unwrap_err();
            assert_eq!(error.piece, piece);
        }
    }

    #[test]
    fn a_star_stands_for_any_end_of_a_name() {
        for (pattern, kernel, expected) in [
            ("linear", "linear", true),
            ("linear", "linear_q4_k", false),
            ("linear*", "linear_q4_k", true),
            ("*", "anything", true),
        ] {
            let wrong = WrongKernel {
                name: String::from(pattern),
                what: Wrong::Nan,
                nth: None,
            };
            assert_eq!(wrong.fits(kernel), expected, "{pattern} {kernel}");
        }
    }
}
