// SPDX-License-Identifier: Apache-2.0
//! The stages of a streaming decoder: each is one decoder of the `tokenizers` crate turned into a
//! machine that takes a token and passes on what is certain.

use std::sync::OnceLock;

use crate::tokenizer_decode::Step;

const REPLACEMENT: &str = "\u{fffd}";

pub struct Stage {
    step: Step,
    /// Tokens or characters seen, as far as the step asks: Metaspace, WordPiece, Join, Strip.
    seen: usize,
    /// Bytes or text that later tokens may still change.
    held: Vec<u8>,
    /// ByteFallback: the run of byte tokens has passed characters on.
    sent: bool,
}

impl Stage {
    pub fn new(step: Step) -> Self {
        Stage { step, seen: 0, held: Vec::new(), sent: false }
    }

    pub fn push(&mut self, token: String, out: &mut Vec<String>) {
        match &self.step {
            Step::Replace { pattern, content } => out.push(token.replace(pattern, content)),
            Step::Fuse => out.push(token),
            Step::ByteFallback => self.push_fallback(token, out),
            Step::ByteLevel => {
                self.held.extend_from_slice(&bytes_of_level(&token));
                out.push(take_utf8(&mut self.held));
            }
            Step::Strip { content, start, stop, fused: false } => {
                out.push(strip_token(&token, *content, *start, *stop))
            }
            Step::Strip { fused: true, .. } => self.push_strip(token, out),
            Step::Metaspace { replacement, drops_first } => {
                let space = if *drops_first && self.seen == 0 { "" } else { " " };
                out.push(token.replace(*replacement, space));
                self.seen = 1;
            }
            Step::WordPiece { prefix, cleanup } => {
                let mut word = token;
                if self.seen > 0 {
                    word = match word.strip_prefix(prefix.as_str()) {
                        Some(rest) => rest.to_string(),
                        None => format!(" {word}"),
                    };
                }
                out.push(if *cleanup { cleanup_words(&word) } else { word });
                self.seen = 1;
            }
            // The suffix is a space everywhere but in the last token, so one token waits.
            Step::Suffix { suffix } => {
                if self.seen > 0 {
                    let waiting = String::from_utf8_lossy(&self.held);
                    out.push(waiting.replace(suffix, " "));
                }
                self.held = token.into_bytes();
                self.seen = 1;
            }
            Step::Join => {
                out.push(if self.seen == 0 { token } else { format!(" {token}") });
                self.seen = 1;
            }
        }
    }

    pub fn finish(&mut self, out: &mut Vec<String>) {
        match &self.step {
            Step::ByteFallback => self.end_run(out),
            Step::ByteLevel => {
                let rest = std::mem::take(&mut self.held);
                out.push(String::from_utf8_lossy(&rest).into_owned());
            }
            Step::Suffix { suffix } if self.seen > 0 => {
                let waiting = std::mem::take(&mut self.held);
                out.push(String::from_utf8_lossy(&waiting).replace(suffix, ""));
            }
            // Held is what `stop` strips, unless it is shorter than the run of such characters.
            _ => self.held.clear(),
        }
    }

    fn push_fallback(&mut self, token: String, out: &mut Vec<String>) {
        let Some(byte) = byte_of_token(&token) else {
            self.end_run(out);
            out.push(token);
            return;
        };
        self.held.push(byte);
        if self.sent {
            out.push(take_utf8(&mut self.held));
        } else if let Ok(text) = std::str::from_utf8(&self.held) {
            out.push(text.to_string());
            self.held.clear();
            self.sent = true;
        }
    }

    /// A run that was good from its start has sent all but a cut character. One that never was UTF-8
    /// becomes one U+FFFD a byte, as in the crate.
    fn end_run(&mut self, out: &mut Vec<String>) {
        let rest = std::mem::take(&mut self.held);
        let sent = std::mem::replace(&mut self.sent, false);
        if sent {
            out.push(String::from_utf8_lossy(&rest).into_owned());
        } else {
            out.push(REPLACEMENT.repeat(rest.len()));
        }
    }

    /// Drops the first `start` characters while they are `content`, and holds back up to `stop` of
    /// them at the end.
    fn push_strip(&mut self, token: String, out: &mut Vec<String>) {
        let Step::Strip { content, start, stop, .. } = &self.step else { return };
        let (content, start, stop) = (*content, *start, *stop);
        let mut text = token.as_str();
        while self.seen < start && !text.is_empty() {
            match text.strip_prefix(content) {
                Some(rest) => {
                    text = rest;
                    self.seen += 1;
                }
                None => self.seen = start,
            }
        }
        if stop == 0 || text.is_empty() {
            out.push(text.to_string());
            return;
        }
        let mut whole = String::from_utf8_lossy(&std::mem::take(&mut self.held)).into_owned();
        whole.push_str(text);
        let mut keep = whole.len();
        for _ in 0..stop {
            match whole[..keep].strip_suffix(content) {
                Some(rest) => keep = rest.len(),
                None => break,
            }
        }
        self.held = whole.split_off(keep).into_bytes();
        out.push(whole);
    }
}

/// Takes the text from the front of `bytes` that later bytes cannot change: everything but a
/// character that the end cuts. Bytes that no continuation can save become U+FFFD, one for each
/// maximal part as `String::from_utf8_lossy` does.
fn take_utf8(bytes: &mut Vec<u8>) -> String {
    let mut text = String::new();
    let mut at = 0;
    loop {
        match std::str::from_utf8(&bytes[at..]) {
            Ok(good) => {
                text.push_str(good);
                bytes.clear();
                return text;
            }
            Err(error) => {
                let good = &bytes[at..at + error.valid_up_to()];
                text.push_str(&String::from_utf8_lossy(good));
                at += error.valid_up_to();
                let Some(bad) = error.error_len() else {
                    bytes.drain(..at);
                    return text;
                };
                text.push_str(REPLACEMENT);
                at += bad;
            }
        }
    }
}

/// `<0xE4>` -> 0xE4, by the crate's own rule.
pub fn byte_of_token(token: &str) -> Option<u8> {
    if token.len() != 6 || !token.starts_with("<0x") || !token.ends_with('>') {
        return None;
    }
    u8::from_str_radix(token.get(3..5)?, 16).ok()
}

/// GPT-2's map of bytes to printable characters, inverted: index = code point, -1 = none.
fn level_table() -> &'static [i16; 324] {
    static TABLE: OnceLock<[i16; 324]> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = [-1; 324];
        let mut next = 256;
        for byte in 0..=255u8 {
            // Printable Latin-1 stands for itself; the other 68 bytes follow from U+0100 on.
            let printable = matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
            let code = if printable { usize::from(byte) } else { next };
            next += usize::from(!printable);
            table[code] = i16::from(byte);
        }
        table
    })
}

/// The bytes that a byte-level token stands for; a token with other characters stands for itself.
pub fn bytes_of_level(token: &str) -> Vec<u8> {
    let table = level_table();
    token
        .chars()
        .map(|c| table.get(c as usize).copied().filter(|b| *b >= 0).map(|b| b as u8))
        .collect::<Option<Vec<u8>>>()
        .unwrap_or_else(|| token.as_bytes().to_vec())
}

/// The crate's word-piece clean-up, applied to one token.
pub fn cleanup_words(text: &str) -> String {
    tokenizers::decoders::wordpiece::cleanup(text)
}

/// Strips up to `start` and `stop` characters `content` from the ends of one token.
fn strip_token(token: &str, content: char, start: usize, stop: usize) -> String {
    let chars: Vec<char> = token.chars().collect();
    let front = chars.iter().take(start).take_while(|c| **c == content).count();
    let back = chars.iter().rev().take(stop).take_while(|c| **c == content).count();
    // The crate cuts both ends on their own and fails where they meet; nothing is left then.
    chars.get(front..chars.len() - back).unwrap_or(&[]).iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokenizers::pre_tokenizers::byte_level::ByteLevel;
    use tokenizers::Decoder;

    fn stream(step: Step, tokens: &[&str]) -> String {
        let mut stage = Stage::new(step);
        let mut out = Vec::new();
        for token in tokens {
            stage.push(token.to_string(), &mut out);
        }
        stage.finish(&mut out);
        out.concat()
    }

    #[test]
    fn the_byte_table_is_the_crates() {
        for c in ByteLevel::alphabet() {
            let token = c.to_string();
            let text = ByteLevel::default().decode(vec![token.clone()]).unwrap();
            assert_eq!(String::from_utf8_lossy(&bytes_of_level(&token)), text);
        }
        let mut bytes: Vec<u8> =
            ByteLevel::alphabet().iter().flat_map(|c| bytes_of_level(&c.to_string())).collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
    }

    #[test]
    fn bytes_that_no_byte_can_save_do_not_wait() {
        let mut bytes = vec![b'a', 0xff, 0xf0, 0x9f];
        assert_eq!(take_utf8(&mut bytes), "a\u{fffd}");
        assert_eq!(bytes, [0xf0, 0x9f]);
        bytes.extend([0x8c, 0x8a, b'!']);
        assert_eq!(take_utf8(&mut bytes), "\u{1f30a}!");
        assert!(bytes.is_empty());
    }

    #[test]
    fn a_suffix_ends_words_but_not_the_text() {
        let step = Step::Suffix { suffix: "</w>".into() };
        assert_eq!(stream(step.clone(), &["he", "llo</w>", "you</w>"]), "hello you");
        assert_eq!(stream(step, &[]), "");
    }

    #[test]
    fn stripping_the_end_waits_for_what_follows() {
        let step = Step::Strip { content: '-', start: 1, stop: 2, fused: true };
        assert_eq!(stream(step.clone(), &["-", "-a-", "-", "b", "-", "--"]), "-a--b-");
        assert_eq!(stream(step, &["a"]), "a");
    }

    #[test]
    fn byte_tokens_are_read_as_the_crate_reads_them() {
        assert_eq!(byte_of_token("<0xE4>"), Some(0xe4));
        assert_eq!(byte_of_token("<0xe4>"), Some(0xe4));
        assert_eq!(byte_of_token("<0xG4>"), None);
        assert_eq!(byte_of_token("<0x\u{20ac}"), None);
        assert_eq!(byte_of_token("<0xE4"), None);
    }
}
