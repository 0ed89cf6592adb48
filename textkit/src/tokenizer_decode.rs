// SPDX-License-Identifier: Apache-2.0
//! Streaming decoders. The crate's decoders take all tokens at once; here each of them is a stage
//! that takes one token at a time and passes text on as soon as later tokens cannot change it.
//! A chain of stages gives, piece by piece, what the crate gives for the whole.
//!
//! One deviation, which no stream can avoid: a run of byte tokens (`<0xE4>`) that is not UTF-8 as a
//! whole becomes one U+FFFD a byte in the crate, also where its start was good text that a stream
//! has sent already. There the stream keeps what it sent and replaces only the bad rest.

use std::sync::Arc;

use serde_json::Value;
use tokenizers::{Decoder, DecoderWrapper};

use crate::abi::{catch, Error, Result};
use crate::tokenizer::Tokenizer;
use crate::tokenizer_stage::{byte_of_token, bytes_of_level, cleanup_words, Stage};

const REPLACEMENT: char = '\u{fffd}';

/// What one decoder does, without its state.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Replace {
        pattern: String,
        content: String,
    },
    ByteFallback,
    Fuse,
    /// Before a fuse it strips every token, after one the whole text.
    Strip {
        content: char,
        start: usize,
        stop: usize,
        fused: bool,
    },
    ByteLevel,
    Metaspace {
        replacement: char,
        drops_first: bool,
    },
    WordPiece {
        prefix: String,
        cleanup: bool,
    },
    Suffix {
        suffix: String,
    },
    /// No decoder: tokens joined by spaces.
    Join,
}

/// The steps of a tokenizer's decoder.
pub struct Chain {
    steps: Vec<Step>,
    /// Set when a step is not known here: then a stream holds all text until its end, which is late
    /// but exact.
    whole: Option<DecoderWrapper>,
}

impl Chain {
    pub fn new(decoder: Option<&DecoderWrapper>) -> Result<Self> {
        let Some(decoder) = decoder else {
            return Ok(Chain { steps: vec![Step::Join], whole: None });
        };
        let described = serde_json::to_value(decoder)
            .map_err(|e| Error::invalid(format!("tokenizer.json: decoder: {e}")))?;
        let mut steps = Vec::new();
        Ok(match add_steps(&described, &mut steps) {
            Some(()) => Chain { steps, whole: None },
            None => Chain { steps: Vec::new(), whole: Some(decoder.clone()) },
        })
    }

    /// Whether text comes as tokens come, and not only at the end.
    pub fn is_streaming(&self) -> bool {
        self.whole.is_none()
    }

    /// The bytes that a token adds in the middle of a text.
    pub fn token_bytes(&self, token: &str) -> Vec<u8> {
        let mut text = token.to_string();
        for step in &self.steps {
            match step {
                Step::Replace { pattern, content } => text = text.replace(pattern, content),
                Step::ByteFallback => {
                    if let Some(byte) = byte_of_token(&text) {
                        return vec![byte];
                    }
                }
                Step::ByteLevel => return bytes_of_level(&text),
                Step::Metaspace { replacement, .. } => text = text.replace(*replacement, " "),
                Step::WordPiece { prefix, cleanup } => {
                    text = match text.strip_prefix(prefix.as_str()) {
                        Some(rest) => rest.to_string(),
                        None => format!(" {text}"),
                    };
                    if *cleanup {
                        text = cleanup_words(&text);
                    }
                }
                Step::Suffix { suffix } => text = text.replace(suffix, " "),
                Step::Join => text.insert(0, ' '),
                Step::Fuse | Step::Strip { .. } => {}
            }
        }
        text.into_bytes()
    }
}

/// Appends the steps of a decoder as tokenizer.json describes it; none when one is not known here,
/// or stands where its effect could reach over the border of two tokens.
fn add_steps(decoder: &Value, steps: &mut Vec<Step>) -> Option<()> {
    let fused = steps.iter().any(|s| matches!(s, Step::Fuse | Step::ByteLevel));
    let text = |key: &str| decoder.get(key).and_then(Value::as_str).map(str::to_string);
    let number = |key: &str| decoder.get(key).and_then(Value::as_u64).map(|n| n as usize);
    let one_char = |key: &str| decoder.get(key)?.as_str()?.chars().next();
    let step = match decoder.get("type")?.as_str()? {
        "Sequence" => {
            for inner in decoder.get("decoders")?.as_array()? {
                add_steps(inner, steps)?;
            }
            return Some(());
        }
        "Replace" => {
            let pattern = decoder.get("pattern")?.get("String")?.as_str()?.to_string();
            let is_local = pattern.chars().count() == 1 || (!fused && !pattern.is_empty());
            if !is_local {
                return None;
            }
            Step::Replace { pattern, content: text("content")? }
        }
        "Fuse" => Step::Fuse,
        "Strip" => Step::Strip {
            content: one_char("content")?,
            start: number("start")?,
            stop: number("stop")?,
            fused,
        },
        // The rest looks at single tokens, which a fuse has made one.
        _ if fused => return None,
        "ByteFallback" => Step::ByteFallback,
        "ByteLevel" => Step::ByteLevel,
        "Metaspace" => Step::Metaspace {
            replacement: one_char("replacement")?,
            drops_first: text("prepend_scheme")? != "never",
        },
        "WordPiece" => {
            Step::WordPiece { prefix: text("prefix")?, cleanup: decoder.get("cleanup")?.as_bool()? }
        }
        "BPEDecoder" => {
            let suffix = text("suffix")?;
            if suffix.is_empty() {
                return None;
            }
            Step::Suffix { suffix }
        }
        _ => return None,
    };
    steps.push(step);
    Some(())
}

/// Decodes one sequence token by token. Text comes without a trailing U+FFFD: those wait for the
/// next good character or the end, because the next token may still complete the character.
pub struct Stream {
    tokenizer: Arc<Tokenizer>,
    skip_special: bool,
    stages: Vec<Stage>,
    /// Tokens kept for a decoder that needs all of them.
    kept: Vec<String>,
    held_replacements: usize,
}

impl Stream {
    pub fn new(tokenizer: Arc<Tokenizer>, skip_special: bool) -> Self {
        let stages = tokenizer.chain().steps.iter().cloned().map(Stage::new).collect();
        Stream { tokenizer, skip_special, stages, kept: Vec::new(), held_replacements: 0 }
    }

    pub fn push(&mut self, id: u32) -> Result<String> {
        self.tokenizer.check(id)?;
        let Some(token) = self.tokenizer.token(id) else {
            return Ok(String::new());
        };
        if self.skip_special && self.tokenizer.is_skipped(&token) {
            return Ok(String::new());
        }
        if !self.tokenizer.chain().is_streaming() {
            self.kept.push(token);
            return Ok(String::new());
        }
        let text = run(&mut self.stages, vec![token], false);
        Ok(self.release(text))
    }

    /// The rest of the text; the stream then starts anew.
    pub fn flush(&mut self) -> Result<String> {
        let mut text = match &self.tokenizer.chain().whole {
            Some(decoder) => {
                let tokens = std::mem::take(&mut self.kept);
                // The crate's BPE decoder counts tokens minus one.
                if tokens.is_empty() {
                    return Ok(String::new());
                }
                catch(|| {
                    decoder
                        .decode(tokens)
                        .map_err(|e| Error::internal(format!("decoding tokens: {e}")))
                })?
            }
            None => run(&mut self.stages, Vec::new(), true),
        };
        let held = std::mem::take(&mut self.held_replacements);
        text.insert_str(0, &REPLACEMENT.to_string().repeat(held));
        self.stages = self.tokenizer.chain().steps.iter().cloned().map(Stage::new).collect();
        Ok(text)
    }

    fn release(&mut self, text: String) -> String {
        let good = text.trim_end_matches(REPLACEMENT);
        let trailing = (text.len() - good.len()) / REPLACEMENT.len_utf8();
        if good.is_empty() {
            self.held_replacements += trailing;
            return String::new();
        }
        let held = std::mem::replace(&mut self.held_replacements, trailing);
        let mut released = REPLACEMENT.to_string().repeat(held);
        released.push_str(good);
        released
    }
}

/// Sends pieces through all stages; with `ends`, each stage also gives up what it holds.
fn run(stages: &mut [Stage], mut pieces: Vec<String>, ends: bool) -> String {
    for stage in stages {
        let mut out = Vec::with_capacity(pieces.len());
        for piece in pieces {
            stage.push(piece, &mut out);
        }
        if ends {
            stage.finish(&mut out);
        }
        pieces = out;
    }
    pieces.concat()
}
