//! Weights, state and scratch have to be known to fit before the first byte goes up; where nobody
//! said how long the context is to be, a shorter one may. Each scenario has a simulated machine of
//! its own.
#![cfg(not(feature = "real-driver"))]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use candor_backend::{Backend, Batch, LoadError, Model, OpenError, OpenOptions, Want};
use candor_cpu::{CpuBackend, CpuConfig};
use candor_cuda::CudaBackend;
use candor_engine::{
    CONTEXT_TOKENS_DEFAULT, Engine, EngineConfig, EngineHandle, LoadOptions, LoadSpec, LoadedModel,
    Proof, WhyNot,
};
use candor_testkit::TinyModel;
use simcuda::{Library, scenario};
use tempfile::TempDir;

use common::{SLOT, Unwatched, forward, load, model, options, simulated};

/// Memory of the simulated card where nothing else is said.
const CARD_BYTES: u64 = 8 << 30;

/// A model that was trained for as much as a context usually has.
fn tiny() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("there is room for it");
    let path = folder.path().join("tiny.gguf");
    let tiny = TinyModel::llama().context(CONTEXT_TOKENS_DEFAULT as u32);
    tiny.write(&path).expect("it is written");
    (folder, path)
}

fn free(library: Library, bytes: u64) {
    let settings = format!("used={}", CARD_BYTES - bytes);
    library.apply(&settings).expect("the machine knows it");
}

/// What a card with so much room says that weights and such a session take, and what it has once the
/// kernels are there.
fn refused(library: Library, model: &Arc<Model>, (bytes, wish): (u64, OpenOptions)) -> (u64, u64) {
    free(library, bytes);
    let mut backend = CudaBackend::new(simulated());
    match backend.fit(model, &[wish], &mut Unwatched) {
        Err(LoadError::OutOfMemory {
            needed_bytes,
            available_bytes,
        }) => (needed_bytes, available_bytes),
        other => panic!("{other:?}"),
    }
}

/// The room that weights, such a session and the kernels take.
fn needed(library: Library, model: &Arc<Model>, wish: OpenOptions) -> u64 {
    let (needed, _) = refused(library, model, (0, wish));
    let (_, left) = refused(library, model, (needed - 1, wish));
    needed + (needed - 1 - left)
}

scenario!(
    nothing_goes_up_that_has_no_room_for_its_state,
    "",
    |library: Library| {
        let (_folder, path) = tiny();
        let model = model(&path);
        let [long, short] = [8_192, 4_096].map(options);
        let [most, less] = [long, short].map(|wish| needed(library, &model, wish));
        assert!(most > less, "{most} {less}");
        for (bytes, expected) in [
            (most, Some(long)),
            (most - 1, Some(short)),
            (less, Some(short)),
            (less - 1, None),
        ] {
            free(library, bytes);
            let before = library.counters();
            let mut backend = CudaBackend::new(simulated());
            let fitted = backend.fit(&model, &[long, short], &mut Unwatched);
            let counters = library.counters();
            assert_eq!(counters.uploads(), before.uploads(), "nothing goes up");
            assert_eq!(counters.allocations(), before.allocations());
            let Some(expected) = expected else {
                let Err(LoadError::OutOfMemory {
                    needed_bytes,
                    available_bytes,
                }) = fitted
                else {
                    panic!("{fitted:?}");
                };
                assert_eq!(available_bytes + 1, needed_bytes);
                continue;
            };
            let fitted = fitted.expect("one of them fits");
            assert_eq!(fitted, expected);
            let loaded = load(&mut backend, &model).expect("it was said to fit");
            let held = library.counters().alive_bytes();
            assert!(held <= bytes, "{held} of {bytes}");
            let mut session = loaded.open(fitted).expect("its memory is there already");
            assert_eq!(library.counters().alive_bytes(), held);
            forward(
                &mut *session,
                &Batch::of_slot(SLOT, &[1, 2, 3], Want::Logits),
            );
            forward(&mut *session, &Batch::of_slot(SLOT, &[4], Want::Logits));
            let second = loaded.open(long).map(|_| ());
            assert!(
                matches!(second, Err(OpenError::OutOfMemory { .. })),
                "a card for one session has no room for two: {second:?}"
            );
            drop(session);
            drop(loaded);
            assert_eq!(library.counters().alive(), 0);
        }
    }
);

scenario!(
    memory_that_another_takes_meanwhile_is_missed_before_anything_goes_up,
    "",
    |library: Library| {
        let (_folder, path) = tiny();
        let model = model(&path);
        // The weights, what the steps work in, and the state.
        for n in 1..=3 {
            let mut backend = CudaBackend::new(simulated());
            let fitted = backend.fit(&model, &[options(1_024)], &mut Unwatched);
            assert!(fitted.is_ok(), "{fitted:?}");
            let settings = format!("allocation={n}");
            library.apply(&settings).expect("the machine knows it");
            let uploads = library.counters().uploads();
            let ended = load(&mut backend, &model).map(|_| ());
            assert!(
                matches!(ended, Err(LoadError::OutOfMemory { .. })),
                "{ended:?}"
            );
            let counters = library.counters();
            assert_eq!(counters.uploads(), uploads);
            assert_eq!((counters.alive(), counters.pinned()), (0, 0));
        }
    }
);

fn engine() -> EngineHandle {
    let config = EngineConfig {
        clock: Arc::new(Instant::now),
        available_memory: Arc::new(|| None),
        with_sleep: Arc::new(|| None),
        today: Arc::new(|| 0),
    };
    let card = CudaBackend::new(simulated());
    let backends: Vec<Box<dyn Backend>> =
        vec![Box::new(card), Box::new(CpuBackend::new(CpuConfig::new(1)))];
    Engine::spawn(config, backends).expect("there is a thread for it")
}

/// What an engine makes of the tiny model on this card.
fn served_by(engine: &EngineHandle, path: &Path, ctx_len: Option<usize>) -> Arc<LoadedModel> {
    let spec = LoadSpec {
        options: LoadOptions {
            ctx_len,
            ..LoadOptions::default()
        },
        probe: Some((0..64).collect()),
        ..LoadSpec::new(path.to_path_buf())
    };
    let model = engine.load(spec).expect("it is taken").wait();
    model.expect("it loads")
}

fn served(path: &Path, ctx_len: Option<usize>) -> Arc<LoadedModel> {
    let engine = engine();
    let model = served_by(&engine, path, ctx_len);
    engine.shutdown();
    model
}

scenario!(
    a_model_that_takes_the_place_of_another_is_not_short_of_its_memory,
    "",
    |library: Library| {
        let (_folder, path) = tiny();
        let [whole, short] = [CONTEXT_TOKENS_DEFAULT, 1_024]
            .map(|tokens| needed(library, &model(&path), options(tokens)));
        // Beside the one before there is room for a short context, and alone for the whole one.
        free(library, whole + short);
        let engine = engine();
        for ctx_len in [Some(CONTEXT_TOKENS_DEFAULT), None, None] {
            let model = served_by(&engine, &path, ctx_len);
            assert!(
                matches!(model.proof, Proof::Proven(_)),
                "{:?}",
                model.passed_over
            );
            assert_eq!(
                (model.ctx_len, model.ctx_wished),
                (CONTEXT_TOKENS_DEFAULT, None)
            );
        }
        engine.shutdown();
        assert_eq!(library.counters().alive(), 0);
    }
);

scenario!(
    a_card_serves_a_shorter_context_where_nobody_asked_for_a_long_one,
    "",
    |library: Library| {
        let (_folder, path) = tiny();
        let bytes = needed(library, &model(&path), options(2_048));
        free(library, bytes);
        let shorter = served(&path, None);
        assert!(
            matches!(shorter.proof, Proof::Proven(_)),
            "{:?}",
            shorter.passed_over
        );
        assert_eq!(shorter.ctx_len, 2_048);
        assert_eq!(shorter.ctx_wished, Some(CONTEXT_TOKENS_DEFAULT));

        let as_asked = served(&path, Some(CONTEXT_TOKENS_DEFAULT));
        assert_eq!(as_asked.proof, Proof::Reference);
        assert_eq!(as_asked.ctx_len, CONTEXT_TOKENS_DEFAULT);
        assert_eq!(as_asked.ctx_wished, None);
        let [passed] = &as_asked.passed_over[..] else {
            panic!("{:?}", as_asked.passed_over);
        };
        assert!(
            matches!(passed.why, WhyNot::OutOfMemory { .. }),
            "{passed:?}"
        );

        free(library, CARD_BYTES);
        let whole = served(&path, None);
        assert_eq!(
            (whole.ctx_len, whole.ctx_wished),
            (CONTEXT_TOKENS_DEFAULT, None)
        );
    }
);

/// What the system maps around a page that is read, of what it has in memory anyway.
const AROUND_BYTES: u64 = 64 << 10;

/// Bytes of a file that are mapped into this process and in memory.
fn resident(path: &Path) -> u64 {
    let maps = fs::read_to_string("/proc/self/smaps").expect("the system tells");
    let name = path.to_str().expect("a name of letters");
    let (mut is_its, mut kilobytes) = (false, 0);
    for line in maps.lines() {
        // A mapping begins with its range and ends with its file; its figures follow.
        match line.split_once(':') {
            Some(("Rss", figure)) if is_its => {
                let figure = figure.trim().trim_end_matches(" kB");
                kilobytes += figure.parse::<u64>().expect("a figure");
            }
            Some((key, _)) if !key.contains('-') => {}
            _ => is_its = line.ends_with(name),
        }
    }
    kilobytes << 10
}

scenario!(
    pages_of_the_file_are_let_go_once_the_weights_are_on_the_card,
    "",
    |library: Library| {
        let folder = tempfile::tempdir().expect("there is room for it");
        let path = folder.path().join("wide.gguf");
        let wide = TinyModel::llama().layers(2).width(512, 2_048);
        wide.quant("F32").write(&path).expect("it is written");
        let model = model(&path);
        let index = model.file.index();
        let tensors = || index.tensors.iter();
        let bytes: usize = tensors().map(|one| model.file.bytes(one).len()).sum();
        let bytes = bytes as u64;
        // As they are where the file has just been read, or was in use.
        let read = tensors().map(|one| model.file.bytes(one).iter().map(|byte| u64::from(*byte)));
        assert!(read.flatten().sum::<u64>() > 0, "it is no file of zeroes");
        let before = resident(&path);
        assert!(before >= bytes, "{before} of {bytes}");
        let loaded = load(&mut CudaBackend::new(simulated()), &model).expect("it loads");
        let uploaded = library.counters().uploaded_bytes();
        assert!(uploaded >= bytes, "{uploaded} of {bytes}");
        // The description at the file's beginning stays in use.
        let stay = AROUND_BYTES * (tensors().count() as u64 + 1);
        let after = resident(&path);
        assert!(after <= stay && stay < bytes / 4, "{after} of {bytes}");
        let mut session = loaded.open(options(64)).expect("it opens");
        forward(&mut *session, &Batch::of_slot(SLOT, &[1, 2], Want::Logits));
        assert_eq!(resident(&path), after, "a reply reads none of it");
    }
);
