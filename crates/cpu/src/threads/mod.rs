//! The threads that compute: a fixed pool that walks a task together.
//!
//! A task is shown to all threads at once and the caller takes part, so that nothing is queued and
//! no thread is started per operation. A forward has a few hundred tasks of some microseconds; the
//! threads therefore spin for a while before they sleep. On a busy machine a thread may come late:
//! it then finds the gate shut and the others have done its share. One that is kept from running in
//! the middle of its share makes the others wait. It then rests for a while, so that a program that
//! holds a core costs what that core gave, and not more.

pub(crate) mod cores;

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use candor_backend::CancelToken;

/// Looks before a thread sleeps: some tens of microseconds, which is longer than the gaps within
/// a forward and shorter than anything a person or a battery would notice.
const SPINS: u32 = 20_000;

/// A worker is late if the caller waits for it longer than this, some twenty times what a share of a
/// reply takes, and also longer than [`LATE_TIMES`] what the caller itself had to do. The system lets
/// another program run for some milliseconds before it lets the worker go on.
const LATE: Duration = Duration::from_micros(500);

/// See [`LATE`]: the shares of a prompt are larger.
const LATE_TIMES: u32 = 2;

/// The longest that a late worker rests. The next try may cost as long as another program runs at a
/// time, some hundredths of this; a core that is free again is missed for no longer than this.
const REST: Duration = Duration::from_millis(100);

/// The first rest is so many times shorter than the longest, and each that follows at once twice as
/// long: a core that was gone for a millisecond, as happens on any machine, is not missed for a
/// hundred.
const REST_STEPS: u32 = 32;

/// A worker that is late within so many times its rest after it came back has not come back.
const AGAIN_TIMES: u32 = 8;

/// A task panicked. Its outputs are not to be used; the pool goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskPanicked;

type Task<'a> = &'a (dyn Fn(usize) + Sync);

/// A fixed number of threads, the caller's own among them.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// One task at a time, whichever session it comes from.
    turn: Mutex<Turn>,
    /// [`REST`], unless a test wants another.
    rest: Duration,
    /// Threads that take items of a task.
    limit: AtomicUsize,
}

/// What the caller of a task keeps for the next one.
#[derive(Default)]
struct Turn {
    /// When the workers that rest are to come back; none rests if there is no time.
    rest_ends: Option<Instant>,
    /// The rest before, and when it ended.
    last: Option<(Duration, Instant)>,
}

impl Turn {
    /// A worker was late for a task that began then. It rests for up to `most`.
    fn rest(&mut self, begun: Instant, most: Duration) {
        let first = most / REST_STEPS;
        let length = match self.last {
            Some((length, end))
                if begun.saturating_duration_since(end) <= length.saturating_mul(AGAIN_TIMES) =>
            {
                (length * 2).clamp(first, most)
            }
            _ => first,
        };
        self.rest_ends = Instant::now().checked_add(length);
        self.last = self.rest_ends.map(|end| (length, end));
    }
}

struct Shared {
    /// One for each thread; the caller's is not used.
    seats: Vec<Seat>,
    /// The number of the present task, whether it still takes workers, and how many are in it.
    gate: AtomicU64,
    /// The present task. Written by the caller while no worker is in it.
    task: UnsafeCell<Option<Task<'static>>>,
    panicked: AtomicBool,
    closing: AtomicBool,
    /// Who sleeps, so that nobody is woken in vain: waking is a system call.
    sleep: Mutex<Sleepers>,
    wake_workers: Condvar,
    wake_rested: Condvar,
    wake_caller: Condvar,
}

/// What a worker and the caller tell each other, on a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Seat {
    /// The number of the task that the worker is in, zero between tasks.
    inside: AtomicU64,
    /// The worker takes no task.
    rests: AtomicBool,
}

/// The gate's bits below: workers inside.
const INSIDE: u64 = OPEN - 1;

/// The gate's bit that is set while the task takes workers.
const OPEN: u64 = 1 << 31;

/// The gate's bits above: the number of the task.
const TASK: u64 = 1 << 32;

#[derive(Default)]
struct Sleepers {
    workers: usize,
    callers: usize,
}

// SAFETY: `task` is the only field that is not Sync by itself. The caller writes it while the gate
// is shut with nobody inside, and then opens the gate (release); a worker reads it after it entered
// (acquire) and before it left (release), for which the caller waits (acquire) after it shut the
// gate.
unsafe impl Sync for Shared {}
// SAFETY: the reference in `task` is to a Sync closure, and is used only as described above.
unsafe impl Send for Shared {}

impl Pool {
    /// Starts `threads - 1` threads, or as many as the system gives.
    pub(crate) fn new(threads: usize) -> Self {
        Self::with_rest(threads, REST)
    }

    /// The same with another time to rest.
    fn with_rest(threads: usize, rest: Duration) -> Self {
        let shared = Arc::new(Shared {
            seats: (0..threads).map(|_| Seat::default()).collect(),
            gate: AtomicU64::new(0),
            task: UnsafeCell::new(None),
            panicked: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            sleep: Mutex::new(Sleepers::default()),
            wake_workers: Condvar::new(),
            wake_rested: Condvar::new(),
            wake_caller: Condvar::new(),
        });
        let mut pool = Self {
            shared,
            workers: Vec::new(),
            turn: Mutex::default(),
            rest,
            limit: AtomicUsize::new(usize::MAX),
        };
        for worker in 1..threads {
            let shared = Arc::clone(&pool.shared);
            let thread = std::thread::Builder::new().name(format!("compute-{worker}"));
            match thread.spawn(move || shared.work(worker)) {
                Ok(thread) => pool.workers.push(thread),
                Err(_) => break,
            }
        }
        pool
    }

    /// How many threads take part in a task.
    pub(crate) fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// From now on at most so many threads take items of a task, the caller's among them.
    pub(crate) fn limit(&self, threads: usize) {
        // Nothing is published along with it.
        self.limit.store(threads.max(1), Ordering::Relaxed);
    }

    /// Calls `task` on the caller's thread, and on every other thread that comes before the caller
    /// is done, with the thread's number. A thread that the system does not let run is not waited
    /// for, so what there is to do has to be taken from a common store.
    fn run(&self, task: Task<'_>) -> Result<(), TaskPanicked> {
        let mut turn = lock(&self.turn);
        let shared = &*self.shared;
        let begun = Instant::now();
        if turn.rest_ends.is_some_and(|end| begun >= end) {
            turn.rest_ends = None;
            shared.end_rest();
        }
        shared.panicked.store(false, Ordering::Relaxed);
        // SAFETY: only the lifetime changes. The reference is read only by workers inside the
        // gate, and this function does not return before the gate is shut and they have left.
        let task: Task<'static> = unsafe { std::mem::transmute::<Task<'_>, Task<'static>>(task) };
        // SAFETY: the gate is shut and nobody is inside; `turn` keeps other callers out.
        unsafe { *shared.task.get() = Some(task) };
        let asleep = {
            // Under the lock, so that a worker that is about to sleep cannot miss it.
            let sleep = lock(&shared.sleep);
            shared.gate.fetch_add(TASK | OPEN, Ordering::Release);
            sleep.workers
        };
        if asleep > 0 {
            shared.wake_workers.notify_all();
        }
        shared.call(task, 0);
        if shared.shut_and_wait(begun) {
            turn.rest(begun, self.rest);
        }
        if shared.panicked.load(Ordering::Relaxed) {
            return Err(TaskPanicked);
        }
        Ok(())
    }

    /// Calls `work` once for every item, on whichever thread is free, with that thread's scratch.
    /// Stops between items once `cancel` is set; the items then are partly done.
    ///
    /// # Panics
    /// If there are fewer scratches than threads.
    pub(crate) fn each<S: Send, T: Send>(
        &self,
        items: &mut [T],
        scratch: &mut [S],
        cancel: &CancelToken,
        work: impl Fn(&mut S, &mut T) + Sync,
    ) -> Result<(), TaskPanicked> {
        assert!(
            scratch.len() >= self.threads(),
            "every thread has a scratch"
        );
        if items.len() == 1 {
            return self.alone(&mut items[0], &mut scratch[0], work);
        }
        let next = AtomicUsize::new(0);
        let n_items = items.len();
        let limit = self.limit.load(Ordering::Relaxed);
        let items = Shareable(items.as_mut_ptr());
        let scratch = Shareable(scratch.as_mut_ptr());
        self.run(&|thread| {
            if thread >= limit {
                return;
            }
            let (items, scratch) = (&items, &scratch);
            // SAFETY: `run` calls this once per thread number, each below `threads()` and so
            // below the number of scratches, and returns before the borrow of `scratch` ends.
            let scratch = unsafe { &mut *scratch.0.add(thread) };
            while !cancel.is_cancelled() {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= n_items {
                    return;
                }
                // SAFETY: `at` is inside the slice and is given out once; `run` returns before
                // the borrow of `items` ends.
                work(scratch, unsafe { &mut *items.0.add(at) });
            }
        })
    }

    /// One item is not worth waking anybody.
    fn alone<S, T>(
        &self,
        item: &mut T,
        scratch: &mut S,
        work: impl Fn(&mut S, &mut T),
    ) -> Result<(), TaskPanicked> {
        catch_unwind(AssertUnwindSafe(|| work(scratch, item))).map_err(|_| TaskPanicked)
    }
}

/// A pointer into a slice that the threads divide among them.
struct Shareable<T>(*mut T);

// SAFETY: `Pool::each` hands every element to one thread only, and `T: Send` there.
unsafe impl<T: Send> Sync for Shareable<T> {}

impl Shared {
    fn work(&self, worker: usize) {
        let mut last = 0;
        let seat = &self.seats[worker];
        while let Some(number) = self.enter(last, seat) {
            last = number;
            seat.inside.store(number, Ordering::Relaxed);
            // SAFETY: this worker is inside the gate.
            let task = unsafe { *self.task.get() };
            if let Some(task) = task {
                self.call(task, worker);
            }
            seat.inside.store(0, Ordering::Relaxed);
            let before = self.gate.fetch_sub(1, Ordering::AcqRel);
            if before & (OPEN | INSIDE) == 1 {
                // The last one out, and the gate is shut: the caller may wait.
                let asleep = lock(&self.sleep).callers;
                if asleep > 0 {
                    self.wake_caller.notify_all();
                }
            }
        }
    }

    /// The message of a panic goes to the panic hook; the caller learns that there was one.
    fn call(&self, task: Task<'_>, thread: usize) {
        if catch_unwind(AssertUnwindSafe(|| task(thread))).is_err() {
            self.panicked.store(true, Ordering::Relaxed);
        }
    }

    /// Waits for a task after the `last` one that this worker had, and goes in. None once the
    /// pool closes.
    fn enter(&self, last: u64, seat: &Seat) -> Option<u64> {
        let mut spins = 0;
        loop {
            let gate = self.gate.load(Ordering::Relaxed);
            let rests = seat.rests.load(Ordering::Relaxed);
            if gate & OPEN != 0 && gate / TASK != last && !rests {
                let entered = self.gate.compare_exchange_weak(
                    gate,
                    gate + 1,
                    Ordering::Acquire,
                    Ordering::Relaxed,
                );
                if entered.is_ok() {
                    return Some(gate / TASK);
                }
            } else if spins < SPINS && !rests {
                spins += 1;
                std::hint::spin_loop();
            } else {
                if self.closing.load(Ordering::Acquire) {
                    return None;
                }
                self.sleep_until_open(last, seat);
            }
        }
    }

    fn sleep_until_open(&self, last: u64, seat: &Seat) {
        let nothing = || {
            let gate = self.gate.load(Ordering::Relaxed);
            let taken = gate & OPEN == 0 || gate / TASK == last;
            (taken || seat.rests.load(Ordering::Relaxed)) && !self.closing.load(Ordering::Acquire)
        };
        let mut sleep = lock(&self.sleep);
        while nothing() {
            if seat.rests.load(Ordering::Relaxed) {
                // Not woken for every task.
                sleep = wait(&self.wake_rested, sleep);
            } else {
                sleep.workers += 1;
                sleep = wait(&self.wake_workers, sleep);
                sleep.workers -= 1;
            }
        }
    }

    /// Lets the workers that rest take tasks again.
    fn end_rest(&self) {
        // Under the lock, so that a worker that is about to sleep cannot miss it.
        let sleep = lock(&self.sleep);
        for seat in &self.seats {
            seat.rests.store(false, Ordering::Relaxed);
        }
        drop(sleep);
        self.wake_rested.notify_all();
    }

    /// Lets nobody in any more, and waits for those inside. Says whether one was late for a task that
    /// began then; it rests from now on.
    fn shut_and_wait(&self, begun: Instant) -> bool {
        let gate = self.gate.fetch_and(!OPEN, Ordering::AcqRel);
        let mut inside = gate & INSIDE;
        if inside == 0 {
            return false;
        }
        let shut = Instant::now();
        for _ in 0..SPINS {
            std::hint::spin_loop();
            inside = self.gate.load(Ordering::Acquire) & INSIDE;
            if inside == 0 {
                return false;
            }
        }
        let number = gate / TASK;
        let is_inside = |seat: &&Seat| seat.inside.load(Ordering::Relaxed) == number;
        let slow: Vec<&Seat> = self.seats.iter().filter(is_inside).collect();
        let mut sleep = lock(&self.sleep);
        sleep.callers += 1;
        while self.gate.load(Ordering::Acquire) & INSIDE != 0 {
            sleep = wait(&self.wake_caller, sleep);
        }
        sleep.callers -= 1;
        drop(sleep);
        let late = shut.elapsed() > LATE.max((shut - begun).saturating_mul(LATE_TIMES));
        if late {
            for seat in &slow {
                seat.rests.store(true, Ordering::Relaxed);
            }
        }
        late && !slow.is_empty()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        {
            let _sleep = lock(&self.shared.sleep);
            self.shared.closing.store(true, Ordering::Release);
        }
        self.shared.wake_workers.notify_all();
        self.shared.wake_rested.notify_all();
        for worker in self.workers.drain(..) {
            // A worker catches the panics of its tasks, so there is nothing to learn here.
            let _ = worker.join();
        }
    }
}

/// [`Condvar::wait`], likewise.
fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// The locks here guard no data that a panic could leave half written.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
