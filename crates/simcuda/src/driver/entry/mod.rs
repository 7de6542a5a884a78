//! The exported functions. Names and arguments are those of `cuda.h` of CUDA 12.0; what each does
//! is in NVIDIA's "CUDA Driver API". Here they only turn arguments into values and back.
#![allow(non_snake_case, reason = "the names are the interface's")]

mod absent;
mod args;
mod context;
mod device;
mod event;
mod graph;
mod launch;
mod memory;
mod module;
mod stream;

use std::ffi::c_int;

/// Exports functions that each go through one of the guards of `driver`.
macro_rules! entries {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) = $guard:ident($($body:tt)*);)*) => {
        $(
            // SAFETY: no other library that such a process loads has this name; that it stands in
            // for the driver's is what it is for.
            #[unsafe(no_mangle)]
            extern "C" fn $name($($argument: $type),*) -> ::std::ffi::c_int {
                $guard(stringify!($name), $($body)*)
            }
        )*
    };
}
use entries;

/// `cuGetErrorName` and `cuGetErrorString`, which need no driver.
fn described(code: c_int, second: bool, out: args::Out<*const std::ffi::c_char>) -> c_int {
    let answer = super::codes::describe(code).ok_or(super::Code::INVALID_VALUE);
    let put = answer.and_then(|(name, text)| out.put(if second { text } else { name }.as_ptr()));
    put.map_or_else(|code| code.0, |()| super::SUCCESS)
}
