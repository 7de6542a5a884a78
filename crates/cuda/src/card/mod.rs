//! The thread of a card: the only one of this process that calls the driver for it.
//!
//! A driver can keep a call for good: a kernel that never ends, a card that fell off the bus, a
//! module that is translated without end. Nothing can bring such a thread back, so it is never the
//! thread that answers people. The engine thread asks and waits, and looks now and then whether the
//! driver has answered anything since the last look. When it has not for [`Patience::answer`], the
//! card is lost to this process: its thread is abandoned with all that it holds, nobody waits for
//! it, and should it ever come back, it ends without touching anything.
//!
//! Who has been told to stop waits no longer than [`Patience::leave`] for a driver that is silent:
//! what was asked is then left to the thread, which takes it back when it can.
//!
//! A question costs two messages, some 10 µs; a token takes two questions.

mod cards;
mod desk;
mod heart;
mod leave;
mod line;
mod loaded;
mod session;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use candor_backend::Step;

use desk::Desk;
use line::Said;

pub use cards::Cards;
pub(crate) use desk::Order;
pub(crate) use heart::{Doing, Heart};
pub(crate) use line::{Line, Word};
pub(crate) use loaded::RemoteLoaded;

/// How long a driver is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// As long as one call may take. The longest that is known is the translation of a module,
    /// some seconds on a slow processor; Windows resets a card that computes for two.
    pub answer: Duration,
    /// As long as somebody waits who was told to stop, or who gives something up.
    pub leave: Duration,
    /// As long as one call may take that a session waits for, once the card was left without an
    /// answer. A load that was left may still translate or take memory, for which there is all of
    /// `answer`.
    pub doubtful: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(30),
            leave: Duration::from_millis(500),
            doubtful: Duration::from_secs(5),
        }
    }
}

/// Looks at a thread that is waited for, in each stretch of patience.
const LOOKS: u32 = 5;

/// Tries before a waiting thread sleeps: about as long as it takes to wake one, so that questions
/// that are answered at once cost no sleep.
const SPINS: usize = 200;

/// What the thread is asked for.
type Job = Box<dyn FnOnce(&mut Desk) + Send>;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// Whoever asked was told to stop, and the driver is busy. What was asked has no effect.
    Left,
    /// The card is lost to this process, in plain words.
    Lost(String),
}

/// Whoever waits for an answer.
pub(crate) trait Asker {
    /// Whether it was told to stop. Asked only once the driver has been silent for a while.
    fn wants_to_leave(&mut self) -> bool {
        false
    }

    /// Hears what is said before the answer.
    fn hear(&mut self, _word: Word) -> Step {
        Step::Go
    }
}

/// Nobody who could be told to stop.
pub(crate) struct Patient;

impl Asker for Patient {}

/// Who waits no longer than it has to.
pub(crate) struct Hasty;

impl Asker for Hasty {
    fn wants_to_leave(&mut self) -> bool {
        true
    }
}

/// How long what is asked for may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// On some cards a while.
    Any,
    /// On every card a moment.
    Quick,
}

/// A card of this process.
#[derive(Debug)]
pub(crate) struct Card {
    jobs: mpsc::Sender<Job>,
    heart: Arc<Heart>,
    patience: Patience,
    /// Why it is of no use any more.
    lost: OnceLock<String>,
    /// Whether it was left without an answer, and has not answered since.
    owes: AtomicBool,
}

impl Card {
    /// Starts the thread of a card, which touches no driver yet.
    pub(crate) fn start(ordinal: usize, patience: Patience) -> Result<Arc<Self>, Silence> {
        let (jobs, todo) = mpsc::channel::<Job>();
        let heart = Arc::new(Heart::default());
        let desk_heart = Arc::clone(&heart);
        let thread = thread::Builder::new().name(format!("candor-card-{ordinal}"));
        let started = thread.spawn(move || work(Desk::new(ordinal, desk_heart), &todo));
        // Nobody ever waits for its end: it ends by itself once nobody asks any more.
        let lost = |error| Silence::Lost(format!("no thread can be started for it: {error}"));
        drop(started.map_err(lost)?);
        Ok(Arc::new(Self {
            jobs,
            heart,
            patience,
            lost: OnceLock::new(),
            owes: AtomicBool::new(false),
        }))
    }

    /// Why it is of no use any more, if it is.
    pub(crate) fn lost(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }

    /// Has something done on the card's thread and waits for it, as long as the driver answers.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        asker: &mut dyn Asker,
        job: impl FnOnce(&mut Desk, &Line) -> T + Send + 'static,
    ) -> Result<T, Silence> {
        self.ask_at(Pace::Any, asker, job)
    }

    /// The same for work that is quick on every card, of which less is put up with where it was
    /// left without an answer before.
    pub(crate) fn ask_quick<T: Send + 'static>(
        &self,
        asker: &mut dyn Asker,
        job: impl FnOnce(&mut Desk, &Line) -> T + Send + 'static,
    ) -> Result<T, Silence> {
        self.ask_at(Pace::Quick, asker, job)
    }

    /// How long one call may take now. Before what was asked for, the thread may be at what somebody
    /// else has left.
    fn limit(&self, pace: Pace) -> Duration {
        let is_in_doubt = pace == Pace::Quick && self.owes.load(Ordering::Relaxed);
        match is_in_doubt && !self.heart.is_at_long_work() {
            true => self.patience.doubtful,
            false => self.patience.answer,
        }
    }

    fn ask_at<T: Send + 'static>(
        &self,
        pace: Pace,
        asker: &mut dyn Asker,
        job: impl FnOnce(&mut Desk, &Line) -> T + Send + 'static,
    ) -> Result<T, Silence> {
        if let Some(reason) = self.lost.get() {
            return Err(Silence::Lost(reason.clone()));
        }
        let (said, heard) = mpsc::channel();
        let (answers, answered) = mpsc::channel();
        let (line, promise) = Line::new(said, answered);
        let job: Job = Box::new(move |desk| {
            // What breaks down there breaks down here, where somebody deals with it.
            let done = catch_unwind(AssertUnwindSafe(|| job(desk, &line)));
            line.close(done.map(|done| Box::new(done) as Box<dyn Any + Send>));
        });
        if self.jobs.send(job).is_err() {
            return Err(self.ended());
        }
        let mut silence = Watch::new(&self.heart);
        loop {
            let limit = self.limit(pace);
            let look = limit.min(self.patience.leave) / LOOKS;
            let done = match receive(&heard, look) {
                Ok(Said::Word(word)) => {
                    silence.broken();
                    // A thread that is gone is seen at the next look.
                    let _ = answers.send(asker.hear(word));
                    continue;
                }
                Ok(Said::Done(done)) => done,
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
                Err(RecvTimeoutError::Timeout) => {
                    silence.lasts(look);
                    if silence.asked >= limit {
                        return Err(self.give_up(silence.asked));
                    }
                    if silence.whole >= self.patience.leave
                        && asker.wants_to_leave()
                        && promise.leave()
                    {
                        self.owes.store(true, Ordering::Relaxed);
                        // It may never answer, and the program may end before that is known.
                        leave::leave_out_what_waits();
                        return Err(Silence::Left);
                    }
                    continue;
                }
            };
            self.owes.store(false, Ordering::Relaxed);
            return match done {
                Ok(done) => Ok(*done.downcast().expect("the job gives what was asked for")),
                Err(panic) => resume_unwind(panic),
            };
        }
    }

    /// The card is lost to this process.
    fn give_up(&self, silent: Duration) -> Silence {
        self.heart.abandon();
        leave::leave_out_what_waits();
        let reason = format!(
            "it did not answer for {} while {}; start Candor again to use the card",
            seconds(silent),
            self.heart.words()
        );
        Silence::Lost(self.lost.get_or_init(|| reason).clone())
    }

    fn ended(&self) -> Silence {
        let reason = || String::from("its thread has ended; start Candor again to use the card");
        Silence::Lost(self.lost.get_or_init(reason).clone())
    }
}

fn seconds(time: Duration) -> String {
    match time.as_secs_f32().round() as u64 {
        0 | 1 => String::from("a second"),
        many => format!("{many} seconds"),
    }
}

/// How long nothing was heard of the driver, by the looks at it: so a machine that slept meanwhile
/// blames nobody for it.
struct Watch<'a> {
    heart: &'a Heart,
    beats: u64,
    /// In all.
    whole: Duration,
    /// While it was asked for something. Otherwise the thread may wait for a slow disk.
    asked: Duration,
}

impl<'a> Watch<'a> {
    fn new(heart: &'a Heart) -> Self {
        Self {
            heart,
            beats: heart.beats(),
            whole: Duration::ZERO,
            asked: Duration::ZERO,
        }
    }

    fn broken(&mut self) {
        (self.whole, self.asked) = (Duration::ZERO, Duration::ZERO);
    }

    /// One more look without an answer.
    fn lasts(&mut self, look: Duration) {
        let beats = self.heart.beats();
        if beats != self.beats {
            self.beats = beats;
            return self.broken();
        }
        self.whole += look;
        if self.heart.waits_for_the_driver() {
            self.asked += look;
        }
    }
}

/// The thread's life: one job after the other.
fn work(mut desk: Desk, todo: &Receiver<Job>) {
    while let Ok(job) = next(todo) {
        job(&mut desk);
        if desk.heart().is_abandoned() {
            // Whatever it holds belongs to a driver of which nobody knows what it still does.
            std::mem::forget(desk);
            return;
        }
    }
}

fn next(todo: &Receiver<Job>) -> Result<Job, mpsc::RecvError> {
    match spin(todo) {
        Some(job) => Ok(job),
        None => todo.recv(),
    }
}

fn receive<T>(from: &Receiver<T>, limit: Duration) -> Result<T, RecvTimeoutError> {
    match spin(from) {
        Some(said) => Ok(said),
        None => from.recv_timeout(limit),
    }
}

fn spin<T>(from: &Receiver<T>) -> Option<T> {
    for _ in 0..SPINS {
        match from.try_recv() {
            Ok(said) => return Some(said),
            Err(TryRecvError::Empty) => std::hint::spin_loop(),
            // Whoever waits for it hears the same.
            Err(TryRecvError::Disconnected) => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience {
        answer: Duration::from_millis(60),
        leave: Duration::from_millis(20),
        doubtful: Duration::from_millis(30),
    };

    /// Of a look in the tests of looks, which wait for nothing.
    const LOOK: Duration = Duration::from_secs(1);

    fn card() -> Arc<Card> {
        Card::start(0, PATIENCE).expect("there is a thread for it")
    }

    /// What is asked of a thread that is longer at this than a driver may be silent.
    fn asked_while(doing: Doing) -> Result<u32, Silence> {
        card().ask(&mut Patient, move |desk, _| {
            desk.heart().begin(doing);
            thread::sleep(PATIENCE.answer * 10);
            7
        })
    }

    #[test]
    fn a_slow_disk_is_waited_for() {
        assert_eq!(asked_while(Doing::Nothing), Ok(7));
    }

    #[test]
    fn a_silent_driver_is_not() {
        for doing in [Doing::Starting, Doing::Copying, Doing::Translating] {
            let lost = asked_while(doing);
            assert!(matches!(lost, Err(Silence::Lost(_))), "{doing:?}: {lost:?}");
        }
    }

    #[test]
    fn a_slow_disk_can_be_left() {
        let left = card().ask(&mut Hasty, |_, _| thread::sleep(PATIENCE.answer * 10));
        assert_eq!(left, Err(Silence::Left));
    }

    #[test]
    fn only_looks_at_a_driver_that_was_asked_count_against_it() {
        let heart = Heart::default();
        let mut watch = Watch::new(&heart);
        let mut after = |looks: u32| {
            (0..looks).for_each(|_| watch.lasts(LOOK));
            (watch.whole, watch.asked)
        };
        assert_eq!(after(40), (LOOK * 40, Duration::ZERO));
        heart.begin(Doing::Copying);
        assert_eq!(
            after(1),
            (Duration::ZERO, Duration::ZERO),
            "it was heard of"
        );
        assert_eq!(after(3), (LOOK * 3, LOOK * 3));
        heart.end();
        assert_eq!(after(3), (LOOK * 2, Duration::ZERO));
    }

    #[test]
    fn what_is_left_at_long_work_is_not_hurried() {
        let card = card();
        let (answer, doubtful) = (PATIENCE.answer, PATIENCE.doubtful);
        let check = |doing, pace, limit| {
            card.heart.begin(doing);
            assert_eq!(card.limit(pace), limit, "{doing:?}, {pace:?}");
        };
        check(Doing::Computing, Pace::Quick, answer);
        card.owes.store(true, Ordering::Relaxed);
        check(Doing::Computing, Pace::Quick, doubtful);
        check(Doing::Computing, Pace::Any, answer);
        // What is left goes on meanwhile, so the same question is asked at each look.
        check(Doing::Translating, Pace::Quick, answer);
        check(Doing::GivingMemory, Pace::Quick, answer);
        check(Doing::Copying, Pace::Quick, doubtful);
    }
}
