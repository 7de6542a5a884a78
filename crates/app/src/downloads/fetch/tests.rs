use std::fs;
use std::time::Duration;

use super::super::http::Network;
use super::super::server::{Deed, Server};
use super::*;

/// How long the tests wait for a server that says nothing.
const PATIENCE: Duration = Duration::from_millis(900);
/// Longer than that.
const LONG: Duration = Duration::from_millis(4_000);

fn model() -> Vec<u8> {
    let bytes = (0..20_000_u32).flat_map(|number| number.to_le_bytes());
    b"GGUF".iter().copied().chain(bytes).collect()
}

fn hash(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

struct Bench {
    _dir: tempfile::TempDir,
    server: Server,
    client: Client,
    wanted: Wanted,
    version: Option<String>,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let server = Server::start();
        server.file("/m.gguf", &model());
        let network = Network {
            patience: Some(PATIENCE),
            ..Network::default()
        };
        Self {
            wanted: Wanted {
                url: format!("{}/m.gguf", server.address),
                size: model().len() as u64,
                sha256: Some(hash(&model())),
                part: dir.path().join("deep/m.gguf.part"),
            },
            _dir: dir,
            client: Client::new(&network).unwrap(),
            server,
            version: None,
        }
    }

    fn fetch(&mut self) -> Result<(), Fault> {
        let mut follow = |_| Next::GoOn;
        fetch(&self.client, &self.wanted, &mut self.version, &mut follow)
    }

    fn here(&self) -> Vec<u8> {
        fs::read(&self.wanted.part).unwrap_or_default()
    }
}

/// What happens with these requests in turn: how each ends, and how many bytes are here then.
fn check(deeds: &[Deed], want: &[(&str, usize)]) -> Vec<String> {
    let mut bench = Bench::new();
    bench.server.does(deeds.iter().cloned());
    for (ends, here) in want {
        let ended = match bench.fetch() {
            Ok(()) => String::from("whole"),
            Err(fault) => fault.to_string(),
        };
        assert!(ended.contains(ends), "{deeds:?}: {ended}");
        assert_eq!(bench.here().len(), *here, "{deeds:?}, {ends}");
    }
    if want.last().is_some_and(|(ends, _)| *ends == "whole") {
        assert_eq!(bench.here(), model(), "{deeds:?}");
    }
    bench.server.heard()
}

#[test]
fn a_file_comes_whole_also_in_pieces_and_by_way_of_other_addresses() {
    let all = model().len();
    let whole = [("whole", all)];
    check(&[Deed::Whole], &whole);
    let heard = check(&[Deed::Redirects], &whole);
    assert_eq!(heard, ["GET /m.gguf", "GET /elsewhere/m.gguf"]);
    let broken = [("broke", 1_000), ("broke", 3_000), ("whole", all)];
    let heard = check(
        &[Deed::BreaksOffAfter(1_000), Deed::BreaksOffAfter(2_000)],
        &broken,
    );
    let want = [
        "GET /m.gguf",
        "GET /m.gguf from 1000 of \"one\"",
        "GET /m.gguf from 3000 of \"one\"",
    ];
    assert_eq!(heard, want);
}

#[test]
fn what_a_server_ignores_or_mixes_up_begins_anew_and_is_never_pieced_together() {
    let all = model().len();
    let part = ("broke", 1_000);
    let broken = Deed::BreaksOffAfter(1_000);
    for deed in [Deed::IgnoresRanges, Deed::NewVersion("\"two\"")] {
        check(&[broken.clone(), deed], &[part, ("whole", all)]);
    }
    let mixed = [part, ("another part", 0), ("whole", all)];
    check(&[broken.clone(), Deed::AnotherRange], &mixed);
    // A weak mark is not asked for.
    let weak = Deed::NewVersion("W/\"about\"");
    let mut bench = Bench::new();
    bench.version = Some(String::from("W/\"about\""));
    fs::create_dir_all(bench.wanted.part.parent().unwrap()).unwrap();
    fs::write(&bench.wanted.part, &model()[..500]).unwrap();
    bench.server.does([weak]);
    bench.fetch().unwrap();
    assert_eq!(bench.server.heard(), ["GET /m.gguf from 500"]);
    assert_eq!(bench.here(), model());
}

#[test]
fn what_is_no_model_is_found_out_and_thrown_away() {
    let all = model().len();
    check(&[Deed::WrongBytes], &[("checksum", 0), ("whole", all)]);
    check(&[Deed::Page], &[("web page", 0)]);
    check(&[Deed::PageAsFile], &[("web page", 0), ("whole", all)]);
    check(&[Deed::OtherLength(7)], &[("7 bytes where 80 kB", 0)]);
    check(&[Deed::Status(403)], &[("account", 0)]);
    check(&[Deed::Status(404)], &[("no such file", 0)]);
    check(&[Deed::Status(503)], &[("answers 503", 0)]);
    check(&[Deed::Status(418)], &[("answers 418", 0)]);
    // A page in the middle takes nothing away of what is here.
    let deeds = [Deed::BreaksOffAfter(1_000), Deed::Page];
    let ends = [("broke", 1_000), ("web page", 1_000), ("whole", all)];
    check(&deeds, &ends);
    // What lies there and is something else altogether.
    let mut bench = Bench::new();
    fs::create_dir_all(bench.wanted.part.parent().unwrap()).unwrap();
    for other in [vec![0; all + 1], vec![0; all]] {
        fs::write(&bench.wanted.part, other).unwrap();
        let first = bench.fetch();
        if first.is_err() {
            assert!(matches!(first, Err(Fault::WrongChecksum)), "{first:?}");
            bench.fetch().unwrap();
        }
        assert_eq!(bench.here(), model());
    }
}

#[test]
fn a_server_that_says_nothing_is_not_waited_for_long() {
    let all = model().len();
    check(
        &[Deed::Stalls(LONG)],
        &[("nothing came", 0), ("whole", all)],
    );
    let deeds = [Deed::StallsAfter(2_000, LONG)];
    check(&deeds, &[("nothing came", 2_000), ("whole", all)]);
    let mut bench = Bench::new();
    bench.wanted.url = String::from("http://127.0.0.1:1/m.gguf");
    let fault = bench.fetch().unwrap_err();
    assert!(
        fault.passes() && fault.to_string().contains("does not answer"),
        "{fault}"
    );
}

#[test]
fn a_stop_keeps_what_came_and_the_next_run_goes_on() {
    let mut bench = Bench::new();
    bench.server.does([Deed::Slowly]);
    let mut seen = 0;
    let mut follow = |step| match step {
        Step::Received(bytes) if bytes > 20 => {
            seen = bytes;
            Next::Stop
        }
        _ => Next::GoOn,
    };
    let fault = fetch(&bench.client, &bench.wanted, &mut None, &mut follow);
    assert!(matches!(fault, Err(Fault::Stopped)), "{fault:?}");
    assert_eq!(bench.here().len() as u64, seen);
    bench.fetch().unwrap();
    assert_eq!(bench.here(), model());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_named_and_nothing_breaks() {
    let mut bench = Bench::new();
    fs::create_dir_all(bench.wanted.part.parent().unwrap()).unwrap();
    // Linux's own full disk: each write to it fails as one to a full disk does.
    std::os::unix::fs::symlink("/dev/full", &bench.wanted.part).unwrap();
    let fault = bench.fetch().unwrap_err();
    assert!(matches!(fault, Fault::DiskFull { .. }), "{fault:?}");
    assert_eq!(fault.to_string(), "the disk is full; 80 kB more are needed");
}
