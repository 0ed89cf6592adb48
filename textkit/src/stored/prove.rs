// SPDX-License-Identifier: Apache-2.0
//! That a stored tokenizer gives what its original gives: every token both ways, every merge, the
//! small parts as JSON, and the ids and texts of a sample that visits every token and every
//! character of Unicode's first plane.

use serde::Serialize;
use tokenizers::models::bpe::BPE;
use tokenizers::{Model, ModelWrapper};

use crate::abi::{Error, Result};
use crate::pipeline::{AnyModel, Pipeline};
use crate::tokenizer::Tokenizer;

use super::StoredBpe;

fn differs(what: impl std::fmt::Display) -> Error {
    Error::internal(format!("the stored tokenizer differs from its original: {what}"))
}

/// `Internal` names the first difference.
pub fn prove(original: &Tokenizer, stored: &Tokenizer) -> Result<()> {
    let (before, after) = (original.pipeline(), stored.pipeline());
    if original.size() != stored.size() || original.special_ids() != stored.special_ids() {
        return Err(differs("size or special tokens"));
    }
    same_part("normalizer", before.get_normalizer(), after.get_normalizer())?;
    same_part("pre_tokenizer", before.get_pre_tokenizer(), after.get_pre_tokenizer())?;
    same_part("post_processor", before.get_post_processor(), after.get_post_processor())?;
    same_part("decoder", before.get_decoder(), after.get_decoder())?;
    same_part(
        "added_tokens",
        Some(before.get_added_vocabulary()),
        Some(after.get_added_vocabulary()),
    )?;
    if before.get_added_vocabulary().get_vocab() != after.get_added_vocabulary().get_vocab() {
        return Err(differs("names of added tokens"));
    }
    same_tokens(original, stored)?;
    if let (AnyModel::Library(ModelWrapper::BPE(model)), AnyModel::Stored(copy)) =
        (before.get_model(), after.get_model())
    {
        same_model(before, model, copy)?;
    }
    same_encoding(original, stored)
}

fn same_part<T: Serialize>(name: &str, before: Option<&T>, after: Option<&T>) -> Result<()> {
    let json = |part| serde_json::to_value(part).map_err(|e| differs(format_args!("{name}: {e}")));
    if json(before)? != json(after)? {
        return Err(differs(name));
    }
    Ok(())
}

fn same_tokens(original: &Tokenizer, stored: &Tokenizer) -> Result<()> {
    for id in 0..original.size() {
        let text = original.token_text(id);
        let is_same = text == stored.token_text(id)
            && original.token(id) == stored.token(id)
            && original.token_bytes(id) == stored.token_bytes(id);
        if !is_same {
            return Err(differs(format_args!("token {id}")));
        }
        if let Some(text) = text {
            if original.find(&text) != stored.find(&text) {
                return Err(differs(format_args!("id of {text:?}")));
            }
        }
    }
    Ok(())
}

fn same_model(before: &Pipeline, model: &BPE, copy: &StoredBpe) -> Result<()> {
    let vocab = model.get_vocab();
    let table = copy.table();
    if vocab.len() != copy.token_count() || table.word_count() != vocab.len() {
        return Err(differs("number of tokens"));
    }
    for (token, id) in &vocab {
        if copy.find(token) != Some(*id) || copy.token(*id) != Some(token) {
            return Err(differs(format_args!("token {id}")));
        }
    }
    // The crate shows its merges only by writing the model: all of it, options included.
    let json = |m: &BPE| serde_json::to_string(m).map_err(differs);
    let again = copy.to_library().map_err(differs)?;
    if json(model)? != json(&again)? || table.all_merges().count() != table.merge_count() {
        return Err(differs("merges or options"));
    }
    for (left, right, merge) in table.all_merges() {
        // What the rebuilt model took from the two texts, and what a search finds.
        let (a, b) = (copy.token(left).unwrap_or_default(), copy.token(right).unwrap_or_default());
        let prefix = copy.options().prefix_bytes();
        let whole = format!("{a}{}", b.get(prefix..).unwrap_or_default());
        let result = before.get_model().token_to_id(&whole);
        if table.merge(left, right) != Some(merge) || result != Some(merge.1) {
            return Err(differs(format_args!("merge of {left} and {right}")));
        }
    }
    Ok(())
}

fn same_encoding(original: &Tokenizer, stored: &Tokenizer) -> Result<()> {
    for text in TEXTS {
        for special in [true, false] {
            same_ids(original, stored, text, special)?;
        }
    }
    for (i, text) in sample(original).iter().enumerate() {
        same_ids(original, stored, text, i % 2 == 0)?;
    }
    Ok(())
}

fn same_ids(original: &Tokenizer, stored: &Tokenizer, text: &str, special: bool) -> Result<()> {
    let expected = original.encode(text, special, special);
    if expected != stored.encode(text, special, special) {
        return Err(differs(format_args!("ids of {:.80}", format!("{text:?}"))));
    }
    match expected {
        Ok(ids) if original.decode(&ids, special) != stored.decode(&ids, special) => {
            Err(differs(format_args!("text of the ids of {:.80}", format!("{text:?}"))))
        }
        _ => Ok(()),
    }
}

const TEXTS: &[&str] = &[
    "",
    " ",
    "The quick brown fox jumps over 13 lazy dogs; don't they'll WE'VE I'd 1234567890 3.14e-10.",
    "  leading\t\ttabs\n\n\nand   runs \r\n of    white\u{a0}space\u{2003}\u{3000}\u{200b}\u{feff} ",
    "Größe, naïve façade, Ångström, Ελληνικά, Русский язык, עברית, العربية, हिन्दी, ไทย, 中文字符, 日本語のテキスト, 한국어",
    "e\u{301}\u{327}\u{300} \u{1e9b}\u{323} \u{fb01}ne \u{212b} \u{0}\u{1}\u{7f}\u{85} \u{fffd}\u{fffe}\u{10ffff}",
    "👩‍👩‍👧‍👦🏳️‍🌈👍🏽🇩🇪 ☃️ 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 \u{202e}abc\u{202c} Z̷̧̛͇̪a̸̢̛l̶̨̛g̷̡̛o̸̢̧",
    "fn main() { println!(\"{}\", x[0] as f64 / 2.0); } // ==>>= <!-- </s> <|im_end|> <unk> [UNK] ##ing",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "                                                                                                     ",
    "<0x41><0xE4><0xFF>\u{2581}\u{2581}a\u{2581}b \u{120}\u{10a}Ġ",
];

/// Texts that reach every token, every merge that makes one, and characters that no token has.
fn sample(tokenizer: &Tokenizer) -> Vec<String> {
    let mut texts = Vec::new();
    let plane = (0..=0xffff).chain((0x10000..0x110000).step_by(251));
    let characters: Vec<char> = plane.filter_map(char::from_u32).collect();
    for (i, block) in characters.chunks(512).enumerate() {
        let between = ["", " ", "a"][i % 3];
        let block: Vec<String> = block.iter().map(char::to_string).collect();
        texts.push(block.join(between));
    }
    // Every token's text, in orders that put other neighbours side by side.
    let words: Vec<String> = (0..tokenizer.size())
        .map(|id| String::from_utf8_lossy(&tokenizer.token_bytes(id)).into_owned())
        .collect();
    for block in words.chunks(256) {
        texts.push(block.concat());
    }
    let stride = (words.len() / 256).max(1);
    for start in 0..stride.min(words.len()) {
        let picked: Vec<&str> =
            words.iter().skip(start).step_by(stride).map(String::as_str).collect();
        texts.push(picked.join(" "));
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored::Bytes;

    const JSON: &str = r#"{"version":"1.0",
        "added_tokens":[{"id":4,"content":"<x>","single_word":false,"lstrip":false,"rstrip":false,
          "normalized":false,"special":true}],
        "normalizer":null,"pre_tokenizer":null,"post_processor":null,"decoder":{"type":"Fuse"},
        "model":{"type":"BPE","unk_token":"a","fuse_unk":false,"ignore_merges":false,
          "vocab":{"a":0,"b":1,"ab":2,"ba":3},"merges":[["a","b"],["b","a"]]}}"#;

    fn tokenizer(json: &str) -> Tokenizer {
        Tokenizer::from_json(json.as_bytes()).expect("a tokenizer")
    }

    fn stored(json: &str) -> Tokenizer {
        let table = tokenizer(json).to_table().expect("a table");
        Tokenizer::from_table(Bytes::Owned(table)).expect("a stored tokenizer")
    }

    #[test]
    fn the_table_of_a_tokenizer_is_equal_to_it() {
        assert_eq!(prove(&tokenizer(JSON), &stored(JSON)), Ok(()));
    }

    #[test]
    fn every_difference_is_found() {
        for (from, to) in [
            (r#"["a","b"],["b","a"]"#, r#"["b","a"],["a","b"]"#),
            (r#"["a","b"],["b","a"]"#, r#"["a","b"]"#),
            (r#""ab":2,"ba":3"#, r#""ab":3,"ba":2"#),
            (r#""unk_token":"a""#, r#""unk_token":"b""#),
            (r#""unk_token":"a""#, r#""unk_token":null"#),
            (r#""fuse_unk":false"#, r#""fuse_unk":true"#),
            (r#""ignore_merges":false"#, r#""ignore_merges":true"#),
            (r#""special":true"#, r#""special":false"#),
            (r#""lstrip":false"#, r#""lstrip":true"#),
            (r#""content":"<x>""#, r#""content":"<y>""#),
            (r#""Fuse""#, r#""ByteFallback""#),
            (r#""normalizer":null"#, r#""normalizer":{"type":"Lowercase"}"#),
        ] {
            assert!(JSON.contains(from), "{from}");
            let other = stored(&JSON.replacen(from, to, 1));
            let error = prove(&tokenizer(JSON), &other).expect_err(to);
            assert!(error.message.contains("differs from its original"), "{}", error.message);
        }
    }
}
