// SPDX-License-Identifier: Apache-2.0
//! What every exported function shares. See `include/textkit.h` for the rules as a caller sees them.

use std::any::Any;
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Once;

/// Error codes of the ABI; the numbers stand in `textkit.h`.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Ok = 0,
    InvalidArgument = 1,
    ResourceExhausted = 2,
    Unimplemented = 3,
    Internal = 4,
}

/// What a failing function reports: a code and one sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub code: Code,
    pub message: String,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn invalid(message: impl Into<String>) -> Self {
        Error { code: Code::InvalidArgument, message: message.into() }
    }
    pub fn exhausted(message: impl Into<String>) -> Self {
        Error { code: Code::ResourceExhausted, message: message.into() }
    }
    pub fn unimplemented(message: impl Into<String>) -> Self {
        Error { code: Code::Unimplemented, message: message.into() }
    }
    pub fn internal(message: impl Into<String>) -> Self {
        Error { code: Code::Internal, message: message.into() }
    }
}

/// `tk_slice`: bytes that the caller owns and keeps alive during the call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Slice {
    data: *const u8,
    len: usize,
}

impl Slice {
    /// # Safety
    /// `data` points to `len` readable bytes that outlive `'a`, or `len` is 0.
    pub unsafe fn bytes<'a>(self) -> &'a [u8] {
        array(self.data, self.len)
    }

    /// The bytes as text; `what` names them in the error.
    ///
    /// # Safety
    /// As [`Slice::bytes`].
    pub unsafe fn text<'a>(self, what: &str) -> Result<&'a str> {
        utf8(self.bytes(), what)
    }
}

/// Checks UTF-8 and says where it is broken.
pub fn utf8<'a>(bytes: &'a [u8], what: &str) -> Result<&'a str> {
    std::str::from_utf8(bytes).map_err(|e| {
        Error::invalid(format!(
            "{what} is not valid UTF-8: first bad byte at offset {}",
            e.valid_up_to()
        ))
    })
}

/// A caller's array; a null pointer is an empty array.
///
/// # Safety
/// `data` points to `len` initialised, aligned values that outlive `'a`, or `len` is 0.
pub unsafe fn array<'a, T>(data: *const T, len: usize) -> &'a [T] {
    if len == 0 || data.is_null() {
        return &[];
    }
    std::slice::from_raw_parts(data, len)
}

/// `tk_buffer`: bytes that this crate owns until `tk_buffer_free`.
#[repr(C)]
pub struct Buffer {
    data: *mut u8,
    len: usize,
    capacity: usize,
}

impl Buffer {
    pub fn empty() -> Self {
        Buffer { data: std::ptr::null_mut(), len: 0, capacity: 0 }
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Self {
        let mut bytes = std::mem::ManuallyDrop::new(bytes);
        Buffer { data: bytes.as_mut_ptr(), len: bytes.len(), capacity: bytes.capacity() }
    }
}

impl From<String> for Buffer {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

/// Releases a buffer and empties it; an empty buffer is fine, so is null.
///
/// # Safety
/// `buffer` is null or points to a buffer that this crate wrote and nobody freed yet.
#[no_mangle]
pub unsafe extern "C" fn tk_buffer_free(buffer: *mut Buffer) {
    if buffer.is_null() {
        return;
    }
    let taken = std::mem::replace(&mut *buffer, Buffer::empty());
    if !taken.data.is_null() {
        drop(Vec::from_raw_parts(taken.data, taken.len, taken.capacity));
    }
}

/// Writes through an out-parameter without dropping what was there (the caller's memory may be
/// uninitialised).
///
/// # Safety
/// `target` is null or valid for writes.
pub unsafe fn put<T>(target: *mut T, value: T) {
    if !target.is_null() {
        target.write(value);
    }
}

/// Borrows a handle; null is the caller's bug and an error, not a crash.
///
/// # Safety
/// `handle` is null or a live handle of this crate.
pub unsafe fn borrow<'a, T>(handle: *const T, what: &str) -> Result<&'a T> {
    handle.as_ref().ok_or_else(|| Error::invalid(format!("{what} is null")))
}

/// As [`borrow`], for a handle that the call changes.
///
/// # Safety
/// As [`borrow`], and no other thread uses the handle during the call.
pub unsafe fn borrow_mut<'a, T>(handle: *mut T, what: &str) -> Result<&'a mut T> {
    handle.as_mut().ok_or_else(|| Error::invalid(format!("{what} is null")))
}

thread_local! {
    /// Depth of guards on this thread: while it is not 0 the panic hook stays silent, because the
    /// message reaches the caller as an error.
    static GUARDS: Cell<u32> = const { Cell::new(0) };
}

fn silence_guarded_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if GUARDS.with(Cell::get) == 0 {
                previous(info);
            }
        }));
    });
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_string()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "panic without a message".to_string()
    }
}

/// Runs `body` and turns a panic into `Code::Internal`.
pub fn catch<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    silence_guarded_panics();
    GUARDS.with(|g| g.set(g.get() + 1));
    let outcome = catch_unwind(AssertUnwindSafe(body));
    GUARDS.with(|g| g.set(g.get() - 1));
    outcome.unwrap_or_else(|payload| {
        Err(Error::internal(format!("textkit: {}", panic_text(&*payload))))
    })
}

/// The frame of every fallible exported function: runs `body`, writes the error's message to
/// `error` (empty on success) and returns the code. `body` must write its out-parameters last.
///
/// # Safety
/// `error` is null or valid for writes.
pub unsafe fn guard(error: *mut Buffer, body: impl FnOnce() -> Result<()>) -> i32 {
    match catch(body) {
        Ok(()) => {
            put(error, Buffer::empty());
            Code::Ok as i32
        }
        Err(e) => {
            put(error, e.message.into());
            e.code as i32
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_internal_error_with_its_message() {
        let mut error = Buffer::empty();
        let code = unsafe { guard(&mut error, || panic!("index 7")) };
        assert_eq!(code, Code::Internal as i32);
        let text = unsafe { std::slice::from_raw_parts(error.data, error.len) };
        assert_eq!(text, b"textkit: index 7");
        unsafe { tk_buffer_free(&mut error) };
        assert!(error.data.is_null());
        unsafe { tk_buffer_free(&mut error) };
    }

    #[test]
    fn a_null_array_is_empty() {
        assert!(unsafe { array::<u32>(std::ptr::null(), 3) }.is_empty());
    }

    #[test]
    fn broken_utf8_is_located() {
        let error = utf8(b"ab\xff", "text").unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument);
        assert!(error.message.contains("offset 2"), "{}", error.message);
    }
}
