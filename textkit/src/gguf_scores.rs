// SPDX-License-Identifier: Apache-2.0
//! Merges of a SentencePiece vocabulary. llama.cpp merges two neighbours whenever their text is a
//! token, the token of the best score first and the leftmost of equals. The BPE of the `tokenizers`
//! crate wants a list of pairs instead; this makes the list that leads to the same tokens.

use tokenizers::models::bpe::{Merges, Vocab};

use crate::abi::{Error, Result};
use crate::gguf::Kind;

/// All pairs of tokens that make a token, best score first. Equal scores: the smaller id first, and
/// of one token's pairs the one with the longer left part, which is what a run of equal characters
/// merged from the left looks like. No pair makes a special token: text must not become one (where
/// the vocabulary has its parts, llama.cpp lets it).
pub fn merges_from_scores(
    vocab: &Vocab,
    names: &[String],
    kinds: &[Kind],
    scores: &[f32],
) -> Result<Merges> {
    if let Some(id) = scores.iter().position(|s| s.is_nan()) {
        return Err(Error::invalid(format!("tokenizer.ggml.scores[{id}] is not a number")));
    }
    let mut order: Vec<usize> = (0..names.len()).filter(|id| kinds[*id] != Kind::Special).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    let mut merges = Vec::new();
    for id in order {
        let name = names[id].as_str();
        for (at, _) in name.char_indices().rev().filter(|(at, _)| *at > 0) {
            let (left, right) = name.split_at(at);
            if vocab.contains_key(left) && vocab.contains_key(right) {
                merges.push((left.to_string(), right.to_string()));
            }
        }
    }
    Ok(merges)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merges(names: &[&str], kinds: &[Kind], scores: &[f32]) -> Vec<String> {
        let names: Vec<String> = names.iter().map(|n| n.to_string()).collect();
        let vocab = names.iter().enumerate().map(|(i, n)| (n.clone(), i as u32)).collect();
        let merges = merges_from_scores(&vocab, &names, kinds, scores).expect("scores are fine");
        merges.into_iter().map(|(a, b)| format!("{a} {b}")).collect()
    }

    #[test]
    fn best_score_first_and_longer_left_part_first() {
        let names = ["a", "aa", "aaa", "b", "ab"];
        let scores = [-9.0, -2.0, -3.0, -9.0, -1.0];
        assert_eq!(merges(&names, &[Kind::Normal; 5], &scores), ["a b", "a a", "aa a", "a aa"]);
    }

    #[test]
    fn no_merge_makes_a_special_token() {
        let names = ["<", "s>", "<s>"];
        let kinds = [Kind::Normal, Kind::Normal, Kind::Special];
        assert!(merges(&names, &kinds, &[0.0; 3]).is_empty());
    }

    #[test]
    fn scores_that_are_no_numbers_are_refused() {
        let names = vec!["a".to_string()];
        let vocab = Vocab::from_iter([("a".to_string(), 0)]);
        assert!(merges_from_scores(&vocab, &names, &[Kind::Normal], &[f32::NAN]).is_err());
    }
}
