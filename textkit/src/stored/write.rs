// SPDX-License-Identifier: Apache-2.0
//! A pipeline -> the bytes of its stored form.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokenizers::models::bpe::{Vocab, BPE};
use tokenizers::ModelWrapper;

use super::table::{self, Parts, MAX_IDS, MAX_TABLE_BYTES};
use super::{Added, Options, Rest};
use crate::abi::{Error, Result};
use crate::pipeline::{AnyModel, Pipeline};

/// What the crate tells of a BPE model only by writing it.
#[derive(Deserialize)]
struct Written {
    vocab: Vocab,
    merges: Vec<(String, String)>,
}

fn unstorable(why: impl std::fmt::Display) -> Error {
    Error::unimplemented(format!("no stored form: {why}"))
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::internal(format!("writing the stored tokenizer: {error}"))
}

/// `Unimplemented` says why this pipeline has no stored form.
pub fn write(pipeline: &Pipeline) -> Result<Vec<u8>> {
    let model = match pipeline.get_model() {
        AnyModel::Stored(model) => return Ok(model.table().bytes().to_vec()),
        AnyModel::Library(ModelWrapper::BPE(model)) => model,
        AnyModel::Library(_) => return Err(unstorable("its model is not BPE")),
    };
    if model.dropout.is_some_and(|p| p != 0.0) {
        return Err(unstorable("its model drops merges by chance"));
    }
    let json = serde_json::to_string(model).map_err(failed)?;
    let written: Written = serde_json::from_str(&json).map_err(failed)?;
    drop(json);
    let tokens = by_id(&written.vocab)?;
    let merges = merges(model, &written)?;
    let crowded = || unstorable("its tokens crowd the hash tables");
    let (ends, text) = table::pack_tokens(&tokens);
    let mut words: Vec<(&str, u32)> =
        written.vocab.iter().map(|(token, id)| (token.as_str(), *id)).collect();
    words.sort_unstable_by_key(|(_, id)| *id);
    let file = table::join(&Parts {
        ids: tokens.len() as u32,
        tokens: words.len() as u32,
        merges: merges.len() as u32,
        json: serde_json::to_vec(&rest(pipeline, model)?).map_err(failed)?,
        ends,
        text,
        words: table::pack_words(words.into_iter()).ok_or_else(crowded)?,
        pairs: table::pack_merges(&merges).ok_or_else(crowded)?,
    });
    match file.len() <= MAX_TABLE_BYTES {
        true => Ok(file),
        false => {
            Err(unstorable(format_args!("{} bytes, the limit is {MAX_TABLE_BYTES}", file.len())))
        }
    }
}

fn by_id(vocab: &Vocab) -> Result<Vec<Option<&str>>> {
    let ids = vocab.values().max().map_or(0, |id| *id as usize + 1);
    // Gaps cost four bytes each; a vocabulary with more gaps than tokens is a freak.
    if ids > MAX_IDS || ids > 2 * vocab.len() + 1024 {
        return Err(unstorable(format_args!("{} tokens over {ids} ids", vocab.len())));
    }
    let bytes: usize = vocab.keys().map(String::len).sum();
    if bytes > MAX_TABLE_BYTES {
        return Err(unstorable(format_args!("{bytes} bytes of tokens")));
    }
    let mut tokens = vec![None; ids];
    for (token, id) in vocab {
        if tokens[*id as usize].replace(token.as_str()).is_some() {
            return Err(unstorable(format_args!("two tokens of id {id}")));
        }
    }
    Ok(tokens)
}

/// (left, right, result) by rank.
fn merges(model: &BPE, written: &Written) -> Result<Vec<(u32, u32, u32)>> {
    if written.merges.len() > MAX_IDS {
        return Err(unstorable(format_args!("{} merges", written.merges.len())));
    }
    let prefix = model.continuing_subword_prefix.as_ref().map_or(0, String::len);
    let find = |token: &str| {
        written.vocab.get(token).copied().ok_or_else(|| failed(format_args!("no token {token:?}")))
    };
    let merge = |(left, right): &(String, String)| {
        let rest =
            right.get(prefix..).ok_or_else(|| failed(format_args!("merge with {right:?}")))?;
        Ok((find(left)?, find(right)?, find(&format!("{left}{rest}"))?))
    };
    written.merges.iter().map(merge).collect()
}

fn rest(pipeline: &Pipeline, model: &BPE) -> Result<Rest> {
    let mut added: Vec<Added> = pipeline
        .get_added_vocabulary()
        .get_added_tokens_decoder()
        .iter()
        .map(|(id, token)| Added { id: *id, token: token.clone() })
        .collect();
    added.sort_unstable_by_key(|added| added.id);
    fn value<T: Serialize>(part: Option<&T>) -> Result<Value> {
        serde_json::to_value(part).map_err(failed)
    }
    Ok(Rest {
        model: Options {
            unk_token: model.unk_token.clone(),
            continuing_subword_prefix: model.continuing_subword_prefix.clone(),
            end_of_word_suffix: model.end_of_word_suffix.clone(),
            fuse_unk: model.fuse_unk,
            byte_fallback: model.byte_fallback,
            ignore_merges: model.ignore_merges,
        },
        added_tokens: added,
        normalizer: value(pipeline.get_normalizer())?,
        pre_tokenizer: value(pipeline.get_pre_tokenizer())?,
        post_processor: value(pipeline.get_post_processor())?,
        decoder: value(pipeline.get_decoder())?,
    })
}
