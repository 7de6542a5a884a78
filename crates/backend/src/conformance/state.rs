//! The state of sessions: cutting it, copying it, and what happens when it is full.

use super::Subject;
use super::bench::{Bench, SLOT, VOCABULARY, open, tokens};
use super::sessions::{
    CTX_LEN, OTHER, all_logits, logits_of, models_by_state, one_model, prompt_len,
};
use crate::{Batch, CancelToken, Loaded, OpenError, OpenOptions, Session, SessionError, SlotId};

/// After a seek, a session goes on as one that never was longer.
pub fn a_cut_state_is_as_one_that_never_was_longer(subject: &Subject) {
    for bench in models_by_state() {
        check_cuts(subject, &bench);
    }
}

fn check_cuts(subject: &Subject, bench: &Bench) {
    let loaded = bench.load(subject);
    let prompt = tokens("cut", prompt_len(subject));
    let other = tokens("after the cut", 20);
    let mark = subject.size.pick(300, 20);
    // Nothing is replayed in forwards of few rows, which might compute in another way.
    let cuts = [0, 1, 255, 256, 257, 529, 530];
    for cut in subject.size.pick(&cuts[..], &[20, 257]) {
        let cut = *cut;
        let mut session = open(subject, &*loaded, 1, CTX_LEN);
        logits_of(&mut *session, SLOT, &prompt[..mark]);
        session.checkpoint(SLOT).expect("the slot is there");
        logits_of(&mut *session, SLOT, &prompt[mark..]);
        let reached = session.seek(SLOT, cut).expect("the slot is there");
        assert!(reached <= cut, "never past what was asked for");
        assert!(cut < mark || reached >= mark, "a checkpoint is reached");
        assert_eq!(session.position(SLOT), reached);
        logits_of_if_any(&mut *session, &prompt[reached..cut]);
        let found = logits_of(&mut *session, SLOT, &other);

        let mut fresh = open(subject, &*loaded, 1, CTX_LEN);
        logits_of_if_any(&mut *fresh, &prompt[..cut]);
        assert!(
            found == logits_of(&mut *fresh, SLOT, &other),
            "cut at {cut}"
        );
    }
    let mut session = open(subject, &*loaded, 1, CTX_LEN);
    logits_of(&mut *session, SLOT, &prompt[..10]);
    assert_eq!(
        session.seek(SLOT, 99).expect("the slot is there"),
        10,
        "nothing is made up"
    );
    session.reset(SLOT).expect("the slot is there");
    assert_eq!(session.position(SLOT), 0);
}

fn logits_of_if_any(session: &mut dyn Session, tokens: &[u32]) {
    if !tokens.is_empty() {
        logits_of(session, SLOT, tokens);
    }
}

/// A marked position is reached as often as somebody comes back to it, whatever was computed past
/// it: an answer that is written again, and again.
pub fn a_mark_is_reached_again_and_again(subject: &Subject) {
    for bench in models_by_state() {
        let loaded = bench.load(subject);
        let marked = subject.size.pick(290, 40);
        let (prompt, answer) = (tokens("marked", marked), tokens("answer", 40));
        let mut session = open(subject, &*loaded, 1, CTX_LEN);
        logits_of(&mut *session, SLOT, &prompt);
        session.checkpoint(SLOT).expect("the slot is there");
        let expected = logits_of(&mut *session, SLOT, &answer);
        let others = ["one", "another", "a third", "a fourth", "a fifth"];
        for other in &others[..subject.size.pick(5, 2)] {
            // A mark of its own, as the end of every answer has one.
            session.checkpoint(SLOT).expect("the slot is there");
            assert_eq!(session.seek(SLOT, prompt.len()), Ok(prompt.len()));
            logits_of(&mut *session, SLOT, &tokens(other, 25));
            assert_eq!(session.seek(SLOT, prompt.len()), Ok(prompt.len()));
            assert!(
                logits_of(&mut *session, SLOT, &answer) == expected,
                "{} after {other}",
                bench.graph.architecture
            );
        }
    }
}

/// A copy goes on as its source would, and neither changes the other.
pub fn a_fork_goes_its_own_way(subject: &Subject) {
    for bench in models_by_state() {
        for len in subject.size.pick([270, 300], [20, 262]) {
            check_fork(subject, &bench, len);
        }
    }
}

fn check_fork(subject: &Subject, bench: &Bench, len: usize) {
    let loaded = bench.load(subject);
    let whole = subject.size.pick(300, 262);
    let (prompt, one, two) = (tokens("fork", whole), tokens("one", 9), tokens("two", 9));
    let mut session = open(subject, &*loaded, 2, CTX_LEN);
    logits_of(&mut *session, OTHER, &two);
    logits_of(&mut *session, SLOT, &prompt);
    let reached = session
        .fork(SLOT, OTHER, len)
        .expect("both slots are there");
    assert!(reached <= len);
    assert!(len < whole || reached == len, "all of it can be copied");
    assert_eq!(
        (session.position(SLOT), session.position(OTHER)),
        (whole, reached)
    );
    let mut found_one = Vec::new();
    if reached < len {
        logits_of(&mut *session, OTHER, &prompt[reached..len]);
    }
    found_one.extend(logits_of(&mut *session, OTHER, &one));
    let found_two = logits_of(&mut *session, SLOT, &two);

    let mut fresh = open(subject, &*loaded, 1, CTX_LEN);
    logits_of(&mut *fresh, SLOT, &prompt[..len]);
    assert!(found_one == logits_of(&mut *fresh, SLOT, &one), "the copy");
    fresh.reset(SLOT).expect("the slot is there");
    logits_of(&mut *fresh, SLOT, &prompt);
    assert!(
        found_two == logits_of(&mut *fresh, SLOT, &two),
        "the source"
    );
}

/// Every refusal is the stated one, and leaves the slot where it was.
pub fn what_does_not_fit_is_refused_and_changes_nothing(subject: &Subject) {
    let bench = one_model();
    let loaded = bench.load(subject);
    let mut session = open(subject, &*loaded, 2, 20);
    assert_eq!((session.slots(), session.ctx_len()), (2, 20));
    assert_eq!(session.vocabulary(), VOCABULARY);
    logits_of(&mut *session, SLOT, &tokens("fits", 15));
    let slot = SlotId(2);
    let too_large = VOCABULARY as u32;
    let cases = [
        (Vec::new(), SessionError::EmptyBatch),
        (
            all_logits(slot, &[1]),
            SessionError::UnknownSlot { slot, slots: 2 },
        ),
        (
            all_logits(SLOT, &[1, too_large]),
            SessionError::UnknownToken {
                token: too_large,
                vocabulary: VOCABULARY,
            },
        ),
        (
            all_logits(SLOT, &[1; 6]),
            SessionError::ContextFull {
                slot: SLOT,
                position: 15,
                ctx_len: 20,
                asked: 6,
            },
        ),
    ];
    for (rows, expected) in cases {
        let found = session.submit(&Batch { rows }, &CancelToken::new());
        assert_eq!(found, Err(expected));
        assert_eq!((session.position(SLOT), session.position(OTHER)), (15, 0));
    }
    assert_eq!(
        session.seek(slot, 0),
        Err(SessionError::UnknownSlot { slot, slots: 2 })
    );
    assert_eq!(
        session.reset(slot),
        Err(SessionError::UnknownSlot { slot, slots: 2 })
    );
    assert_eq!(
        session.checkpoint(slot),
        Err(SessionError::UnknownSlot { slot, slots: 2 })
    );
    assert_eq!(
        session.fork(SLOT, slot, 1),
        Err(SessionError::UnknownSlot { slot, slots: 2 })
    );
    logits_of(&mut *session, SLOT, &[1; 5]);
    assert_eq!(session.position(SLOT), 20, "to the last token");
    check_options(&*loaded, subject);
}

fn check_options(loaded: &dyn Loaded, subject: &Subject) {
    let good = OpenOptions {
        ctx_len: 8,
        slots_max: 1,
        state_tokens: 8,
        kv: subject.kv,
        precision: subject.precision,
    };
    let bad = [
        OpenOptions { ctx_len: 0, ..good },
        OpenOptions {
            ctx_len: usize::MAX,
            ..good
        },
        OpenOptions {
            slots_max: 0,
            ..good
        },
        OpenOptions {
            slots_max: usize::MAX,
            ..good
        },
        OpenOptions {
            state_tokens: 0,
            ..good
        },
        OpenOptions {
            state_tokens: usize::MAX,
            ..good
        },
    ];
    for options in bad {
        let opened = loaded.open(options).map(|_| ());
        assert!(
            matches!(opened, Err(OpenError::Option { .. })),
            "{options:?}: {opened:?}"
        );
    }
}

/// Slots take pages from one pool; what one gives back another can have.
pub fn the_pool_is_shared_and_given_back(subject: &Subject) {
    let bench = one_model();
    let loaded = bench.load(subject);
    let options = OpenOptions {
        ctx_len: 600,
        slots_max: 2,
        state_tokens: 512,
        kv: subject.kv,
        precision: subject.precision,
    };
    let mut session = loaded.open(options).expect("the session opens");
    let prompt = tokens("pool", subject.size.pick(400, 260));
    let expected = logits_of(&mut *session, SLOT, &prompt);
    let batch = Batch {
        rows: all_logits(OTHER, &prompt[..1]),
    };
    let found = session.submit(&batch, &CancelToken::new());
    assert_eq!(found, Err(SessionError::StateFull { asked: 1, free: 0 }));
    let found = session.fork(SLOT, OTHER, 10);
    assert!(
        matches!(found, Err(SessionError::StateFull { .. })),
        "{found:?}"
    );
    assert_eq!(
        (session.position(SLOT), session.position(OTHER)),
        (prompt.len(), 0)
    );
    session.reset(SLOT).expect("the slot is there");
    assert!(
        logits_of(&mut *session, OTHER, &prompt) == expected,
        "used pages are as new ones"
    );
}
