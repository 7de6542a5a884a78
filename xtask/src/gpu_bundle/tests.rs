//! The script of the folder, over programs that only say that they ran: it is to be carried to a
//! machine that is lent for minutes, and has to run to its end there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use candor_testkit::large::LargeModel;

use super::{PARTS, SCRIPT};
use crate::project;

/// Longest that the script may take on a card, in seconds.
const LIMIT_S: u32 = 600;

/// What the programs of the folder print where it matters for the table.
const PRINTED: &[(&str, &str)] = &[
    (
        "card",
        "Card: Some GPU (1 bytes)\n\n| what | found | beside |\n|---|---|---|\n| Q4_K, GB/s | 7.0 s | 9 bytes |",
    ),
    (
        "candor",
        "checking the GPU against the CPU, 48 of 289\n{\"verdict\":\"accepted\",\"mode\":\"probe\",\
         \"positions\":289,\"min_cosine\":0.9999,\"max_kl\":0.0006,\"device\":\"Some GPU\"}",
    ),
];

/// Makes the folder with stand-ins for its programs, one of which may fail; gives how the script
/// ended, and its table.
fn ran(simulated: bool, fails: Option<&str>) -> (bool, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("parts/golden")).expect("a folder");
    for part in PARTS {
        let printed = PRINTED.iter().find(|(name, _)| *name == part.name);
        let printed = printed.map_or("it ran", |(_, printed)| printed);
        let code = i32::from(fails == Some(part.name));
        let program = format!(
            "#!/bin/sh\ncat <<'END'\n{printed}\nEND\necho \"$@\" >>\"$0.calls\"\nexit {code}\n"
        );
        let path = at("parts").join(part.name);
        fs::write(&path, program).expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it may run");
    }
    let packed = Command::new("tar")
        .args([
            "--create",
            "--gzip",
            "--file",
            "parts.tar.gz",
            "--directory",
            "parts",
            ".",
        ])
        .current_dir(folder.path())
        .status();
    assert!(packed.expect("tar").success());
    fs::remove_dir_all(at("parts")).expect("only the packed ones");
    fs::write(at("run.sh"), SCRIPT).expect("the script");
    let mut run = Command::new("sh");
    run.arg("run.sh").current_dir(folder.path());
    run.env_remove("SCRATCH")
        .env_remove("RESULTS")
        .env_remove("SIMULATED");
    if simulated {
        fs::write(at("libsimcuda.so"), "").expect("a stand-in");
        run.env("SIMULATED", at("libsimcuda.so"));
    }
    let output = run.output().expect("sh");
    let table = fs::read_to_string(at("results/table.md")).expect("a table");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.ends_with(&table), "the table is printed: {printed}");
    let left = fs::read_dir(folder.path()).expect("the folder");
    let left = left.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    assert!(
        left.into_iter()
            .all(|name| !name.starts_with("candor-scratch"))
    );
    (output.status.success(), table)
}

/// The rows that begin so, each of them once.
fn check(table: &str, rows: &[String]) {
    for row in rows {
        let found = table.lines().filter(|line| line.starts_with(row.as_str()));
        assert_eq!(found.count(), 1, "{row}\n{table}");
    }
}

/// Everything that is wanted of a card. The rows that `card` prints are held by a test of its own.
fn rows(dense: &str, experts: &str) -> Vec<String> {
    let mut rows: Vec<String> = ["conformance", "golden", "instructions"]
        .map(|step| format!("| {step} | passed | "))
        .into();
    rows.push(String::from("| first start: kernels translated | 0.0 s | "));
    for shape in [dense, experts] {
        rows.push(format!("| make-{shape} | passed | "));
        rows.push(format!("| verify-{shape} | passed | "));
        rows.push(format!(
            "| verify-{shape}: verdict of the guard | accepted, 289 positions | lowest match 0.9999, largest divergence 0.0006 |"
        ));
    }
    for step in ["start-first", "start-second", "speed"] {
        rows.push(format!("| {step} | passed | "));
        rows.push(format!("| {step}: Q4_K, GB/s | 7.0 s | 9 bytes |"));
    }
    rows
}

#[test]
fn the_script_runs_to_its_end_and_prints_one_table() {
    let (passed, table) = ran(false, None);
    assert!(passed, "{table}");
    check(&table, &rows("llama-8b", "qwen3moe-30b-a3b"));
    assert_eq!(
        table.matches("|---|---|---|").count(),
        1,
        "one table: {table}"
    );
    assert!(!table.contains("simulated"), "{table}");
    let (passed, table) = ran(true, None);
    assert!(passed, "{table}");
    check(&table, &rows("llama-tiny", "qwen3moe-tiny"));
    assert!(
        table.contains("The simulated card: no time and no rate"),
        "{table}"
    );
}

#[test]
fn a_step_that_fails_is_said_and_the_others_go_on() {
    for part in PARTS {
        let (passed, table) = ran(true, Some(part.name));
        assert!(!passed, "{}: {table}", part.name);
        assert!(table.contains("| FAILED | "), "{}: {table}", part.name);
        assert!(table.contains("| speed | "), "{}: {table}", part.name);
    }
}

#[test]
fn the_script_is_one_for_every_shell() {
    let mut check = Command::new("sh");
    let child = check.args(["-n"]).stdin(Stdio::piped()).spawn();
    let mut child = child.expect("sh");
    let mut stdin = child.stdin.take().expect("it was asked for");
    std::io::Write::write_all(&mut stdin, SCRIPT.as_bytes()).expect("it reads");
    drop(stdin);
    assert!(child.wait().expect("it ends").success());
}

/// The words of the script that name something else: programs of the folder, shapes, limits.
fn behind<'a>(start: &'a str) -> impl Iterator<Item = &'static str> + 'a {
    SCRIPT.split(start).skip(1).map(|rest| {
        let end = rest.find(|letter: char| !(letter.is_alphanumeric() || "-_".contains(letter)));
        &rest[..end.unwrap_or(rest.len())]
    })
}

#[test]
fn whatever_the_script_names_is_there() {
    let programs: Vec<&str> = behind(" parts/").collect();
    assert!(programs.len() >= PARTS.len());
    for name in programs {
        assert!(PARTS.iter().any(|part| part.name == name), "{name}");
    }
    for part in PARTS {
        let used = format!(" parts/{}", part.name);
        assert!(
            SCRIPT.contains(&used),
            "{} is carried for nothing",
            part.name
        );
    }
    for shape in behind("dense=").chain(behind("experts=")) {
        assert!(LargeModel::by_name(shape).is_some(), "{shape}");
    }
    // Flags, and where they are understood.
    for (flag, source) in [
        ("--small", "crates/cuda/benches/card.rs"),
        ("--load-only", "crates/cuda/benches/card.rs"),
    ] {
        let source = fs::read_to_string(project::root().join(source)).expect("it is there");
        assert!(
            SCRIPT.contains(flag) && source.contains(&format!("\"{flag}\"")),
            "{flag}"
        );
    }
}

#[test]
fn each_program_has_its_source() {
    let manifests = [
        ("--package=candor", ""),
        ("--package=candor-testkit", "crates/testkit"),
        ("--package=candor-cuda", "crates/cuda"),
        ("--package=candor-simcuda", "crates/simcuda"),
    ];
    for part in PARTS {
        let package = manifests.iter().find(|(word, _)| part.cargo.contains(word));
        let (_, folder) = package.expect("a package of ours");
        let folder = project::root().join(folder);
        let source = |word: &&str| -> Option<bool> {
            let (kind, name) = word.strip_prefix("--")?.split_once('=')?;
            let is_there = |place: &str| Path::new(&folder).join(place).is_file();
            let manifest = fs::read_to_string(folder.join("Cargo.toml")).ok()?;
            Some(match kind {
                "test" => is_there(&format!("tests/{name}.rs")),
                "example" => is_there(&format!("examples/{name}.rs")),
                "bench" => is_there(&format!("benches/{name}.rs")),
                "bin" => {
                    is_there(&format!("src/bin/{name}.rs"))
                        || manifest.contains(&format!("[[bin]]\nname = \"{name}\""))
                }
                "features" => manifest.contains(&format!("\n{name} = ")),
                _ => return None,
            })
        };
        let found: Vec<bool> = part.cargo.iter().filter_map(source).collect();
        assert!(
            !found.is_empty() && found.into_iter().all(|it| it),
            "{}",
            part.name
        );
    }
}

/// Limits of steps in loops count as often as these run.
#[test]
fn all_limits_together_are_ten_minutes() {
    let mut sum = 0;
    let mut loops = 1;
    for line in SCRIPT.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["for", _, "in", ref each @ .., "do"] => loops = each.len() as u32,
            ["done"] => loops = 1,
            ["step", _, "within", seconds, ..] => {
                sum += loops * seconds.parse::<u32>().expect("seconds");
            }
            _ => {}
        }
    }
    assert!((LIMIT_S / 2..=LIMIT_S).contains(&sum), "{sum} s");
}
