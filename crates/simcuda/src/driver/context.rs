//! Contexts, and which of them each thread uses.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::codes::Code;
use super::device::Device;
use super::module::Module;
use super::stream::Stream;
use super::{Driver, Handle, Outcome};

/// A context of one device.
pub(crate) struct Context {
    pub(crate) device: i32,
    pub(crate) flags: u32,
    pub(crate) primary: bool,
    /// The stream that is meant by none.
    pub(crate) legacy: Handle,
    /// What was set of `cuCtxSetLimit`, by the limit's number.
    pub(crate) limits: BTreeMap<i32, usize>,
    pub(crate) cache: i32,
}

thread_local! {
    /// The contexts that this thread has pushed; the last is current. A null one is an entry.
    static CURRENT: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
}

/// The current context of this thread, or null.
pub(crate) fn current_or_null() -> Handle {
    CURRENT.with_borrow(|stack| stack.last().copied().unwrap_or(0))
}

/// Replaces the current context of this thread.
pub(crate) fn set_current(context: Handle) {
    CURRENT.with_borrow_mut(|stack| {
        stack.pop();
        if context != 0 {
            stack.push(context);
        }
    });
}

/// Puts a context over the current one.
pub(crate) fn push_current(context: Handle) {
    CURRENT.with_borrow_mut(|stack| stack.push(context));
}

/// Takes the current context away and gives it back.
pub(crate) fn pop_current() -> Option<Handle> {
    CURRENT.with_borrow_mut(Vec::pop)
}

impl Driver {
    /// The context that the calling thread uses.
    pub(crate) fn current_context(&self) -> Outcome<Handle> {
        match current_or_null() {
            0 => Err(Code::INVALID_CONTEXT),
            handle if self.contexts.get(handle).is_ok() => Ok(handle),
            _ => Err(Code::CONTEXT_IS_DESTROYED),
        }
    }

    /// A context that somebody names.
    pub(crate) fn context(&self, handle: Handle) -> Outcome<&Context> {
        self.contexts.get(handle).map_err(|_| Code::INVALID_CONTEXT)
    }

    pub(crate) fn context_mut(&mut self, handle: Handle) -> Outcome<&mut Context> {
        self.contexts
            .get_mut(handle)
            .map_err(|_| Code::INVALID_CONTEXT)
    }

    /// The device of a context that exists.
    pub(crate) fn device_of(&mut self, context: Handle) -> Outcome<&mut Device> {
        let ordinal = self.context(context)?.device;
        self.device_mut(ordinal)
    }

    /// The code of the fault that has killed the context's device.
    pub(crate) fn check_alive(&mut self, context: Handle) -> Outcome<()> {
        match self.device_of(context)?.dead {
            Some(code) => Err(code),
            None => Ok(()),
        }
    }

    /// Makes a context.
    pub(crate) fn create_context(&mut self, device: i32, flags: u32) -> Outcome<Handle> {
        if let Some(code) = self.device(device)?.dead {
            return Err(code);
        }
        let handle = self.contexts.insert(Context {
            device,
            flags,
            primary: false,
            legacy: 0,
            limits: BTreeMap::new(),
            cache: 0,
        });
        let legacy = self.streams.insert(Stream::new(handle, true));
        self.context_mut(handle)?.legacy = legacy;
        Ok(handle)
    }

    /// The primary context of a device, made when it is first wanted.
    pub(crate) fn retain_primary(&mut self, ordinal: i32) -> Outcome<Handle> {
        let device = self.device(ordinal)?;
        let context = match device.primary {
            Some(context) => context,
            None => {
                let flags = device.primary_flags;
                let context = self.create_context(ordinal, flags)?;
                self.context_mut(context)?.primary = true;
                context
            }
        };
        let device = self.device_mut(ordinal)?;
        device.primary = Some(context);
        device.retained += 1;
        Ok(context)
    }

    /// Gives the primary context back; with the last one it is destroyed.
    pub(crate) fn release_primary(&mut self, ordinal: i32) -> Outcome<()> {
        let device = self.device_mut(ordinal)?;
        let context = device.primary.ok_or(Code::INVALID_CONTEXT)?;
        device.retained -= 1;
        if device.retained > 0 {
            return Ok(());
        }
        self.reset_primary(ordinal, context)
    }

    /// Destroys the primary context, however often it was retained.
    pub(crate) fn reset_primary(&mut self, ordinal: i32, context: Handle) -> Outcome<()> {
        let device = self.device_mut(ordinal)?;
        device.primary = None;
        device.retained = 0;
        self.destroy_context(context)
    }

    /// Destroys a context with all that was made in it, after its work has run.
    pub(crate) fn destroy_context(&mut self, context: Handle) -> Outcome<()> {
        // A fault on the way has been told to nobody; it stays the device's.
        let _ = self.run_context(context);
        self.streams.retain(|stream| stream.context != context);
        self.events.retain(|event| event.context != context);
        let mine =
            |(handle, module): (Handle, &Module)| (module.context == context).then_some(handle);
        let modules: Vec<Handle> = self.modules.iter().filter_map(mine).collect();
        for module in modules {
            self.unload_module(module)?;
        }
        self.captures.retain(|capture| capture.context != context);
        self.graphs.retain(|graph| graph.context != context);
        self.execs.retain(|exec| exec.context != context);
        let device = self.device_of(context)?;
        let mine = |(address, owner): (&u64, &super::device::Owner)| {
            (owner.context == context).then_some(*address)
        };
        let addresses: Vec<u64> = device.owners.iter().filter_map(mine).collect();
        for address in addresses {
            self.give_back(context, address)?;
        }
        self.contexts.remove(context)?;
        Ok(())
    }
}
