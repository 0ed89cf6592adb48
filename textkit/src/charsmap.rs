// SPDX-License-Identifier: Apache-2.0
//! SentencePiece's `precompiled_charsmap`: the bytes of a trie (u32), the trie (a Darts double array
//! of u32), then replacement texts, each up to a zero byte. The crate that runs it reserves what the
//! size says and indexes by what the trie says, so both are checked before it sees them.

use serde::Deserialize;
use serde_json::Value;
use tokenizers::normalizers::NormalizerWrapper;

use crate::abi::{Error, Result};

/// Known ones have 250 KB.
pub const MAX_BYTES: usize = 4 << 20;

/// Refuses a map that could lead outside itself for some text.
pub fn check(map: &[u8]) -> Result<()> {
    if map.len() > MAX_BYTES {
        return Err(Error::exhausted(format!(
            "precompiled_charsmap has {} bytes, the limit is {MAX_BYTES}",
            map.len()
        )));
    }
    let walked = parse(map).and_then(|(trie, texts)| walk(&trie, texts));
    walked.ok_or_else(|| Error::invalid("precompiled_charsmap is malformed"))
}

/// The same for every charsmap of a tokenizer.json, whatever type its normalizer claims to be:
/// the crate reserves up to 8 GB for a map of a few bytes while it still reads the JSON.
pub fn check_json(tokenizer: &str) -> Result<()> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(default)]
        normalizer: Value,
    }
    let head: Head = serde_json::from_str(tokenizer)
        .map_err(|e| Error::invalid(format!("tokenizer.json: {e}")))?;
    check_value(&head.normalizer)
}

/// serde_json bounds the depth.
fn check_value(value: &Value) -> Result<()> {
    match value {
        Value::Array(items) => items.iter().try_for_each(check_value),
        Value::Object(members) => members.iter().try_for_each(|(key, member)| match member {
            Value::String(text) if key == "precompiled_charsmap" => check_base64(text),
            _ => check_value(member),
        }),
        _ => Ok(()),
    }
}

fn check_base64(text: &str) -> Result<()> {
    // Four characters hold three bytes; not decoded beyond the limit.
    if text.len() / 4 * 3 > MAX_BYTES + 3 {
        return Err(Error::exhausted(format!(
            "precompiled_charsmap has about {} bytes, the limit is {MAX_BYTES}",
            text.len() / 4 * 3
        )));
    }
    let bytes = base64::decode(text)
        .map_err(|e| Error::invalid(format!("tokenizer.json: precompiled_charsmap: {e}")))?;
    check(&bytes)
}

/// The same for every charsmap of a pipeline.
pub fn check_normalizer(normalizer: &NormalizerWrapper) -> Result<()> {
    match normalizer {
        NormalizerWrapper::Sequence(steps) => steps.as_ref().iter().try_for_each(check_normalizer),
        NormalizerWrapper::Precompiled(map) => {
            // Its bytes are private; its JSON has them.
            let json = serde_json::to_value(map)
                .map_err(|e| Error::internal(format!("precompiled_charsmap: {e}")))?;
            let text = json["precompiled_charsmap"].as_str().unwrap_or_default();
            let bytes = base64::decode(text)
                .map_err(|e| Error::internal(format!("precompiled_charsmap: {e}")))?;
            check(&bytes)
        }
        _ => Ok(()),
    }
}

fn parse(map: &[u8]) -> Option<(Vec<u32>, &str)> {
    let (size, rest) = map.split_first_chunk::<4>()?;
    let units = u32::from_le_bytes(*size) as usize / 4;
    let (trie, texts) = rest.split_at_checked(units * 4)?;
    let trie = trie.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    Some((trie, std::str::from_utf8(texts).ok()?))
}

/// Goes wherever a text can lead. Some(()) when all of that is inside the trie and the texts.
fn walk(trie: &[u32], texts: &str) -> Option<()> {
    let mut seen = vec![false; trie.len()];
    let mut bases = vec![offset(*trie.first()?)];
    while let Some(base) = bases.pop() {
        if std::mem::replace(seen.get_mut(base)?, true) {
            continue;
        }
        for byte in 1..=255 {
            let at = base ^ byte;
            let unit = *trie.get(at)?;
            if label(unit) != byte {
                continue;
            }
            let next = at ^ offset(unit);
            if has_leaf(unit) && !texts.is_char_boundary(value(*trie.get(next)?)) {
                return None;
            }
            bases.push(next);
        }
    }
    Some(())
}

// A unit of Darts: bits 0-7 and 31 label (bit 31 set: a leaf's value), bit 8 has a leaf, bit 9 the
// offset is in units of 256, bits 10-30 offset.

fn label(unit: u32) -> usize {
    (unit & 0x8000_00ff) as usize
}

fn has_leaf(unit: u32) -> bool {
    unit >> 8 & 1 == 1
}

fn value(unit: u32) -> usize {
    (unit & 0x7fff_ffff) as usize
}

fn offset(unit: u32) -> usize {
    (unit as usize >> 10) << ((unit & 1 << 9) >> 6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::Code;

    /// A trie of one block where 'a' leads to `leaf`, and texts.
    fn map(leaf: u32, texts: &[u8]) -> Vec<u8> {
        let mut trie = vec![0u32; 256];
        trie[b'a' as usize] = u32::from(b'a') | 1 << 8 | 2 << 10;
        trie[b'a' as usize ^ 2] = 1 << 31 | leaf;
        let mut bytes = (trie.len() as u32 * 4).to_le_bytes().to_vec();
        bytes.extend(trie.iter().flat_map(|unit| unit.to_le_bytes()));
        bytes.extend(texts);
        bytes
    }

    #[test]
    fn a_leaf_points_at_a_text_or_its_end() {
        let texts = "xy\u{e9}\0".as_bytes();
        for (leaf, good) in [(0, true), (2, true), (3, false), (5, true), (6, false)] {
            assert_eq!(check(&map(leaf, texts)).is_ok(), good, "{leaf}");
        }
        assert!(check(&map(0, b"\xff")).is_err());
    }

    #[test]
    fn a_trie_that_leads_outside_is_refused() {
        let mut bytes = map(0, b"x");
        bytes[4..8].copy_from_slice(&(256u32 << 10).to_le_bytes());
        assert_eq!(check(&bytes).unwrap_err().code, Code::InvalidArgument);
    }

    #[test]
    fn a_size_that_the_map_does_not_have_is_refused() {
        for bytes in [&b""[..], b"\x04\0\0", b"\0\0\0\0", b"\x04\0\0\0abc", b"\xff\xff\xff\xffabcd"]
        {
            assert_eq!(check(bytes).unwrap_err().code, Code::InvalidArgument, "{bytes:?}");
        }
    }

    #[test]
    fn a_lying_size_in_a_tokenizer_json_is_refused_before_it_is_reserved() {
        let json = |map: &[u8], shape: fn(String) -> String| {
            let map = format!(
                r#"{{"type":"Precompiled","precompiled_charsmap":"{}"}}"#,
                base64::encode(map)
            );
            format!(r#"{{"model":{{"vocab":{{}}}},"normalizer":{}}}"#, shape(map))
        };
        let shapes: [fn(String) -> String; 3] = [
            |map| map,
            |map| format!(r#"{{"type":"Sequence","normalizers":[{{"type":"NFC"}},{map}]}}"#),
            |map| map.replace("precompiled", "\\u0070recompiled"),
        ];
        for shape in shapes {
            assert!(check_json(&json(&map(0, b"x"), shape)).is_ok());
            let error = check_json(&json(b"\xff\xff\xff\xffabcd", shape)).unwrap_err();
            assert_eq!(error.code, Code::InvalidArgument);
        }
        for none in [r#"{"normalizer":null}"#, "{}", r#"{"normalizer":{"type":"NFC"}}"#] {
            assert!(check_json(none).is_ok(), "{none}");
        }
        assert!(check_json("{").is_err());
    }

    #[test]
    fn bytes_have_a_limit_in_json_too() {
        let sized = |n: usize| {
            let mut bytes = map(0, b"");
            bytes.resize(n, 0);
            check_base64(&base64::encode(bytes))
        };
        assert!(sized(MAX_BYTES - 1).is_ok());
        assert!(sized(MAX_BYTES).is_ok());
        assert_eq!(sized(MAX_BYTES + 1).unwrap_err().code, Code::ResourceExhausted);
    }

    #[test]
    fn bytes_have_a_limit() {
        let sized = |n: usize| {
            let mut bytes = map(0, b"");
            bytes.resize(n, 0);
            check(&bytes)
        };
        assert!(sized(MAX_BYTES - 1).is_ok());
        assert!(sized(MAX_BYTES).is_ok());
        assert_eq!(sized(MAX_BYTES + 1).unwrap_err().code, Code::ResourceExhausted);
    }
}
