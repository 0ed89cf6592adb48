// SPDX-License-Identifier: Apache-2.0
//! Work that recurses with its input, on a thread whose stack is known to be large enough: that of
//! the caller may be anything, and an overflow would end the process.

use std::panic::resume_unwind;
use std::thread;

use crate::abi::{Error, Result};

/// Only what is used of it takes memory.
const STACK_BYTES: usize = 256 << 20;

/// What `work` gives; a panic of it goes on here. kExhausted when the system gives no thread.
pub fn run<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("textkit".into()).stack_size(STACK_BYTES);
        let running = builder
            .spawn_scoped(scope, work)
            .map_err(|e| Error::exhausted(format!("no thread to compile a grammar on: {e}")))?;
        running.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}
