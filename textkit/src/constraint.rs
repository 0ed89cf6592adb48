// SPDX-License-Identifier: Apache-2.0
//! Output constraints (`textkit_constraint.h`): llguidance over a trie of the vocabulary.
//!
//! A `Vocabulary` is the model's part, a `Grammar` is compiled once and shared, a `Constraint` is
//! one sequence's state. `lark` looks through grammars that clients wrote, `tags` writes the grammar
//! of text with structured parts, `parts` takes one with JSON schemas in it, `abi` is the C side.

mod abi;
mod grammar;
mod lark;
#[cfg(test)]
mod lark_test;
mod nesting;
mod parts;
mod tags;
#[cfg(test)]
mod tags_test;
mod vocabulary;

use std::sync::Arc;

use llguidance::api::StopReason;
use llguidance::Matcher;

use crate::abi::{Error, Result};
pub use grammar::Grammar;
use nesting::Nesting;
pub use vocabulary::Vocabulary;

fn reason(error: impl std::fmt::Display) -> Error {
    let text = error.to_string();
    let limits = ["too complex", "too large", "too many", "limit", "fuel"];
    if limits.iter().any(|word| text.to_lowercase().contains(word)) {
        Error::exhausted(text)
    } else {
        Error::invalid(text)
    }
}

/// The state of one sequence.
pub struct Constraint {
    vocabulary: Arc<Vocabulary>,
    matcher: Matcher,
    finished: bool,
    /// Of JSON.
    nesting: Option<Nesting>,
}

impl Constraint {
    fn new(vocabulary: Arc<Vocabulary>, matcher: Matcher, is_json: bool) -> Constraint {
        let nesting = is_json.then(Nesting::default);
        Constraint { vocabulary, matcher, finished: false, nesting }
    }

    fn check(&self) -> Result<()> {
        match self.matcher.stop_reason() {
            StopReason::LexerTooComplex | StopReason::ParserTooComplex => Err(Error::exhausted(
                "the grammar needs more work for this token than the limit allows",
            )),
            _ => match self.matcher.get_error() {
                Some(error) => Err(reason(error)),
                None => Ok(()),
            },
        }
    }

    /// One bit a token, set where the token may come next.
    pub fn mask(&mut self, words: &mut [u32]) -> Result<()> {
        let size = self.vocabulary.size;
        let needed = size.div_ceil(32);
        if words.len() < needed {
            return Err(Error::invalid(format!(
                "the mask has {} words, {needed} are needed",
                words.len()
            )));
        }
        self.check()?;
        words.fill(0);
        if self.finished {
            return Ok(());
        }
        let mask = match self.matcher.compute_mask_or_eos() {
            Ok(mask) => mask,
            Err(error) => {
                self.check()?;
                return Err(reason(error));
            }
        };
        let allowed = mask.as_slice();
        let count = needed.min(allowed.len());
        words[..count].copy_from_slice(&allowed[..count]);
        let tail = size % 32;
        if tail != 0 {
            words[needed - 1] &= (1u32 << tail) - 1;
        }
        if let Some(nesting) = &self.nesting {
            nesting.prefer_closing(&self.vocabulary, &mut words[..needed]);
        }
        Ok(())
    }

    /// Takes a token; refuses one that the mask does not allow and stays as it was.
    pub fn commit(&mut self, token: i32) -> Result<()> {
        self.check()?;
        let refused = || Error::invalid(format!("token {token} is not allowed here"));
        let id = u32::try_from(token).ok().filter(|&id| (id as usize) < self.vocabulary.size);
        let id = id.ok_or_else(refused)?;
        if self.finished {
            return Err(refused());
        }
        if self.vocabulary.eos.contains(&id) && (self.must_end() || self.is_accepting()?) {
            self.finished = true;
            return Ok(());
        }
        if self.must_end() || self.matcher.validate_tokens(&[id]).map_err(reason)? != 1 {
            self.check()?;
            return Err(refused());
        }
        self.matcher.consume_token(id).map_err(reason)?;
        if let Some(nesting) = &mut self.nesting {
            nesting.push(self.vocabulary.factory.tok_env().tok_trie().token(id));
        }
        self.check()
    }

    /// Whether the text so far is complete.
    pub fn is_accepting(&mut self) -> Result<bool> {
        self.check()?;
        Ok(self.finished || self.must_end() || self.matcher.is_accepting().map_err(reason)?)
    }

    /// Nothing but an end token may follow.
    pub fn must_end(&self) -> bool {
        self.finished || (self.matcher.is_stopped() && !self.matcher.is_error())
    }
}

/// The thread rules of the header: vocabularies are shared, constraints move.
const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    fn moved<T: Send>() {}
    shared::<Vocabulary>();
    shared::<Grammar>();
    moved::<Constraint>();
};
