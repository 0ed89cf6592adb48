// SPDX-License-Identifier: Apache-2.0
//! Tokenizer: one pipeline of the `tokenizers` crate plus what a server needs around it: text whose
//! special tokens are not recognised, checked ids, raw bytes of a token, a streaming decoder.
//!
//! The steps of `tokenizers::Tokenizer::encode` are called one by one, because the crate can only
//! switch the recognition of special tokens on a tokenizer that nobody else uses, and because its
//! `Encoding` (offsets, words, masks) costs more than the ids that we want from it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tokenizers::{
    AddedToken, AddedVocabulary, Encoding, Model, OffsetReferential, OffsetType, PreTokenizer,
    Token,
};

use crate::abi::{catch, Code, Error, Result};
use crate::pipeline::Pipeline;
use crate::stored::{self, Bytes};
use crate::tokenizer_decode::Chain;

/// Sizes that a hostile file or request could inflate; `src/text/limits.h` repeats them.
pub const MAX_JSON_BYTES: usize = 256 << 20;
pub const MAX_ENCODE_BYTES: usize = 8 << 20;
pub const MAX_DECODE_TOKENS: usize = 16 << 20;
/// Ids are at most this; the largest vocabulary we know has 262,144 tokens.
pub const MAX_TOKEN_ID: u32 = (1 << 24) - 1;

/// Stands for the text where the post-processor is asked what it puts around it.
const TEXT_MARKER: u32 = u32::MAX;

pub struct Tokenizer {
    inner: Pipeline,
    /// The added tokens that stay when special ones are plain text, and their ids in `inner`.
    plain: AddedVocabulary,
    plain_ids: HashMap<u32, u32>,
    special: HashSet<u32>,
    /// What the post-processor puts before and after the text.
    prefix: Vec<u32>,
    suffix: Vec<u32>,
    chain: Arc<Chain>,
    size: u32,
}

impl Tokenizer {
    /// Reads tokenizer.json. Whatever is wrong with it is one `InvalidArgument`.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        if json.len() > MAX_JSON_BYTES {
            return Err(Error::exhausted(format!(
                "tokenizer.json has {} bytes, the limit is {MAX_JSON_BYTES}",
                json.len()
            )));
        }
        let text = crate::abi::utf8(json, "tokenizer.json")?;
        // Several deserializers of the crate `expect` or index; a panic there is the file's fault.
        catch(|| {
            crate::charsmap::check_json(text)?;
            let inner = serde_json::from_str::<Pipeline>(text)
                .map_err(|e| Error::invalid(format!("tokenizer.json: {e}")))?;
            Self::new(inner)
        })
        .map_err(|e| match e.code {
            Code::Internal => Error::invalid(format!("tokenizer.json is malformed: {}", e.message)),
            _ => e,
        })
    }

    /// Opens a stored form. `InvalidArgument` for damage, `Unimplemented` for another version.
    pub fn from_table(bytes: Bytes) -> Result<Self> {
        catch(|| Self::new(stored::read(bytes)?)).map_err(|e| match e.code {
            Code::Internal => {
                Error::invalid(format!("stored tokenizer is malformed: {}", e.message))
            }
            _ => e,
        })
    }

    /// The stored form, which gives what this tokenizer gives: compared before it is returned.
    /// `Unimplemented` says why this tokenizer has none.
    pub fn to_table(&self) -> Result<Vec<u8>> {
        catch(|| {
            let bytes = stored::write(&self.inner)?;
            stored::prove(self, &Self::from_table(Bytes::Owned(bytes.clone()))?)?;
            Ok(bytes)
        })
    }

    pub fn pipeline(&self) -> &Pipeline {
        &self.inner
    }

    /// Wraps a pipeline, checks it and precomputes what calls need.
    pub fn new(mut inner: Pipeline) -> Result<Self> {
        // A server must not cut or pad a prompt on its own; transformers switches both off too.
        inner
            .with_truncation(None)
            .map_err(|e| Error::invalid(format!("tokenizer.json: truncation: {e}")))?;
        inner.with_padding(None);
        if let Some(normalizer) = inner.get_normalizer() {
            crate::charsmap::check_normalizer(normalizer)?;
        }
        let size = vocabulary_size(&inner)?;
        let (prefix, suffix) = surroundings(&inner)?;
        if let Some(id) = prefix.iter().chain(&suffix).find(|id| **id >= size) {
            return Err(Error::invalid(format!(
                "tokenizer.json: post_processor adds token {id}, the vocabulary ends at {}",
                size.saturating_sub(1)
            )));
        }
        let chain = Arc::new(Chain::new(inner.get_decoder())?);
        let (plain, plain_ids) = plain_vocabulary(&inner)?;
        let special = inner
            .get_added_vocabulary()
            .get_added_tokens_decoder()
            .iter()
            .filter(|(_, token)| token.special)
            .map(|(id, _)| *id)
            .collect();
        Ok(Tokenizer { inner, plain, plain_ids, special, prefix, suffix, chain, size })
    }

    pub fn encode(&self, text: &str, add_special: bool, parse_special: bool) -> Result<Vec<u32>> {
        if text.len() > MAX_ENCODE_BYTES {
            return Err(Error::exhausted(format!(
                "text to tokenize has {} bytes, the limit is {MAX_ENCODE_BYTES}",
                text.len()
            )));
        }
        catch(|| self.encode_text(text, add_special, parse_special)).map_err(|e| {
            // Oniguruma stops a match that backtracks too often, and its binding panics then.
            match e.code {
                Code::Internal if e.message.contains("retry-limit") => Error::exhausted(
                    "text to tokenize needs too much backtracking in the pre-tokenizer's pattern",
                ),
                _ => e,
            }
        })
    }

    fn encode_text(&self, text: &str, add_special: bool, parse_special: bool) -> Result<Vec<u32>> {
        let added = if parse_special { self.inner.get_added_vocabulary() } else { &self.plain };
        let mut pieces = added.extract_and_normalize(self.inner.get_normalizer(), text);
        if let Some(pre_tokenizer) = self.inner.get_pre_tokenizer() {
            pre_tokenizer.pre_tokenize(&mut pieces).map_err(failed_encoding)?;
        }
        let mut ids = Vec::with_capacity(text.len() / 3 + 2);
        if add_special {
            ids.extend_from_slice(&self.prefix);
        }
        let model = self.inner.get_model();
        for (piece, _, tokens) in pieces.get_splits(OffsetReferential::Normalized, OffsetType::None)
        {
            match tokens {
                // Only added tokens have been recognised so far.
                Some(found) if parse_special => ids.extend(found.iter().map(|t| t.id)),
                Some(found) => ids.extend(found.iter().map(|t| self.plain_ids[&t.id])),
                None => model.append_ids(piece, &mut ids).map_err(failed_encoding)?,
            }
        }
        if add_special {
            ids.extend_from_slice(&self.suffix);
        }
        Ok(ids)
    }

    pub fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String> {
        if ids.len() > MAX_DECODE_TOKENS {
            return Err(Error::exhausted(format!(
                "{} tokens to decode, the limit is {MAX_DECODE_TOKENS}",
                ids.len()
            )));
        }
        for id in ids {
            self.check(*id)?;
        }
        catch(|| {
            self.inner
                .decode(ids, skip_special)
                .map_err(|e| Error::internal(format!("decoding tokens: {e}")))
        })
    }

    /// Refuses ids that the vocabulary does not have.
    pub fn check(&self, id: u32) -> Result<()> {
        if id < self.size {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "token id {} is outside the vocabulary of {} tokens",
            id as i32, self.size
        )))
    }

    /// One past the largest id, added tokens included.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The token as the decoder gets it; none for an id that the vocabulary leaves out.
    pub fn token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// The token as the vocabulary spells it.
    pub fn token_text(&self, id: u32) -> Option<String> {
        let added = self.inner.get_added_vocabulary().get_added_tokens_decoder();
        match added.get(&id) {
            Some(token) => Some(token.content.clone()),
            None => self.inner.get_model().id_to_token(id),
        }
    }

    /// The bytes that the token adds to a text, in its middle.
    pub fn token_bytes(&self, id: u32) -> Vec<u8> {
        self.token(id).map(|t| self.chain.token_bytes(&t)).unwrap_or_default()
    }

    pub fn is_special(&self, id: u32) -> bool {
        self.special.contains(&id)
    }

    /// The special tokens, ascending.
    pub fn special_ids(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = self.special.iter().copied().collect();
        ids.sort_unstable();
        ids
    }

    pub fn find(&self, text: &str) -> Option<u32> {
        self.inner.token_to_id(text)
    }

    pub fn chain(&self) -> &Arc<Chain> {
        &self.chain
    }

    /// Whether decoding with `skip_special` leaves this token out.
    pub fn is_skipped(&self, token: &str) -> bool {
        self.inner.get_added_vocabulary().is_special_token(token)
    }

    pub fn to_json(&self) -> Result<String> {
        catch(|| {
            self.inner
                .to_string(false)
                .map_err(|e| Error::internal(format!("writing tokenizer.json: {e}")))
        })
    }
}

fn failed_encoding(error: tokenizers::Error) -> Error {
    Error::invalid(format!("tokenizing text: {error}"))
}

/// One past the largest id. Refuses ids beyond `MAX_TOKEN_ID` and two tokens of one id, which the
/// crate would decode to either of them by chance.
fn vocabulary_size(inner: &Pipeline) -> Result<u32> {
    let added = inner.get_added_vocabulary().get_added_tokens_decoder();
    let model = inner.get_model();
    let count = u32::try_from(model.get_vocab_size()).unwrap_or(u32::MAX);
    // Tokens that fill 0..count have distinct ids; the usual case, and cheap to see.
    let mut size = count;
    if count > MAX_TOKEN_ID || !model.is_dense() {
        let vocabulary = model.get_vocab();
        let ids: HashSet<u32> = vocabulary.values().copied().collect();
        if ids.len() != vocabulary.len() {
            return Err(Error::invalid(format!(
                "tokenizer.json: {} tokens share {} ids",
                vocabulary.len(),
                ids.len()
            )));
        }
        size = ids.iter().max().map_or(0, |id| id.saturating_add(1));
    }
    size = added.keys().map(|id| id.saturating_add(1)).max().unwrap_or(0).max(size);
    if size > MAX_TOKEN_ID + 1 {
        return Err(Error::exhausted(format!(
            "tokenizer.json: token id {} is above the limit of {MAX_TOKEN_ID}",
            size - 1
        )));
    }
    Ok(size)
}

/// What the post-processor puts around a text, found by giving it a text of one marked token.
fn surroundings(inner: &Pipeline) -> Result<(Vec<u32>, Vec<u32>)> {
    let marked = Encoding::from_tokens(vec![Token::new(TEXT_MARKER, "x".into(), (0, 1))], 0);
    let ids = inner
        .post_process(marked, None, true)
        .map_err(|e| Error::invalid(format!("tokenizer.json: post_processor: {e}")))?
        .get_ids()
        .to_vec();
    let places: Vec<usize> =
        ids.iter().enumerate().filter(|(_, id)| **id == TEXT_MARKER).map(|(i, _)| i).collect();
    match places[..] {
        [at] => Ok((ids[..at].to_vec(), ids[at + 1..].to_vec())),
        _ => Err(Error::invalid(format!(
            "tokenizer.json: post_processor uses the text {} times, expected once",
            places.len()
        ))),
    }
}

/// Whether text that spells the token must not become it when special tokens are plain text.
/// Besides those marked special this holds for names in the brackets of chat markers, which some
/// published files (DeepSeek V3) fail to mark.
fn is_control(token: &AddedToken) -> bool {
    let name = token.content.as_str();
    token.special
        || (name.starts_with("<|") && name.ends_with("|>"))
        || (name.starts_with("<\u{ff5c}") && name.ends_with("\u{ff5c}>"))
}

/// The added tokens without the control ones. They get ids of their own there; the map leads back.
fn plain_vocabulary(inner: &Pipeline) -> Result<(AddedVocabulary, HashMap<u32, u32>)> {
    let all = inner.get_added_vocabulary().get_added_tokens_decoder();
    let mut kept: Vec<(&u32, &AddedToken)> = all.iter().filter(|(_, t)| !is_control(t)).collect();
    kept.sort_unstable_by_key(|(id, _)| **id);
    let mut plain = AddedVocabulary::new();
    plain
        .add_tokens(
            kept.iter().map(|(_, token)| (*token).clone()),
            inner.get_model(),
            inner.get_normalizer(),
        )
        .map_err(|e| Error::invalid(format!("tokenizer.json: added_tokens: {e}")))?;
    let ids = kept
        .iter()
        .filter_map(|(id, token)| Some((*plain.get_vocab().get(&token.content)?, **id)))
        .collect();
    Ok((plain, ids))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_TOKENS: &str = r#"{"version":"1.0","added_tokens":[
        {"id":2,"content":"<|x|>","single_word":false,"lstrip":false,"rstrip":false,
         "normalized":false,"special":false},
        {"id":3,"content":"<t>","single_word":false,"lstrip":false,"rstrip":false,
         "normalized":false,"special":false}],
        "post_processor":POST,
        "model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":[]}}"#;

    fn with_post(post: &str) -> Result<Tokenizer> {
        Tokenizer::from_json(TWO_TOKENS.replace("POST", post).as_bytes())
    }

    fn template(pieces: &str) -> String {
        format!(
            r#"{{"type":"TemplateProcessing","single":[{pieces}],"pair":[
                {{"Sequence":{{"id":"A","type_id":0}}}},{{"Sequence":{{"id":"B","type_id":1}}}}],
                "special_tokens":{{"s":{{"id":"s","ids":[1,0],"tokens":["b","a"]}}}}}}"#
        )
    }

    const TEXT: &str = r#"{"Sequence":{"id":"A","type_id":0}}"#;
    const SPECIAL: &str = r#"{"SpecialToken":{"id":"s","type_id":0}}"#;

    #[test]
    fn what_the_template_puts_around_the_text_is_added_on_request_only() {
        let tokenizer = with_post(&template(&format!("{SPECIAL},{TEXT},{SPECIAL}"))).unwrap();
        assert_eq!(tokenizer.encode("a", true, true).unwrap(), [1, 0, 0, 1, 0]);
        assert_eq!(tokenizer.encode("a", false, true).unwrap(), [0]);
        assert_eq!(tokenizer.encode("", true, true).unwrap(), [1, 0, 1, 0]);
    }

    #[test]
    fn a_template_without_the_text_or_with_it_twice_is_refused() {
        for pieces in [SPECIAL.to_string(), format!("{TEXT},{TEXT}")] {
            let error = with_post(&template(&pieces)).err().expect("refused");
            assert_eq!(error.code, Code::InvalidArgument);
            assert!(error.message.contains("post_processor"), "{}", error.message);
        }
    }

    #[test]
    fn plain_text_keeps_the_ids_of_the_tokens_that_stay() {
        let tokenizer = with_post("null").unwrap();
        assert_eq!(tokenizer.encode("a<|x|><t>", false, true).unwrap(), [0, 2, 3]);
        // "<|x|>" is a chat marker by its brackets; its characters are no tokens here.
        assert_eq!(tokenizer.encode("a<|x|><t>", false, false).unwrap(), [0, 3]);
    }

    #[test]
    fn a_panic_of_a_deserializer_is_the_files_fault() {
        let json = r#"{"version":"1.0","decoder":7,"model":{"type":"BPE","vocab":{},"merges":[]}}"#;
        let error = Tokenizer::from_json(json.as_bytes()).err().expect("refused");
        assert_eq!(error.code, Code::InvalidArgument);
    }
}
