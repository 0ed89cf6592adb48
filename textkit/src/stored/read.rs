// SPDX-License-Identifier: Apache-2.0
//! The bytes of a stored tokenizer -> a pipeline that reads them in place.

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokenizers::{NormalizerWrapper, TokenizerBuilder};

use super::bpe::StoredBpe;
use super::table::{Bytes, Table};
use super::Rest;
use crate::abi::{Error, Result};
use crate::charsmap;
use crate::pipeline::{AnyModel, Pipeline};

/// `InvalidArgument` for damage, `Unimplemented` for another version of the format.
pub fn read(bytes: Bytes) -> Result<Pipeline> {
    let table = Table::open(bytes)?;
    let rest: Rest = serde_json::from_slice(table.json())
        .map_err(|e| Error::invalid(format!("stored tokenizer: its JSON: {e}")))?;
    let normalizer: Option<NormalizerWrapper> = part("normalizer", rest.normalizer)?;
    if let Some(normalizer) = &normalizer {
        charsmap::check_normalizer(normalizer)?; // Before added tokens pass through it.
    }
    let model = StoredBpe::new(table, rest.model);
    let mut pipeline: Pipeline = TokenizerBuilder::new()
        .with_model(AnyModel::Stored(model))
        .with_normalizer(normalizer)
        .with_pre_tokenizer(part("pre_tokenizer", rest.pre_tokenizer)?)
        .with_post_processor(part("post_processor", rest.post_processor)?)
        .with_decoder(part("decoder", rest.decoder)?)
        .build()
        .map_err(|e| Error::invalid(format!("stored tokenizer: {e}")))?;
    let expected: Vec<u32> = rest.added_tokens.iter().map(|added| added.id).collect();
    let tokens: Vec<_> = rest.added_tokens.into_iter().map(|added| added.token).collect();
    pipeline
        .add_tokens(tokens.iter().cloned())
        .map_err(|e| Error::invalid(format!("stored tokenizer: added tokens: {e}")))?;
    for (token, id) in tokens.iter().zip(expected) {
        let given = pipeline.get_added_vocabulary().get_vocab().get(&token.content);
        if given != Some(&id) {
            return Err(Error::invalid(format!(
                "stored tokenizer: added token {:?} gets id {given:?}, it should be {id}",
                token.content
            )));
        }
    }
    Ok(pipeline)
}

fn part<T: DeserializeOwned>(name: &str, value: Value) -> Result<Option<T>> {
    serde_json::from_value(value)
        .map_err(|e| Error::invalid(format!("stored tokenizer: {name}: {e}")))
}
