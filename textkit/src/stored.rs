// SPDX-License-Identifier: Apache-2.0
//! The stored form of a BPE tokenizer: one flat file that is mapped and used where it lies, so that
//! loading costs milliseconds whatever the size of the vocabulary.
//!
//! Read in this order: `table` (the bytes: layout, checks, look-ups), `bpe` (the model over them),
//! `write` (a pipeline to bytes), `read` (bytes to a pipeline), `prove` (that both give the same).

mod bpe;
mod prove;
mod read;
mod table;
mod write;

pub use bpe::StoredBpe;
pub use prove::prove;
pub use read::read;
pub use table::{Bytes, Release, MAX_TABLE_BYTES};
pub use write::write;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokenizers::AddedToken;

/// What tokenizer.json says beside the large tables, as the file's JSON section spells it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rest {
    model: Options,
    added_tokens: Vec<Added>,
    normalizer: Value,
    pre_tokenizer: Value,
    post_processor: Value,
    decoder: Value,
}

/// An added token with the id that it must get.
#[derive(Serialize, Deserialize, Clone, PartialEq)]
struct Added {
    id: u32,
    #[serde(flatten)]
    token: AddedToken,
}

/// The switches of a BPE model; the names are those of tokenizer.json.
#[derive(Serialize, Deserialize, Clone, Default, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
pub struct Options {
    unk_token: Option<String>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    fuse_unk: bool,
    byte_fallback: bool,
    ignore_merges: bool,
}

impl Options {
    /// What the right part of a merge leaves out.
    fn prefix_bytes(&self) -> usize {
        self.continuing_subword_prefix.as_ref().map_or(0, String::len)
    }
}
