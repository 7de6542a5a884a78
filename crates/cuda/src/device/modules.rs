//! Modules: kernels as the driver translates them for its card.

use std::ffi::{CString, c_uint, c_void};

use cudarc::driver::sys::{self, CUfunction_attribute, CUjit_option, CUresult};

use super::{Device, Fault};
use crate::card::Doing;
use crate::codes;
use crate::launch::Kernel;
use crate::ptx;

/// Dynamic shared memory that every kernel may have without being readied for it.
const SHARED_BYTES_PLAIN: usize = 48 * 1024;

/// Bytes of each of the driver's two logs: the first lines say what is wrong.
const LOG_BYTES: usize = 4096;

impl Device {
    /// A kernel by its module and name. The module is translated at the first question, which
    /// takes up to seconds and cannot be done during a capture.
    pub(crate) fn kernel(&self, module: &str, name: &'static str) -> Result<Kernel, Fault> {
        let handle = self.module(module)?;
        let symbol = CString::new(name).map_err(|_| no_kernel(module, name))?;
        let mut function = std::ptr::null_mut();
        // SAFETY: the pointer is valid for one handle, the module is loaded, and the name ends
        // with zero.
        let code = self.code_of(Doing::Translating, || unsafe {
            sys::cuModuleGetFunction(&raw mut function, handle, symbol.as_ptr())
        })?;
        match code {
            CUresult::CUDA_ERROR_NOT_FOUND => Err(no_kernel(module, name)),
            code => self
                .checked("cuModuleGetFunction", code)
                .map(|()| Kernel { function, name }),
        }
    }

    /// Readies a kernel for so much dynamic shared memory.
    pub(crate) fn allow_shared(&self, kernel: &Kernel, bytes: usize) -> Result<(), Fault> {
        if bytes <= SHARED_BYTES_PLAIN {
            return Ok(());
        }
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        // SAFETY: the function belongs to a module of this device.
        self.asked(Doing::Translating, kernel.name, || unsafe {
            sys::cuFuncSetAttribute(kernel.function, attribute, bytes)
        })
    }

    fn module(&self, module: &str) -> Result<sys::CUmodule, Fault> {
        if let Some(handle) = self.modules.borrow().get(module) {
            return Ok(*handle);
        }
        let text = ptx::text(module, self.capability()).ok_or_else(|| Fault::NoKernel {
            name: String::from(module),
        })?;
        let text = CString::new(text).map_err(|_| Fault::Module {
            module: String::from(module),
            log: String::from("its text is damaged"),
        })?;
        let handle = self.translate(module, &text)?;
        self.modules
            .borrow_mut()
            .insert(String::from(module), handle);
        Ok(handle)
    }

    fn translate(&self, module: &str, text: &CString) -> Result<sys::CUmodule, Fault> {
        let (mut info, mut errors) = (vec![0_u8; LOG_BYTES], vec![0_u8; LOG_BYTES]);
        let mut options = [
            CUjit_option::CU_JIT_INFO_LOG_BUFFER,
            CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        // The driver takes sizes in the place of pointers.
        let size = LOG_BYTES as *mut c_void;
        let mut values: [*mut c_void; 4] = [
            info.as_mut_ptr().cast(),
            size,
            errors.as_mut_ptr().cast(),
            size,
        ];
        let mut handle = std::ptr::null_mut();
        // SAFETY: the text ends with zero; there are as many values as options; both buffers have
        // the stated size and live until the call returns.
        let code = self.code_of(Doing::Translating, || unsafe {
            sys::cuModuleLoadDataEx(
                &raw mut handle,
                text.as_ptr().cast(),
                options.len() as c_uint,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        })?;
        match code {
            CUresult::CUDA_SUCCESS => Ok(handle),
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => Err(self.fault("cuModuleLoadData", code)),
            code => {
                let fault = self.fault("cuModuleLoadData", code);
                let log = [&errors, &info].map(|log| text_of(log));
                let said = log.into_iter().find(|log| !log.is_empty());
                match said {
                    None => Err(fault),
                    Some(said) => Err(Fault::Module {
                        module: String::from(module),
                        log: format!("{}; {said}", codes::failure("loading", code as u32)),
                    }),
                }
            }
        }
    }
}

fn no_kernel(module: &str, name: &str) -> Fault {
    Fault::NoKernel {
        name: format!("{name} in {module}"),
    }
}

/// The first line of a log.
fn text_of(log: &[u8]) -> String {
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or_default().to_owned()
}
