//! Loading, stopping a load, and what stays loaded.

use std::sync::atomic::{AtomicU64, Ordering};

use candor_backend::{Backend, Precision, Step};
use candor_testkit::TinyModel;
use candor_testkit::apr::{Apr, Storage, Writer};
use candor_testkit::scripted::LoadFault;

use super::*;
use crate::testing::{end_of, ids, options, prompt};

#[test]
fn a_load_says_how_far_it_is_and_then_that_it_is_ready() {
    let running = Running::new();
    assert!(matches!(
        running.state(),
        EngineState::NoModel(WhyNoModel::NotLoaded)
    ));
    running.script.load_reports(10);
    running.script.at_load_report(5, LoadFault::Stall);
    let answer = running.handle.load(running.spec(2)).unwrap();
    running.script.wait_until_stalled();
    let state = running.wait_for(|state| matches!(state, EngineState::Loading(_)));
    let EngineState::Loading(loading) = state else {
        unreachable!()
    };
    assert_eq!(loading.stage, LoadStage::Weights);
    assert_eq!(2 * loading.done_bytes, loading.total_bytes);
    assert!(loading.left.is_some() && loading.kept.is_none());
    running.script.release();
    let model = answer.wait().unwrap();
    assert_eq!((model.slots, model.ctx_len), (2, 4_096));
    assert_eq!(running.state().model().unwrap().id, model.id);
}

/// Loads again over `before` (a loaded model or none) while something goes wrong, and checks what
/// stays.
fn check_failed(
    what: &str,
    before: bool,
    go_wrong: impl FnOnce(&Running) -> LoadFailure,
    code: LoadCode,
) {
    let running = Running::new();
    let kept = before.then(|| running.load(1).unwrap());
    let failure = go_wrong(&running);
    assert_eq!(failure.code(), code, "{what}: {failure}");
    let counts = running.script.counts();
    let alive = usize::from(before);
    assert_eq!(
        (counts.weights_alive, counts.sessions_alive),
        (alive, alive),
        "{what}"
    );
    let refused = match running.state() {
        EngineState::Ready { model, refused } => {
            assert_eq!(
                model.id,
                kept.as_ref().expect("a model was there").id,
                "{what}"
            );
            refused.expect("the state says what was refused")
        }
        EngineState::NoModel(WhyNoModel::Refused(refused)) => {
            assert!(kept.is_none(), "{what}");
            refused
        }
        other => panic!("{what}: {other:?}"),
    };
    assert_eq!((refused.code, refused.message), (code, failure.to_string()));
    // The one before still answers, and a new load still works.
    if let Some(kept) = kept {
        let (_, log) = running.generate(&kept, options(prompt(0, 5), 3));
        assert!(matches!(end_of(&log), Event::Finished { .. }), "{what}");
    }
    let again = running.load(1).unwrap();
    let (_, log) = running.generate(&again, options(prompt(0, 5), 3));
    end_of(&log);
    assert_eq!(ids(&log).len(), 3, "{what}");
    assert_eq!(running.script.counts().weights_alive, 1);
}

#[test]
fn a_load_that_fails_leaves_the_model_before_and_takes_no_memory() {
    let load = |running: &Running, name: &str| {
        let spec = running.folder.spec(name, LoadOptions::default());
        running.handle.load(spec).unwrap().wait().unwrap_err()
    };
    for before in [false, true] {
        let missing = |running: &Running| load(running, "nothing.gguf");
        check_failed("no such file", before, missing, LoadCode::Refused);
        let page = |running: &Running| {
            running
                .folder
                .write("page.gguf", b"<!DOCTYPE html><html></html>");
            load(running, "page.gguf")
        };
        check_failed("an HTML page", before, page, LoadCode::Refused);
        for (fault, code) in [
            (LoadFault::OutOfMemory, LoadCode::OutOfMemory),
            (LoadFault::Panic, LoadCode::Failed),
        ] {
            let planned = |running: &Running| {
                running.script.at_load_report(2, fault);
                running.load(1).unwrap_err()
            };
            check_failed(&format!("{fault:?}"), before, planned, code);
        }
    }
}

#[test]
fn a_stopped_load_ends_at_its_next_report_and_leaves_the_model_before() {
    for before in [false, true] {
        for report in 0..4 {
            let stop = |running: &Running| {
                running.script.at_load_report(report, LoadFault::Stall);
                let spec = running.spec(1);
                let cancel = spec.cancel.clone();
                let answer = running.handle.load(spec).unwrap();
                running.script.wait_until_stalled();
                cancel.cancel();
                cancel.cancel();
                answer.wait().unwrap_err()
            };
            check_failed(
                &format!("stopped at {report}"),
                before,
                stop,
                LoadCode::Stopped,
            );
        }
        let at_once = |running: &Running| {
            let reports = running.script.counts().load_reports;
            let spec = running.spec(1);
            spec.cancel.cancel();
            // The inbox answers a load that was stopped before it was begun.
            running.handle.load(spec).unwrap().wait().inspect_err(|_| {
                assert_eq!(running.script.counts().load_reports, reports);
            })
        };
        let running = Running::new();
        let kept = before.then(|| running.load(1).unwrap().id);
        assert_eq!(at_once(&running).unwrap_err().code(), LoadCode::Stopped);
        assert_eq!(running.state().model().map(|model| model.id), kept);
    }
}

#[test]
fn the_model_before_gives_way_only_if_both_do_not_fit() {
    // Free memory while the second is loaded, as a difference to what it needs; weights alive
    // meanwhile; whether it loads.
    let cases = [(0i64, 2, true), (-1, 1, true), (i64::MIN, 1, false)];
    for (spare, alive, loads) in cases {
        let free = Arc::new(AtomicU64::new(u64::MAX));
        let heard = Arc::clone(&free);
        let running = Running::with_memory(move || Some(heard.load(Ordering::Relaxed)));
        let first = running.load(1).unwrap();
        let needed = first.footprint.total_bytes();
        // The second has ten slots, so it needs more than the first gives back.
        let slots = if loads { 1 } else { 10 };
        free.store(needed.saturating_add_signed(spare), Ordering::Relaxed);
        running.script.at_load_report(1, LoadFault::Stall);
        let answer = running.handle.load(running.spec(slots)).unwrap();
        if !loads {
            let failure = answer.wait().unwrap_err();
            assert_eq!(failure.code(), LoadCode::OutOfMemory, "{failure}");
            assert_eq!(running.state().model().unwrap().id, first.id);
            continue;
        }
        running.script.wait_until_stalled();
        assert_eq!(running.script.counts().weights_alive, alive, "{spare}");
        let EngineState::Loading(loading) = running.state() else {
            panic!("no load")
        };
        assert_eq!(loading.kept.is_some(), alive == 2, "{spare}");
        running.script.release();
        answer.wait().unwrap();
        assert_eq!(running.script.counts().weights_alive, 1);
    }
}

#[test]
fn what_is_stopped_while_a_load_runs_ends_at_once() {
    let (running, model) = Running::loaded(1);
    running.script.at_load_report(1, LoadFault::Stall);
    let answer = running.handle.load(running.spec(1)).unwrap();
    running.script.wait_until_stalled();
    let (cancel, stopped) = running.generate(&model, options(prompt(0, 5), 3));
    let (_, waits) = running.generate(&model, options(prompt(1, 5), 3));
    let later = running.spec(1);
    let cancel_later = later.cancel.clone();
    let later = running.handle.load(later).unwrap();
    cancel.cancel();
    cancel_later.cancel();
    let end = end_of(&stopped);
    assert!(
        matches!(
            end,
            Event::Finished {
                reason: FinishReason::Cancelled,
                ..
            }
        ),
        "{end:?}"
    );
    assert_eq!(later.wait().unwrap_err().code(), LoadCode::Stopped);
    assert!(!waits.has_ended());
    running.script.release();
    answer.wait().unwrap();
    // It was made for the model that is gone.
    let end = end_of(&waits);
    assert!(
        matches!(
            end,
            Event::Failed {
                code: TurnCode::ModelChanged,
                ..
            }
        ),
        "{end:?}"
    );
}

#[test]
fn other_backends_take_over_with_the_model_that_was_loaded_on_them() {
    // What goes wrong on the other backends, and whether the file gets as far as them.
    let cases: [(Option<LoadFault>, &str, bool); 4] = [
        (None, "tiny.gguf", true),
        (Some(LoadFault::OutOfMemory), "tiny.gguf", true),
        (Some(LoadFault::Panic), "tiny.gguf", true),
        (None, "page.gguf", false),
    ];
    for (fault, name, made) in cases {
        let running = Running::new();
        running.folder.write("page.gguf", b"<!DOCTYPE html>");
        let kept = running.load(1).unwrap();
        let other = Script::new(LETTERS);
        if let Some(fault) = fault {
            other.at_load_report(2, fault);
        }
        let script = other.clone();
        let make: MakeBackends = Box::new(move || vec![Box::new(script.backend())]);
        let spec = running.folder.spec(name, LoadOptions::default());
        let loaded = running.handle.load_on(spec, make).unwrap().wait();
        let takes_over = made && fault.is_none();
        assert_eq!(loaded.is_ok(), takes_over, "{fault:?} {name}");
        assert_eq!(other.counts().load_reports > 0, made, "{fault:?} {name}");
        // The next load uses what computes now.
        let (used, unused) = match takes_over {
            true => (&other, &running.script),
            false => (&running.script, &other),
        };
        let before = (used.counts().sessions_opened, unused.counts());
        let answers = loaded.unwrap_or(kept);
        let (_, log) = running.generate(&answers, options(prompt(0, 5), 3));
        assert!(matches!(end_of(&log), Event::Finished { .. }));
        running.load(1).unwrap();
        assert_eq!(used.counts().sessions_opened, before.0 + 1);
        assert_eq!(unused.counts(), before.1);
        assert_eq!(unused.counts().weights_alive, 0);
        running.handle.shutdown();
    }
}

#[test]
fn an_engine_without_a_backend_says_so() {
    let config = EngineConfig {
        clock: clock(),
        available_memory: Arc::new(|| None),
        with_sleep: Arc::new(|| None),
        today: Arc::new(|| 0),
    };
    let handle = Engine::spawn(config, Vec::new()).unwrap();
    let folder = ModelFolder::new();
    let spec = folder.spec("tiny.gguf", LoadOptions::default());
    let failure = handle.load(spec).unwrap().wait().unwrap_err();
    assert!(matches!(failure, LoadFailure::NoBackend), "{failure}");
    handle.shutdown();
}

#[test]
fn a_load_can_be_stopped_at_the_start_of_every_stage() {
    use LoadStage::{File, Session, Tokenizer, Weights};
    let folder = ModelFolder::new();
    for stage in [File, Tokenizer, Weights, Session] {
        let script = Script::new(LETTERS);
        let mut backends: Vec<Box<dyn Backend>> = vec![Box::new(script.backend())];
        let spec = folder.spec("tiny.gguf", LoadOptions::default());
        let mut watch = |reached, _, _| {
            if reached == stage {
                Step::Stop
            } else {
                Step::Go
            }
        };
        let loaded = direct::Direct::load(&mut backends, &spec, &config(), &mut watch);
        let failure = loaded.err().expect("it was stopped");
        assert_eq!(failure.code(), LoadCode::Stopped, "{stage:?}");
        let counts = script.counts();
        assert_eq!(
            (counts.weights_alive, counts.sessions_opened),
            (0, 0),
            "{stage:?}"
        );
    }
}

/// A model whose matrices have to be laid out anew in several pieces, in a folder.
fn to_lay_out() -> (ModelFolder, LoadSpec) {
    let folder = ModelFolder::new();
    let model = TinyModel::llama().width(256, 512).vocabulary(9_000);
    let apr = Apr::of(&model.gguf(), Writer::Rewrite(Storage::Q8));
    folder.write("m.apr", &apr.encode());
    let spec = folder.spec("m.apr", LoadOptions::default());
    (folder, spec)
}

#[test]
fn laying_tensors_out_is_part_of_the_load_and_can_be_stopped() {
    let (_folder, spec) = to_lay_out();
    let script = Script::new(LETTERS);
    let mut backends: Vec<Box<dyn Backend>> = vec![Box::new(script.backend())];
    let mut told = Vec::new();
    let mut watch = |stage, done, total| {
        if stage == LoadStage::Weights && total > 0 {
            told.push((done, total));
        }
        // At the second piece.
        if told.len() < 2 { Step::Go } else { Step::Stop }
    };
    let loaded = direct::Direct::load(&mut backends, &spec, &config(), &mut watch);
    let failure = loaded.err().expect("it was stopped");
    assert_eq!(failure.code(), LoadCode::Stopped);
    assert_eq!(script.counts().weights_alive, 0);
    let [(first, total), (second, _)] = told[..] else {
        panic!("{told:?}")
    };
    assert!(first < second && second < total, "{told:?}");
}

#[test]
fn what_does_not_fit_is_refused_with_both_numbers_before_it_is_taken() {
    let (_folder, spec) = to_lay_out();
    let unpacked = {
        let file = candor_modelfile::ModelFile::open(&spec.path).unwrap();
        file.index().unpacked_bytes
    };
    for precision in [Precision::Exact, Precision::Fast] {
        let mut spec = spec.clone();
        spec.options.precision = precision;
        let script = Script::new(LETTERS);
        let mut backends: Vec<Box<dyn Backend>> = vec![Box::new(script.backend())];
        let little = EngineConfig {
            available_memory: Arc::new(move || Some(unpacked)),
            ..config()
        };
        let mut watch = |stage, _, _| {
            assert_ne!(stage, LoadStage::Weights, "nothing is taken");
            Step::Go
        };
        let loaded = direct::Direct::load(&mut backends, &spec, &little, &mut watch);
        let failure = loaded.err().expect("it does not fit");
        let LoadFailure::OutOfMemory {
            needed_bytes,
            available_bytes,
        } = failure
        else {
            panic!("{failure}")
        };
        assert!(
            needed_bytes > unpacked && available_bytes == unpacked,
            "{precision:?}"
        );
    }
}
