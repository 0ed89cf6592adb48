// SPDX-License-Identifier: Apache-2.0
//! How deep the JSON of an output is nested. Where a schema can contain itself a small model may
//! never come out again; so from some depth on nothing more is opened, as long as the schema allows
//! something else.

use super::Vocabulary;

/// Deeper than what people write, and well below what readers of JSON take.
const PREFERRED_DEPTH: usize = 16;

/// Tokens that open an object or an array, by where they begin.
pub struct Openers {
    outside: Vec<u32>,
    /// In a string: a bracket counts after a quotation mark.
    in_string: Vec<u32>,
}

impl Openers {
    pub fn new(words: &[Vec<u8>]) -> Openers {
        let is_bracket = |byte: &u8| matches!(byte, b'{' | b'[');
        let mut openers = Openers {
            outside: vec![0; words.len().div_ceil(32)],
            in_string: vec![0; words.len().div_ceil(32)],
        };
        for (id, word) in words.iter().enumerate() {
            let bit = 1u32 << (id % 32);
            if word.iter().any(is_bracket) {
                openers.outside[id / 32] |= bit;
            }
            let quote = word.iter().position(|&byte| byte == b'"');
            if quote.is_some_and(|at| word[at..].iter().any(is_bracket)) {
                openers.in_string[id / 32] |= bit;
            }
        }
        openers
    }
}

/// Follows an output byte by byte.
#[derive(Clone, Default)]
pub struct Nesting {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl Nesting {
    pub fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.in_string => self.is_escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => self.depth += 1,
                b'}' | b']' if !self.in_string => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// Takes the openers out of a mask, where it is time and others are left.
    pub fn prefer_closing(&self, vocabulary: &Vocabulary, mask: &mut [u32]) {
        if self.depth < PREFERRED_DEPTH {
            return;
        }
        let openers = match self.in_string {
            true => &vocabulary.openers.in_string,
            false => &vocabulary.openers.outside,
        };
        if mask.iter().zip(openers).any(|(&mask, &openers)| mask & !openers != 0) {
            mask.iter_mut().zip(openers).for_each(|(mask, &openers)| *mask &= !openers);
        }
    }
}
