// SPDX-License-Identifier: Apache-2.0
//! What one render may cost. A render runs on one thread from start to end, so its account lives in
//! a thread local that operators, filters and the formatter charge. Together with minijinja's fuel
//! (instructions) and recursion limits this bounds time, memory and stack of a hostile template.

use std::cell::RefCell;

use minijinja::{Error, ErrorKind};

/// Template source in bytes; the largest known one (gpt-oss, Command R7B) has 25 KB.
pub const MAX_SOURCE_BYTES: usize = 1 << 20;
/// Instructions of one render. 1000 messages of an elaborate template need about 500,000.
pub const MAX_FUEL: u64 = 10_000_000;
/// Frames and macro calls (minijinja counts a call as 4): about as deep as Python gets.
pub const MAX_RECURSION: usize = 400;
/// Text emitted, to the result or into captured blocks and macros, in bytes.
pub const MAX_OUTPUT_BYTES: usize = 32 << 20;
/// One string or list in bytes while rendering.
pub const MAX_VALUE_BYTES: usize = 32 << 20;
/// Bytes that all operations of a render produce or scan together: bounds memory and time of
/// templates that double strings or search in large ones. Prompts built by repeated
/// concatenation are quadratic, hence the room.
pub const MAX_WORK_BYTES: usize = 1 << 30;
/// What visiting one value costs in that account: about as long as copying so many bytes.
pub const VISIT: usize = 64;
/// Nesting of lists and dicts. Values are dropped and printed recursively.
pub const MAX_VALUE_DEPTH: u32 = 100;
/// Items of range(): the limit of Jinja's sandbox.
pub const MAX_RANGE: usize = 100_000;
/// Arguments of a call and items of a literal (the instruction set counts them in 16 bits).
pub const MAX_ARGUMENTS: usize = 20_000;

#[derive(Default)]
struct Account {
    work_left: usize,
    output_left: usize,
    now_unix_seconds: i64,
    raised: Option<String>,
    exhausted: Option<String>,
}

thread_local! {
    static ACCOUNT: RefCell<Account> = RefCell::new(Account::default());
}

/// Opens the account of a render on this thread.
pub fn start(now_unix_seconds: i64) {
    ACCOUNT.with(|a| {
        *a.borrow_mut() = Account {
            work_left: MAX_WORK_BYTES,
            output_left: MAX_OUTPUT_BYTES,
            now_unix_seconds,
            ..Account::default()
        }
    });
}

/// Why the render ended, where the template's own error cannot carry it.
pub enum Verdict {
    Raised(String),
    Exhausted(String),
    Other,
}

pub fn verdict() -> Verdict {
    ACCOUNT.with(|a| {
        let mut a = a.borrow_mut();
        if let Some(text) = a.exhausted.take() {
            Verdict::Exhausted(text)
        } else if let Some(text) = a.raised.take() {
            Verdict::Raised(text)
        } else {
            Verdict::Other
        }
    })
}

pub fn now_unix_seconds() -> i64 {
    ACCOUNT.with(|a| a.borrow().now_unix_seconds)
}

/// raise_exception: the message reaches the caller exactly.
pub fn raise(message: String) -> Error {
    ACCOUNT.with(|a| a.borrow_mut().raised = Some(message.clone()));
    Error::new(ErrorKind::InvalidOperation, message)
}

pub fn exhausted(message: String) -> Error {
    ACCOUNT.with(|a| a.borrow_mut().exhausted = Some(message.clone()));
    Error::new(ErrorKind::InvalidOperation, message)
}

/// Accounts `bytes` of work: text produced or scanned, items made or visited.
pub fn charge(bytes: usize) -> Result<(), Error> {
    let fits = ACCOUNT.with(|a| {
        let mut a = a.borrow_mut();
        match a.work_left.checked_sub(bytes) {
            Some(left) => {
                a.work_left = left;
                true
            }
            None => false,
        }
    });
    if fits {
        return Ok(());
    }
    Err(exhausted(format!("template works on more than {MAX_WORK_BYTES} bytes")))
}

/// Accounts a value of `bytes` before it is made.
pub fn charge_value(bytes: usize) -> Result<(), Error> {
    if bytes > MAX_VALUE_BYTES {
        return Err(exhausted(format!(
            "template makes a value of {bytes} bytes; the limit is {MAX_VALUE_BYTES}"
        )));
    }
    charge(bytes)
}

/// Accounts text that is emitted, to the result or into a captured block.
pub fn charge_output(bytes: usize) -> Result<(), Error> {
    let fits = ACCOUNT.with(|a| {
        let mut a = a.borrow_mut();
        match a.output_left.checked_sub(bytes) {
            Some(left) => {
                a.output_left = left;
                true
            }
            None => false,
        }
    });
    if fits {
        return Ok(());
    }
    Err(exhausted(format!("template emits more than {MAX_OUTPUT_BYTES} bytes")))
}
