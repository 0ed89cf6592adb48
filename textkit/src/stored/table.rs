// SPDX-License-Identifier: Apache-2.0
//! The bytes of a stored tokenizer. Little-endian, position-independent:
//!
//! ```text
//!   0  magic "TESSTOK\0"          8  u32 version        12  u32 bytes of this header
//!  16  u64 bytes of the file     24  u64 checksum of all bytes from 32 on
//!  32  u32 ids (one past the largest)   36  u32 tokens   40  u32 merges   44  u32 zero
//!  48  five sections in their order, each u64 offset, u64 bytes; a section starts where the one
//!      before ends, rounded up to 8; the last one ends the file
//! ```
//!
//! - `json`: what is small (`Rest`), UTF-8;
//! - `ends`: a u32 for each id: where its text ends in `text` (it starts where the one before
//!   ends), with the top bit set for an id that has no token;
//! - `text`: the tokens' texts one after another, UTF-8;
//! - `words`: hash table text -> id, a u32 for each slot: id in the low 24 bits, eight bits of the
//!   hash above, all ones when empty;
//! - `merges`: hash table (left, right) -> (rank, result), three u32 for each slot: left, right and
//!   result in the low 24 bits, bits 0-7, 8-15 and 16-23 of the rank above; all ones when empty.
//!
//! Both tables are open-addressed with linear probing. Sizes, sections and checksum are checked when
//! a file is opened. What the tables say is checked where it is used: whatever points outside, or is
//! no UTF-8, is absent, and a search ends after `MAX_PROBES` slots.

use std::ffi::c_void;
use std::ops::{Deref, Range};

use crate::abi::{Error, Result};

pub const MAX_TABLE_BYTES: usize = 256 << 20;
pub const VERSION: u32 = 1;
/// Slots that a search looks at. A table that needs more is not written.
pub const MAX_PROBES: usize = 1024;
/// Ids and ranks are below this: 24 bits without all ones.
pub const MAX_IDS: usize = (1 << 24) - 1;

const MAGIC: [u8; 8] = *b"TESSTOK\0";
pub const HEADER_BYTES: usize = 128;
const CHECKED_FROM: usize = 32;
const SECTIONS_AT: usize = 48;
const SECTION_COUNT: usize = 5;
const EMPTY: u32 = u32::MAX;
const ABSENT: u32 = 1 << 31;
const LOW24: u32 = (1 << 24) - 1;
pub const MERGE_BYTES: usize = 12;

/// Gives the lender of bytes its word that they are no longer used.
pub type Release = unsafe extern "C" fn(*mut c_void);

/// The bytes of a file: owned, or lent until `release`.
pub enum Bytes {
    Owned(Vec<u8>),
    Lent { data: *const u8, len: usize, release: Release, context: *mut c_void },
}

// SAFETY: lent bytes are read only, and `release` may be called on any thread (textkit_tokenizer.h).
unsafe impl Send for Bytes {}
unsafe impl Sync for Bytes {}

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Owned(bytes) => bytes,
            // SAFETY: the lender keeps `len` bytes readable and unchanged until `release`.
            Bytes::Lent { data, len, .. } if *len > 0 => unsafe {
                std::slice::from_raw_parts(*data, *len)
            },
            Bytes::Lent { .. } => &[],
        }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        if let Bytes::Lent { release, context, .. } = self {
            // SAFETY: called once, after the last use.
            unsafe { release(*context) }
        }
    }
}

/// The parts of a file before they are joined.
pub struct Parts {
    pub ids: u32,
    pub tokens: u32,
    pub merges: u32,
    pub json: Vec<u8>,
    pub ends: Vec<u8>,
    pub text: Vec<u8>,
    pub words: Vec<u8>,
    pub pairs: Vec<u8>,
}

pub fn join(parts: &Parts) -> Vec<u8> {
    let sections = [&parts.json, &parts.ends, &parts.text, &parts.words, &parts.pairs];
    let mut file = vec![0u8; HEADER_BYTES];
    let mut at = SECTIONS_AT;
    for section in sections {
        file.resize(file.len().next_multiple_of(8), 0);
        let place = [file.len() as u64, section.len() as u64];
        for number in place {
            file[at..at + 8].copy_from_slice(&number.to_le_bytes());
            at += 8;
        }
        file.extend_from_slice(section);
    }
    let put = |file: &mut Vec<u8>, at: usize, bytes: &[u8]| {
        file[at..at + bytes.len()].copy_from_slice(bytes);
    };
    put(&mut file, 0, &MAGIC);
    put(&mut file, 8, &VERSION.to_le_bytes());
    put(&mut file, 12, &(HEADER_BYTES as u32).to_le_bytes());
    let size = file.len() as u64;
    put(&mut file, 16, &size.to_le_bytes());
    for (at, number) in [(32, parts.ids), (36, parts.tokens), (40, parts.merges)] {
        put(&mut file, at, &number.to_le_bytes());
    }
    let sum = checksum(&file[CHECKED_FROM..]);
    put(&mut file, 24, &sum.to_le_bytes());
    file
}

/// A file whose header, sections and checksum are right.
pub struct Table {
    bytes: Bytes,
    ids: u32,
    tokens: u32,
    merges: u32,
    json: Range<usize>,
    ends: Range<usize>,
    text: Range<usize>,
    words: Range<usize>,
    pairs: Range<usize>,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

fn bad(what: impl std::fmt::Display) -> Error {
    Error::invalid(format!("stored tokenizer: {what}"))
}

impl Table {
    /// `InvalidArgument` for damage, `Unimplemented` for another version.
    pub fn open(bytes: Bytes) -> Result<Self> {
        check_header(&bytes)?;
        let [json, ends, text, words, pairs] = sections(&bytes)?;
        let table = Table {
            ids: u32_at(&bytes, 32),
            tokens: u32_at(&bytes, 36),
            merges: u32_at(&bytes, 40),
            json,
            ends,
            text,
            words,
            pairs,
            bytes,
        };
        table.check_counts()?;
        Ok(table)
    }

    fn check_counts(&self) -> Result<()> {
        let is_whole = self.ids as usize <= MAX_IDS
            && self.ends.len() == 4 * self.ids as usize
            && self.tokens <= self.ids
            && self.words.len() % 4 == 0
            && self.words.len() / 4 >= self.tokens as usize
            && self.pairs.len() % MERGE_BYTES == 0
            && self.pairs.len() / MERGE_BYTES >= self.merges as usize
            && self.merges as usize <= MAX_IDS;
        if is_whole {
            return Ok(());
        }
        Err(bad(format_args!(
            "{} ids, {} tokens and {} merges do not fit its sections",
            self.ids, self.tokens, self.merges
        )))
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    /// One past the largest id.
    pub fn ids(&self) -> u32 {
        self.ids
    }
    pub fn token_count(&self) -> usize {
        self.tokens as usize
    }
    pub fn merge_count(&self) -> usize {
        self.merges as usize
    }
    pub fn json(&self) -> &[u8] {
        &self.bytes[self.json.clone()]
    }

    /// None for an id without a token.
    pub fn token(&self, id: u32) -> Option<&str> {
        std::str::from_utf8(self.token_bytes(id)?).ok()
    }

    fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        if id >= self.ids {
            return None;
        }
        let ends = &self.bytes[self.ends.clone()];
        let end = u32_at(ends, 4 * id as usize);
        if end & ABSENT != 0 {
            return None;
        }
        let start = if id == 0 { 0 } else { u32_at(ends, 4 * (id as usize - 1)) & !ABSENT };
        self.bytes[self.text.clone()].get(start as usize..end as usize)
    }

    pub fn find(&self, text: &str) -> Option<u32> {
        let words = &self.bytes[self.words.clone()];
        let slots = words.len() / 4;
        let hash = hash_text(text.as_bytes());
        for slot in probes(hash, slots) {
            let word = u32_at(words, 4 * slot);
            if word == EMPTY {
                return None;
            }
            let id = word & LOW24;
            if word >> 24 == tag(hash) && self.token_bytes(id) == Some(text.as_bytes()) {
                return Some(id);
            }
        }
        None
    }

    /// (rank, id of the result) of a pair. Ids outside the vocabulary are never given.
    pub fn merge(&self, left: u32, right: u32) -> Option<(u32, u32)> {
        let pairs = &self.bytes[self.pairs.clone()];
        for slot in probes(hash_pair(left, right), pairs.len() / MERGE_BYTES) {
            let (found_left, found_right, found) = unpack(pairs, slot)?;
            if found_left == left && found_right == right {
                return (found.1 < self.ids).then_some(found);
            }
        }
        None
    }

    /// Every filled slot of the merges: left, right, (rank, result).
    pub fn all_merges(&self) -> impl Iterator<Item = (u32, u32, (u32, u32))> + '_ {
        let pairs = &self.bytes[self.pairs.clone()];
        (0..pairs.len() / MERGE_BYTES).filter_map(move |slot| unpack(pairs, slot))
    }

    /// Filled slots of the words.
    pub fn word_count(&self) -> usize {
        let words = &self.bytes[self.words.clone()];
        (0..words.len() / 4).filter(|slot| u32_at(words, 4 * slot) != EMPTY).count()
    }
}

fn check_header(bytes: &[u8]) -> Result<()> {
    if bytes.len() < HEADER_BYTES || bytes[..8] != MAGIC {
        return Err(bad(format_args!("{} bytes that do not start as one", bytes.len())));
    }
    let version = u32_at(bytes, 8);
    if version != VERSION {
        return Err(Error::unimplemented(format!(
            "stored tokenizer: version {version}, this program reads version {VERSION}"
        )));
    }
    if bytes.len() > MAX_TABLE_BYTES {
        return Err(Error::exhausted(format!(
            "stored tokenizer: {} bytes, the limit is {MAX_TABLE_BYTES}",
            bytes.len()
        )));
    }
    if u32_at(bytes, 12) as usize != HEADER_BYTES || u32_at(bytes, 44) != 0 {
        return Err(bad("its header is malformed"));
    }
    let size = u64_at(bytes, 16);
    if size != bytes.len() as u64 {
        return Err(bad(format_args!("{} bytes, its header says {size}", bytes.len())));
    }
    if checksum(&bytes[CHECKED_FROM..]) != u64_at(bytes, 24) {
        return Err(bad("its checksum is wrong, the file was altered"));
    }
    Ok(())
}

fn sections(bytes: &[u8]) -> Result<[Range<usize>; SECTION_COUNT]> {
    let mut ranges: [Range<usize>; SECTION_COUNT] = Default::default();
    let mut end = HEADER_BYTES;
    for (i, range) in ranges.iter_mut().enumerate() {
        let at = SECTIONS_AT + 16 * i;
        let (offset, size) = (u64_at(bytes, at), u64_at(bytes, at + 8));
        let expected = end.next_multiple_of(8);
        let room = bytes.len().saturating_sub(expected) as u64;
        if offset != expected as u64 || size > room {
            return Err(bad(format_args!("section {i} of {size} bytes at {offset} does not fit")));
        }
        end = expected + size as usize;
        *range = expected..end;
    }
    if end != bytes.len() {
        return Err(bad("bytes after its last section"));
    }
    Ok(ranges)
}

/// The slots where a hash may be, best first.
fn probes(hash: u64, slots: usize) -> impl Iterator<Item = usize> {
    let mut next = if slots == 0 { 0 } else { first_slot(hash, slots) };
    (0..slots.min(MAX_PROBES)).map(move |_| {
        let slot = next;
        next += 1;
        if next == slots {
            next = 0;
        }
        slot
    })
}

/// The high half of the hash scaled to the table's size.
fn first_slot(hash: u64, slots: usize) -> usize {
    ((hash >> 32) * slots as u64 >> 32) as usize
}

/// Bits that `first_slot` does not use.
fn tag(hash: u64) -> u32 {
    hash as u32 & 0xff
}

const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
const MIX2: u64 = 0xd6e8_feb8_6659_fd93;

fn finish(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 32).wrapping_mul(MIX2);
    (hash ^ hash >> 29).wrapping_mul(MIX)
}

fn hash_text(text: &[u8]) -> u64 {
    let mut hash = text.len() as u64;
    let mut chunks = text.chunks_exact(8);
    let mut mix = |word: u64| hash = (hash ^ word).wrapping_mul(MIX).rotate_left(29);
    for chunk in &mut chunks {
        mix(u64_at(chunk, 0));
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        let mut last = [0u8; 8];
        last[..rest.len()].copy_from_slice(rest);
        mix(u64::from_le_bytes(last));
    }
    finish(hash)
}

fn hash_pair(left: u32, right: u32) -> u64 {
    finish((u64::from(left) << 32 | u64::from(right)).wrapping_mul(MIX))
}

/// Four lanes of multiplications. A change of one word always changes it: each step is a bijection.
pub fn checksum(bytes: &[u8]) -> u64 {
    let mut lanes = [MIX, MIX2, !MIX, !MIX2];
    let mut add = |block: &[u8]| {
        for (i, lane) in lanes.iter_mut().enumerate() {
            *lane = (*lane ^ u64_at(block, 8 * i)).wrapping_mul(MIX).rotate_left(29);
        }
    };
    let mut blocks = bytes.chunks_exact(32);
    for block in &mut blocks {
        add(block);
    }
    let mut last = [0u8; 32];
    last[..blocks.remainder().len()].copy_from_slice(blocks.remainder());
    add(&last);
    lanes.iter().fold(bytes.len() as u64, |sum, lane| finish(sum ^ lane).wrapping_add(*lane))
}

/// None for an empty slot.
fn unpack(pairs: &[u8], slot: usize) -> Option<(u32, u32, (u32, u32))> {
    let at = MERGE_BYTES * slot;
    let words = [u32_at(pairs, at), u32_at(pairs, at + 4), u32_at(pairs, at + 8)];
    if words == [EMPTY; 3] {
        return None;
    }
    let rank = words[0] >> 24 | words[1] >> 24 << 8 | words[2] >> 24 << 16;
    Some((words[0] & LOW24, words[1] & LOW24, (rank, words[2] & LOW24)))
}

/// Tokens by id -> `ends` and `text`; None for an id without one.
pub fn pack_tokens(tokens: &[Option<&str>]) -> (Vec<u8>, Vec<u8>) {
    let mut ends = Vec::with_capacity(4 * tokens.len());
    let mut text = Vec::new();
    for token in tokens {
        text.extend_from_slice(token.unwrap_or_default().as_bytes());
        let absent = if token.is_none() { ABSENT } else { 0 };
        ends.extend_from_slice(&(text.len() as u32 | absent).to_le_bytes());
    }
    (ends, text)
}

/// None when a token is too far from its place: only a vocabulary made for that does so.
pub fn pack_words<'a>(tokens: impl ExactSizeIterator<Item = (&'a str, u32)>) -> Option<Vec<u8>> {
    let slots = 2 * tokens.len() + 1;
    let mut words = vec![0xff; 4 * slots];
    for (text, id) in tokens {
        let hash = hash_text(text.as_bytes());
        let slot = probes(hash, slots).find(|slot| u32_at(&words, 4 * slot) == EMPTY)?;
        words[4 * slot..4 * slot + 4].copy_from_slice(&(id | tag(hash) << 24).to_le_bytes());
    }
    Some(words)
}

/// (left, right) -> result, by rank. None as for `pack_words`.
pub fn pack_merges(merges: &[(u32, u32, u32)]) -> Option<Vec<u8>> {
    let slots = merges.len() * 5 / 3 + 1;
    let mut pairs = vec![0xff; MERGE_BYTES * slots];
    for (rank, (left, right, result)) in merges.iter().enumerate() {
        let rank = rank as u32;
        let hash = hash_pair(*left, *right);
        let slot = probes(hash, slots).find(|slot| unpack(&pairs, *slot).is_none())?;
        let words = [left | rank << 24, right | rank >> 8 << 24, result | rank >> 16 << 24];
        for (i, word) in words.iter().enumerate() {
            let at = MERGE_BYTES * slot + 4 * i;
            pairs[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
    }
    Some(pairs)
}
