// SPDX-License-Identifier: Apache-2.0
//! Merges of a SentencePiece vocabulary. llama.cpp merges two neighbours whenever their text is a
//! token, the token of the best score first and the leftmost of equals. The BPE of the `tokenizers`
//! crate wants a list of pairs instead; this makes the list that leads to the same tokens.

use tokenizers::models::bpe::{Merges, Vocab};

use crate::abi::{Error, Result};

/// All pairs of tokens that make a token, best score first. Equal scores: the smaller id first, and
/// of one token's pairs the one with the longer left part, which is what a run of equal characters
/// merged from the left looks like.
pub fn merges_from_scores(vocab: &Vocab, names: &[String], scores: &[f32]) -> Result<Merges> {
    if let Some(id) = scores.iter().position(|s| s.is_nan()) {
        return Err(Error::invalid(format!("tokenizer.ggml.scores[{id}] is not a number")));
    }
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    let mut merges = Vec::new();
    for id in order {
        let name = names[id].as_str();
        for (at, _) in name.char_indices().skip(1).collect::<Vec<_>>().into_iter().rev() {
            let (left, right) = name.split_at(at);
            if vocab.contains_key(left) && vocab.contains_key(right) {
                merges.push((left.to_string(), right.to_string()));
            }
        }
    }
    Ok(merges)
}
