// SPDX-License-Identifier: Apache-2.0
//! The table of pre-tokenizers that `tokenizer.ggml.pre` names: patterns that cut text into words
//! one after the other, each isolating its matches in the pieces of those before.
//!
//! A pattern is the one of the model's own tokenizer.json where it can be told (llama.cpp spells
//! some differently for the sake of `std::regex`).

use crate::abi::{Error, Result};

pub struct PreTokenizer {
    pub names: &'static [&'static str],
    pub patterns: &'static [&'static str],
    /// A word that is a token is taken as it is, whatever the merges would make of it.
    pub ignore_merges: bool,
    /// Whether BOS is added where the file does not say.
    pub add_bos: bool,
}

/// The entry of a name. An unknown one is refused: with a wrong pattern the model would still
/// answer, only worse.
pub fn find(name: &str) -> Result<&'static PreTokenizer> {
    if name.is_empty() {
        return Err(Error::unimplemented(
            "the GGUF file has no tokenizer.ggml.pre, so its pre-tokenizer is unknown; \
             convert the model again with a current converter",
        ));
    }
    TABLE.iter().find(|entry| entry.names.contains(&name)).ok_or_else(|| {
        Error::unimplemented(format!("tokenizer.ggml.pre \"{name}\" is not supported"))
    })
}

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN35: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DIGIT: &str = r"\p{N}";
const DIGITS_3: &str = r"\p{N}{1,3}";
const CJK_KANA: &str = "[\u{4e00}-\u{9fa5}\u{3040}-\u{309f}\u{30a0}-\u{30ff}]+";
const DEEPSEEK3: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##;
const DEEPSEEK_LETTERS: &str = concat!(
    r"\s?[A-Za-z",
    "\u{b5}\u{c0}-\u{d6}\u{d8}-\u{f6}\u{f8}-\u{1ba}\u{1bc}-\u{1bf}\u{1c4}-\u{293}\u{295}-\u{2af}",
    "\u{370}-\u{373}\u{376}\u{377}\u{37b}-\u{37d}\u{37f}\u{386}\u{388}-\u{38a}\u{38c}",
    "\u{38e}-\u{3a1}\u{3a3}-\u{3f5}\u{3f7}-\u{481}\u{48a}-\u{52f}\u{531}-\u{556}\u{10a0}-\u{10c5}",
    "\u{13a0}-\u{13f5}\u{13f8}-\u{13fd}\u{1c90}-\u{1cba}\u{1cbd}-\u{1cbf}\u{1d00}-\u{1d2b}",
    "\u{1d6b}-\u{1d77}\u{1d79}-\u{1d9a}\u{1e00}-\u{1f15}\u{1f18}-\u{1f1d}\u{1f20}-\u{1f45}",
    "\u{1f48}-\u{1f4d}\u{1f50}-\u{1f57}\u{1f59}\u{1f5b}\u{1f5d}\u{1f5f}-\u{1f7d}",
    "\u{1f80}-\u{1fb4}\u{1fb6}-\u{1fbc}\u{1fbe}\u{1fc2}-\u{1fc4}\u{1fc6}-\u{1fcc}",
    "\u{1fd0}-\u{1fd3}\u{1fd6}-\u{1fdb}\u{1fe0}-\u{1fec}\u{1ff2}-\u{1ff4}\u{1ff6}-\u{1ffc}",
    "\u{2102}\u{2107}\u{210a}-\u{2113}\u{2115}\u{2119}-\u{211d}\u{2124}\u{2126}\u{2128}",
    "\u{212a}-\u{212d}\u{212f}-\u{2134}\u{2139}\u{213c}-\u{213f}\u{2145}-\u{2149}\u{214e}",
    "\u{2183}\u{2184}\u{2c00}-\u{2c7b}\u{2c7e}-\u{2ce4}\u{2ceb}-\u{2cee}\u{2cf2}\u{2cf3}",
    "\u{a640}-\u{a66d}\u{a680}-\u{a69b}\u{a722}-\u{a76f}\u{a771}-\u{a787}\u{a78b}-\u{a78e}",
    "\u{ab70}-\u{abbf}\u{fb00}-\u{fb06}\u{fb13}-\u{fb17}\u{ff21}-\u{ff3a}\u{ff41}-\u{ff5a}",
    "\u{10400}-\u{1044f}\u{104b0}-\u{104d3}\u{104d8}-\u{104fb}\u{10c80}-\u{10cb2}",
    "\u{10cc0}-\u{10cf2}\u{118a0}-\u{118df}\u{1e900}-\u{1e943}",
    "]+"
);
const DEEPSEEK_MARKS: &str =
    "\\s?[!-/:-~\u{ff01}-\u{ff0f}\u{ff1a}-\u{ff5e}\u{2018}-\u{201f}\u{3000}-\u{3002}]+";
const DEEPSEEK_CJK: &str = "[\u{4e00}-\u{9fa5}\u{800}-\u{4e00}\u{ac00}-\u{d7ff}]+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const POST_STOPS: &str = " ?[^(\\s|.,!?\u{2026}\u{3002}\u{ff0c}\u{3001}\u{964}\u{6d4}\u{60c})]+";
const BAILING: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+";

const fn entry(names: &'static [&'static str], patterns: &'static [&'static str]) -> PreTokenizer {
    PreTokenizer { names, patterns, ignore_merges: false, add_bos: false }
}

static TABLE: &[PreTokenizer] = &[
    PreTokenizer {
        names: &[
            "llama3",
            "llama-v3",
            "llama-bpe",
            "falcon3",
            "falcon-h1",
            "pixtral",
            "midm-2.0",
            "lfm2",
        ],
        patterns: &[LLAMA3],
        ignore_merges: true,
        add_bos: true,
    },
    PreTokenizer { names: &["tekken"], patterns: &[TEKKEN], ignore_merges: true, add_bos: true },
    entry(&["dbrx", "smaug-bpe", "glm4", "chatglm-bpe"], &[LLAMA3]),
    entry(
        &[
            "qwen2",
            "deepseek-r1-qwen",
            "kormo",
            "megrez",
            "stablelm2",
            "hunyuan",
            "solar-open",
            "grok-2",
        ],
        &[QWEN2],
    ),
    entry(&["qwen35"], &[QWEN35]),
    entry(
        &[
            "smollm",
            "starcoder",
            "refact",
            "command-r",
            "codeshell",
            "exaone",
            "minerva-7b",
            "mellum2",
        ],
        &[DIGIT, GPT2],
    ),
    entry(
        &[
            "gpt-2",
            "phi-2",
            "mpt",
            "olmo",
            "jais",
            "gigachat",
            "exaone4",
            "a.x-4.0",
            "mellum",
            "trillion",
            "granite-docling",
            "modern-bert",
        ],
        &[GPT2],
    ),
    entry(&["default"], &[r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"]),
    entry(&["falcon"], &[r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"]),
    entry(
        &["deepseek-llm"],
        &["[\r\n]", DEEPSEEK_LETTERS, DEEPSEEK_MARKS, r"\s+$", DEEPSEEK_CJK, r"\p{N}+"],
    ),
    entry(&["deepseek-coder"], &["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", DEEPSEEK_CJK, DIGIT]),
    entry(&["deepseek-v3", "hunyuan-dense", "joyai-llm"], &[DIGITS_3, CJK_KANA, DEEPSEEK3]),
    entry(&["gpt-4o", "llama4", "kanana2", "minimax-m2"], &[GPT4O]),
    entry(&["poro-chat", "bloom", "gpt3-finnish"], &[POST_STOPS]),
    entry(&["viking"], &[POST_STOPS, DIGIT]),
    entry(&["bailingmoe", "bailingmoe2", "llada-moe"], &[BAILING]),
    entry(
        &["seed-coder"],
        &[
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_pattern_compiles_and_every_name_is_listed_once() {
        let mut seen = HashSet::new();
        for entry in TABLE {
            for pattern in entry.patterns {
                assert!(tokenizers::utils::SysRegex::new(pattern).is_ok(), "{pattern}");
            }
            for name in entry.names {
                assert!(seen.insert(*name), "{name} twice");
            }
        }
    }

    #[test]
    fn an_unknown_name_is_refused_by_name() {
        let error = find("someday").err().expect("refused");
        assert_eq!(error.code, crate::abi::Code::Unimplemented);
        assert!(error.message.contains("someday"));
        assert!(find("").is_err());
    }
}
