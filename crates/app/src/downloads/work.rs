//! The runs of downloads: at most a few at once, each on a thread of its own, which tries again
//! where a connection breaks and says what it does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::fault::Fault;
use super::fetch::{Next, Step, Wanted, fetch, part_of};
use super::{Downloads, Job, RUNNING_MAX};
use crate::app::Inner;
use crate::wire::DownloadState;
use crate::words::{self, Phrase, phrase};

/// How often a run that gets nothing tries again. With the pauses between it is half an hour: a
/// router that starts anew, a train in a tunnel.
const TRIES_MAX: u32 = 12;
/// The first pause before another try; each is twice as long as the last.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(300);
/// How often a file that came wrong is fetched from its start: once may be an accident.
const WRONG_MAX: u32 = 1;
/// How often progress is told; a person reads no faster.
const TELL_INTERVAL: Duration = Duration::from_millis(250);

/// What a run needs of its download.
struct Run {
    inner: Weak<Inner>,
    id: u32,
    stop: Arc<AtomicBool>,
    files: Arc<Mutex<()>>,
}

impl Inner {
    /// Begins those that wait, as far as there is room.
    pub(super) fn run_downloads(self: &Arc<Self>) {
        if self.settings().offline {
            return;
        }
        loop {
            let run = {
                let mut jobs = self.downloads.jobs();
                let running = jobs.list.iter().filter(|job| job.runs()).count();
                if jobs.is_closed || running >= RUNNING_MAX {
                    return;
                }
                // The one that waits longest is the last of the list.
                let mut waiting = jobs.list.iter_mut().rev();
                let next = waiting.find(|job| job.state == DownloadState::Queued);
                let Some(job) = next else { return };
                job.state = DownloadState::Running;
                job.stop = Arc::default();
                Run {
                    inner: Arc::downgrade(self),
                    id: job.id,
                    stop: Arc::clone(&job.stop),
                    files: Arc::clone(&job.files),
                }
            };
            let id = run.id;
            let thread = thread::Builder::new().name(String::from("download"));
            // Not waited for when the app closes: a read from a silent server takes its time, and
            // what has come is on disk.
            if let Err(source) = thread.spawn(move || run.run()) {
                let reason = words::no_thread(&source);
                if let Some(job) = self.downloads.jobs().find(id) {
                    (job.state, job.message) = (DownloadState::Failed, Some(reason));
                }
            }
        }
    }

    fn download_ended(self: &Arc<Self>, run: &Run, result: Result<(), Fault>) {
        let place = {
            let mut jobs = self.downloads.jobs();
            let first = jobs.find(run.id).and_then(|job| job.entry.files.first());
            first.map(|file| self.downloads.place(file))
        };
        if let Some(path) = place.filter(|_| result.is_ok()) {
            // Listed before it is told to be whole. What cannot be noted now is found in the
            // program's folder with the next start.
            self.store.add_model(&path).ok();
            self.publish_models();
        }
        let Some(job) = self.note_end(run, &result) else {
            // Another run has it, or nobody wants it any more.
            return;
        };
        // A list that cannot be written is written with the next change; the files are there.
        self.downloads.keep().ok();
        if job == DownloadState::Done {
            // Perhaps it was the starter model that the line offers.
            self.publish_status();
        }
        self.publish_downloads();
        self.run_downloads();
    }

    fn note_end(&self, run: &Run, result: &Result<(), Fault>) -> Option<DownloadState> {
        let mut jobs = self.downloads.jobs();
        let job = jobs.find(run.id)?;
        if !Arc::ptr_eq(&job.stop, &run.stop) {
            return None;
        }
        job.pace.clear();
        job.message = None;
        job.state = match result {
            Ok(()) => DownloadState::Done,
            Err(Fault::Stopped) => DownloadState::Paused,
            Err(fault) => {
                job.message = Some(Phrase::of(fault).sentence());
                DownloadState::Failed
            }
        };
        job.entry.note_failure(job.message.as_ref());
        Some(job.state)
    }
}

impl Run {
    fn run(self) {
        let result = {
            let _held = self.files.lock().unwrap_or_else(PoisonError::into_inner);
            self.all()
        };
        if let Some(inner) = self.inner.upgrade() {
            inner.download_ended(&self, result);
        }
    }

    fn all(&self) -> Result<(), Fault> {
        let (mut tries, mut wrong) = (0, 0);
        while let Some(at) = self.next_file()? {
            let before = self.received();
            let fault = match self.one(at) {
                Ok(()) => continue,
                Err(fault) => fault,
            };
            if self.is_stopped() {
                return Err(Fault::Stopped);
            }
            if self.received() > before {
                tries = 0;
            }
            match fault {
                // Perhaps two versions were mixed; from the start there is only one.
                Fault::WrongChecksum if wrong < WRONG_MAX => wrong += 1,
                fault if fault.passes() && tries < TRIES_MAX => {
                    self.wait(&fault, tries)?;
                    tries += 1;
                }
                fault => return Err(fault),
            }
        }
        self.put_in_place()
    }

    /// The next file that is not here, and none once all are.
    fn next_file(&self) -> Result<Option<usize>, Fault> {
        self.with(|_, job| job.entry.files.iter().position(|file| !file.is_checked))
    }

    fn one(&self, at: usize) -> Result<(), Fault> {
        let inner = self.inner.upgrade().ok_or(Fault::Stopped)?;
        let (wanted, mut version, others) = self.with(|downloads, job| {
            let file = &job.entry.files[at];
            let wanted = Wanted {
                url: file.url.clone(),
                size: file.size,
                sha256: file.sha256.clone(),
                part: part_of(&downloads.place(file)),
            };
            let others = job.entry.files.iter().enumerate();
            let others = others.filter(|(other, _)| *other != at);
            let others = others.map(|(_, file)| super::here(&downloads.models, file));
            (wanted, file.version.clone(), others.sum::<u64>())
        })?;
        let client = inner.downloads.client()?;
        let mut told: Option<(Instant, Step)> = None;
        let mut follow = |step: Step| {
            let now = (inner.config.clock.instant)();
            let is_due = told.is_none_or(|(then, last)| {
                let is_other = std::mem::discriminant(&last) != std::mem::discriminant(&step);
                is_other || now.saturating_duration_since(then) >= TELL_INTERVAL
            });
            self.note(step, others, now);
            if is_due {
                told = Some((now, step));
                inner.publish_downloads();
            }
            match self.is_stopped() {
                true => Next::Stop,
                false => Next::GoOn,
            }
        };
        let before = version.clone();
        let result = fetch(&client, &wanted, &mut version, &mut follow);
        self.with(|_, job| {
            job.entry.files[at].version = version.clone();
            job.entry.files[at].is_checked = result.is_ok();
            job.received = others + super::here(&inner.downloads.models, &job.entry.files[at]);
        })?;
        if result.is_ok() || version != before {
            // Without it the next start reads this file once more.
            inner.downloads.keep().ok();
        }
        result
    }

    fn note(&self, step: Step, others: u64, now: Instant) {
        // A download that nobody wants any more is found out by its flag.
        let _ = self.with(|_, job| match step {
            Step::Received(bytes) => {
                job.received = others + bytes;
                job.pace.read(now, job.received);
                (job.state, job.message) = (DownloadState::Running, None);
            }
            Step::Checking => job.state = DownloadState::Checking,
        });
    }

    fn wait(&self, fault: &Fault, tries: u32) -> Result<(), Fault> {
        let inner = self.inner.upgrade().ok_or(Fault::Stopped)?;
        let asked = match fault {
            Fault::Busy { after, .. } => *after,
            _ => None,
        };
        let pause = PAUSE_MIN.saturating_mul(1 << tries.min(16)).min(PAUSE_MAX);
        let pause = inner.downloads.pause_of(asked.unwrap_or(pause));
        self.with(|_, job| {
            let message = phrase!(
                "{why} Trying again in {seconds} s.",
                "{why} Neuer Versuch in {seconds} s.",
                why = Phrase::of(fault).sentence(),
                seconds = pause.as_secs().max(1),
            );
            (job.state, job.message) = (DownloadState::Waiting, Some(message));
            job.pace.clear();
        })?;
        inner.publish_downloads();
        let downloads = &inner.downloads;
        let nobody = |_: &mut super::Jobs| !self.is_stopped();
        let waited = downloads
            .stopped
            .wait_timeout_while(downloads.jobs(), pause, nobody);
        drop(waited);
        match self.is_stopped() {
            true => Err(Fault::Stopped),
            false => Ok(()),
        }
    }

    /// All files get their names, the first one last: only then the model is there.
    fn put_in_place(&self) -> Result<(), Fault> {
        self.with(|downloads, job| {
            for file in job.entry.files.iter().rev() {
                let place = downloads.place(file);
                let part = part_of(&place);
                // A run before this one may have come so far.
                if part.exists() || !place.exists() {
                    std::fs::rename(&part, &place).map_err(|source| Fault::Disk { source })?;
                }
            }
            Ok(())
        })?
    }

    fn received(&self) -> u64 {
        self.with(|_, job| job.received).unwrap_or_default()
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Looks at the download, while it is this run's.
    fn with<T>(&self, look: impl FnOnce(&Downloads, &mut Job) -> T) -> Result<T, Fault> {
        let inner = self.inner.upgrade().ok_or(Fault::Stopped)?;
        let downloads = &inner.downloads;
        let mut jobs = downloads.jobs();
        let job = jobs.find(self.id);
        let job = job.filter(|job| Arc::ptr_eq(&job.stop, &self.stop) && !self.is_stopped());
        Ok(look(downloads, job.ok_or(Fault::Stopped)?))
    }
}

impl Downloads {
    /// A pause as it is waited: tests have no time for long ones.
    fn pause_of(&self, pause: Duration) -> Duration {
        let patience = self.network.patience;
        patience.map_or(pause, |patience| patience.min(pause))
    }
}
