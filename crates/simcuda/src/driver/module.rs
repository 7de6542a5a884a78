//! Modules and their functions.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::mutation::mutate;
use crate::ptx::{self, Kernel, Limits, PtxFault};

use super::codes::Code;
use super::device::{REGISTERS_EACH, SHARED_DEFAULT};
use super::{Driver, Handle, Outcome, versions};

/// A loaded module.
pub(crate) struct Module {
    pub(crate) context: Handle,
    ptx: ptx::Module,
    globals: Globals,
    functions: BTreeMap<String, Handle>,
}

/// Where a module's variables lie.
#[derive(Default)]
struct Globals {
    base: Option<u64>,
    /// Their addresses, in their order.
    symbols: Arc<[u64]>,
}

/// A function of a module.
pub(crate) struct Function {
    pub(crate) context: Handle,
    pub(crate) module: Handle,
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) symbols: Arc<[u64]>,
    /// Most shared memory that a launch may ask for.
    pub(crate) shared_max: u32,
    pub(crate) carve_out: i32,
}

/// Why a module does not load, with what the compiler in the driver would write to its log.
pub(crate) struct Refused {
    pub(crate) code: Code,
    pub(crate) log: String,
}

impl From<Code> for Refused {
    fn from(code: Code) -> Self {
        Self {
            code,
            log: String::new(),
        }
    }
}

impl Driver {
    /// Loads PTX.
    pub(crate) fn load_module(&mut self, context: Handle, text: &str) -> Result<Handle, Refused> {
        let (major, minor) = self.device_of(context)?.capability;
        let limits = Limits {
            version: versions::newest_ptx(self.settings.driver),
            capability: major * 10 + minor,
        };
        let (text, changed) = mutate(text, &self.settings.mutate).map_err(|error| Refused {
            code: Code::INVALID_PTX,
            log: error.to_string(),
        })?;
        self.counters.add("mutations", changed);
        let ptx = ptx::Module::parse(&text, &limits).map_err(|error| Refused {
            code: match error.what {
                PtxFault::Version => Code::UNSUPPORTED_PTX_VERSION,
                PtxFault::Target => Code::NO_BINARY_FOR_GPU,
                _ => Code::INVALID_PTX,
            },
            log: error.to_string(),
        })?;
        let globals = self.place_globals(context, &ptx)?;
        self.counters.add("modules", 1);
        Ok(self.modules.insert(Module {
            context,
            ptx,
            globals,
            functions: BTreeMap::new(),
        }))
    }

    /// Places the variables of a module, all in one allocation: compilers leave dozens that no
    /// kernel uses, and every allocation costs each launch time.
    fn place_globals(&mut self, context: Handle, ptx: &ptx::Module) -> Outcome<Globals> {
        let mut offsets = Vec::new();
        let mut end = 0_u64;
        for global in ptx.globals() {
            let offset = end.next_multiple_of(global.align.max(1));
            offsets.push(offset);
            end = offset + global.bytes;
        }
        if end == 0 {
            return Ok(Globals::default());
        }
        let memory = &mut self.device_of(context)?.memory;
        let base = memory.alloc(end).map_err(|_| Code::OUT_OF_MEMORY)?;
        let mut bytes = vec![0; end as usize];
        for (global, offset) in ptx.globals().iter().zip(&offsets) {
            let start = *offset as usize;
            bytes[start..start + global.init.len()].copy_from_slice(&global.init);
        }
        // What was just allocated can be written.
        memory.write(base, &bytes).map_err(|_| Code::INVALID_PTX)?;
        let symbols = offsets.iter().map(|offset| base + offset).collect();
        Ok(Globals {
            base: Some(base),
            symbols,
        })
    }

    /// Unloads a module. What is queued of it still runs.
    pub(crate) fn unload_module(&mut self, handle: Handle) -> Outcome<()> {
        let module = self.modules.remove(handle)?;
        self.functions.retain(|function| function.module != handle);
        // On a dead device nothing is left to wait for, and the fault has been told.
        let _ = self.run_context(module.context);
        if let Some(base) = module.globals.base {
            let memory = &mut self.device_of(module.context)?.memory;
            memory.free(base).map_err(|_| Code::INVALID_HANDLE)?;
        }
        Ok(())
    }

    /// A function of a module, the same one every time.
    pub(crate) fn function(&mut self, module: Handle, name: &str) -> Outcome<Handle> {
        let found = self.modules.get_mut(module)?;
        if let Some(function) = found.functions.get(name) {
            return Ok(*function);
        }
        let kernel = found.ptx.kernel(name).ok_or(Code::NOT_FOUND)?;
        let function = self.functions.insert(Function {
            context: found.context,
            module,
            kernel: Arc::clone(kernel),
            symbols: Arc::clone(&found.globals.symbols),
            shared_max: SHARED_DEFAULT.saturating_sub(kernel.shared_bytes),
            carve_out: -1,
        });
        found.functions.insert(String::from(name), function);
        Ok(function)
    }

    /// Address and size of a module's variable.
    pub(crate) fn global(&self, module: Handle, name: &str) -> Outcome<(u64, u64)> {
        let module = self.modules.get(module)?;
        let mut globals = module
            .ptx
            .globals()
            .iter()
            .zip(module.globals.symbols.iter());
        let (global, address) = globals
            .find(|(global, _)| global.name == name)
            .ok_or(Code::NOT_FOUND)?;
        Ok((*address, global.bytes))
    }

    /// An attribute of a function by its number in `cuda.h`.
    pub(crate) fn function_attribute(&self, handle: Handle, number: i32) -> Outcome<i32> {
        let function = self.functions.get(handle)?;
        let kernel = &function.kernel;
        let ordinal = self.context(function.context)?.device;
        let (major, minor) = self.device(ordinal)?.capability;
        let (ptx_major, ptx_minor) = self.modules.get(function.module)?.ptx.version;
        let value = match number {
            0 => kernel.threads_max,
            1 => kernel.shared_bytes,
            // No constants, no particular use of the first-level cache.
            2 | 7 => 0,
            3 => kernel.local_bytes,
            4 => REGISTERS_EACH,
            5 => ptx_major * 10 + ptx_minor,
            6 => major * 10 + minor,
            8 => function.shared_max,
            9 => return Ok(function.carve_out),
            _ => return Err(Code::INVALID_VALUE),
        };
        i32::try_from(value).map_err(|_| Code::INVALID_VALUE)
    }

    /// Sets one of the attributes of a function that can be set.
    pub(crate) fn set_function_attribute(
        &mut self,
        handle: Handle,
        number: i32,
        value: i32,
    ) -> Outcome<()> {
        let context = self.functions.get(handle)?.context;
        let most = self.device_of(context)?.generation().shared_opt_in;
        let function = self.functions.get_mut(handle)?;
        match number {
            8 => {
                let wanted = u32::try_from(value).map_err(|_| Code::INVALID_VALUE)?;
                let taken = wanted.checked_add(function.kernel.shared_bytes);
                if taken.is_none_or(|taken| taken > most) {
                    return Err(Code::INVALID_VALUE);
                }
                function.shared_max = wanted;
            }
            9 if (-1..=100).contains(&value) => function.carve_out = value,
            _ => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    }
}
