//! The app: what a shell opens, and the calls that are about more than one turn.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use candor_backend::{DriverFault, Unavailable};

use crate::compose::{CudaDevice, choose_card, find};
use crate::config::AppConfig;
use crate::conversations::Store;
use crate::downloads::Downloads;
use crate::error::Error;
use crate::file_hash::FileHashes;
use crate::folders::Folders;
use crate::library;
use crate::models::{GLANCE, Models, Wish};
use crate::news::{Listener, Listeners, News};
use crate::paths::AppPaths;
use crate::replay::Replays;
use crate::settings::SettingsFile;
use crate::turns::{QUESTION_BYTES_MAX, Turns};
use crate::upkeep::{self, Upkeep};
use crate::verdicts::Recall;
use crate::wire::{
    Code, Conversation, ConversationId, ConversationSummary, DeviceChoice, Language, ModelEntry,
    Settings, Snapshot, Status, Unsent,
};
use crate::words::{self, Phrase, Tongue, phrase};

/// Longest unsent words of one conversation in bytes: a question in the box and one that waits.
const UNSENT_BYTES_MAX: usize = 2 * QUESTION_BYTES_MAX;

/// The product. Cheap to clone; every call may wait some milliseconds for the disk, so a shell
/// keeps them off the thread that paints. The last clone that goes closes it.
#[derive(Clone)]
pub struct App {
    pub(crate) inner: Arc<Inner>,
    _closing: Arc<ClosesWhenDropped>,
}

struct ClosesWhenDropped(Arc<Inner>);

impl Drop for ClosesWhenDropped {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What the app's threads share.
pub(crate) struct Inner {
    pub(crate) config: AppConfig,
    pub(crate) paths: AppPaths,
    pub(crate) store: Store,
    pub(crate) listeners: Listeners,
    pub(crate) models: Models,
    pub(crate) turns: Turns,
    pub(crate) replays: Replays,
    pub(crate) hashes: FileHashes,
    pub(crate) upkeep: Upkeep,
    pub(crate) folders: Folders,
    pub(crate) downloads: Downloads,
    probed: Mutex<Probed>,
    answered: Condvar,
    /// The status that was told last.
    pub(crate) told: Mutex<Option<Status>>,
    settings: Mutex<SettingsFile>,
    /// What the system speaks, as the window has found out.
    system_tongue: Mutex<Tongue>,
    pub(crate) notices: Mutex<Vec<Phrase>>,
    asking: Mutex<()>,
    threads: Mutex<Threads>,
}

/// What is known of the driver.
#[derive(Default)]
struct Probed {
    asked: bool,
    found: Option<Result<Vec<CudaDevice>, Unavailable>>,
}

/// Threads that hold the store and have to end before it.
#[derive(Default)]
struct Threads {
    closed: bool,
    running: Vec<JoinHandle<()>>,
}

impl Threads {
    fn refuse_if_closed(&self) -> Result<(), Error> {
        match self.closed {
            true => Err(Error::new(
                Code::Internal,
                phrase!("Candor is closing.", "Candor wird gerade geschlossen."),
            )),
            false => Ok(()),
        }
    }
}

impl App {
    /// Opens everything that the user has kept.
    ///
    /// # Errors
    /// [`Code::Busy`] if another program has it open; [`Code::Storage`] if it cannot be used.
    pub fn open(paths: AppPaths, config: AppConfig) -> Result<Self, Error> {
        let now_ms = (config.clock.now_ms)();
        let opened = Store::open(&paths, now_ms)?;
        let (settings, notice) = SettingsFile::open(paths.settings_file(), now_ms);
        let network = config.network.clone();
        let downloads = Downloads::open(paths.downloads_file(), paths.models_dir(), network);
        let inner = Arc::new(Inner {
            store: opened.store,
            listeners: Listeners::default(),
            models: Models::default(),
            turns: Turns::default(),
            replays: Replays::default(),
            hashes: FileHashes::new(paths.file_hashes()),
            upkeep: Upkeep::default(),
            folders: Folders::default(),
            downloads,
            probed: Mutex::default(),
            answered: Condvar::new(),
            told: Mutex::default(),
            settings: Mutex::new(settings),
            system_tongue: Mutex::default(),
            notices: Mutex::new(opened.notice.into_iter().chain(notice).collect()),
            asking: Mutex::default(),
            threads: Mutex::default(),
            config,
            paths,
        });
        inner.ask_driver();
        upkeep::begin(&inner);
        inner.search_folders();
        let _closing = Arc::new(ClosesWhenDropped(Arc::clone(&inner)));
        Ok(Self { inner, _closing })
    }

    /// Notes the language that the system speaks: the window knows it. It counts where the user
    /// chose none.
    pub fn system_speaks(&self, tongue: Tongue) {
        let mut system = self.inner.system_tongue();
        *system = tongue;
    }

    /// The language of the window.
    pub fn tongue(&self) -> Tongue {
        self.inner.tongue()
    }

    /// Hears the news from now on. Listen first, then read the snapshot.
    pub fn listen(&self, listener: Listener) {
        self.inner.listeners.add(listener);
    }

    /// All that a window needs when it opens. Notices are given once.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn bootstrap(&self) -> Result<Snapshot, Error> {
        let inner = &self.inner;
        let tongue = inner.tongue();
        let notices = &mut *inner.notices.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Snapshot {
            version: inner.config.version.clone(),
            status: inner.status(),
            settings: inner.settings(),
            conversations: inner.store.summaries()?,
            models: self.models()?,
            folders: inner.folders(),
            downloads: inner.downloads.wire(tongue),
            starter: inner.starter(),
            turns: inner.turns.running(),
            unsent: inner.store.unsent()?,
            // Last: what fails before leaves them for the next time.
            notices: notices.drain(..).map(|notice| notice.to(tongue)).collect(),
        })
    }

    /// A conversation with the branch that it shows. The text of a reply that is being written is
    /// as far as it has reached the disk; attaching to its turn from 0 gives all of it.
    ///
    /// # Errors
    /// [`Code::NotFound`], or the store cannot be read.
    pub fn open_conversation(&self, id: ConversationId) -> Result<Conversation, Error> {
        self.inner.conversation(id)
    }

    /// Gives a conversation another title. An empty one changes nothing.
    ///
    /// # Errors
    /// [`Code::NotFound`], or the store cannot be written.
    pub fn rename_conversation(
        &self,
        id: ConversationId,
        title: &str,
    ) -> Result<ConversationSummary, Error> {
        let summary = self.inner.store.rename(id, title)?;
        self.inner.publish_conversations();
        Ok(summary)
    }

    /// Takes a conversation out of sight and stops its reply. It can be restored until the next
    /// start, which removes it for good.
    ///
    /// # Errors
    /// [`Code::NotFound`], or the store cannot be written.
    pub fn delete_conversation(&self, id: ConversationId) -> Result<(), Error> {
        // A question that is just being taken in has its turn afterwards, which has to be stopped.
        let _one_at_a_time = self.inner.asking();
        if let Some(turn) = self.inner.turns.of_conversation(id) {
            self.stop(turn);
        }
        self.inner.store.delete(id, self.inner.now_ms())?;
        self.inner.publish_conversations();
        Ok(())
    }

    /// Brings a deleted conversation back.
    ///
    /// # Errors
    /// [`Code::NotFound`], or the store cannot be written.
    pub fn restore_conversation(&self, id: ConversationId) -> Result<ConversationSummary, Error> {
        let summary = self.inner.store.restore(id)?;
        self.inner.publish_conversations();
        Ok(summary)
    }

    /// Keeps what was typed and not sent, in the place of what was kept of the same conversation;
    /// empty words are forgotten. It is in the snapshot of the next start.
    ///
    /// # Errors
    /// [`Code::TooLong`] for words that no model could read, or the store cannot be written.
    pub fn keep_unsent(&self, unsent: &Unsent) -> Result<(), Error> {
        self.inner.stir();
        if unsent.text.len() + unsent.waiting.len() > UNSENT_BYTES_MAX {
            let message = phrase!(
                "This text is too long to be kept until the next start; shorten it.",
                "Dieser Text ist zu lang, um ihn bis zum nächsten Start aufzuheben; kürze ihn.",
            );
            return Err(Error::new(Code::TooLong, message));
        }
        self.inner.store.keep_unsent(unsent)
    }

    /// The models that are known, newest use first.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn models(&self) -> Result<Vec<ModelEntry>, Error> {
        library::models(&self.inner.store, &self.inner.paths.models_dir())
    }

    /// Puts a file into the list: one that was picked, typed or dropped. It is not opened yet.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn add_model(&self, path: &Path) -> Result<ModelEntry, Error> {
        let path = library::located(path)?;
        self.inner.store.add_model(&path)?;
        self.inner.publish_models();
        Ok(library::entry(&path, None))
    }

    /// Takes a model out of the list. The file stays.
    ///
    /// # Errors
    /// [`Code::NotFound`], or the store cannot be written.
    pub fn forget_model(&self, id: &str) -> Result<(), Error> {
        self.inner.store.forget_model(&library::path_of(id)?)?;
        self.inner.publish_models();
        Ok(())
    }

    /// Begins to load a model; how it goes is told by the status. A load before it is stopped,
    /// a running reply is waited for, and the model before stays until this one is ready.
    ///
    /// # Errors
    /// [`Code::NotFound`] if this is no id of a model.
    pub fn load_model(&self, id: &str) -> Result<(), Error> {
        self.inner.start_load(&library::path_of(id)?);
        Ok(())
    }

    /// Stops the load that is running, if one is.
    pub fn stop_loading(&self) {
        if let Some(load) = &self.inner.models.state().load {
            load.cancel.cancel();
        }
    }

    /// Lets the processor compute, and ends what a card is about to do for the load that is running.
    pub fn use_cpu(&self) {
        if let Some(load) = &self.inner.models.state().load {
            load.use_reference.cancel();
        }
    }

    /// Takes back that only the processor may compute, and loads the model again.
    ///
    /// # Errors
    /// If the settings cannot be written.
    pub fn use_gpu(&self) -> Result<(), Error> {
        let settings = self.settings();
        if settings.device == DeviceChoice::Cpu {
            let device = DeviceChoice::Auto;
            self.save_settings(Settings { device, ..settings })?;
        }
        self.inner.load_again(Recall::Kept);
        Ok(())
    }

    /// Asks the driver again and loads the model again, with nothing remembered of earlier checks.
    pub fn check_again(&self) {
        self.inner.ask_driver_again();
        self.inner.load_again(Recall::Nothing);
    }

    /// What the engine is doing.
    pub fn status(&self) -> Status {
        self.inner.status()
    }

    /// The user's choices.
    pub fn settings(&self) -> Settings {
        self.inner.settings()
    }

    /// Keeps new choices, each number inside its bounds, and gives them back. Threads and context
    /// take effect with the next model that is loaded.
    ///
    /// # Errors
    /// If the file cannot be written; the choices before stay.
    pub fn save_settings(&self, settings: Settings) -> Result<Settings, Error> {
        let spoken = self.inner.tongue();
        let saved = self.inner.settings_file().save(settings)?;
        if saved.offline {
            self.inner.pause_downloads();
        }
        self.inner.ask_driver();
        self.inner.publish_status();
        if self.inner.tongue() != spoken {
            self.inner.publish_folders();
            self.inner.publish_downloads();
        }
        Ok(saved)
    }

    /// Stops what runs, keeps what was written, and waits for it. A second call does nothing.
    pub fn close(&self) {
        self.inner.close();
    }
}

impl Inner {
    pub(crate) fn now_ms(&self) -> i64 {
        (self.config.clock.now_ms)()
    }

    pub(crate) fn instant(&self) -> Instant {
        (self.config.clock.instant)()
    }

    pub(crate) fn settings(&self) -> Settings {
        self.settings_file().settings().clone()
    }

    /// The language of the window.
    pub(crate) fn tongue(&self) -> Tongue {
        let chosen = self.settings_file().settings().language;
        match chosen {
            Language::English => Tongue::English,
            Language::German => Tongue::German,
            Language::System => *self.system_tongue(),
        }
    }

    fn system_tongue(&self) -> MutexGuard<'_, Tongue> {
        // It is one value.
        self.system_tongue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn settings_file(&self) -> MutexGuard<'_, SettingsFile> {
        // A panic in a save leaves the settings of before.
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Held while a question is taken in, so that two cannot answer the same message, and while a
    /// conversation is deleted.
    pub(crate) fn asking(&self) -> MutexGuard<'_, ()> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn publish_conversations(&self) {
        // Who cannot be told now is told by the next change.
        if let Ok(summaries) = self.store.summaries() {
            self.listeners.tell(&News::Conversations(summaries));
        }
    }

    pub(crate) fn publish_models(&self) {
        if let Ok(models) = library::models(&self.store, &self.paths.models_dir()) {
            self.listeners.tell(&News::Models(models));
        }
    }

    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn refuse_if_closed(&self) -> Result<(), Error> {
        self.threads().refuse_if_closed()
    }

    /// Runs something on a thread that is waited for when the app closes.
    pub(crate) fn spawn(
        &self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), Error> {
        let mut threads = self.threads();
        threads.refuse_if_closed()?;
        threads.running.retain(|thread| !thread.is_finished());
        let thread = thread::Builder::new().name(String::from(name)).spawn(work);
        let thread = thread.map_err(|source| {
            Error::new(Code::Internal, words::no_thread(&source)).because(source)
        })?;
        threads.running.push(thread);
        Ok(())
    }

    /// Asks the driver, unless the user chose the processor.
    fn ask_driver(self: &Arc<Self>) {
        if self.settings().device != DeviceChoice::Cpu {
            self.ask_driver_once();
        }
    }

    /// Forgets what the driver said, and asks it again.
    fn ask_driver_again(self: &Arc<Self>) {
        // An answer that is still to come is as good as a new one.
        let mut probed = self.probed();
        if probed.found.is_some() {
            *probed = Probed::default();
        }
        drop(probed);
        self.ask_driver();
    }

    /// Asks the driver in a thread, if it was not asked before.
    fn ask_driver_once(self: &Arc<Self>) {
        if std::mem::replace(&mut self.probed().asked, true) {
            return;
        }
        let (command, limit) = (self.config.probe.clone(), self.config.probe_limit);
        let inner = Arc::downgrade(self);
        let ask = move || {
            let found = find(&command, limit);
            if let Some(inner) = inner.upgrade() {
                inner.driver_answered(found);
            }
        };
        if let Err(error) = thread::Builder::new()
            .name(String::from("probe"))
            .spawn(ask)
        {
            let reason = DriverFault::NotAsked {
                message: error.to_string(),
            };
            self.driver_answered(Err(Unavailable::DriverBroken { reason }));
        }
    }

    fn driver_answered(&self, found: Result<Vec<CudaDevice>, Unavailable>) {
        self.probed().found = Some(found);
        self.answered.notify_all();
    }

    fn probed(&self) -> MutexGuard<'_, Probed> {
        self.probed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The card that is asked before the processor, for a load; waits for the driver's answer, which
    /// comes within the limit of the probe. None once `gives_up` says so.
    pub(crate) fn card(
        self: &Arc<Self>,
        wish: &Wish,
        gives_up: &dyn Fn() -> bool,
    ) -> Option<Result<CudaDevice, Unavailable>> {
        if wish.device == DeviceChoice::Cpu {
            return Some(Err(Unavailable::ChosenByUser));
        }
        // Whoever allows a card only now has not had the driver asked yet.
        self.ask_driver_once();
        let mut probed = self.probed();
        loop {
            match &probed.found {
                Some(Ok(cards)) => return Some(choose_card(cards, wish.card)),
                Some(Err(why)) => return Some(Err(why.clone())),
                None if gives_up() => return None,
                None => {}
            }
            let waited = self.answered.wait_timeout(probed, GLANCE);
            (probed, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The card that a load would take, if the driver has named one by now.
    pub(crate) fn known_card(&self) -> Option<CudaDevice> {
        let probed = self.probed();
        let cards = probed.found.as_ref()?.as_ref().ok()?;
        choose_card(cards, self.settings().gpu).ok()
    }

    fn close(&self) {
        let running = {
            let mut threads = self.threads();
            threads.closed = true;
            std::mem::take(&mut threads.running)
        };
        self.turns.stop_all();
        self.replays.stop_all();
        self.folders.stop();
        self.downloads.close();
        if let Some(load) = &self.models.state().load {
            load.cancel.cancel();
        }
        self.shut_engine_down();
        for thread in running {
            // A thread that broke down has said so in its own place.
            thread.join().ok();
        }
        // A load that was just beginning may have started another engine.
        self.shut_engine_down();
        self.store.release();
    }

    fn shut_engine_down(&self) {
        let seat = self.models.state().seat.take();
        if let Some(seat) = seat {
            seat.engine.shutdown();
        }
    }
}
