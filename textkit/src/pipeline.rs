// SPDX-License-Identifier: Apache-2.0
//! The pipeline that a tokenizer runs: the crate's, over a model that is either the crate's own or
//! the stored one, which is used where it lies in a file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tokenizers::models::bpe::{BpeTrainer, BPE};
use tokenizers::models::unigram::Unigram;
use tokenizers::models::TrainerWrapper;
use tokenizers::{
    DecoderWrapper, Model, ModelWrapper, NormalizerWrapper, PostProcessorWrapper,
    PreTokenizerWrapper, Token, TokenizerImpl,
};

use crate::stored::StoredBpe;

pub type Pipeline = TokenizerImpl<
    AnyModel,
    NormalizerWrapper,
    PreTokenizerWrapper,
    PostProcessorWrapper,
    DecoderWrapper,
>;

/// One of the two, by the methods of the crate's trait. Both give the same.
// A pipeline has one model, so that nothing is won by boxing the larger one.
#[allow(clippy::large_enum_variant)]
pub enum AnyModel {
    Library(ModelWrapper),
    Stored(StoredBpe),
}

impl AnyModel {
    /// Appends the ids of a piece of text: `tokenize` without what only an `Encoding` needs.
    pub fn append_ids(&self, piece: &str, ids: &mut Vec<u32>) -> tokenizers::Result<()> {
        match self {
            AnyModel::Library(model) => ids.extend(model.tokenize(piece)?.iter().map(|t| t.id)),
            AnyModel::Stored(model) => model.append_ids(piece, ids)?,
        }
        Ok(())
    }

    /// Whether the tokens fill the ids from 0 on, each with one of its own.
    pub fn is_dense(&self) -> bool {
        match self {
            AnyModel::Library(model) => {
                let count = u32::try_from(model.get_vocab_size()).unwrap_or(u32::MAX);
                count != u32::MAX && (0..count).all(|id| model.id_to_token(id).is_some())
            }
            AnyModel::Stored(model) => model.is_dense(),
        }
    }
}

impl From<BPE> for AnyModel {
    fn from(model: BPE) -> Self {
        AnyModel::Library(model.into())
    }
}

impl From<Unigram> for AnyModel {
    fn from(model: Unigram) -> Self {
        AnyModel::Library(model.into())
    }
}

impl Model for AnyModel {
    type Trainer = TrainerWrapper;

    fn tokenize(&self, sequence: &str) -> tokenizers::Result<Vec<Token>> {
        match self {
            AnyModel::Library(model) => model.tokenize(sequence),
            AnyModel::Stored(_) => Err("a stored model gives ids, no tokens with offsets".into()),
        }
    }

    fn token_to_id(&self, token: &str) -> Option<u32> {
        match self {
            AnyModel::Library(model) => model.token_to_id(token),
            AnyModel::Stored(model) => model.find(token),
        }
    }

    fn id_to_token(&self, id: u32) -> Option<String> {
        match self {
            AnyModel::Library(model) => model.id_to_token(id),
            AnyModel::Stored(model) => model.token(id).map(str::to_string),
        }
    }

    fn get_vocab(&self) -> HashMap<String, u32> {
        match self {
            AnyModel::Library(model) => model.get_vocab(),
            AnyModel::Stored(model) => {
                model.tokens().map(|(id, token)| (token.to_string(), id)).collect()
            }
        }
    }

    fn get_vocab_size(&self) -> usize {
        match self {
            AnyModel::Library(model) => model.get_vocab_size(),
            AnyModel::Stored(model) => model.token_count(),
        }
    }

    fn save(&self, folder: &Path, prefix: Option<&str>) -> tokenizers::Result<Vec<PathBuf>> {
        match self {
            AnyModel::Library(model) => model.save(folder, prefix),
            AnyModel::Stored(model) => model.to_library()?.save(folder, prefix),
        }
    }

    fn get_trainer(&self) -> TrainerWrapper {
        match self {
            AnyModel::Library(model) => model.get_trainer(),
            AnyModel::Stored(_) => BpeTrainer::default().into(),
        }
    }
}

impl Serialize for AnyModel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            AnyModel::Library(model) => model.serialize(serializer),
            AnyModel::Stored(model) => {
                model.to_library().map_err(serde::ser::Error::custom)?.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for AnyModel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ModelWrapper::deserialize(deserializer).map(AnyModel::Library)
    }
}
