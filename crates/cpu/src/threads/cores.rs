//! What the machine has: cores that help, memory, its processor's name. Platform code: reads `/proc` and `/sys` on Linux.

use std::collections::BTreeSet;
use std::fs;

/// Where Linux describes the processors.
const CPUS: &str = "/sys/devices/system/cpu";

/// The processors that compute fast, on chips that also have slow ones.
const FAST_CPUS: &str = "/sys/devices/cpu_core/cpus";

/// Where Linux shows the control groups.
const GROUPS: &str = "/sys/fs/cgroup";

/// Threads that help on this machine: one per physical core, only fast cores where the chip has
/// two kinds, within the affinity of the process and the processor time that its control group
/// grants.
///
/// Products of matrices keep a core's units busy, so a second thread on a core only costs, and a
/// slow core makes the fast ones wait. Where the system tells nothing: the number of processors.
pub fn default_threads() -> usize {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    threads(available, |path| fs::read_to_string(path).ok())
}

/// The same on a machine that has so many processors and these files.
fn threads(available: usize, read: impl Fn(&str) -> Option<String>) -> usize {
    let cores = physical_cores(&read).unwrap_or(available);
    let granted = granted(&read).unwrap_or(available);
    cores.min(granted).clamp(1, available)
}

/// Whole processors' worth of time that the control groups of this process grant, version 2 or 1.
fn granted(read: impl Fn(&str) -> Option<String>) -> Option<usize> {
    let own = read("/proc/self/cgroup")?;
    let mut least: Option<usize> = None;
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let first_version = controllers.split(',').any(|name| name == "cpu");
        if !first_version && !controllers.is_empty() {
            continue;
        }
        // A limit of any group above counts too. Within a container the path may be that of the
        // host, of which only the end of the way up exists.
        let mut path = path.trim_end_matches('/');
        for _ in 0..GROUPS_MAX {
            let found = match first_version {
                true => quota_of_first(&read, controllers, path),
                false => read(&format!("{GROUPS}{path}/cpu.max")).and_then(|text| quota(&text)),
            };
            least = least.into_iter().chain(found).min();
            let Some((above, _)) = path.rsplit_once('/') else {
                break;
            };
            path = above;
        }
    }
    least
}

/// Most control groups within each other that are looked at.
const GROUPS_MAX: usize = 64;

/// What a group of version 1 grants.
fn quota_of_first(
    read: impl Fn(&str) -> Option<String>,
    controllers: &str,
    path: &str,
) -> Option<usize> {
    let file = |name: &str| {
        // The folder has the name of all controllers that are mounted together, or of this one.
        [controllers, "cpu"]
            .iter()
            .find_map(|folder| read(&format!("{GROUPS}/{folder}{path}/{name}")))
    };
    let (quota_us, period_us) = (file("cpu.cfs_quota_us")?, file("cpu.cfs_period_us")?);
    quota(&format!("{} {}", quota_us.trim(), period_us.trim()))
}

/// Reads microseconds of processor time and the period for which they are granted. `None` without a
/// limit.
fn quota(text: &str) -> Option<usize> {
    let (quota_us, period_us) = text.trim().split_once(' ')?;
    let (quota_us, period_us): (u64, u64) = (quota_us.parse().ok()?, period_us.parse().ok()?);
    let whole = quota_us.checked_div(period_us)?;
    Some(usize::try_from(whole).unwrap_or(usize::MAX).max(1))
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
fn physical_cores(read: &impl Fn(&str) -> Option<String>) -> Option<usize> {
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
    // Of processors that say how much they can do, those that can do the most, or nearly.
    let capacity = |cpu: &usize| -> Option<u64> {
        let text = read(&format!("{CPUS}/cpu{cpu}/cpu_capacity"))?;
        text.trim().parse().ok()
    };
    if let Some(greatest) = usable.iter().filter_map(capacity).max() {
        usable.retain(|cpu| {
            capacity(cpu).is_none_or(|own| own.saturating_mul(100) >= greatest * FAST_PERCENT)
        });
    }
    // Threads of one core list the same siblings.
    let siblings = usable.iter().map(|cpu| {
        read(&format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list"))
            .unwrap_or_else(|| cpu.to_string())
    });
    Some(siblings.collect::<BTreeSet<String>>().len())
}

/// What a processor must be able to do, of what the best one can, not to make it wait: prime and
/// big cores differ by less, little ones by more.
const FAST_PERCENT: u64 = 70;

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

    /// A made-up machine: the files it has, a path and a text in each line.
    fn machine(files: &str) -> impl Fn(&str) -> Option<String> {
        let files: Vec<(String, String)> = files
            .lines()
            .filter_map(|line| line.trim().split_once(" = "))
            .map(|(path, text)| (path.to_owned(), text.replace('|', "\n")))
            .collect();
        move |path| {
            let found = files.iter().find(|(name, _)| name == path);
            found.map(|(_, text)| text.clone())
        }
    }

    /// A machine whose process may use some processors; each core has its siblings.
    fn processors(allowed: &str, siblings: &[&str]) -> String {
        let mut files = format!("/proc/self/status = Name:\tx|Cpus_allowed_list:\t{allowed}|\n");
        for (cpu, list) in siblings.iter().enumerate() {
            files += &format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list = {list}|\n");
        }
        files
    }

    #[track_caller]
    fn check(files: &str, available: usize, expected: usize) {
        assert_eq!(threads(available, machine(files)), expected, "{files}");
    }

    const PAIRS: [&str; 8] = ["0,4", "1,5", "2,6", "3,7", "0,4", "1,5", "2,6", "3,7"];
    const SINGLE: [&str; 8] = ["0", "1", "2", "3", "4", "5", "6", "7"];

    #[test]
    fn a_core_counts_once_and_only_those_that_may_be_used() {
        check(&processors("0-1", &SINGLE[..2]), 2, 2);
        check(&processors("0-7", &PAIRS), 8, 4);
        check(&processors("0-1,4", &PAIRS), 3, 2);
        check(&processors("0-3", &[]), 4, 4);
    }

    #[test]
    fn what_the_system_does_not_tell_is_the_number_of_processors() {
        for allowed in ["", "3-1", "0-99999999", "x"] {
            check(&processors(allowed, &SINGLE), 5, 5);
        }
        check("", 3, 3);
    }

    #[test]
    fn slow_cores_do_not_count_where_there_are_fast_ones() {
        // Two fast cores with two threads each, four slow ones.
        let hybrid = ["0-1", "0-1", "2-3", "2-3", "4", "5", "6", "7"];
        let files = processors("0-7", &hybrid) + &format!("{FAST_CPUS} = 0-3|");
        check(&files, 8, 2);
        // Only slow ones may be used.
        let files = processors("4-7", &hybrid) + &format!("{FAST_CPUS} = 0-3|");
        check(&files, 4, 4);
        // One prime, three big and four little cores.
        let mut files = processors("0-7", &SINGLE);
        for (cpu, capacity) in [1024, 870, 870, 870, 320, 320, 320, 320].iter().enumerate() {
            files += &format!("{CPUS}/cpu{cpu}/cpu_capacity = {capacity}|\n");
        }
        check(&files, 8, 4);
    }

    #[test]
    fn a_container_gets_what_its_control_group_grants() {
        let with = |groups: &str| processors("0-7", &SINGLE) + groups;
        // Version 2: own group, a group above, none, less than one.
        let own = "/proc/self/cgroup = 0::/a/b|\n";
        let v2 = |path: &str, text: &str| with(&format!("{own}{GROUPS}{path}/cpu.max = {text}"));
        check(&v2("/a/b", "300000 100000|"), 8, 3);
        check(&v2("/a", "250000 100000|"), 8, 2);
        check(&v2("", "100000 100000|"), 8, 1);
        check(&v2("/a/b", "max 100000|"), 8, 8);
        check(&v2("/a/b", "50000 100000|"), 8, 1);
        check(&v2("/a/b", "damaged"), 8, 8);
        check(&v2("/a/b", "100 0"), 8, 8);
        check(&v2("/a/b", "9900000 100000|"), 8, 8);
        // Version 1, mounted under both names, with a path of the host.
        for folder in ["cpu,cpuacct", "cpu"] {
            let group = |quota: &str| {
                with(&format!(
                    "/proc/self/cgroup = 5:memory:/x|4:cpu,cpuacct:/docker/1|0::/|\n\
                     {GROUPS}/{folder}/cpu.cfs_quota_us = {quota}|\n\
                     {GROUPS}/{folder}/cpu.cfs_period_us = 100000|"
                ))
            };
            check(&group("400000"), 8, 4);
            check(&group("-1"), 8, 8);
        }
    }

    #[test]
    fn there_is_at_least_one_thread() {
        assert!(default_threads() >= 1);
    }
}
