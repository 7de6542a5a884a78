//! Several backends: who serves, and why the others do not.

use std::collections::HashMap;
use std::sync::Mutex;

use candor_backend::{DeviceKind, Unavailable, Unsupported};
use candor_testkit::scripted::LoadFault;

use super::*;
use crate::testing::{ids, options, prompt};

/// Loads after `spoil`, and checks that the reference serves for a reason.
fn check_passed_over(
    what: &str,
    spoil: impl FnOnce(&TwoDevices),
    reason: impl Fn(&WhyNot) -> bool,
) {
    let engine = TwoDevices::new();
    spoil(&engine);
    let model = engine.load(engine.spec(Mode::Probe, 1));
    assert_eq!(model.device.kind, DeviceKind::Cpu, "{what}");
    assert_eq!(model.proof, Proof::Reference, "{what}");
    let [passed] = &model.passed_over[..] else {
        panic!("{what}: {:?}", model.passed_over);
    };
    assert!(reason(&passed.why), "{what}: {:?}", passed.why);
    let log = engine.generate(&model, options(prompt(0, 5), 3));
    let stats = stats_of(&log);
    assert_eq!(
        (stats.generated_tokens, stats.served),
        (3, Served::default()),
        "{what}"
    );
    assert_eq!(engine.card.counts().weights_alive, 0, "{what}");
}

#[test]
fn a_card_that_cannot_serve_is_passed_over_for_a_reason() {
    check_passed_over(
        "no driver",
        |engine| engine.card.unavailable(Unavailable::NoDriver),
        |why| *why == WhyNot::Unavailable(Unavailable::NoDriver),
    );
    let missing = Unsupported::Op("Rope");
    check_passed_over(
        "an operation is missing",
        |engine| engine.card.unsupported(&[Unsupported::Op("Rope")]),
        |why| *why == WhyNot::Unsupported(vec![missing.clone()]),
    );
    check_passed_over(
        "its memory is too small",
        |engine| engine.card.at_load_report(1, LoadFault::OutOfMemory),
        |why| matches!(why, WhyNot::OutOfMemory { .. }),
    );
    check_passed_over(
        "its load breaks down",
        |engine| engine.card.at_load_report(1, LoadFault::Panic),
        |why| matches!(why, WhyNot::Failed { reason } if reason.contains("planned")),
    );
    check_passed_over(
        "it computes something else",
        |engine| engine.card.wrong_from(Some(200)),
        |why| matches!(why, WhyNot::Rejected(report) if report.first_bad.as_ref().is_some_and(|bad| bad.position == 199)),
    );
    check_passed_over(
        "it breaks down while it is judged",
        |engine| engine.card.at_forward(3, Fault::Error(lost())),
        |why| matches!(why, WhyNot::NotJudged(NotJudged::Candidate { .. })),
    );
    check_passed_over(
        "the reference breaks down while it judges",
        |engine| engine.reference.at_forward(2, Fault::NotANumber),
        |why| matches!(why, WhyNot::NotJudged(NotJudged::Reference { .. })),
    );
}

fn lost() -> candor_backend::SessionError {
    candor_backend::SessionError::DeviceLost {
        reason: String::from("planned"),
    }
}

#[test]
fn a_card_that_computes_the_same_serves_and_says_by_what_right() {
    let engine = TwoDevices::new();
    let model = engine.load(engine.spec(Mode::Probe, 1));
    let Proof::Proven(report) = &model.proof else {
        panic!("{:?}", model.proof);
    };
    assert_eq!(model.device.kind, DeviceKind::Gpu);
    assert_eq!(model.passed_over, []);
    assert_eq!((report.positions, report.asked), (289, 289));
    assert_eq!(
        (report.mode, &report.basis),
        (Mode::Probe, &Basis::Computed)
    );
    assert!(
        report.min_cosine > 0.9999 && report.argmax_agreement == 1.0,
        "{report}"
    );
    let log = engine.generate(&model, options(prompt(0, 5), 3));
    let served = Served {
        device: DeviceKind::Gpu,
        verdict: Some(report.id),
        moved_at: None,
    };
    assert_eq!(stats_of(&log).served, served);
    let events = crate::testing::events(&log);
    assert!(
        events.contains(&Event::State(TurnState::Served(served))),
        "{events:?}"
    );
    // Nothing of the reference is left but what it read.
    assert_eq!(engine.reference.counts().sessions_alive, 0);
}

#[test]
fn who_computes_is_chosen() {
    let engine = TwoDevices::new();
    let mut spec = engine.spec(Mode::Probe, 1);
    spec.options.device = DeviceWish::Reference;
    let model = engine.load(spec);
    let why: Vec<&WhyNot> = model.passed_over.iter().map(|passed| &passed.why).collect();
    assert_eq!(why, [&WhyNot::ChosenByUser]);
    assert_eq!(engine.card.counts().load_reports, 0);

    engine.card.unavailable(Unavailable::NoDevice);
    let mut spec = engine.spec(Mode::Probe, 1);
    spec.options.device = DeviceWish::Device;
    let failure = engine.handle.load(spec).unwrap().wait().unwrap_err();
    assert_eq!(failure.code(), LoadCode::NoDevice);
    // The one before stays.
    assert_eq!(engine.ready().id, model.id);
}

#[test]
fn a_check_says_how_far_it_is_and_can_be_stopped_or_left_out() {
    for stop in [true, false] {
        let engine = TwoDevices::new();
        engine.card.at_forward(2, Fault::Stall);
        let spec = engine.spec(Mode::Probe, 1);
        let (cancel, use_reference) = (spec.cancel.clone(), spec.use_reference.clone());
        let answer = engine.handle.load(spec).unwrap();
        engine.card.wait_until_stalled();
        let state = engine.handle.state().borrow().clone();
        let EngineState::Loading(loading) = state else {
            panic!("{state:?}");
        };
        assert_eq!(loading.stage, LoadStage::Checking);
        assert_eq!(loading.device.unwrap().kind, DeviceKind::Gpu);
        assert!(loading.done_bytes > 0 && loading.done_bytes < loading.total_bytes);
        let forwards = engine.card.counts().submitted;
        if stop {
            cancel.cancel();
            assert_eq!(answer.wait().unwrap_err().code(), LoadCode::Stopped);
        } else {
            use_reference.cancel();
            let model = answer.wait().unwrap();
            assert_eq!(model.passed_over[0].why, WhyNot::ChosenByUser);
        }
        // Not one forward after it.
        assert_eq!(engine.card.counts().submitted, forwards);
    }
}

/// Keeps what it is given in memory.
#[derive(Default)]
struct Memory(Mutex<HashMap<Key, Vec<u8>>>);

impl VerdictStore for Memory {
    fn recall(&self, key: &Key) -> Option<Vec<u8>> {
        self.0.lock().unwrap().get(key).cloned()
    }

    fn keep(&self, key: &Key, bytes: &[u8]) {
        self.0.lock().unwrap().insert(key.clone(), bytes.to_vec());
    }
}

#[test]
fn a_second_load_runs_the_card_alone() {
    let engine = TwoDevices::new();
    let store = Arc::new(Memory::default());
    let spec = || LoadSpec {
        memory: Some(VerdictMemory {
            store: Arc::clone(&store) as Arc<dyn VerdictStore>,
            file: String::from("tiny"),
            version: String::from("1"),
        }),
        ..engine.spec(Mode::Probe, 1)
    };
    let basis = |model: &LoadedModel| match &model.proof {
        Proof::Proven(report) => report.basis.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(basis(&engine.load(spec())), Basis::Computed);
    let forwards = engine.reference.counts().submitted;
    let again = engine.load(spec());
    assert_eq!(basis(&again), Basis::Remembered);
    assert_eq!(engine.reference.counts().submitted, forwards);
    // What is not whole is not used.
    for bytes in store.0.lock().unwrap().values_mut() {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
    }
    assert_eq!(basis(&engine.load(spec())), Basis::Computed);
    // A card that is wrong now is held against the reference itself, and named.
    engine.card.wrong_from(Some(10));
    let forwards = engine.reference.counts().submitted;
    let wrong = engine.load(spec());
    let WhyNot::Rejected(report) = &wrong.passed_over[0].why else {
        panic!("{:?}", wrong.passed_over);
    };
    assert_eq!(report.basis, Basis::Computed);
    assert!(engine.reference.counts().submitted > forwards);
}

#[test]
fn greedy_replies_ask_a_card_for_its_best_token_only() {
    use candor_backend::Want;
    let engine = TwoDevices::new();
    let model = engine.load(engine.spec(Mode::Probe, 1));
    let reply = |penalty: f32, temperature: f32| {
        let before = engine.card.batches().len();
        let mut options = options(prompt(3, 20), 12);
        options.sampling.repeat_penalty = penalty;
        options.sampling.temperature = temperature;
        let log = engine.generate(&model, options);
        stats_of(&log);
        let batches = engine.card.batches();
        let rows = batches[before..].iter().flat_map(|batch| &batch.rows);
        let wants: Vec<Want> = rows
            .map(|row| row.want)
            .filter(|want| *want != Want::Nothing)
            .collect();
        (ids(&log), wants)
    };
    let (best, wants) = reply(1.0, 0.0);
    assert_eq!(wants, [Want::Top { k: 1 }; 12]);
    let (penalised, wants) = reply(1.3, 0.0);
    assert_eq!(wants, [Want::Logits; 12]);
    let (_, wants) = reply(1.0, 0.5);
    assert_eq!(wants, [Want::Logits; 12]);
    // The penalty changes nothing where the favoured token is far above all others; so both ways
    // give the same reply.
    assert_eq!(best, penalised);
}

#[test]
fn a_measurement_may_leave_the_check_out_and_says_so() {
    let (card, reference) = (Script::new(LETTERS), Script::new(LETTERS));
    card.on_a_card();
    card.wrong_from(Some(1));
    let folder = ModelFolder::new();
    let mut backends: Vec<Box<dyn Backend>> =
        vec![Box::new(card.backend()), Box::new(reference.backend())];
    let spec = folder.spec("tiny.gguf", LoadOptions::default());
    let why = Unproven {
        reason: "measured before it was judged",
    };
    let mut go = |_, _, _| candor_backend::Step::Go;
    let loaded = direct::Direct::load_unproven(&mut backends, &spec, &config(), why, &mut go);
    let mut direct = loaded.unwrap();
    let reason = why.reason;
    assert_eq!(direct.model().proof, Proof::Skipped { reason });
    assert_eq!(reference.counts().sessions_opened, 0);
    let cancel = CancelToken::new();
    direct.time_prefill(&[1, 2, 3], &cancel).unwrap();
    // What it loses there it does not make up for elsewhere.
    card.at_forward(card.counts().submitted, Fault::Error(lost()));
    assert!(direct.time_prefill(&[1, 2, 3], &cancel).is_err());
}

#[test]
fn a_card_in_the_place_of_the_reference_does_not_serve() {
    let card = Script::new(LETTERS);
    card.on_a_card();
    let handle = Engine::spawn(config(), vec![Box::new(card.backend())]).unwrap();
    let folder = ModelFolder::new();
    let spec = folder.spec("tiny.gguf", LoadOptions::default());
    let failure = handle.load(spec).unwrap().wait().unwrap_err();
    assert!(matches!(failure, LoadFailure::NoBackend), "{failure}");
    assert_eq!(card.counts().submitted, 0);
    handle.shutdown();
}
