// SPDX-License-Identifier: Apache-2.0
//! BPE over the tables of a stored tokenizer. What a text becomes is defined by the crate's model
//! (`tokenizers::models::bpe`): the same characters are looked up, the pair of the smallest rank
//! merges first, the leftmost of equals, under the same options.
//!
//! Words that were merged once are kept per thread, as the crate keeps them and with its limits.

use std::borrow::Cow;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering};

use ahash::AHashMap;
use tokenizers::models::bpe::{Vocab, BPE};

use super::table::Table;
use super::Options;

const CACHED_WORDS: usize = 10_000;
const CACHED_WORD_BYTES: usize = 256;
/// Models whose words a thread keeps; beyond, it forgets those of all.
const CACHED_MODELS: usize = 8;

static NEXT_MODEL: AtomicU64 = AtomicU64::new(0);

type Words = AHashMap<Box<str>, Box<[u32]>>;

#[derive(Default)]
struct Local {
    words: AHashMap<u64, Words>,
    merger: Merger,
}

thread_local! {
    static LOCAL: RefCell<Local> = RefCell::new(Local::default());
}

pub struct StoredBpe {
    table: Table,
    options: Options,
    /// What `options.unk_token` is in the vocabulary.
    unk_id: Option<u32>,
    /// "<0x00>" to "<0xFF>", where the vocabulary has them.
    byte_ids: Vec<Option<u32>>,
    /// Of this model among those of the process.
    serial: u64,
}

impl StoredBpe {
    pub fn new(table: Table, options: Options) -> Self {
        let unk_id = options.unk_token.as_ref().and_then(|token| table.find(token));
        let byte_id = |byte: u8| table.find(&format!("<{byte:#04X}>"));
        let byte_ids = match options.byte_fallback {
            true => (0..=u8::MAX).map(byte_id).collect(),
            false => Vec::new(),
        };
        let serial = NEXT_MODEL.fetch_add(1, Ordering::Relaxed);
        StoredBpe { table, options, unk_id, byte_ids, serial }
    }

    pub fn table(&self) -> &Table {
        &self.table
    }
    pub fn options(&self) -> &Options {
        &self.options
    }
    pub fn find(&self, token: &str) -> Option<u32> {
        self.table.find(token)
    }
    pub fn token(&self, id: u32) -> Option<&str> {
        self.table.token(id)
    }
    pub fn token_count(&self) -> usize {
        self.table.token_count()
    }
    pub fn is_dense(&self) -> bool {
        self.table.token_count() == self.table.ids() as usize
    }
    pub fn tokens(&self) -> impl Iterator<Item = (u32, &str)> {
        (0..self.table.ids()).filter_map(|id| Some((id, self.table.token(id)?)))
    }

    /// The crate's model with the same content.
    pub fn to_library(&self) -> tokenizers::Result<BPE> {
        let vocab: Vocab = self.tokens().map(|(id, token)| (token.to_string(), id)).collect();
        let mut merges: Vec<_> = self.table.all_merges().collect();
        merges.sort_unstable_by_key(|(_, _, (rank, _))| *rank);
        let name = |id: u32| self.token(id).map(str::to_string).ok_or("a merge of no token");
        let merges = merges
            .into_iter()
            .map(|(left, right, _)| Ok((name(left)?, name(right)?)))
            .collect::<tokenizers::Result<Vec<_>>>()?;
        let mut builder = BPE::builder()
            .vocab_and_merges(vocab, merges)
            .fuse_unk(self.options.fuse_unk)
            .byte_fallback(self.options.byte_fallback)
            .ignore_merges(self.options.ignore_merges);
        if let Some(token) = &self.options.unk_token {
            builder = builder.unk_token(token.clone());
        }
        if let Some(prefix) = &self.options.continuing_subword_prefix {
            builder = builder.continuing_subword_prefix(prefix.clone());
        }
        if let Some(suffix) = &self.options.end_of_word_suffix {
            builder = builder.end_of_word_suffix(suffix.clone());
        }
        builder.build()
    }

    /// Appends the ids of a piece of text.
    pub fn append_ids(&self, piece: &str, ids: &mut Vec<u32>) -> tokenizers::Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        if self.options.ignore_merges {
            if let Some(id) = self.find(piece) {
                ids.push(id);
                return Ok(());
            }
        }
        LOCAL.with(|local| {
            let Local { words, merger } = &mut *local.borrow_mut();
            if words.len() >= CACHED_MODELS && !words.contains_key(&self.serial) {
                words.clear();
            }
            let words = words.entry(self.serial).or_default();
            if let Some(known) = words.get(piece) {
                ids.extend_from_slice(known);
                return Ok(());
            }
            merger.symbols.clear();
            self.split(piece, &mut merger.symbols)?;
            merger.merge(&self.table);
            let begin = ids.len();
            ids.extend(merger.symbols.iter().filter(|s| s.is_live).map(|s| s.id));
            if piece.len() < CACHED_WORD_BYTES && words.len() < CACHED_WORDS {
                words.insert(piece.into(), ids[begin..].into());
            }
            Ok(())
        })
    }

    /// A piece as the symbols that merging starts from: one a character, or what stands for an
    /// unknown one.
    fn split(&self, piece: &str, symbols: &mut Vec<Symbol>) -> tokenizers::Result<()> {
        let mut pending: Option<u32> = None;
        let mut chars = piece.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let text = self.spelled(&piece[at..at + c.len_utf8()], at == 0, chars.peek().is_none());
            if let Some(id) = self.find(&text) {
                symbols.extend(pending.take().map(Symbol::new));
                symbols.push(Symbol::new(id));
                continue;
            }
            if self.options.byte_fallback {
                let byte_id = |byte: u8| self.byte_ids[usize::from(byte)];
                if text.bytes().all(|byte| byte_id(byte).is_some()) {
                    // A pending unknown token stays pending over bytes: the crate has it so.
                    symbols.extend(text.bytes().filter_map(byte_id).map(Symbol::new));
                    continue;
                }
            }
            let Some(unk) = &self.options.unk_token else { continue };
            if pending.is_some() && self.options.fuse_unk {
                continue;
            }
            symbols.extend(pending.take().map(Symbol::new));
            let missing = || format!("unknown token {unk:?} is not in the vocabulary");
            pending = Some(self.unk_id.ok_or_else(missing)?);
        }
        symbols.extend(pending.map(Symbol::new));
        Ok(())
    }

    /// A character with the marks of its place in the word.
    fn spelled<'a>(&self, c: &'a str, is_first: bool, is_last: bool) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(c);
        if let (false, Some(prefix)) = (is_first, &self.options.continuing_subword_prefix) {
            text = format!("{prefix}{text}").into();
        }
        if let (true, Some(suffix)) = (is_last, &self.options.end_of_word_suffix) {
            text = format!("{text}{suffix}").into();
        }
        text
    }
}

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Symbol {
    id: u32,
    previous: u32,
    next: u32,
    /// What this one and the next merge to; NONE when they do not.
    result: u32,
    is_live: bool,
}

impl Symbol {
    fn new(id: u32) -> Self {
        Symbol { id, previous: NONE, next: NONE, result: NONE, is_live: true }
    }
}

/// Merges the symbols of one word. Its vectors are kept from word to word.
#[derive(Default)]
struct Merger {
    symbols: Vec<Symbol>,
    /// (rank, place of the left one, result): the least is next. May hold pairs that are gone.
    candidates: BinaryHeap<Reverse<(u32, u32, u32)>>,
}

impl Merger {
    fn merge(&mut self, table: &Table) {
        self.candidates.clear();
        let count = self.symbols.len() as u32;
        for (at, symbol) in (0..count).zip(&mut self.symbols) {
            symbol.previous = at.checked_sub(1).unwrap_or(NONE);
            symbol.next = if at + 1 < count { at + 1 } else { NONE };
        }
        for at in 0..count {
            self.consider(at, table);
        }
        while let Some(Reverse((_, at, result))) = self.candidates.pop() {
            let left = self.symbols[at as usize];
            if !left.is_live || left.next == NONE || left.result != result {
                continue;
            }
            let right = self.symbols[left.next as usize];
            self.symbols[left.next as usize].is_live = false;
            self.symbols[at as usize].id = result;
            self.symbols[at as usize].next = right.next;
            if right.next != NONE {
                self.symbols[right.next as usize].previous = at;
            }
            if left.previous != NONE {
                self.consider(left.previous, table);
            }
            self.consider(at, table);
        }
    }

    /// Looks up the pair that starts at `at` after one of its symbols changed.
    fn consider(&mut self, at: u32, table: &Table) {
        let left = self.symbols[at as usize];
        let merge = match left.next {
            NONE => None,
            next => table.merge(left.id, self.symbols[next as usize].id),
        };
        self.symbols[at as usize].result = merge.map_or(NONE, |(_, result)| result);
        if let Some((rank, result)) = merge {
            self.candidates.push(Reverse((rank, at, result)));
        }
    }
}
