// SPDX-License-Identifier: Apache-2.0
//! The tokens of a model as a trie, with the tables that make masks fast.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use llguidance::api::ParserLimits;
use llguidance::toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};
use llguidance::ParserFactory;

use super::nesting::Openers;
use super::reason;
use crate::abi::{Error, Result};

const MAX_VOCABULARY: usize = 4 << 20;
/// What a grammar may cost. A mask that takes all of a step's allowance takes about 15 ms; a lexer
/// that has all its states about 50 MB.
const MAX_LEXER_STATES: usize = 30_000;
const MAX_GRAMMAR_SIZE: usize = 200_000;

/// Shared by all grammars of the model.
pub struct Vocabulary {
    pub(super) factory: ParserFactory,
    pub(super) eos: Vec<u32>,
    pub(super) size: usize,
    /// Special tokens by their text: grammars name them by number.
    pub(super) specials: HashMap<String, u32>,
    /// Lengths of these names, the longest first.
    special_lengths: Vec<usize>,
    pub(super) openers: Openers,
}

impl Vocabulary {
    /// `tokens[id]` are the bytes that the token contributes to text; special ones contribute none,
    /// their bytes are their name.
    pub fn new(tokens: Vec<Vec<u8>>, special: &[u8], eos: &[i32]) -> Result<Vocabulary> {
        let size = tokens.len();
        if size == 0 || size > MAX_VOCABULARY {
            return Err(Error::invalid(format!(
                "a vocabulary has 1 to {MAX_VOCABULARY} tokens, not {size}"
            )));
        }
        if special.len() != size {
            return Err(Error::invalid("there must be one special flag a token"));
        }
        let eos = check_eos(eos, size)?;
        let mut specials = HashMap::new();
        let mut words = Vec::with_capacity(size);
        for (id, bytes) in tokens.into_iter().enumerate() {
            let is_end = eos.contains(&(id as u32));
            if !is_end && special[id] == 0 {
                words.push(bytes);
                continue;
            }
            words.push(special_word(id, &bytes));
            if let (false, Ok(name)) = (bytes.is_empty(), String::from_utf8(bytes)) {
                specials.entry(name).or_insert(id as u32);
            }
        }
        let openers = Openers::new(&words);
        let info = TokRxInfo::new(size as u32, eos[0]);
        let trie = TokTrie::from(&info, &words).with_eos_tokens(&eos);
        let env: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let mut factory = ParserFactory::new_simple(&env).map_err(reason)?;
        factory.quiet();
        *factory.limits_mut() = ParserLimits {
            max_lexer_states: MAX_LEXER_STATES,
            max_grammar_size: MAX_GRAMMAR_SIZE,
            verbose_errors: false,
            ..ParserLimits::default()
        };
        let lengths: BTreeSet<usize> = specials.keys().map(String::len).collect();
        let special_lengths = lengths.into_iter().rev().collect();
        Ok(Vocabulary { factory, eos, size, specials, special_lengths, openers })
    }

    /// The special token whose name the text begins with, the longest of them: its length and id.
    pub(super) fn special_at(&self, text: &str) -> Option<(usize, u32)> {
        self.special_lengths.iter().find_map(|&length| {
            let id = self.specials.get(text.get(..length)?)?;
            Some((length, *id))
        })
    }
}

fn check_eos(eos: &[i32], size: usize) -> Result<Vec<u32>> {
    let mut ends = Vec::new();
    for &id in eos {
        match u32::try_from(id) {
            Ok(end) if (end as usize) < size => ends.push(end),
            _ => return Err(Error::invalid(format!("the end token {id} is not in 0..{size}"))),
        }
    }
    if ends.is_empty() {
        return Err(Error::invalid("a constraint needs at least one end token"));
    }
    Ok(ends)
}

/// What no text can spell: the marker byte, then a name.
fn special_word(id: usize, name: &[u8]) -> Vec<u8> {
    let mut word = vec![TokTrie::SPECIAL_TOKEN_MARKER];
    if name.is_empty() {
        word.extend(format!("<|{id}|>").into_bytes());
    } else {
        word.extend_from_slice(name);
    }
    word
}
