// SPDX-License-Identifier: Apache-2.0
//! A grammar, compiled once and started for each sequence.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use llguidance::api::TopLevelGrammar;
use llguidance::Matcher;
use serde_json::Value;

use super::{lark, parts, tags};
use super::{reason, Constraint, Vocabulary};
use crate::abi::{Code, Error, Result};
use crate::{large_stack, schema};

/// A grammar in bytes.
const MAX_GRAMMAR_BYTES: usize = 1 << 20;
const MAX_CHOICES: usize = 10_000;
/// To look at a finished text; the clock is asked each time so many tokens were taken.
const MAX_TIME: Duration = Duration::from_secs(1);
const TOKENS_AT_ONCE: usize = 16;
/// TK_GRAMMAR_JSON_SCHEMA.
const JSON_SCHEMA: i32 = 0;
/// TK_GRAMMAR_LARK.
const LARK: i32 = 2;
/// TK_GRAMMAR_TAGS.
const TAGS: i32 = 4;
/// TK_GRAMMAR_PARTS.
const PARTS: i32 = 5;

pub struct Grammar {
    vocabulary: Arc<Vocabulary>,
    /// Before the first token. Behind a lock because a copy takes the lexer's own lock.
    start: Mutex<Matcher>,
    notes: Vec<String>,
    look: Look,
}

/// How a finished output can be looked at from outside.
enum Look {
    /// By another implementation of JSON Schema.
    Json(Box<jsonschema::Validator>, schema::Work),
    /// By its text, through the grammar itself.
    Text,
    /// Not from its text alone: it has parts that text does not show.
    Tokens,
}

impl Grammar {
    /// A sequence that has no token yet.
    pub fn start(&self) -> Constraint {
        let start = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        let is_json = matches!(self.look, Look::Json(..));
        Constraint::new(self.vocabulary.clone(), start.deep_clone(), is_json)
    }

    pub fn new(vocabulary: Arc<Vocabulary>, kind: i32, source: &str) -> Result<Grammar> {
        if source.len() > MAX_GRAMMAR_BYTES {
            return Err(Error::exhausted(format!(
                "grammar has {} bytes; the limit is {MAX_GRAMMAR_BYTES}",
                source.len()
            )));
        }
        // What compiles recurses with the grammar. `schema::prepare` and `lark::check` bound how
        // deep, so far above what people write that no caller's stack need be as large.
        large_stack::run(|| match kind {
            JSON_SCHEMA => Grammar::of_schema(vocabulary, source),
            _ => Grammar::of_text(vocabulary, kind, source),
        })
    }

    fn of_text(vocabulary: Arc<Vocabulary>, kind: i32, source: &str) -> Result<Grammar> {
        let look = match kind {
            LARK if lark::check(source)?.is_of_tokens => Look::Tokens,
            TAGS | PARTS => Look::Tokens,
            _ => Look::Text,
        };
        let matcher = compile(&vocabulary, top_level(&vocabulary, kind, source)?)
            .map_err(|error| find_tag(&vocabulary, kind, source, error))?;
        Ok(Grammar { vocabulary, start: Mutex::new(matcher), notes: Vec::new(), look })
    }

    fn of_schema(vocabulary: Arc<Vocabulary>, source: &str) -> Result<Grammar> {
        let schema: Value = serde_json::from_str(source)
            .map_err(|e| Error::invalid(format!("JSON schema is no JSON: {e}")))?;
        let prepared = schema::prepare(&schema)?;
        let compile_part = |part| compile(&vocabulary, TopLevelGrammar::from_json_schema(part));
        let matcher = compile_part(prepared.schema.clone()).map_err(|whole| Error {
            code: whole.code,
            message: match whole.code {
                Code::ResourceExhausted => format!("#: {}", whole.message),
                _ => schema::locate(&prepared, whole.message, |part| {
                    compile_part(part).map(drop).map_err(|error| error.message)
                }),
            },
        })?;
        let validator = schema::validator(&schema, false)
            .map_err(|error| Error::unimplemented(format!("#: {error}")))?;
        Ok(Grammar {
            vocabulary,
            start: Mutex::new(matcher),
            notes: prepared.notes,
            look: Look::Json(Box::new(validator), schema::Work::new(&schema, prepared.places)),
        })
    }

    /// What of the source has no effect, one sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether a finished output has the form, seen from outside: its JSON by another
    /// implementation of JSON Schema, all else by its text, where that shows it. An error says what
    /// is wrong. kExhausted: it would take too long to tell.
    pub fn validate(&self, text: &str) -> Result<()> {
        match &self.look {
            Look::Json(validator, work) => {
                large_stack::run(|| validate_json(validator, work, text))
            }
            Look::Text => self.validate_text(text),
            Look::Tokens => Ok(()),
        }
    }

    fn validate_text(&self, text: &str) -> Result<()> {
        let tokens = self.vocabulary.factory.tok_env().tokenize_bytes(text.as_bytes());
        let start = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        let mut matcher = start.deep_clone();
        drop(start);
        let misfit = || Err(Error::invalid("the output does not fit its grammar"));
        let started = Instant::now();
        for some in tokens.chunks(TOKENS_AT_ONCE) {
            if started.elapsed() > MAX_TIME {
                return Err(too_much_work());
            }
            let fits = !matcher.is_stopped()
                && matcher.validate_tokens(some).map_err(reason)? == some.len()
                && matcher.consume_tokens(some).is_ok();
            if !fits {
                return misfit();
            }
        }
        let ended = matcher.is_stopped() && !matcher.is_error();
        if ended || matcher.is_accepting().map_err(reason)? {
            return Ok(());
        }
        misfit()
    }
}

fn too_much_work() -> Error {
    Error::exhausted("to hold this output against its form takes too much work")
}

fn validate_json(validator: &jsonschema::Validator, work: &schema::Work, text: &str) -> Result<()> {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        // Of the form, but past 64-bit floats: nothing that the validator could look at.
        Err(error) if error.to_string().starts_with("number out of range") => return Ok(()),
        Err(error) => return Err(Error::invalid(format!("the output is no JSON: {error}"))),
    };
    if !work.is_bearable(&value) {
        return Err(too_much_work());
    }
    validator.validate(&value).map_err(|error| {
        Error::invalid(format!("the output does not fit at #{}: {error}", error.instance_path))
    })
}

/// Which tag does not compile, if one is alone the reason.
fn find_tag(vocabulary: &Arc<Vocabulary>, kind: i32, source: &str, whole: Error) -> Error {
    if kind != TAGS || whole.code == Code::ResourceExhausted {
        return whole;
    }
    for (i, schema) in tags::schemas(source) {
        if let Err(error) = Grammar::of_schema(vocabulary.clone(), &schema.to_string()) {
            return tags::at(i, error);
        }
    }
    whole
}

/// Compiles, and looks whether anything can be said at all.
fn compile(vocabulary: &Vocabulary, grammar: TopLevelGrammar) -> Result<Matcher> {
    let parser = vocabulary.factory.create_parser(grammar).map_err(reason)?;
    let mut matcher = Matcher::new(Ok(parser));
    if let Some(error) = matcher.get_error() {
        return Err(reason(error));
    }
    // A grammar that llguidance would only follow in part must not pass for the whole.
    if let Some(warning) = matcher.grammar_warnings().first() {
        return Err(Error::unimplemented(warning.clone()));
    }
    if !matcher.is_stopped() && matcher.deep_clone().compute_mask().is_err() {
        return Err(Error::invalid("nothing satisfies this grammar"));
    }
    Ok(matcher)
}

/// `tk_grammar_kind`.
fn top_level(vocabulary: &Vocabulary, kind: i32, source: &str) -> Result<TopLevelGrammar> {
    match kind {
        1 => Ok(TopLevelGrammar::from_regex(source)),
        LARK => Ok(TopLevelGrammar::from_lark(source.to_string())),
        3 => Ok(TopLevelGrammar::from_regex(&choice_regex(source)?)),
        TAGS => Ok(TopLevelGrammar::from_lark(tags::lark(vocabulary, source)?)),
        PARTS => Ok(TopLevelGrammar::from_lark(parts::lark(vocabulary, source)?)),
        other => Err(Error::invalid(format!("unknown kind of grammar {other}"))),
    }
}

/// A regular expression that matches each choice literally.
pub fn choice_regex(source: &str) -> Result<String> {
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
