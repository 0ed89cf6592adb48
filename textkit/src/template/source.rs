// SPDX-License-Identifier: Apache-2.0
//! What is done to a template's text before minijinja parses it:
//!  - line ends become \n, which Jinja does and minijinja does not;
//!  - \U0001f9ed in strings becomes the character, an escape that minijinja does not know;
//!  - transformers' {% generation %} becomes {% with %}: it renders its body in a scope of its own.

use std::borrow::Cow;

/// Where the text after `open` ends, behind `close`; strings inside are skipped.
fn tag_end(source: &str, from: usize, close: &str) -> usize {
    let bytes = source.as_bytes();
    let mut at = from;
    let mut quote = None;
    let mut braces = 0usize;
    while at < bytes.len() {
        match (quote, bytes[at]) {
            (Some(_), b'\\') => at += 1,
            (Some(q), c) if q == c => quote = None,
            (Some(_), _) => {}
            (None, c @ (b'"' | b'\'')) => quote = Some(c),
            (None, b'{') => braces += 1,
            (None, _)
                if braces == 0
                    && source.is_char_boundary(at)
                    && source[at..].starts_with(close) =>
            {
                return at + close.len();
            }
            (None, b'}') => braces = braces.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    source.len()
}

/// The name of the tag whose "{%" ends at `from`, with the position of the name.
fn tag_name(source: &str, from: usize) -> (usize, &str) {
    let rest = &source[from..];
    let start =
        rest.find(|c: char| !c.is_whitespace() && c != '-' && c != '+').unwrap_or(rest.len());
    let name = &rest[start..];
    let len = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
    (from + start, &name[..len])
}

/// Where {% endraw %} ends, seen from behind {% raw %}.
fn raw_end(source: &str, from: usize) -> usize {
    let mut at = from;
    while let Some(open) = source[at..].find("{%") {
        let inside = at + open + 2;
        if tag_name(source, inside).1 == "endraw" {
            return tag_end(source, inside, "%}");
        }
        at = inside;
    }
    source.len()
}

/// A tag with its \UXXXXXXXX escapes replaced.
fn wide_escapes(tag: &str) -> Cow<'_, str> {
    if !tag.contains("\\U") {
        return Cow::Borrowed(tag);
    }
    let mut out = String::with_capacity(tag.len());
    let mut rest = tag;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let tail = &rest[at..];
        let digits = tail.strip_prefix("\\U").and_then(|t| t.get(..8));
        let code = digits.and_then(|d| u32::from_str_radix(d, 16).ok()).and_then(char::from_u32);
        // Any other escape is copied whole, so that the second of two backslashes starts none.
        let len = match code {
            Some(c) => {
                out.push(c);
                10
            }
            None => {
                let len = tail.chars().take(2).map(char::len_utf8).sum();
                out.push_str(&tail[..len]);
                len
            }
        };
        rest = &tail[len..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

pub fn prepare(source: &str) -> String {
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while let Some(open) = source[at..].find('{') {
        let start = at + open;
        let inside = (start + 2).min(source.len());
        let end = match source.as_bytes().get(start + 1) {
            Some(b'#') => source[inside..].find("#}").map_or(source.len(), |e| inside + e + 2),
            Some(b'{') => tag_end(&source, inside, "}}"),
            Some(b'%') => {
                let (name_at, name) = tag_name(&source, inside);
                let replacement = match name {
                    "generation" => Some("with"),
                    "endgeneration" => Some("endwith"),
                    _ => None,
                };
                if let Some(replacement) = replacement {
                    out.push_str(&source[at..name_at]);
                    out.push_str(replacement);
                    at = name_at + name.len();
                }
                let end = tag_end(&source, inside, "%}");
                if name == "raw" {
                    raw_end(&source, end)
                } else {
                    end
                }
            }
            _ => start + 1,
        };
        // Text before the tag holds no escapes; neither do raw blocks and comments.
        match source.as_bytes().get(start + 1) {
            Some(b'{' | b'%') if at <= start && !source[at..end].contains("endraw") => {
                out.push_str(&source[at..start]);
                out.push_str(&wide_escapes(&source[start..end]));
            }
            _ => out.push_str(&source[at..end]),
        }
        at = end;
    }
    out.push_str(&source[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::prepare;

    #[test]
    fn only_the_generation_tag_changes() {
        for (source, expected) in [
            ("a\r\nb\rc", "a\nb\nc"),
            ("{%- generation -%}x{% endgeneration %}", "{%- with -%}x{% endwith %}"),
            ("{%generation%}", "{%with%}"),
            ("{# {% generation %} #}", "{# {% generation %} #}"),
            ("{{ '{% generation %}' }}", "{{ '{% generation %}' }}"),
            ("{% raw %}{% generation %}{% endraw %}", "{% raw %}{% generation %}{% endraw %}"),
            ("{{ {'a': {}} }}{% generation %}", "{{ {'a': {}} }}{% with %}"),
            ("{% set generation = 1 %}", "{% set generation = 1 %}"),
            ("{ {é", "{ {é"),
            ("\\U0001f9ed{{ '\\U0001f9ed \\\\U0001f9ed' }}", "\\U0001f9ed{{ '🧭 \\\\U0001f9ed' }}"),
        ] {
            assert_eq!(prepare(source), expected);
        }
    }
}
