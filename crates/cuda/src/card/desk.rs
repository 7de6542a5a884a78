//! What the thread of a card owns. Nothing of it ever leaves the thread.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use candor_backend::{LoadError, Model, OpenError, OpenOptions, Progress, Step};

use super::{Heart, Line, Word};
use crate::device::Device;
use crate::loaded::CudaLoaded;
use crate::machine::{Base, Blueprint, Replies};
use crate::session::CudaSession;

/// Names something on the desk for those who may not touch it.
pub(crate) type Key = u64;

/// What the thread owns.
pub(crate) struct Desk {
    ordinal: usize,
    heart: Arc<Heart>,
    next: Key,
    // Sessions go before the weights that they read.
    sessions: BTreeMap<Key, CudaSession>,
    loaded: BTreeMap<Key, CudaLoaded>,
    fitted: Option<Fitted>,
}

/// A model that was found to fit, and has taken nothing yet but its kernels.
struct Fitted {
    base: Base,
    blueprint: Blueprint,
}

/// What a model is to become.
#[derive(Clone)]
pub(crate) struct Order {
    pub(crate) model: Arc<Model>,
    pub(crate) replies: Replies,
}

impl Desk {
    pub(super) fn new(ordinal: usize, heart: Arc<Heart>) -> Self {
        Self {
            ordinal,
            heart,
            next: 0,
            sessions: BTreeMap::new(),
            loaded: BTreeMap::new(),
            fitted: None,
        }
    }

    pub(super) fn heart(&self) -> &Heart {
        &self.heart
    }

    fn key(&mut self) -> Key {
        self.next += 1;
        self.next
    }

    /// The first of these ways to open a session for which there is room beside the weights. The
    /// driver translates the kernels here, so that a card that does not take them says so at once.
    pub(crate) fn fit(
        &mut self,
        order: Order,
        wishes: &[OpenOptions],
        line: &Line,
    ) -> Result<OpenOptions, LoadError> {
        self.fitted = None;
        let fitted = self.fitted(order, wishes, line)?;
        let options = fitted.blueprint.options();
        if line.keeps() {
            self.fitted = Some(fitted);
        }
        Ok(options)
    }

    fn fitted(
        &self,
        order: Order,
        wishes: &[OpenOptions],
        line: &Line,
    ) -> Result<Fitted, LoadError> {
        let device = Device::open(self.ordinal, Arc::clone(&self.heart))?;
        let base = Base::new(device, order.model, order.replies);
        let total = base.weights.bytes() as u64;
        let mut go_on = || go(line, 0, total);
        let mut refused = None;
        for options in wishes {
            let blueprint = match refused {
                None => Blueprint::new(&base, *options, &mut go_on),
                // All kernels are there by now, so this is arithmetic.
                Some(_) => Blueprint::new(&base, *options, &mut || Ok(())),
            }?;
            let needed_bytes = total
                .saturating_add(blueprint.bytes())
                .saturating_add(blueprint.graphs_bytes(&base));
            match base.device.check_memory(needed_bytes) {
                Ok(()) => return Ok(Fitted { base, blueprint }),
                Err(fault) => refused = Some(fault),
            }
        }
        // The last one was the smallest wish.
        Err(refused.map_or(LoadError::Stopped, LoadError::from))
    }

    /// Takes the memory and fills it.
    pub(crate) fn load(&mut self, order: Order, line: &Line) -> Result<Key, LoadError> {
        let is_meant = |fitted: &Fitted| Arc::ptr_eq(&fitted.base.model, &order.model);
        let fitted = match self.fitted.take().filter(is_meant) {
            Some(fitted) => fitted,
            None => self.fitted(order, &[SMALLEST], line)?,
        };
        let Fitted {
            mut base,
            blueprint,
        } = fitted;
        base.device.bind()?;
        base.weights = base.weights.take(&base.device)?;
        let base = Rc::new(base);
        let session = match blueprint.options() == SMALLEST {
            true => None,
            false => Some((blueprint.options(), CudaSession::open(&base, blueprint)?)),
        };
        let mut progress = Reported(line);
        base.weights
            .send(&base.device, &base.model, &mut progress)?;
        if !line.keeps() {
            return Err(LoadError::Stopped);
        }
        let key = self.key();
        let ready = RefCell::new(session);
        self.loaded.insert(key, CudaLoaded::new(base, ready));
        Ok(key)
    }

    /// Opens a session.
    pub(crate) fn open(&mut self, loaded: Key, options: OpenOptions) -> Result<Key, OpenError> {
        let session = self.loaded(loaded).open(options)?;
        let key = self.key();
        self.sessions.insert(key, session);
        Ok(key)
    }

    /// # Panics
    /// If it was given up: only its owner knows the key, and gives it up last.
    pub(crate) fn loaded(&self, key: Key) -> &CudaLoaded {
        &self.loaded[&key]
    }

    /// # Panics
    /// As [`Desk::loaded`].
    pub(crate) fn session(&mut self, key: Key) -> &mut CudaSession {
        self.sessions
            .get_mut(&key)
            .expect("its owner gives it up last")
    }

    pub(crate) fn drop_session(&mut self, key: Key) {
        self.sessions.remove(&key);
    }

    pub(crate) fn drop_loaded(&mut self, key: Key) {
        self.loaded.remove(&key);
    }
}

/// A session that asks for as little as there is, to see that its kernels are there.
const SMALLEST: OpenOptions = OpenOptions {
    ctx_len: 1,
    slots_max: 1,
    state_tokens: 1,
    kv: candor_backend::KvType::F16,
    precision: candor_backend::Precision::Fast,
};

fn go(line: &Line, done: u64, total: u64) -> Result<(), LoadError> {
    match line.say(Word::Progress { done, total }) {
        Step::Go => Ok(()),
        Step::Stop => Err(LoadError::Stopped),
    }
}

/// Progress that somebody on another thread hears.
struct Reported<'a>(&'a Line);

impl Progress for Reported<'_> {
    fn report(&mut self, done: u64, total: u64) -> Step {
        self.0.say(Word::Progress { done, total })
    }
}
