// SPDX-License-Identifier: Apache-2.0
//! JSON text -> values as Python's json.loads gives them: key order kept, integers of any width up
//! to 128 bits stay integers, the last of two equal keys wins.

use minijinja::Value;

use super::value::{dict, fail, int, list, Res};

/// Nesting of the input; values count their own depth as well.
const MAX_DEPTH: usize = 90;

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

pub fn parse(text: &str) -> Res {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.blanks();
    if reader.at < text.len() {
        return reader.wrong("the end of the text");
    }
    Ok(value)
}

impl Reader<'_> {
    fn wrong<T>(&self, expected: &str) -> Res<T> {
        fail(format!("JSON at offset {}: expected {expected}", self.at))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        let hit = self.peek() == Some(byte);
        self.at += usize::from(hit);
        hit
    }

    fn value(&mut self, depth: usize) -> Res {
        if depth > MAX_DEPTH {
            return fail(format!("JSON at offset {}: nested deeper than {MAX_DEPTH}", self.at));
        }
        self.blanks();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(Value::from(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => {
                for (word, value) in [
                    ("true", Value::from(true)),
                    ("false", Value::from(false)),
                    ("null", Value::from(())),
                ] {
                    if self.text[self.at..].starts_with(word) {
                        self.at += word.len();
                        return Ok(value);
                    }
                }
                self.wrong("a value")
            }
        }
    }

    fn array(&mut self, depth: usize) -> Res {
        self.at += 1;
        let mut items = Vec::new();
        self.blanks();
        if self.eat(b']') {
            return list(items);
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.blanks();
            if self.eat(b']') {
                return list(items);
            }
            if !self.eat(b',') {
                return self.wrong("',' or ']'");
            }
        }
    }

    fn object(&mut self, depth: usize) -> Res {
        self.at += 1;
        let mut pairs = Vec::new();
        self.blanks();
        if self.eat(b'}') {
            return dict(pairs);
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return self.wrong("a key");
            }
            let key = Value::from(self.string()?);
            self.blanks();
            if !self.eat(b':') {
                return self.wrong("':'");
            }
            pairs.push((key, self.value(depth + 1)?));
            self.blanks();
            if self.eat(b'}') {
                return dict(pairs);
            }
            if !self.eat(b',') {
                return self.wrong("',' or '}'");
            }
        }
    }

    fn string(&mut self) -> Res<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(stop) = rest.find(['"', '\\']) else { return self.wrong("'\"'") };
            out.push_str(&rest[..stop]);
            self.at += stop + 1;
            if rest.as_bytes()[stop] == b'"' {
                return Ok(out);
            }
            let escape = self.peek();
            self.at += 1;
            out.push(match escape {
                Some(c @ (b'"' | b'\\' | b'/')) => c as char,
                Some(b'b') => '\u{8}',
                Some(b'f') => '\u{c}',
                Some(b'n') => '\n',
                Some(b'r') => '\r',
                Some(b't') => '\t',
                Some(b'u') => self.unicode_escape()?,
                _ => {
                    self.at -= 1;
                    return self.wrong("an escape sequence");
                }
            });
        }
    }

    fn hex4(&mut self) -> Res<u32> {
        let digits = self.text.get(self.at..self.at + 4);
        match digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit())) {
            Some(digits) => {
                self.at += 4;
                Ok(u32::from_str_radix(digits, 16).unwrap_or(0))
            }
            None => self.wrong("four hexadecimal digits"),
        }
    }

    fn unicode_escape(&mut self) -> Res<char> {
        let high = self.hex4()?;
        let code = if (0xd800..0xdc00).contains(&high) {
            if !(self.eat(b'\\') && self.eat(b'u')) {
                return self.wrong("the second half of a surrogate pair");
            }
            let low = self.hex4()?;
            if !(0xdc00..0xe000).contains(&low) {
                return self.wrong("the second half of a surrogate pair");
            }
            0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)
        } else {
            high
        };
        match char::from_u32(code) {
            Some(c) => Ok(c),
            None => self.wrong("a character, not half a surrogate pair"),
        }
    }

    fn number(&mut self) -> Res {
        let rest = &self.text[self.at..];
        let len = rest
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E')))
            .unwrap_or(rest.len());
        let number = &rest[..len];
        let parsed = if number.contains(['.', 'e', 'E']) {
            number.parse::<f64>().ok().map(Value::from)
        } else {
            number.parse::<i128>().ok().map(int)
        };
        match parsed {
            Some(value) => {
                self.at += len;
                Ok(value)
            }
            None => self.wrong("a number of at most 128 bits"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{meter, repr::to_repr};

    fn shown(json: &str) -> String {
        meter::start(0);
        super::parse(json).map_or_else(|e| e.to_string(), |v| to_repr(&v).unwrap())
    }

    #[test]
    fn values_keep_order_and_number_types() {
        assert_eq!(
            shown(r#"{"b": 1, "a": [1.0, 18446744073709551616, -0, 1e2, null, true], "b": 2}"#),
            "{'b': 2, 'a': [1.0, 18446744073709551616, 0, 100.0, None, True]}"
        );
        assert_eq!(shown(r#""\ud83e\udded\u00e9\n""#), "'🧭é\\n'");
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert!(shown(&nested(91)).starts_with("[["));
        assert!(shown(&nested(92)).contains("deeper"));
        assert!(shown("[1,]").contains("expected"));
        assert!(shown(r#""\ud800""#).contains("surrogate"));
    }
}
