// SPDX-License-Identifier: Apache-2.0
//! The functions of `textkit_constraint.h`.

use std::sync::Arc;

use super::{Constraint, Grammar, Vocabulary};
use crate::abi::{array, borrow, borrow_mut, guard, put, utf8, Buffer, Error, Slice};

/// # Safety
/// See `textkit_constraint.h`.
#[no_mangle]
pub unsafe extern "C" fn tk_vocabulary_new(
    tokens: *const Slice,
    special: *const u8,
    count: usize,
    eos: *const i32,
    eos_count: usize,
    vocabulary: *mut *mut Arc<Vocabulary>,
    error: *mut Buffer,
) -> i32 {
    guard(error, || {
        let words = array(tokens, count).iter().map(|t| t.bytes().to_vec()).collect();
        let made = Vocabulary::new(words, array(special, count), array(eos, eos_count))?;
        put(vocabulary, Box::into_raw(Box::new(Arc::new(made))));
        Ok(())
    })
}

/// # Safety
/// `vocabulary` is null or a live handle that no call uses.
#[no_mangle]
pub unsafe extern "C" fn tk_vocabulary_free(vocabulary: *mut Arc<Vocabulary>) {
    if !vocabulary.is_null() {
        drop(Box::from_raw(vocabulary));
    }
}

/// # Safety
/// See `textkit_constraint.h`.
#[no_mangle]
pub unsafe extern "C" fn tk_grammar_new(
    vocabulary: *const Arc<Vocabulary>,
    kind: i32,
    source: Slice,
    grammar: *mut *mut Grammar,
    error: *mut Buffer,
) -> i32 {
    guard(error, || {
        let vocabulary = borrow(vocabulary, "vocabulary")?.clone();
        let source = utf8(source.bytes(), "grammar")?;
        let made = Grammar::new(vocabulary, kind, source)?;
        put(grammar, Box::into_raw(Box::new(made)));
        Ok(())
    })
}

/// # Safety
/// `grammar` is null or a live handle that no call uses.
#[no_mangle]
pub unsafe extern "C" fn tk_grammar_free(grammar: *mut Grammar) {
    if !grammar.is_null() {
        drop(Box::from_raw(grammar));
    }
}

/// # Safety
/// See `textkit_constraint.h`.
#[no_mangle]
pub unsafe extern "C" fn tk_grammar_notes(
    grammar: *const Grammar,
    notes: *mut Buffer,
    error: *mut Buffer,
) -> i32 {
    guard(error, || {
        let lines = borrow(grammar, "grammar")?.notes().join("\n");
        put(notes, lines.into());
        Ok(())
    })
}

/// # Safety
/// See `textkit_constraint.h`.
#[no_mangle]
pub unsafe extern "C" fn tk_grammar_validate(
    grammar: *const Grammar,
    text: Slice,
    error: *mut Buffer,
) -> i32 {
    guard(error, || borrow(grammar, "grammar")?.validate(text.text("output")?))
}

/// # Safety
/// See `textkit_constraint.h`.
#[no_mangle]
pub unsafe extern "C" fn tk_grammar_start(
    grammar: *const Grammar,
    constraint: *mut *mut Constraint,
    error: *mut Buffer,
) -> i32 {
    guard(error, || {
        let made = borrow(grammar, "grammar")?.start();
        put(constraint, Box::into_raw(Box::new(made)));
        Ok(())
    })
}

/// # Safety
/// See `textkit_constraint.h`.
#[no_mangle]
pub unsafe extern "C" fn tk_constraint_mask(
    constraint: *mut Constraint,
    words: *mut u32,
    count: usize,
    error: *mut Buffer,
) -> i32 {
    guard(error, || {
        let constraint = borrow_mut(constraint, "constraint")?;
        if words.is_null() {
            return Err(Error::invalid("the mask is null"));
        }
        constraint.mask(std::slice::from_raw_parts_mut(words, count))
    })
}

/// # Safety
/// See `textkit_constraint.h`.
#[no_mangle]
pub unsafe extern "C" fn tk_constraint_commit(
    constraint: *mut Constraint,
    token: i32,
    error: *mut Buffer,
) -> i32 {
    guard(error, || borrow_mut(constraint, "constraint")?.commit(token))
}

/// # Safety
/// See `textkit_constraint.h`.
#[no_mangle]
pub unsafe extern "C" fn tk_constraint_is_accepting(
    constraint: *mut Constraint,
    accepting: *mut bool,
    error: *mut Buffer,
) -> i32 {
    guard(error, || {
        let is = borrow_mut(constraint, "constraint")?.is_accepting()?;
        put(accepting, is);
        Ok(())
    })
}

/// # Safety
/// `constraint` is a live handle.
#[no_mangle]
pub unsafe extern "C" fn tk_constraint_must_end(constraint: *const Constraint) -> bool {
    constraint.as_ref().is_some_and(Constraint::must_end)
}

/// # Safety
/// `constraint` is a live handle.
#[no_mangle]
pub unsafe extern "C" fn tk_constraint_is_finished(constraint: *const Constraint) -> bool {
    constraint.as_ref().is_some_and(|c| c.finished)
}

/// # Safety
/// `constraint` is null or a live handle that no call uses.
#[no_mangle]
pub unsafe extern "C" fn tk_constraint_free(constraint: *mut Constraint) {
    if !constraint.is_null() {
        drop(Box::from_raw(constraint));
    }
}
