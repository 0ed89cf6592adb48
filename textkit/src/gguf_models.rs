// SPDX-License-Identifier: Apache-2.0
//! The models that GGUF metadata describes, as pipelines of the `tokenizers` crate without special
//! tokens and post-processor.

use ahash::AHashMap;
use tokenizers::decoders::byte_fallback::ByteFallback;
use tokenizers::decoders::fuse::Fuse;
use tokenizers::decoders::sequence::Sequence as DecoderSequence;
use tokenizers::decoders::strip::Strip as DecoderStrip;
use tokenizers::models::bpe::{Merges, Vocab, BPE};
use tokenizers::models::unigram::Unigram;
use tokenizers::normalizers::prepend::Prepend;
use tokenizers::normalizers::replace::{Replace, ReplacePattern};
use tokenizers::normalizers::strip::Strip;
use tokenizers::normalizers::utils::Sequence as NormalizerSequence;
use tokenizers::normalizers::Precompiled;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{DecoderWrapper, NormalizerWrapper, PreTokenizerWrapper, SplitDelimiterBehavior};

use crate::abi::{Error, Result};
use crate::charsmap;
use crate::gguf::{Kind, Vocabulary};
use crate::gguf_pre::PreTokenizer;
use crate::gguf_scores::merges_from_scores;
use crate::pipeline::Pipeline;

/// U+2581, SentencePiece's visible space.
pub const SPACE: &str = "\u{2581}";

fn failed(error: tokenizers::Error) -> Error {
    Error::invalid(format!("GGUF tokenizer: {error}"))
}

fn vocab_of(names: &[String]) -> Vocab {
    names.iter().enumerate().map(|(id, name)| (name.clone(), id as u32)).collect()
}

/// GPT-2's BPE over bytes written as printable characters, with words cut by `pre`.
pub fn byte_level_bpe(v: &Vocabulary, names: &[String], pre: &PreTokenizer) -> Result<Pipeline> {
    let vocab = vocab_of(names);
    let merges = merges_of(v, &vocab)?;
    let model = BPE::builder()
        .vocab_and_merges(vocab, merges)
        .ignore_merges(pre.ignore_merges)
        .build()
        .map_err(failed)?;
    let mut steps = Vec::new();
    for pattern in pre.patterns {
        steps.push(isolate(pattern)?);
    }
    steps.push(PreTokenizerWrapper::ByteLevel(ByteLevel::new(false, false, false)));
    let mut tokenizer = Pipeline::new(model.into());
    tokenizer.with_pre_tokenizer(Some(Sequence::new(steps)));
    tokenizer.with_decoder(Some(ByteLevel::new(false, false, false)));
    Ok(tokenizer)
}

/// Gemma 4's BPE: SentencePiece's characters and byte tokens, but with merges listed.
pub fn gemma_bpe(v: &Vocabulary, names: &[String]) -> Result<Pipeline> {
    let vocab = vocab_of(names);
    let merges = merges_of(v, &vocab)?;
    let mut tokenizer = Pipeline::new(fallback_bpe(v, names, vocab, merges)?.into());
    tokenizer.with_normalizer(Some(spaces_shown()?)).map_err(failed)?;
    tokenizer.with_pre_tokenizer(Some(isolate(r"[^\n]+|[\n]+")?));
    tokenizer.with_decoder(Some(spaces_back(false)?));
    Ok(tokenizer)
}

/// SentencePiece's BPE as llama.cpp runs it: the pair whose token has the best score merges first,
/// the leftmost of equals.
pub fn scored_bpe(v: &Vocabulary, names: &[String], kinds: &[Kind]) -> Result<Pipeline> {
    if v.scores.is_empty() {
        return Err(Error::invalid("tokenizer.ggml.scores is missing; model \"llama\" needs it"));
    }
    let vocab = vocab_of(names);
    let merges = merges_from_scores(&vocab, names, kinds, v.scores)?;
    let words_end_at_space = names.iter().all(|name| !has_inner_space(name));
    let mut tokenizer = Pipeline::new(fallback_bpe(v, names, vocab, merges)?.into());
    let prefix = v.add_space_prefix.unwrap_or(true);
    let mut steps = Vec::new();
    if prefix {
        steps.push(NormalizerWrapper::Prepend(Prepend::new(SPACE.into())));
    }
    steps.push(spaces_shown()?);
    tokenizer.with_normalizer(Some(NormalizerSequence::new(steps))).map_err(failed)?;
    if words_end_at_space {
        // No token crosses from a word into the space after it, so words may be merged one by one;
        // that is faster, and the cache of the crate finds them again.
        tokenizer.with_pre_tokenizer(Some(isolate(&format!("{SPACE}*[^{SPACE}]+"))?));
    }
    tokenizer.with_decoder(Some(spaces_back(prefix)?));
    Ok(tokenizer)
}

/// SentencePiece's unigram model (T5 and its like).
pub fn unigram(v: &Vocabulary, names: &[String]) -> Result<Pipeline> {
    if v.scores.is_empty() {
        return Err(Error::invalid("tokenizer.ggml.scores is missing; model \"t5\" needs it"));
    }
    // The model adds scores up, and JSON has no infinity.
    if let Some(id) = v.scores.iter().position(|s| !s.is_finite()) {
        return Err(Error::invalid(format!("tokenizer.ggml.scores[{id}] is not a finite number")));
    }
    let unk = v.unk_id.unwrap_or(2) as usize;
    let pieces = names.iter().cloned().zip(v.scores.iter().map(|s| f64::from(*s))).collect();
    let model = Unigram::from(pieces, Some(unk), false).map_err(failed)?;
    let mut steps = Vec::new();
    if !v.charsmap.is_empty() {
        charsmap::check(v.charsmap)?;
        let map = Precompiled::from(v.charsmap)
            .map_err(|e| Error::invalid(format!("tokenizer.ggml.precompiled_charsmap: {e}")))?;
        steps.push(NormalizerWrapper::Precompiled(map));
    }
    if v.remove_extra_whitespaces.unwrap_or(false) {
        steps.push(NormalizerWrapper::StripNormalizer(Strip::new(true, true)));
        let runs = ReplacePattern::Regex(" {2,}".into());
        steps.push(NormalizerWrapper::Replace(Replace::new(runs, " ").map_err(failed)?));
    }
    let prefix = v.add_space_prefix.unwrap_or(true);
    let scheme = if prefix { PrependScheme::Always } else { PrependScheme::Never };
    let mut tokenizer = Pipeline::new(model.into());
    tokenizer.with_normalizer(Some(NormalizerSequence::new(steps))).map_err(failed)?;
    tokenizer.with_pre_tokenizer(Some(Metaspace::new('\u{2581}', scheme, true)));
    tokenizer.with_decoder(Some(Metaspace::new('\u{2581}', scheme, true)));
    Ok(tokenizer)
}

/// BPE whose unknown characters become byte tokens, or the unknown token where those are missing.
fn fallback_bpe(v: &Vocabulary, names: &[String], vocab: Vocab, merges: Merges) -> Result<BPE> {
    let mut builder =
        BPE::builder().vocab_and_merges(vocab, merges).byte_fallback(true).fuse_unk(true);
    if let Some(name) = names.get(v.unk_id.unwrap_or(0) as usize) {
        builder = builder.unk_token(name.clone());
    }
    builder.build().map_err(failed)
}

/// The merges by rank. The first of two equal ones counts in llama.cpp, the last in the crate.
fn merges_of(v: &Vocabulary, vocab: &Vocab) -> Result<Merges> {
    if v.merges.is_empty() {
        return Err(Error::invalid("tokenizer.ggml.merges is missing or empty"));
    }
    let mut seen: AHashMap<(&str, &str), ()> = AHashMap::with_capacity(v.merges.len());
    let mut merges = Vec::with_capacity(v.merges.len());
    for (rank, merge) in v.merges.iter().enumerate() {
        // A token may start with a space, so the separator is the first one after that.
        let skip = merge.chars().next().map_or(0, char::len_utf8);
        let Some((left, right)) = merge[skip..].find(' ').map(|at| merge.split_at(skip + at))
        else {
            return Err(Error::invalid(format!(
                "tokenizer.ggml.merges[{rank}] is {merge:?}, expected two tokens"
            )));
        };
        let right = &right[1..];
        for token in [left, right, &format!("{left}{right}")] {
            if !vocab.contains_key(token) {
                return Err(Error::invalid(format!(
                    "tokenizer.ggml.merges[{rank}] needs {token:?}, which is no token"
                )));
            }
        }
        if seen.insert((left, right), ()).is_none() {
            merges.push((left.to_string(), right.to_string()));
        }
    }
    Ok(merges)
}

fn isolate(pattern: &str) -> Result<PreTokenizerWrapper> {
    let pattern = SplitPattern::Regex(pattern.into());
    let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false).map_err(failed)?;
    Ok(PreTokenizerWrapper::Split(split))
}

fn spaces_shown() -> Result<NormalizerWrapper> {
    Ok(NormalizerWrapper::Replace(Replace::new(" ", SPACE).map_err(failed)?))
}

/// Turns U+2581 and byte tokens back into text; `prefix` takes the space away that encoding added.
fn spaces_back(prefix: bool) -> Result<DecoderWrapper> {
    let mut steps = vec![
        DecoderWrapper::Replace(Replace::new(SPACE, " ").map_err(failed)?),
        DecoderWrapper::ByteFallback(ByteFallback::new()),
        DecoderWrapper::Fuse(Fuse::new()),
    ];
    if prefix {
        steps.push(DecoderWrapper::Strip(DecoderStrip::new(' ', 1, 0)));
    }
    Ok(DecoderWrapper::Sequence(DecoderSequence::new(steps)))
}

/// Whether U+2581 follows another character.
fn has_inner_space(name: &str) -> bool {
    name.trim_start_matches(SPACE).contains(SPACE)
}
