// SPDX-License-Identifier: Apache-2.0
//! Output constraints (`textkit_constraint.h`): llguidance over a trie of the vocabulary.

use std::sync::Arc;

use llguidance::api::{ParserLimits, StopReason, TopLevelGrammar};
use llguidance::toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};
use llguidance::{Matcher, ParserFactory};

use crate::abi::{array, borrow, borrow_mut, guard, put, utf8, Buffer, Error, Result, Slice};

/// A grammar in bytes.
const MAX_GRAMMAR_BYTES: usize = 1 << 20;
const MAX_CHOICES: usize = 10_000;
const MAX_VOCABULARY: usize = 4 << 20;

/// The tokens of a model as a trie, with the tables that make masks fast. Shared by all
/// constraints of the model.
pub struct Vocabulary {
    factory: ParserFactory,
    eos: Vec<u32>,
    size: usize,
}

impl Vocabulary {
    /// `tokens[id]` are the bytes that the token contributes to text; special ones contribute none.
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
        let words: Vec<Vec<u8>> = tokens
            .into_iter()
            .enumerate()
            .map(|(id, bytes)| {
                let is_end = ends.contains(&(id as u32));
                if is_end || special[id] != 0 {
                    special_word(id)
                } else {
                    bytes
                }
            })
            .collect();
        let info = TokRxInfo::new(size as u32, ends[0]);
        let trie = TokTrie::from(&info, &words).with_eos_tokens(&ends);
        let env: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let mut factory = ParserFactory::new_simple(&env).map_err(reason)?;
        factory.quiet();
        *factory.limits_mut() = ParserLimits { verbose_errors: false, ..ParserLimits::default() };
        Ok(Vocabulary { factory, eos: ends, size })
    }
}

/// What no text can spell: the marker byte, then the id.
fn special_word(id: usize) -> Vec<u8> {
    let mut word = vec![TokTrie::SPECIAL_TOKEN_MARKER];
    word.extend(format!("<|{id}|>").into_bytes());
    word
}

fn reason(error: impl std::fmt::Display) -> Error {
    let text = error.to_string();
    let limits = ["too complex", "too large", "too many", "limit", "fuel"];
    if limits.iter().any(|word| text.to_lowercase().contains(word)) {
        Error::exhausted(text)
    } else {
        Error::invalid(text)
    }
}

/// `tk_grammar_kind`.
fn grammar(kind: i32, source: &str) -> Result<TopLevelGrammar> {
    if source.len() > MAX_GRAMMAR_BYTES {
        return Err(Error::exhausted(format!(
            "grammar has {} bytes; the limit is {MAX_GRAMMAR_BYTES}",
            source.len()
        )));
    }
    match kind {
        0 => {
            let schema = serde_json::from_str(source)
                .map_err(|e| Error::invalid(format!("JSON schema is no JSON: {e}")))?;
            Ok(TopLevelGrammar::from_json_schema(schema))
        }
        1 => Ok(TopLevelGrammar::from_regex(source)),
        2 => Ok(TopLevelGrammar::from_lark(source.to_string())),
        3 => Ok(TopLevelGrammar::from_regex(&choice_regex(source)?)),
        other => Err(Error::invalid(format!("unknown kind of grammar {other}"))),
    }
}

/// A regular expression that matches each choice literally.
fn choice_regex(source: &str) -> Result<String> {
    let choices: Vec<String> = serde_json::from_str(source)
        .map_err(|e| Error::invalid(format!("choices must be a JSON array of strings: {e}")))?;
    if choices.is_empty() || choices.len() > MAX_CHOICES {
        return Err(Error::invalid(format!("there must be 1 to {MAX_CHOICES} choices")));
    }
    let mut regex = String::from("(");
    for (i, choice) in choices.iter().enumerate() {
        if choice.is_empty() {
            return Err(Error::invalid("a choice is empty"));
        }
        if i > 0 {
            regex.push('|');
        }
        for c in choice.chars() {
            // Every ASCII punctuation mark and control in hexadecimal: no rule of the regular
            // expression or of the grammar around it applies to it.
            if c.is_alphanumeric() || (c == ' ') || !c.is_ascii() {
                regex.push(c);
            } else {
                regex.push_str(&format!("\\x{:02X}", c as u32));
            }
        }
    }
    regex.push(')');
    Ok(regex)
}

/// The state of one sequence.
pub struct Constraint {
    vocabulary: Arc<Vocabulary>,
    matcher: Matcher,
    finished: bool,
}

impl Constraint {
    pub fn new(vocabulary: Arc<Vocabulary>, kind: i32, source: &str) -> Result<Constraint> {
        let grammar = grammar(kind, source)?;
        let parser = vocabulary.factory.create_parser(grammar).map_err(reason)?;
        let mut matcher = Matcher::new(Ok(parser));
        if let Some(error) = matcher.get_error() {
            return Err(reason(error));
        }
        // A schema that llguidance would only follow in part must not pass for the whole.
        if let Some(warning) = matcher.grammar_warnings().first() {
            return Err(Error::unimplemented(warning.clone()));
        }
        Ok(Constraint { vocabulary, matcher, finished: false })
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
pub unsafe extern "C" fn tk_constraint_new(
    vocabulary: *const Arc<Vocabulary>,
    kind: i32,
    source: Slice,
    constraint: *mut *mut Constraint,
    error: *mut Buffer,
) -> i32 {
    guard(error, || {
        let vocabulary = borrow(vocabulary, "vocabulary")?.clone();
        let source = utf8(source.bytes(), "grammar")?;
        let made = Constraint::new(vocabulary, kind, source)?;
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

/// The thread rules of the header: vocabularies are shared, constraints move.
const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    fn moved<T: Send>() {}
    shared::<Vocabulary>();
    moved::<Constraint>();
};
