//! Arguments that are pointers, as values that can be used without further care.
//!
//! None of these can be made in Rust: they only ever come from a caller through the C interface,
//! which demands of it that a pointer is null or points to what the function's description says.

use std::ffi::{CStr, c_char, c_void};

use crate::driver::Outcome;
use crate::driver::codes::Code;

/// Where a result goes.
#[repr(transparent)]
pub(super) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Writes the result.
    pub(super) fn put(self, value: T) -> Outcome<()> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not null, so the caller answers for it (see the module).
        unsafe { self.0.write(value) };
        Ok(())
    }

    /// Writes the result if it is wanted.
    pub(super) fn put_if_wanted(self, value: T) -> Outcome<()> {
        if self.0.is_null() {
            Ok(())
        } else {
            self.put(value)
        }
    }

    /// Writes several values, as far as there is room.
    pub(super) fn put_all(
        self,
        values: impl ExactSizeIterator<Item = T>,
        room: usize,
    ) -> Outcome<()> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        for (place, value) in values.take(room).enumerate() {
            // SAFETY: the caller says how much room there is, and `place` is less.
            unsafe { self.0.add(place).write(value) };
        }
        Ok(())
    }

    /// Whether no result is wanted.
    pub(super) fn is_null(&self) -> bool {
        self.0.is_null()
    }
}

impl Out<c_void> {
    /// The same place for a value of a type that the call's other arguments give.
    pub(super) fn of<T>(self) -> Out<T> {
        Out(self.0.cast())
    }
}

/// A value that is read.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct In<T>(*const T);

impl<T: Copy> In<T> {
    /// Reads it.
    pub(super) fn get(&self) -> Outcome<T> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not null, so the caller answers for it.
        Ok(unsafe { self.0.read() })
    }

    /// Reads the one at this place of an array.
    pub(super) fn at(&self, place: usize) -> Outcome<T> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller says how long the array is, and is held to it by the caller of this.
        Ok(unsafe { self.0.add(place).read() })
    }

    /// Writes to a place of an array that was read before.
    pub(super) fn set(&self, place: usize, value: T) -> Outcome<()> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the interface gives the array to be written too, and the place was read.
        unsafe { self.0.cast_mut().add(place).write(value) };
        Ok(())
    }

    /// Whether there is none.
    pub(super) fn is_null(&self) -> bool {
        self.0.is_null()
    }
}

/// A text that ends with a zero byte.
#[repr(transparent)]
pub(super) struct Text(*const c_char);

impl Text {
    /// The text.
    pub(super) fn get(&self) -> Outcome<&str> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not null, so the caller answers for it and for its end.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map_err(|_| Code::INVALID_VALUE)
    }
}

/// The bytes behind an address of host memory, to be read.
pub(super) fn host_bytes<'a>(address: usize, len: usize) -> Outcome<&'a [u8]> {
    if len == 0 {
        return Ok(&[]);
    }
    if address == 0 {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the address and its length are a caller's, who answers for them; the slice does not
    // outlive the call.
    Ok(unsafe { std::slice::from_raw_parts(address as *const u8, len) })
}

/// The bytes behind an address of host memory, to be written.
pub(super) fn host_bytes_mut<'a>(address: usize, len: usize) -> Outcome<&'a mut [u8]> {
    if len == 0 {
        return Ok(&mut []);
    }
    if address == 0 {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: as above; nothing else in the driver refers to memory of the caller during the call.
    Ok(unsafe { std::slice::from_raw_parts_mut(address as *mut u8, len) })
}
