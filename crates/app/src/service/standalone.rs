//! An engine of its own for programs: files and folders that the command line names.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use candor_backend::CancelToken;
use candor_engine::EngineHandle;

use super::{Listed, NotOpened, Opened, Source, in_folder, model_id, wanted_id};
use crate::headless::{Failure, Setup};
use crate::library;
use crate::models::GLANCE;

/// Whether programs may have other models loaded than the one that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRequest {
    /// They may.
    Load,
    /// They may not.
    Refuse,
}

/// An engine with the models that were named for it. Ends with the last clone.
#[derive(Clone)]
pub struct Standalone(Arc<Inner>);

struct Inner {
    setup: Setup,
    engine: EngineHandle,
    /// Files that were named one by one.
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    on_request: OnRequest,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    opened: Option<Arc<Opened>>,
    /// The file that answered last; what is unloaded is loaded again from it.
    last: Option<PathBuf>,
    load: Option<Load>,
    loads: u64,
}

/// A load under way, and who waits for it.
struct Load {
    path: PathBuf,
    number: u64,
    cancel: CancelToken,
    waiters: usize,
    /// How it ended, for those who wait.
    ended: Option<Result<Arc<Opened>, Ended>>,
}

/// A load that came to nothing, in words that everybody who waited can have.
#[derive(Clone)]
enum Ended {
    Stopped,
    Refused(String),
}

impl Standalone {
    /// Starts the engine, without a model.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(
        setup: Setup,
        files: Vec<PathBuf>,
        folders: Vec<PathBuf>,
        on_request: OnRequest,
    ) -> std::io::Result<Self> {
        let engine = setup.engine()?;
        Ok(Self::on(engine, setup, (files, folders), on_request))
    }

    /// The same on an engine that runs, such as a scripted one.
    pub fn on(
        engine: EngineHandle,
        setup: Setup,
        (files, folders): (Vec<PathBuf>, Vec<PathBuf>),
        on_request: OnRequest,
    ) -> Self {
        Self(Arc::new(Inner {
            setup,
            engine,
            files,
            folders,
            on_request,
            state: Mutex::default(),
            changed: Condvar::new(),
        }))
    }

    /// Loads the model that answers at first.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn load(&self, path: &Path, cancel: &CancelToken) -> Result<Arc<Opened>, Failure> {
        let opened = self.0.load(path, cancel)?;
        self.0.state().answers(&opened);
        Ok(opened)
    }

    /// Ends the engine, and waits for it.
    pub fn shutdown(&self) {
        self.0.engine.shutdown();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.engine.shutdown();
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is one assignment, so a panic leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn load(&self, path: &Path, cancel: &CancelToken) -> Result<Arc<Opened>, Failure> {
        let loaded = self.setup.load(&self.engine, path, cancel)?;
        let why = self.setup.cards.choice.why(&loaded);
        Ok(Arc::new(Opened::new(
            self.engine.clone(),
            loaded,
            None,
            why,
        )))
    }

    fn listed(&self) -> Vec<Listed> {
        let mut all: Vec<Listed> = Vec::new();
        let files = self.files.iter().filter_map(|path| {
            let bytes = library::size(path)?;
            Some(Listed::of(path, bytes))
        });
        let folders = self.folders.iter().flat_map(|folder| in_folder(folder));
        for listed in files.chain(folders) {
            // Of two files of one name the first that was named is it.
            if all.len() < super::LISTED_MAX && !all.iter().any(|other| other.id == listed.id) {
                all.push(listed);
            }
        }
        all
    }

    /// The model that answers, unless the engine has lost it.
    fn opened(&self) -> Option<Arc<Opened>> {
        let opened = self.state().opened.clone();
        opened.filter(|opened| opened.is_there())
    }

    /// Where the model of a name is.
    fn find(&self, asked: &str) -> Result<PathBuf, NotOpened> {
        let id = wanted_id(asked);
        let listed = self.listed();
        if let Some(found) = listed.iter().find(|listed| listed.id == id) {
            return Ok(found.path.clone());
        }
        Err(NotOpened::Unknown {
            asked: asked.to_owned(),
            known: listed.into_iter().map(|listed| listed.id).collect(),
        })
    }

    /// Joins the load of a file, or begins it once no other is under way.
    fn wait(self: &Arc<Self>, path: &Path, cancel: &CancelToken) -> Result<Arc<Opened>, NotOpened> {
        let mut state = self.state();
        let mut joined = None;
        loop {
            if cancel.is_cancelled() {
                if joined.is_some() {
                    state.leave();
                }
                return Err(NotOpened::Stopped);
            }
            match (&mut state.load, joined) {
                (Some(load), Some(number)) if load.number == number => {
                    if let Some(ended) = load.ended.clone() {
                        state.leave();
                        self.changed.notify_all();
                        return ended.map_err(NotOpened::from);
                    }
                }
                (Some(load), None) if load.path == path && !load.cancel.is_cancelled() => {
                    load.waiters += 1;
                    joined = Some(load.number);
                    continue;
                }
                (None, _) => {
                    joined = Some(self.begin(&mut state, path)?);
                    continue;
                }
                _ => {}
            }
            let waited = self.changed.wait_timeout(state, GLANCE);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Begins a load on a thread of its own, so that it outlives whoever asked first.
    fn begin(self: &Arc<Self>, state: &mut State, path: &Path) -> Result<u64, NotOpened> {
        state.loads += 1;
        let (number, cancel) = (state.loads, CancelToken::new());
        let (inner, path) = (Arc::clone(self), path.to_owned());
        let load = Load {
            path: path.clone(),
            number,
            cancel: cancel.clone(),
            waiters: 1,
            ended: None,
        };
        let work = move || {
            let ended = inner.load(&path, &cancel).map_err(|failure| match failure {
                Failure::Stopped => Ended::Stopped,
                other => Ended::Refused(other.to_string()),
            });
            inner.ended(number, ended);
        };
        thread::Builder::new()
            .name(String::from("model-load"))
            .spawn(work)
            .map_err(|source| NotOpened::Refused {
                message: format!("the system gives no thread: {source}"),
            })?;
        state.load = Some(load);
        Ok(number)
    }

    fn ended(&self, number: u64, ended: Result<Arc<Opened>, Ended>) {
        let mut state = self.state();
        if let Ok(opened) = &ended {
            state.answers(opened);
        }
        if let Some(load) = state.load.as_mut().filter(|load| load.number == number) {
            load.ended = Some(ended);
            if load.waiters == 0 {
                state.load = None;
            }
        }
        drop(state);
        self.changed.notify_all();
    }
}

impl State {
    fn answers(&mut self, opened: &Arc<Opened>) {
        self.last = Some(opened.loaded().path.clone());
        self.opened = Some(Arc::clone(opened));
    }

    /// One who waited for the load does so no more; the last one stops it.
    fn leave(&mut self) {
        let Some(load) = &mut self.load else { return };
        load.waiters = load.waiters.saturating_sub(1);
        if load.waiters > 0 {
            return;
        }
        if load.ended.is_some() {
            self.load = None;
        } else {
            load.cancel.cancel();
        }
    }
}

impl From<Ended> for NotOpened {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Stopped => Self::Stopped,
            Ended::Refused(message) => Self::Refused { message },
        }
    }
}

impl Source for Standalone {
    fn listed(&self) -> Vec<Listed> {
        self.0.listed()
    }

    fn opened(&self) -> Option<Arc<Opened>> {
        self.0.opened()
    }

    fn open(&self, id: Option<&str>, cancel: &CancelToken) -> Result<Arc<Opened>, NotOpened> {
        let opened = self.opened();
        let Some(asked) = id else {
            // What was unloaded while nobody asked is loaded again.
            let last = self.0.state().last.clone();
            return match (opened, last) {
                (Some(opened), _) => Ok(opened),
                (None, Some(last)) => self.0.wait(&last, cancel),
                (None, None) => Err(NotOpened::NoModel),
            };
        };
        if let Some(opened) = opened.filter(|opened| opened.id == wanted_id(asked)) {
            return Ok(opened);
        }
        let path = self.0.find(asked)?;
        let last = self.0.state().last.clone();
        match (self.0.on_request, last) {
            (OnRequest::Refuse, Some(last)) if last != path => Err(NotOpened::NotAllowed {
                asked: asked.to_owned(),
                answers: model_id(&last),
            }),
            _ => self.0.wait(&path, cancel),
        }
    }

    fn unload(&self, id: Option<&str>) {
        let opened = self.opened();
        let is_meant = opened.is_some_and(|opened| id.is_none_or(|id| opened.id == id));
        // An engine that has too much to do has not been idle.
        if is_meant && self.0.engine.unload().is_ok() {
            self.0.state().opened = None;
        }
    }

    fn unloads_on_request(&self) -> bool {
        true
    }
}
