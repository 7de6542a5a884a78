//! What the machine has: cores that help, memory, its processor's name. Platform code: reads `/proc` and `/sys` on Linux.

use std::collections::BTreeSet;
use std::fs;

/// Where Linux describes the processors.
const CPUS: &str = "/sys/devices/system/cpu";

/// The processors that compute fast, on chips that also have slow ones.
const FAST_CPUS: &str = "/sys/devices/cpu_core/cpus";

/// Threads that help on this machine: one per physical core, only fast cores where the chip has
/// two kinds, within the affinity of the process and the processor time that its control group
/// grants.
///
/// Products of matrices keep a core's units busy, so a second thread on a core only costs, and a
/// slow core makes the fast ones wait. Where the system tells nothing: the number of processors.
pub fn default_threads() -> usize {
    // On Linux this number heeds the affinity and the quotas of control groups v1 and v2.
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = physical_cores(|path| fs::read_to_string(path).ok());
    cores.map_or(available, |cores| cores.clamp(1, available))
}

/// The processor's name, as its maker gives it.
pub(crate) fn processor_name() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("model name"))?;
    Some(line.trim_start_matches([' ', '\t', ':']).trim().to_owned())
}

/// Bytes of memory that can be had without pushing others out, if the system tells.
pub(crate) fn available_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Physical cores among the processors that this process may use.
fn physical_cores(read: impl Fn(&str) -> Option<String>) -> Option<usize> {
    let status = read("/proc/self/status")?;
    let allowed = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let mut usable = parse_list(allowed.trim())?;
    if let Some(fast) = read(FAST_CPUS).and_then(|list| parse_list(list.trim())) {
        let both: BTreeSet<usize> = usable.intersection(&fast).copied().collect();
        if !both.is_empty() {
            usable = both;
        }
    }
    // Threads of one core list the same siblings.
    let siblings = usable.iter().map(|cpu| {
        read(&format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list"))
            .unwrap_or_else(|| cpu.to_string())
    });
    Some(siblings.collect::<BTreeSet<String>>().len())
}

/// Most processors that a list may name: more than Linux can be built for.
const CPUS_MAX: usize = 8_192;

/// Reads the kernel's form of sets, such as `0-3,8,10-11`.
fn parse_list(list: &str) -> Option<BTreeSet<usize>> {
    let mut set = BTreeSet::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= CPUS_MAX {
            return None;
        }
        set.extend(first..=last);
    }
    Some(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(allowed: &str, fast: Option<&str>, siblings: &[&str], expected: Option<usize>) {
        let cores = physical_cores(|path| {
            if path == "/proc/self/status" {
                return Some(format!("Name:\tx\nCpus_allowed_list:\t{allowed}\n"));
            }
            if path == FAST_CPUS {
                return fast.map(str::to_owned);
            }
            let cpu = path
                .strip_prefix(CPUS)?
                .strip_prefix("/cpu")?
                .split('/')
                .next()?;
            siblings
                .get(cpu.parse::<usize>().ok()?)
                .map(|s| (*s).to_owned())
        });
        assert_eq!(cores, expected, "{allowed} {fast:?} {siblings:?}");
    }

    #[test]
    fn counts_the_cores_that_help() {
        let pairs = ["0,4", "1,5", "2,6", "3,7", "0,4", "1,5", "2,6", "3,7"];
        check("0-1", None, &["0", "1"], Some(2));
        check("0-7", None, &pairs, Some(4));
        check("0-1,4", None, &pairs, Some(2));
        check(
            "0-7",
            Some("0-1\n"),
            &["0", "1", "2", "3", "4", "5", "6", "7"],
            Some(2),
        );
        check("2-3", Some("0-1"), &["0", "1", "2", "3"], Some(2));
        check("0-3", None, &[], Some(4));
        check("", None, &[], None);
        check("3-1", None, &[], None);
        check("0-99999999", None, &[], None);
    }

    #[test]
    fn there_is_at_least_one_thread() {
        assert!(default_threads() >= 1);
    }
}
