//! Speed of a whole model: reading a prompt, and writing after a context, by numbers of threads and
//! lengths of context. Each figure is the median of the rounds, the models in the order given.
//!
//! `cargo bench -p candor-cpu --bench tokens -- MODEL [--threads 1,2] [--depths 0,4096]
//! [--tokens 32] [--kv q8_0] [--isa avx2]` prints a line of JSON for each.
#![allow(clippy::print_stdout)]

mod common;

use std::path::PathBuf;
use std::time::Instant;

use candor_backend::{CancelToken, KvType, Loaded, Outcome, Session};
use candor_cpu::{CpuConfig, Isa};

/// Rounds, of which the median counts.
const ROUNDS: usize = 3;

struct Asked {
    models: Vec<PathBuf>,
    threads: Vec<usize>,
    depths: Vec<usize>,
    tokens: usize,
    kv: KvType,
    isa: Option<Isa>,
}

fn asked() -> Asked {
    let mut asked = Asked {
        models: Vec::new(),
        threads: vec![1, 2],
        depths: vec![0, 4096],
        tokens: 32,
        kv: KvType::F16,
        isa: None,
    };
    let numbers = |list: String| list.split(',').filter_map(|n| n.parse().ok()).collect();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap_or_default();
        match arg.as_str() {
            "--bench" => {}
            "--threads" => asked.threads = numbers(value()),
            "--depths" => asked.depths = numbers(value()),
            "--tokens" => asked.tokens = value().parse().unwrap_or(asked.tokens),
            "--kv" if value() == "q8_0" => asked.kv = KvType::Q8_0,
            "--isa" => {
                asked.isa = match value().as_str() {
                    "avx2" => Some(Isa::Avx2),
                    "portable" => Some(Isa::Portable),
                    _ => None,
                }
            }
            _ => asked.models.push(arg.into()),
        }
    }
    asked
}

fn main() {
    let asked = asked();
    for path in &asked.models {
        for &threads in &asked.threads {
            let loaded = common::load(
                path,
                CpuConfig {
                    isa: asked.isa,
                    ..CpuConfig::new(threads)
                },
            );
            for &depth in &asked.depths {
                report(path, (threads, depth), &asked, &*loaded);
            }
        }
    }
}

fn report(
    path: &std::path::Path,
    (threads, depth): (usize, usize),
    asked: &Asked,
    loaded: &dyn Loaded,
) {
    let ctx_len = depth + ROUNDS * asked.tokens + 1;
    let mut session = common::open(loaded, ctx_len, asked.kv);
    let ids = common::ids(&*session, depth.max(1));
    let read = time(|| {
        for chunk in ids.chunks(common::CHUNK) {
            forward(&mut *session, chunk);
        }
    });
    let mut written: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            time(|| {
                for token in 0..asked.tokens {
                    forward(&mut *session, &ids[token % ids.len()..][..1]);
                }
            })
        })
        .collect();
    written.sort_by(f64::total_cmp);
    println!(
        "{{\"model\": {:?}, \"threads\": {threads}, \"depth\": {depth}, \"read_per_second\": {:.1}, \"written_per_second\": {:.1}}}",
        path.file_name().unwrap_or_default(),
        depth as f64 / read,
        asked.tokens as f64 / written[ROUNDS / 2],
    );
}

fn forward(session: &mut dyn Session, ids: &[u32]) {
    let (outcome, _) = common::forward(session, ids, &CancelToken::new());
    assert_eq!(outcome, Outcome::Done);
}

fn time(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}
