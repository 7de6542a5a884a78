//! Downloads of models from a hub.
//!
//! Nothing is asked of the network that nobody clicked for: a search, a list, a download. A file
//! lies under the name of a part until all of its model is here and was held against its
//! checksums; then it gets its own name, and the library lists it. What a broken connection or a
//! closed program leaves behind is gone on with.
//!
//! Start reading at `fetch.rs`, one file over one connection.

mod fault;
mod fetch;
mod http;
mod hub;
mod journal;
mod pace;
#[cfg(test)]
mod server;
mod work;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::app::{App, Inner};
use crate::error::{Error, Thing};
use crate::news::News;
use crate::wire::{Code, Download, DownloadState, HubFile, HubListing, HubModel, Starter};
use crate::words::{self, German, Phrase, Tongue, phrase};
use crate::{fit, library, path_id};

use fault::Fault;
use http::Client;
use journal::{Entry, FileEntry, JOBS_MAX};
use pace::Pace;

pub use http::{Network, StarterDownload};

/// Downloads that run at once: enough to fill a line, few enough that the first is soon there.
const RUNNING_MAX: usize = 2;

/// A download as this program knows it.
struct Job {
    id: u32,
    entry: Entry,
    state: DownloadState,
    received: u64,
    pace: Pace,
    message: Option<Phrase>,
    /// Ends the run that is under way.
    stop: Arc<AtomicBool>,
    /// Held while a run touches the files: the next one waits until the last has let go.
    files: Arc<Mutex<()>>,
}

impl Job {
    fn new(id: u32, entry: Entry) -> Self {
        Self {
            id,
            state: DownloadState::Paused,
            received: 0,
            pace: Pace::default(),
            message: None,
            stop: Arc::default(),
            files: Arc::default(),
            entry,
        }
    }

    fn total(&self) -> u64 {
        let sizes = self.entry.files.iter().map(|file| file.size);
        sizes.fold(0, u64::saturating_add)
    }

    /// Whether a run has it.
    fn runs(&self) -> bool {
        use DownloadState::{Checking, Running, Waiting};
        matches!(self.state, Running | Waiting | Checking)
    }

    fn wire(&self, models: &Path, tongue: Tongue) -> Download {
        let message = self.message.as_ref();
        let first = self.entry.files.first();
        let is_running = self.state == DownloadState::Running;
        let left = self.total().saturating_sub(self.received);
        let place = first.filter(|_| self.state == DownloadState::Done);
        Download {
            id: self.id,
            name: String::from(hub::name_of(&self.entry.path)),
            repo: self.entry.repo.clone(),
            received_bytes: self.received as f64,
            total_bytes: self.total() as f64,
            state: self.state,
            bytes_per_second: self.pace.speed().filter(|_| is_running),
            left_s: self.pace.left(left).filter(|_| is_running),
            message: message.map(|message| message.to(tongue)),
            model: place.map(|file| path_id::encode(&models.join(&file.place))),
        }
    }
}

/// All downloads.
pub(crate) struct Downloads {
    /// Where they are written down.
    journal: PathBuf,
    /// Where models go.
    models: PathBuf,
    network: Network,
    jobs: Mutex<Jobs>,
    /// Somebody wants a run to end.
    stopped: Condvar,
}

#[derive(Default)]
struct Jobs {
    list: Vec<Job>,
    last_id: u32,
    is_closed: bool,
}

impl Job {
    fn pause(&mut self) {
        if self.runs() || self.state == DownloadState::Queued {
            self.stop.store(true, Ordering::Release);
            (self.state, self.message) = (DownloadState::Paused, None);
            self.pace.clear();
        }
    }
}

impl Jobs {
    fn find(&mut self, id: u32) -> Option<&mut Job> {
        self.list.iter_mut().find(|job| job.id == id)
    }

    fn add(&mut self, entry: Entry) -> &mut Job {
        self.last_id += 1;
        self.list.insert(0, Job::new(self.last_id, entry));
        &mut self.list[0]
    }
}

impl Downloads {
    /// Those of the last run of the program, all paused: nothing is asked for before a click.
    pub(crate) fn open(journal: PathBuf, models: PathBuf, network: Network) -> Self {
        let mut jobs = Jobs::default();
        for entry in journal::read(&journal).into_iter().rev() {
            let failure = entry.failure();
            let received = entry.files.iter().map(|file| here(&models, file));
            let received = received.fold(0, u64::saturating_add);
            let job = jobs.add(entry);
            job.received = received;
            if failure.is_some() {
                (job.state, job.message) = (DownloadState::Failed, failure);
            }
        }
        Self {
            journal,
            models,
            network,
            jobs: Mutex::new(jobs),
            stopped: Condvar::new(),
        }
    }

    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        // Each change is complete when the lock is given back.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wire(&self, tongue: Tongue) -> Vec<Download> {
        let jobs = self.jobs();
        let told = jobs.list.iter().map(|job| job.wire(&self.models, tongue));
        told.collect()
    }

    /// Ends every run. Does not wait: what has come is on disk.
    pub(crate) fn close(&self) {
        let mut jobs = self.jobs();
        jobs.is_closed = true;
        for job in &jobs.list {
            job.stop.store(true, Ordering::Release);
        }
        drop(jobs);
        self.stopped.notify_all();
    }

    /// Writes down what is not whole yet.
    fn keep(&self) -> Result<(), Error> {
        let jobs = self.jobs();
        let unfinished = jobs.list.iter();
        let unfinished = unfinished.filter(|job| job.state != DownloadState::Done);
        let entries: Vec<Entry> = unfinished.map(|job| job.entry.clone()).collect();
        journal::write(&self.journal, &entries)
    }

    fn client(&self) -> Result<Client, Fault> {
        Client::new(&self.network)
    }

    /// Where a file belongs.
    fn place(&self, file: &FileEntry) -> PathBuf {
        self.models.join(&file.place)
    }
}

/// Bytes of a file that are here.
fn here(models: &Path, file: &FileEntry) -> u64 {
    let part = fetch::part_of(&models.join(&file.place));
    let found = std::fs::metadata(part).map_or(0, |facts| facts.len());
    found.min(file.size)
}

impl App {
    /// Places on the hub that have models of this name.
    ///
    /// # Errors
    /// [`Code::Network`]: the hub does not answer, or the user wants nothing asked.
    pub fn hub_search(&self, words: &str) -> Result<Vec<HubModel>, Error> {
        let (client, hub) = self.inner.hub()?;
        hub::search(&client, &hub, words).map_err(|fault| not_asked(&hub, fault))
    }

    /// The models of one place, and which of them there is room for.
    ///
    /// # Errors
    /// As for [`App::hub_search`].
    pub fn hub_files(&self, repo: &str) -> Result<HubListing, Error> {
        let inner = &self.inner;
        let (client, hub) = inner.hub()?;
        let listing = hub::list(&client, &hub, repo).map_err(|fault| not_asked(&hub, fault))?;
        let files = listing.offers.iter().map(|offer| {
            let place = inner.downloads.models.join(place(repo, offer.path()));
            HubFile {
                path: String::from(offer.path()),
                name: String::from(hub::name_of(offer.path())),
                parts: u32::try_from(offer.parts.len()).unwrap_or(u32::MAX),
                size_bytes: offer.size() as f64,
                checked: offer.parts.iter().all(|part| part.sha256.is_some()),
                fit: Some(fit::of_size(inner, offer.size())),
                id: place.is_file().then(|| path_id::encode(&place)),
            }
        });
        Ok(HubListing {
            repo: String::from(repo),
            files: files.collect(),
        })
    }

    /// Begins to download a model of a place, all parts of a split one.
    ///
    /// # Errors
    /// As for [`App::hub_search`]; [`Code::Busy`] if too many downloads are there, or it is here
    /// already; [`Code::Storage`] if the list of downloads cannot be written.
    pub fn start_download(&self, repo: &str, path: &str) -> Result<Download, Error> {
        let inner = &self.inner;
        let (client, hub) = inner.hub()?;
        let listing = hub::list(&client, &hub, repo).map_err(|fault| not_asked(&hub, fault))?;
        let offer = listing
            .offers
            .into_iter()
            .find(|offer| offer.path() == path);
        let offer = offer.ok_or_else(|| Error::not_found(Thing::File))?;
        let files = offer.parts.into_iter().map(|part| FileEntry {
            url: hub::file_url(&hub, repo, &listing.revision, &part.path),
            size: part.size,
            sha256: part.sha256,
            place: place(repo, &part.path),
            version: None,
            is_checked: false,
        });
        inner.begin_download(Entry {
            repo: String::from(repo),
            path: String::from(path),
            files: files.collect(),
            ..Entry::default()
        })
    }

    /// Begins to download the starter model.
    ///
    /// # Errors
    /// As for [`App::start_download`].
    pub fn download_starter(&self) -> Result<Download, Error> {
        let starter = self.inner.config.network.starter.clone();
        let starter = starter.ok_or_else(|| Error::not_found(Thing::Model))?;
        let (client, hub) = self.inner.hub()?;
        let repo = &starter.repo;
        let listing = hub::list(&client, &hub, repo).map_err(|fault| not_asked(&hub, fault))?;
        let mut parts = listing.offers.iter().flat_map(|offer| &offer.parts);
        let is_it = |part: &&hub::Blob| {
            let same = |hash: &String| hash.eq_ignore_ascii_case(&starter.sha256);
            part.sha256.as_ref().is_some_and(same) && part.size == starter.size_bytes
        };
        let part = parts.find(is_it).ok_or_else(|| {
            let message = phrase!(
                "The starter model is not there any more. Search for another model.",
                "Das Startmodell gibt es dort nicht mehr. Suche ein anderes Modell.",
            );
            Error::new(Code::NotFound, message)
        })?;
        self.inner.begin_download(Entry {
            files: vec![FileEntry {
                url: hub::file_url(&hub, repo, &listing.revision, &part.path),
                size: part.size,
                sha256: part.sha256.clone(),
                place: starter.file.clone(),
                version: None,
                is_checked: false,
            }],
            repo: repo.clone(),
            path: starter.file,
            ..Entry::default()
        })
    }

    /// Stops a download where it is. One that does not run is no error.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub fn pause_download(&self, id: u32) -> Result<(), Error> {
        let downloads = &self.inner.downloads;
        {
            let mut jobs = downloads.jobs();
            let job = jobs
                .find(id)
                .ok_or_else(|| Error::not_found(Thing::Download))?;
            job.pause();
        }
        downloads.stopped.notify_all();
        self.inner.publish_downloads();
        self.inner.run_downloads();
        Ok(())
    }

    /// Goes on with a download that was paused or failed.
    ///
    /// # Errors
    /// [`Code::NotFound`]; [`Code::Network`] if the user wants nothing asked of the network.
    pub fn resume_download(&self, id: u32) -> Result<(), Error> {
        self.inner.hub()?;
        {
            let mut jobs = self.inner.downloads.jobs();
            let job = jobs
                .find(id)
                .ok_or_else(|| Error::not_found(Thing::Download))?;
            if matches!(job.state, DownloadState::Paused | DownloadState::Failed) {
                (job.state, job.message) = (DownloadState::Queued, None);
                job.entry.failure = None;
            }
        }
        self.inner.publish_downloads();
        self.inner.run_downloads();
        Ok(())
    }

    /// Takes a download off the list. What has come of one that is not whole is removed.
    ///
    /// # Errors
    /// [`Code::NotFound`], or the list cannot be written.
    pub fn remove_download(&self, id: u32) -> Result<(), Error> {
        let inner = &self.inner;
        let downloads = &inner.downloads;
        let mut job = {
            let mut jobs = downloads.jobs();
            let at = jobs.list.iter().position(|job| job.id == id);
            let at = at.ok_or_else(|| Error::not_found(Thing::Download))?;
            jobs.list[at].stop.store(true, Ordering::Release);
            jobs.list.remove(at)
        };
        downloads.stopped.notify_all();
        if job.state != DownloadState::Done {
            let parts: Vec<PathBuf> = job
                .entry
                .files
                .drain(..)
                .map(|file| fetch::part_of(&downloads.place(&file)))
                .collect();
            // The run that had them lets go once its server says something; nobody waits for that.
            let tidy = move || {
                let _held = job.files.lock().unwrap_or_else(PoisonError::into_inner);
                for part in parts {
                    // One that never began has none.
                    std::fs::remove_file(part).ok();
                }
            };
            let thread = std::thread::Builder::new().name(String::from("tidy"));
            thread.spawn(tidy).map_err(|source| {
                Error::new(Code::Internal, words::no_thread(&source)).because(source)
            })?;
        }
        downloads.keep()?;
        inner.publish_downloads();
        inner.run_downloads();
        Ok(())
    }
}

impl Inner {
    /// Pauses everything: nothing is to be asked of the network.
    pub(crate) fn pause_downloads(&self) {
        self.downloads.jobs().list.iter_mut().for_each(Job::pause);
        self.downloads.stopped.notify_all();
        self.publish_downloads();
    }

    /// Who asks, and whom.
    fn hub(&self) -> Result<(Client, String), Error> {
        let settings = self.settings();
        if settings.offline {
            let message = phrase!(
                "Candor is set to ask nothing of the network. \
                 The switch is in the settings, under Network.",
                "Candor darf nicht ins Netz. Der Schalter steht in den Einstellungen unter Netz.",
            );
            return Err(Error::new(Code::Network, message));
        }
        let hub = hub::address(&settings.hub_address);
        let hub = hub.map_err(|fault| not_asked(&settings.hub_address, fault))?;
        let client = self.downloads.client();
        let client = client.map_err(|fault| not_asked(&hub, fault))?;
        Ok((client, hub))
    }

    fn begin_download(self: &Arc<Self>, entry: Entry) -> Result<Download, Error> {
        let downloads = &self.downloads;
        let is_here = |file: &FileEntry| downloads.place(file).exists();
        if entry.files.iter().all(is_here) {
            let message = phrase!(
                "This model is on this computer already.",
                "Dieses Modell ist schon auf diesem Rechner.",
            );
            return Err(Error::new(Code::Busy, message));
        }
        let id = {
            let mut jobs = downloads.jobs();
            let same = |job: &&mut Job| {
                job.entry.repo == entry.repo
                    && job.entry.path == entry.path
                    && job.state != DownloadState::Done
            };
            let count = jobs.list.len();
            match jobs.list.iter_mut().find(same) {
                Some(job) => job.id,
                None if count >= JOBS_MAX => {
                    let message = phrase!(
                        "Too many downloads are in the list; take some off it.",
                        "In der Liste stehen zu viele Downloads; nimm einige heraus.",
                    );
                    return Err(Error::new(Code::Busy, message));
                }
                None => jobs.add(entry).id,
            }
        };
        downloads.keep()?;
        {
            let mut jobs = downloads.jobs();
            if let Some(job) = jobs.find(id).filter(|job| !job.runs()) {
                (job.state, job.message) = (DownloadState::Queued, None);
            }
        }
        self.run_downloads();
        self.publish_downloads();
        let found = downloads
            .wire(self.tongue())
            .into_iter()
            .find(|job| job.id == id);
        found.ok_or_else(|| Error::not_found(Thing::Download))
    }

    pub(crate) fn publish_downloads(&self) {
        let list = self.downloads.wire(self.tongue());
        self.listeners.tell(&News::Downloads(list));
    }

    /// Whether the starter model can be had.
    pub(crate) fn starter(&self) -> Starter {
        match (
            library::starter(&self.config.starters, self.tongue()),
            &self.config.network.starter,
        ) {
            (Starter::Absent { .. }, Some(starter)) => Starter::Download {
                size_bytes: u32::try_from(starter.size_bytes).unwrap_or(u32::MAX),
            },
            (found, _) => found,
        }
    }
}

/// Where a file of a place belongs, below the folder of models.
fn place(repo: &str, path: &str) -> String {
    format!("{repo}/{path}")
}

fn not_asked(hub: &str, fault: Fault) -> Error {
    let host = hub.split("://").nth(1).unwrap_or(hub);
    let fault_german = words::capital(&fault.german());
    let message = Phrase::new(fault.to_string(), fault_german).closed();
    let message = Phrase::same(format!("{host}: ")).then(&message);
    Error::new(Code::Network, message).because(fault)
}

#[cfg(test)]
mod tests;
