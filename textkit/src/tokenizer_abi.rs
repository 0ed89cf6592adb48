// SPDX-License-Identifier: Apache-2.0
//! The exported functions of `textkit_tokenizer.h`.

use std::ffi::c_void;
use std::sync::Arc;

use crate::abi::{array, borrow, borrow_mut, catch, guard, put, Buffer, Slice};
use crate::gguf::{self, Vocabulary};
use crate::stored::{Bytes, Release};
use crate::tokenizer::Tokenizer;
use crate::tokenizer_decode::Stream;

/// `tk_tokenizer`.
pub struct Handle(pub Arc<Tokenizer>);

/// `tk_ids`: ids that this crate owns until `tk_ids_free`.
#[repr(C)]
pub struct Ids {
    data: *mut u32,
    len: usize,
    capacity: usize,
}

impl From<Vec<u32>> for Ids {
    fn from(ids: Vec<u32>) -> Self {
        let mut ids = std::mem::ManuallyDrop::new(ids);
        Ids { data: ids.as_mut_ptr(), len: ids.len(), capacity: ids.capacity() }
    }
}

/// # Safety
/// `ids` is null or points to what `tk_tokenizer_encode` wrote, not freed yet.
#[no_mangle]
pub unsafe extern "C" fn tk_ids_free(ids: *mut Ids) {
    if ids.is_null() {
        return;
    }
    let empty = Ids { data: std::ptr::null_mut(), len: 0, capacity: 0 };
    let taken = std::mem::replace(&mut *ids, empty);
    if !taken.data.is_null() {
        drop(Vec::from_raw_parts(taken.data, taken.len, taken.capacity));
    }
}

/// # Safety
/// As `textkit.h` says of every function.
#[no_mangle]
pub unsafe extern "C" fn tk_tokenizer_from_json(
    json: Slice,
    out: *mut *mut Handle,
    error: *mut Buffer,
) -> i32 {
    guard(error, || {
        let tokenizer = Tokenizer::from_json(json.bytes())?;
        put(out, Box::into_raw(Box::new(Handle(Arc::new(tokenizer)))));
        Ok(())
    })
}

/// # Safety
/// As `textkit.h` says of every function; `table` stays readable and unchanged until `release`.
#[no_mangle]
pub unsafe extern "C" fn tk_tokenizer_from_table(
    table: Slice,
    release: Release,
    context: *mut c_void,
    out: *mut *mut Handle,
    error: *mut Buffer,
) -> i32 {
    let lent = table.bytes();
    let bytes = Bytes::Lent { data: lent.as_ptr(), len: lent.len(), release, context };
    guard(error, || {
        let tokenizer = Tokenizer::from_table(bytes)?;
        put(out, Box::into_raw(Box::new(Handle(Arc::new(tokenizer)))));
        Ok(())
    })
}

/// `tk_gguf_vocabulary`.
#[repr(C)]
pub struct GgufVocabulary {
    model: Slice,
    pre: Slice,
    model_name: Slice,
    tokens: *const Slice,
    tokens_count: usize,
    scores: *const f32,
    scores_count: usize,
    token_types: *const i32,
    token_types_count: usize,
    merges: *const Slice,
    merges_count: usize,
    charsmap: Slice,
    bos_id: i64,
    eos_id: i64,
    unk_id: i64,
    /// -1 = not stated, 0, 1.
    add_bos: i32,
    add_eos: i32,
    add_space_prefix: i32,
    remove_extra_whitespaces: i32,
}

fn stated(flag: i32) -> Option<bool> {
    match flag {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// # Safety
/// As `textkit.h` says of every function.
#[no_mangle]
pub unsafe extern "C" fn tk_tokenizer_from_gguf(
    vocabulary: *const GgufVocabulary,
    out: *mut *mut Handle,
    error: *mut Buffer,
) -> i32 {
    guard(error, || {
        let v = borrow(vocabulary, "vocabulary")?;
        let tokens = array(v.tokens, v.tokens_count);
        let merges = array(v.merges, v.merges_count);
        let tokenizer = gguf::build(&Vocabulary {
            model: v.model.text("tokenizer.ggml.model")?,
            pre: v.pre.text("tokenizer.ggml.pre")?,
            model_name: v.model_name.text("general.name")?,
            tokens: gguf::texts(tokens.iter().map(|t| t.bytes()), "tokenizer.ggml.tokens")?,
            scores: array(v.scores, v.scores_count),
            token_types: array(v.token_types, v.token_types_count),
            merges: gguf::texts(merges.iter().map(|m| m.bytes()), "tokenizer.ggml.merges")?,
            charsmap: v.charsmap.bytes(),
            bos_id: u32::try_from(v.bos_id).ok(),
            eos_id: u32::try_from(v.eos_id).ok(),
            unk_id: u32::try_from(v.unk_id).ok(),
            add_bos: stated(v.add_bos),
            add_eos: stated(v.add_eos),
            add_space_prefix: stated(v.add_space_prefix),
            remove_extra_whitespaces: stated(v.remove_extra_whitespaces),
        })?;
        put(out, Box::into_raw(Box::new(Handle(Arc::new(tokenizer)))));
        Ok(())
    })
}

/// # Safety
/// `tokenizer` is null or a handle that no call uses any more.
#[no_mangle]
pub unsafe extern "C" fn tk_tokenizer_free(tokenizer: *mut Handle) {
    if !tokenizer.is_null() {
        drop(Box::from_raw(tokenizer));
    }
}

/// # Safety
/// As `textkit.h` says of every function.
#[no_mangle]
pub unsafe extern "C" fn tk_tokenizer_encode(
    tokenizer: *const Handle,
    text: Slice,
    add_special: bool,
    parse_special: bool,
    out: *mut Ids,
    error: *mut Buffer,
) -> i32 {
    guard(error, || {
        let tokenizer = &borrow(tokenizer, "tokenizer")?.0;
        let text = text.text("text to tokenize")?;
        put(out, tokenizer.encode(text, add_special, parse_special)?.into());
        Ok(())
    })
}

/// # Safety
/// As `textkit.h` says of every function; `ids` points to `count` ids.
#[no_mangle]
pub unsafe extern "C" fn tk_tokenizer_decode(
    tokenizer: *const Handle,
    ids: *const u32,
    count: usize,
    skip_special: bool,
    out: *mut Buffer,
    error: *mut Buffer,
) -> i32 {
    guard(error, || {
        let tokenizer = &borrow(tokenizer, "tokenizer")?.0;
        put(out, tokenizer.decode(array(ids, count), skip_special)?.into());
        Ok(())
    })
}

/// # Safety
/// `tokenizer` is a live handle.
#[no_mangle]
pub unsafe extern "C" fn tk_tokenizer_vocab_size(tokenizer: *const Handle) -> u32 {
    borrow(tokenizer, "tokenizer").map_or(0, |t| t.0.size())
}

/// # Safety
/// As `textkit.h` says of every function.
#[no_mangle]
pub unsafe extern "C" fn tk_tokenizer_token_text(
    tokenizer: *const Handle,
    id: u32,
    out: *mut Buffer,
) {
    let text = catch(|| Ok(borrow(tokenizer, "tokenizer")?.0.token_text(id)));
    put(out, text.ok().flatten().unwrap_or_default().into());
}

/// # Safety
/// As `textkit.h` says of every function.
#[no_mangle]
pub unsafe extern "C" fn tk_tokenizer_token_bytes(
    tokenizer: *const Handle,
    id: u32,
    out: *mut Buffer,
) {
    let bytes = catch(|| Ok(borrow(tokenizer, "tokenizer")?.0.token_bytes(id)));
    put(out, bytes.unwrap_or_default().into());
}

/// # Safety
/// `tokenizer` is a live handle.
#[no_mangle]
pub unsafe extern "C" fn tk_tokenizer_is_special(tokenizer: *const Handle, id: u32) -> bool {
    borrow(tokenizer, "tokenizer").is_ok_and(|t| t.0.is_special(id))
}

/// # Safety
/// `tokenizer` is a live handle.
#[no_mangle]
pub unsafe extern "C" fn tk_tokenizer_find(tokenizer: *const Handle, text: Slice) -> i64 {
    let found = catch(|| Ok(borrow(tokenizer, "tokenizer")?.0.find(text.text("token")?)));
    found.ok().flatten().map_or(-1, i64::from)
}

/// # Safety
/// As `textkit.h` says of every function.
#[no_mangle]
pub unsafe extern "C" fn tk_tokenizer_to_json(
    tokenizer: *const Handle,
    out: *mut Buffer,
    error: *mut Buffer,
) -> i32 {
    guard(error, || {
        put(out, borrow(tokenizer, "tokenizer")?.0.to_json()?.into());
        Ok(())
    })
}

/// # Safety
/// As `textkit.h` says of every function.
#[no_mangle]
pub unsafe extern "C" fn tk_tokenizer_to_table(
    tokenizer: *const Handle,
    out: *mut Buffer,
    error: *mut Buffer,
) -> i32 {
    guard(error, || {
        put(out, borrow(tokenizer, "tokenizer")?.0.to_table()?.into());
        Ok(())
    })
}

/// # Safety
/// `tokenizer` is a live handle.
#[no_mangle]
pub unsafe extern "C" fn tk_tokenizer_special_ids(tokenizer: *const Handle, out: *mut Ids) {
    let ids = catch(|| Ok(borrow(tokenizer, "tokenizer")?.0.special_ids()));
    put(out, ids.unwrap_or_default().into());
}

/// # Safety
/// `tokenizer` is a live handle.
#[no_mangle]
pub unsafe extern "C" fn tk_detokenizer_new(
    tokenizer: *const Handle,
    skip_special: bool,
    out: *mut *mut Stream,
    error: *mut Buffer,
) -> i32 {
    guard(error, || {
        let tokenizer = borrow(tokenizer, "tokenizer")?.0.clone();
        put(out, Box::into_raw(Box::new(Stream::new(tokenizer, skip_special))));
        Ok(())
    })
}

/// # Safety
/// `stream` is null or a handle that no call uses any more.
#[no_mangle]
pub unsafe extern "C" fn tk_detokenizer_free(stream: *mut Stream) {
    if !stream.is_null() {
        drop(Box::from_raw(stream));
    }
}

/// # Safety
/// As `textkit.h` says of every function; no other thread uses `stream`.
#[no_mangle]
pub unsafe extern "C" fn tk_detokenizer_push(
    stream: *mut Stream,
    id: u32,
    out: *mut Buffer,
    error: *mut Buffer,
) -> i32 {
    guard(error, || {
        put(out, borrow_mut(stream, "detokenizer")?.push(id)?.into());
        Ok(())
    })
}

/// # Safety
/// As `textkit.h` says of every function; no other thread uses `stream`.
#[no_mangle]
pub unsafe extern "C" fn tk_detokenizer_flush(
    stream: *mut Stream,
    out: *mut Buffer,
    error: *mut Buffer,
) -> i32 {
    guard(error, || {
        put(out, borrow_mut(stream, "detokenizer")?.flush()?.into());
        Ok(())
    })
}
