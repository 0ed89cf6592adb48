// SPDX-License-Identifier: Apache-2.0
//! Tokenizers from GGUF metadata: a `tokenizers` pipeline that gives the ids that llama.cpp, whose
//! format it is, gives for the same file. What the metadata leaves to the reader (defaults by model
//! and by pre-tokenizer name, names of control tokens) follows llama.cpp's `llama-vocab`.
//!
//! This file reads token types and puts the parts together; `gguf_pre` is the table of
//! pre-tokenizers, `gguf_models` makes the three kinds of model.

use tokenizers::processors::template::{SpecialToken, Template, TemplateProcessing};
use tokenizers::{AddedToken, PostProcessorWrapper};

use crate::abi::{catch, utf8, Code, Error, Result};
use crate::gguf_models;
use crate::gguf_pre::{self, PreTokenizer};
use crate::tokenizer::{Tokenizer, MAX_TOKEN_ID};

/// Token types of ggml.
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;

/// The metadata, borrowed. An id or flag that the file does not state is none.
pub struct Vocabulary<'a> {
    pub model: &'a str,
    pub pre: &'a str,
    pub model_name: &'a str,
    pub tokens: Vec<&'a str>,
    pub scores: &'a [f32],
    pub token_types: &'a [i32],
    pub merges: Vec<&'a str>,
    pub charsmap: &'a [u8],
    pub bos_id: Option<u32>,
    pub eos_id: Option<u32>,
    pub unk_id: Option<u32>,
    pub add_bos: Option<bool>,
    pub add_eos: Option<bool>,
    pub add_space_prefix: Option<bool>,
    pub remove_extra_whitespaces: Option<bool>,
}

/// What the kinds of model differ in.
struct Defaults {
    bos_id: Option<u32>,
    eos_id: Option<u32>,
    add_bos: bool,
    add_eos: bool,
}

pub fn build(vocabulary: &Vocabulary) -> Result<Tokenizer> {
    catch(|| build_unguarded(vocabulary)).map_err(|e| match e.code {
        Code::Internal => Error::invalid(format!("GGUF tokenizer is malformed: {}", e.message)),
        _ => e,
    })
}

fn build_unguarded(vocabulary: &Vocabulary) -> Result<Tokenizer> {
    check_sizes(vocabulary)?;
    let names = token_names(vocabulary)?;
    let kinds = kinds(vocabulary, &names);
    let (mut inner, defaults) = match vocabulary.model {
        "gpt2" => {
            let pre = gguf_pre::find(vocabulary.pre)?;
            (gguf_models::byte_level_bpe(vocabulary, &names, pre)?, bpe_defaults(pre))
        }
        "gemma4" => (
            gguf_models::gemma_bpe(vocabulary, &names)?,
            // llama.cpp adds BOS to Gemma 4 whatever the file says.
            Defaults { bos_id: None, eos_id: None, add_bos: true, add_eos: false },
        ),
        "llama" => (
            gguf_models::scored_bpe(vocabulary, &names, &kinds)?,
            Defaults { bos_id: Some(1), eos_id: Some(2), add_bos: true, add_eos: false },
        ),
        "t5" => (
            gguf_models::unigram(vocabulary, &names)?,
            Defaults { bos_id: None, eos_id: Some(1), add_bos: false, add_eos: true },
        ),
        other => {
            return Err(Error::unimplemented(format!(
                "tokenizer.ggml.model \"{other}\" is not supported; gpt2, llama, gemma4 and t5 are"
            )))
        }
    };
    inner
        .add_tokens(added_tokens(vocabulary, &names, &kinds))
        .map_err(|e| Error::invalid(format!("GGUF tokenizer: special tokens: {e}")))?;
    if let Some(processor) = post_processor(vocabulary, &names, &defaults)? {
        inner.with_post_processor(Some(processor));
    }
    Tokenizer::new(inner)
}

fn bpe_defaults(pre: &PreTokenizer) -> Defaults {
    Defaults { bos_id: None, eos_id: None, add_bos: pre.add_bos, add_eos: false }
}

/// Checks every text of an array.
pub fn texts<'a>(items: impl Iterator<Item = &'a [u8]>, key: &str) -> Result<Vec<&'a str>> {
    items.enumerate().map(|(i, bytes)| utf8(bytes, &format!("{key}[{i}]"))).collect()
}

fn check_sizes(v: &Vocabulary) -> Result<()> {
    let count = v.tokens.len();
    if count == 0 {
        return Err(Error::invalid("tokenizer.ggml.tokens is empty"));
    }
    if count > MAX_TOKEN_ID as usize {
        return Err(Error::exhausted(format!(
            "tokenizer.ggml.tokens has {count} entries, the limit is {MAX_TOKEN_ID}"
        )));
    }
    for (key, len) in [("scores", v.scores.len()), ("token_type", v.token_types.len())] {
        if len != 0 && len != count {
            return Err(Error::invalid(format!(
                "tokenizer.ggml.{key} has {len} entries, tokenizer.ggml.tokens has {count}"
            )));
        }
    }
    Ok(())
}

/// The tokens by id, with llama.cpp's name for an empty one. Two of one name are refused, since
/// text could not tell them apart.
fn token_names(v: &Vocabulary) -> Result<Vec<String>> {
    let names: Vec<String> = v
        .tokens
        .iter()
        .enumerate()
        .map(|(id, t)| if t.is_empty() { format!("[EMPTY_{id}]") } else { (*t).to_string() })
        .collect();
    let mut first = std::collections::HashMap::with_capacity(names.len());
    for (id, name) in names.iter().enumerate() {
        if let Some(other) = first.insert(name.as_str(), id) {
            return Err(Error::invalid(format!(
                "tokenizer.ggml.tokens: {other} and {id} are both {name:?}"
            )));
        }
    }
    Ok(names)
}

/// Tokens that end a turn or frame code infilling. They are control tokens also in files whose
/// types do not say so.
const CONTROL_NAMES: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<\u{ff5c}end\u{2581}of\u{2581}sentence\u{ff5c}>",
    "[e~[",
    "<|fim_prefix|>",
    "<fim-prefix>",
    "<fim_prefix>",
    "<\u{ff5c}fim\u{2581}begin\u{ff5c}>",
    "<PRE>",
    "\u{2581}<PRE>",
    "<|code_prefix|>",
    "<|prefix|>",
    "<|fim_suffix|>",
    "<fim-suffix>",
    "<fim_suffix>",
    "<\u{ff5c}fim\u{2581}hole\u{ff5c}>",
    "<SUF>",
    "\u{2581}<SUF>",
    "<|code_suffix|>",
    "<|suffix|>",
    "<|fim_middle|>",
    "<fim-middle>",
    "<fim_middle>",
    "<\u{ff5c}fim\u{2581}end\u{ff5c}>",
    "<MID>",
    "\u{2581}<MID>",
    "<|code_middle|>",
    "<|middle|>",
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
];

/// What reading text does with a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Made by the model.
    Normal,
    /// Found in raw text before the model sees it.
    UserDefined,
    /// As user-defined, but only where special tokens are wanted.
    Special,
}

fn kinds(v: &Vocabulary, names: &[String]) -> Vec<Kind> {
    // Gemma 4 has "</s>" as an ordinary HTML token.
    let is_gemma4 = names.iter().any(|n| n == "<|tool_response>");
    let kind = |(id, name): (usize, &String)| {
        let is_named = CONTROL_NAMES.contains(&name.as_str()) && !(is_gemma4 && name == "</s>");
        match v.token_types.get(id).copied().unwrap_or(1) {
            _ if is_named => Kind::Special,
            UNKNOWN | CONTROL => Kind::Special,
            USER_DEFINED => Kind::UserDefined,
            _ => Kind::Normal,
        }
    };
    names.iter().enumerate().map(kind).collect()
}

fn added_tokens(v: &Vocabulary, names: &[String], kinds: &[Kind]) -> Vec<AddedToken> {
    // Phi-3's special tokens swallow the white space after them; only the model's name tells.
    let model_name = v.model_name.to_lowercase();
    let is_phi3 = model_name.contains("phi-3") || model_name.contains("phi3");
    let mut added = Vec::new();
    for (name, kind) in names.iter().zip(kinds) {
        if *kind == Kind::Normal {
            continue;
        }
        let rstrip = is_phi3 && !["<unk>", "<s>", "<|endoftext|>"].contains(&name.as_str());
        let token = AddedToken::from(name, *kind == Kind::Special);
        added.push(token.normalized(false).rstrip(rstrip));
    }
    added
}

/// BOS before and EOS after the text, as the file or the model's kind asks.
fn post_processor(
    v: &Vocabulary,
    names: &[String],
    defaults: &Defaults,
) -> Result<Option<PostProcessorWrapper>> {
    let add_bos = v.add_bos.unwrap_or(defaults.add_bos) || v.model == "gemma4";
    let add_eos = v.add_eos.unwrap_or(defaults.add_eos);
    let name_of = |id: Option<u32>, what: &str| -> Result<(String, u32)> {
        let id = id.ok_or_else(|| {
            Error::invalid(format!(
                "the tokenizer adds {what}, but tokenizer.ggml.{what}_token_id is not set"
            ))
        })?;
        let name = names.get(id as usize).ok_or_else(|| {
            Error::invalid(format!(
                "tokenizer.ggml.{what}_token_id is {id}, the vocabulary has {} tokens",
                names.len()
            ))
        })?;
        Ok((name.clone(), id))
    };
    let mut single = Vec::new();
    let mut tokens: Vec<SpecialToken> = Vec::new();
    let mut add = |name: (String, u32), label: &str| -> Result<String> {
        let token = SpecialToken::new(label.into(), vec![name.1], vec![name.0])
            .map_err(|e| Error::internal(format!("post-processor: {e}")))?;
        tokens.push(token);
        Ok(format!("{label}:0"))
    };
    if add_bos {
        single.push(add(name_of(v.bos_id.or(defaults.bos_id), "bos")?, "<bos>")?);
    }
    single.push("$A:0".to_string());
    if add_eos {
        single.push(add(name_of(v.eos_id.or(defaults.eos_id), "eos")?, "<eos>")?);
    }
    if tokens.is_empty() {
        return Ok(None);
    }
    let failed = |e: String| Error::internal(format!("post-processor: {e}"));
    let template = Template::try_from(single).map_err(|e| failed(e.to_string()))?;
    let processor = TemplateProcessing::builder()
        .try_single(template)
        .map_err(|e| failed(e.to_string()))?
        .special_tokens(tokens)
        .build()
        .map_err(|e| failed(e.to_string()))?;
    Ok(Some(PostProcessorWrapper::Template(processor)))
}
