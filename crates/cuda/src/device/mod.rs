//! One card: its context, its stream, its modules and its memory.
//!
//! Everything that the driver is asked for after the probe goes through this folder, and every call
//! through [`Device::asked`], which tells those who wait what the driver is at. A call that fails in
//! a way from which a context does not recover poisons the device: every later call gives the same
//! fault without asking the driver again. So does every call of a thread that was abandoned because
//! the driver had kept it too long.

mod event;
mod fault;
mod graph;
mod memory;
mod modules;
mod pinned;

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{c_int, c_uint};
use std::panic::catch_unwind;
use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUresult};

use crate::card::{Doing, Heart};
use crate::codes;
use crate::driver;
use crate::launch::{Args, Grid, Kernel};
use crate::symbols::SYMBOLS;

pub(crate) use event::Event;
pub(crate) use fault::Fault;
pub(crate) use graph::Graph;
pub(crate) use pinned::Pinned;

/// A card in use. Belongs to the thread that opened it.
pub(crate) struct Device {
    device: sys::CUdevice,
    context: sys::CUcontext,
    stream: sys::CUstream,
    /// Compute capability.
    capability: (i32, i32),
    modules: RefCell<HashMap<String, sys::CUmodule>>,
    poison: RefCell<Option<Fault>>,
    heart: Arc<Heart>,
}

impl Device {
    /// Makes a context and a stream on a card. Only after the probe's child process has seen the
    /// driver behave.
    pub(crate) fn open(ordinal: usize, heart: Arc<Heart>) -> Result<Rc<Self>, Fault> {
        heart.begin(Doing::Starting);
        check_symbols()?;
        let device = start(ordinal)?;
        // A waiting thread sleeps, where the flags can still be set: else it would spin a whole
        // core of the user's machine. A context that another library made keeps its own.
        // SAFETY: the device was just got from the driver.
        let _ = unsafe {
            sys::cuDevicePrimaryCtxSetFlags_v2(
                device,
                sys::CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC as c_uint,
            )
        };
        let mut context = std::ptr::null_mut();
        // SAFETY: the pointer is valid for one handle.
        let code = unsafe { sys::cuDevicePrimaryCtxRetain(&raw mut context, device) };
        succeeded("cuDevicePrimaryCtxRetain", code)?;
        let mut this = Self {
            device,
            context,
            stream: std::ptr::null_mut(),
            capability: (0, 0),
            modules: RefCell::default(),
            poison: RefCell::default(),
            heart,
        };
        this.heart.end();
        this.bind()?;
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as c_uint;
        let mut stream = std::ptr::null_mut();
        // SAFETY: the pointer is valid for one handle, and the context is current.
        this.asked(Doing::Starting, "cuStreamCreate", || unsafe {
            sys::cuStreamCreate(&raw mut stream, flags)
        })?;
        this.stream = stream;
        use sys::CUdevice_attribute as Attribute;
        this.capability = (
            this.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            this.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        Ok(Rc::new(this))
    }

    /// Makes the context the thread's own. Called where work of a session begins: another card's
    /// session may have run on this thread in between.
    pub(crate) fn bind(&self) -> Result<(), Fault> {
        // SAFETY: the context is retained as long as this value lives.
        self.asked(Doing::Starting, "cuCtxSetCurrent", || unsafe {
            sys::cuCtxSetCurrent(self.context)
        })
    }

    /// Compute capability.
    pub(crate) fn capability(&self) -> (i32, i32) {
        self.capability
    }

    /// Enqueues a kernel.
    pub(crate) fn launch(&self, kernel: &Kernel, grid: Grid, mut args: Args) -> Result<(), Fault> {
        let (mut pointers, _) = args.pointers();
        let [x, y, z] = grid.blocks;
        // SAFETY: the function belongs to a module of this device, which lives as long as it. The
        // pointers lead to the parameters in `args`, which the driver copies before it returns.
        // That they are those of the kernel is the business of each operation's file, and of its
        // tests over the simulated driver, which checks every access.
        self.asked(Doing::Launching, kernel.name, || unsafe {
            sys::cuLaunchKernel(
                kernel.function,
                x,
                y,
                z,
                grid.threads,
                1,
                1,
                grid.shared_bytes,
                self.stream,
                pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        })
    }

    /// Waits for everything that was enqueued.
    pub(crate) fn synchronize(&self) -> Result<(), Fault> {
        // SAFETY: the stream lives as long as this value.
        self.asked(Doing::Computing, "cuStreamSynchronize", || unsafe {
            sys::cuStreamSynchronize(self.stream)
        })
    }

    /// A call into the driver, unless nothing works any more: its code.
    fn code_of(&self, doing: Doing, call: impl FnOnce() -> CUresult) -> Result<CUresult, Fault> {
        if let Some(fault) = &*self.poison.borrow() {
            return Err(fault.clone());
        }
        if self.heart.is_abandoned() {
            return Err(Fault::Lost {
                reason: String::from("it answered too late"),
            });
        }
        self.heart.begin(doing);
        let code = call();
        self.heart.end();
        Ok(code)
    }

    /// A call into the driver, which has to succeed. `name` is for messages.
    fn asked(
        &self,
        doing: Doing,
        name: &'static str,
        call: impl FnOnce() -> CUresult,
    ) -> Result<(), Fault> {
        let code = self.code_of(doing, call)?;
        self.checked(name, code)
    }

    /// Gives something back. Nobody is left who could hear of a failure, a lost context has freed
    /// all by itself, and one that was abandoned is not to be touched.
    fn give_back(&self, calls: impl FnOnce()) {
        if !self.heart.is_abandoned() {
            self.heart.begin(Doing::TakingBack);
            calls();
            self.heart.end();
        }
    }

    fn checked(&self, call: &'static str, code: CUresult) -> Result<(), Fault> {
        match code {
            CUresult::CUDA_SUCCESS => Ok(()),
            code => Err(self.fault(call, code)),
        }
    }

    /// What a failed call becomes; remembered if the device is lost by it.
    fn fault(&self, call: &'static str, code: CUresult) -> Fault {
        let fault = Fault::of(call, code);
        if codes::is_sticky(code as u32) {
            *self.poison.borrow_mut() = Some(fault.clone());
        }
        fault
    }

    fn attribute(&self, attribute: sys::CUdevice_attribute) -> Result<i32, Fault> {
        let mut value = 0;
        // SAFETY: the pointer is valid for one int, and the device exists.
        self.asked(Doing::Starting, "cuDeviceGetAttribute", || unsafe {
            sys::cuDeviceGetAttribute(&raw mut value, attribute, self.device)
        })?;
        Ok(value)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: everything that was made on this device holds it, so nothing of it is in use;
        // each handle is given back once.
        self.give_back(|| unsafe {
            let _ = sys::cuCtxSetCurrent(self.context);
            for module in self.modules.borrow().values() {
                let _ = sys::cuModuleUnload(*module);
            }
            if !self.stream.is_null() {
                let _ = sys::cuStreamDestroy_v2(self.stream);
            }
            let _ = sys::cuDevicePrimaryCtxRelease_v2(self.device);
        });
    }
}

fn succeeded(call: &'static str, code: CUresult) -> Result<(), Fault> {
    match code {
        CUresult::CUDA_SUCCESS => Ok(()),
        code => Err(Fault::of(call, code)),
    }
}

/// Looks every function up once: from here on no call can panic for a missing one.
fn check_symbols() -> Result<(), Fault> {
    let missing = catch_unwind(|| {
        preload();
        // SAFETY: loads the driver's library, which the probe's child process has done before.
        let library = unsafe { sys::culib() };
        SYMBOLS.iter().find(|name| {
            // SAFETY: only whether it is there is asked.
            unsafe { library.get::<*const ()>(name.as_bytes()) }.is_err()
        })
    });
    let reason = match missing {
        Ok(None) => return Ok(()),
        Ok(Some(name)) => format!("the driver lacks {name}"),
        Err(_) => String::from("the driver's library does not load"),
    };
    Err(Fault::Lost { reason })
}

/// Loads the library from where the probe found it, if cudarc would not look there: it then finds it
/// by its name.
fn preload() {
    // SAFETY: only asks the loader for the driver's library by its names.
    if !unsafe { sys::is_culib_present() } {
        driver::preload();
    }
}

fn start(ordinal: usize) -> Result<sys::CUdevice, Fault> {
    // SAFETY: takes only flags, which have to be zero.
    succeeded("cuInit", unsafe { sys::cuInit(0) })?;
    let mut device = 0;
    let ordinal = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
    // SAFETY: the pointer is valid for one int.
    succeeded("cuDeviceGet", unsafe {
        sys::cuDeviceGet(&raw mut device, ordinal)
    })?;
    Ok(device)
}
