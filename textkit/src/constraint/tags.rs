// SPDX-License-Identifier: Apache-2.0
//! Text with structured parts: free text in which a part that begins with a trigger must be one of
//! the given tags, whose content keeps to a grammar of its own. Written as one Lark grammar.
//!
//! Free text runs up to the first trigger (a lazy lexeme), or, at the end, has none at all, so no
//! text can look like a tag and escape its rules.

use std::fmt::Write;

use serde::Deserialize;
use serde_json::Value;

use super::Vocabulary;
use crate::abi::{Error, Result};
use crate::schema;

const MAX_TAGS: usize = 1024;
const MAX_TAG_BYTES: usize = 4096;
/// Each is looked for in all others.
const MAX_TRIGGERS: usize = 128;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    tags: Vec<Tag>,
    /// What begins a tag in free text: each tag's `begin` starts with one of them. Without free
    /// text none is needed.
    #[serde(default)]
    triggers: Vec<String>,
    /// Text before, between and after tags.
    #[serde(default)]
    free_text: bool,
    /// What stands between two tags when there is no free text.
    #[serde(default)]
    separator: String,
    #[serde(default)]
    min_tags: usize,
    /// Absent: any number.
    max_tags: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tag {
    begin: String,
    content: Content,
    end: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Content {
    JsonSchema(Value),
    Regex(String),
    /// A rule body of Lark, in terms of its own.
    Lark(String),
}

pub fn lark(vocabulary: &Vocabulary, source: &str) -> Result<String> {
    let source: Source = serde_json::from_str(source)
        .map_err(|e| Error::invalid(format!("structural tags are not as expected: {e}")))?;
    check(&source)?;
    let mut rules = String::new();
    for (i, tag) in source.tags.iter().enumerate() {
        let content = content_rule(&tag.content).map_err(|error| at(i, error))?;
        writeln!(rules, "body_{i}: {content} {}", literal(vocabulary, &tag.end)).unwrap();
    }
    let unit = if source.free_text {
        free_text_rules(vocabulary, &source, &mut rules)?
    } else {
        for (i, tag) in source.tags.iter().enumerate() {
            writeln!(rules, "tag_{i}: {} body_{i}", literal(vocabulary, &tag.begin)).unwrap();
        }
        alternatives("tag", 0..source.tags.len())
    };
    Ok(format!("{}\n{rules}", start_rule(vocabulary, &source, &unit)))
}

/// Each schema of the tags: where one of them is the reason that all cannot be compiled.
pub fn schemas(source: &str) -> Vec<(usize, Value)> {
    let tags = serde_json::from_str(source).map_or(Vec::new(), |source: Source| source.tags);
    let schema = |(i, tag): (usize, Tag)| match tag.content {
        Content::JsonSchema(schema) => Some((i, schema)),
        _ => None,
    };
    tags.into_iter().enumerate().filter_map(schema).collect()
}

pub fn at(tag: usize, error: Error) -> Error {
    Error { code: error.code, message: format!("tag {tag}: {}", error.message) }
}

fn check(source: &Source) -> Result<()> {
    if source.tags.is_empty() || source.tags.len() > MAX_TAGS {
        return Err(Error::invalid(format!("there must be 1 to {MAX_TAGS} tags")));
    }
    if source.triggers.len() > MAX_TRIGGERS {
        return Err(Error::exhausted(format!("there are more than {MAX_TRIGGERS} triggers")));
    }
    if source.max_tags.is_some_and(|max| max == 0 || max < source.min_tags) {
        return Err(Error::invalid("max_tags must be at least 1 and at least min_tags"));
    }
    let texts = source.tags.iter().flat_map(|tag| [&tag.begin, &tag.end]);
    for text in texts.chain(&source.triggers).chain([&source.separator]) {
        if text.len() > MAX_TAG_BYTES {
            return Err(Error::invalid(format!("a tag has more than {MAX_TAG_BYTES} bytes")));
        }
    }
    if !source.free_text {
        return Ok(());
    }
    for (i, trigger) in source.triggers.iter().enumerate() {
        if trigger.is_empty() {
            return Err(Error::invalid("a trigger is empty"));
        }
        for (j, other) in source.triggers.iter().enumerate() {
            if i != j && other.contains(trigger.as_str()) {
                return Err(Error::invalid(format!(
                    "the trigger {trigger:?} is part of the trigger {other:?}"
                )));
            }
        }
    }
    for tag in &source.tags {
        if !source.triggers.iter().any(|trigger| tag.begin.starts_with(trigger.as_str())) {
            return Err(Error::invalid(format!("no trigger begins the tag {:?}", tag.begin)));
        }
    }
    Ok(())
}

/// Rules `unit_k`: text up to and with trigger k, then what is left of a tag that it begins.
fn free_text_rules(vocabulary: &Vocabulary, source: &Source, rules: &mut String) -> Result<String> {
    let mut in_text = Vec::new();
    for (k, trigger) in source.triggers.iter().enumerate() {
        let rests: Vec<String> = source
            .tags
            .iter()
            .enumerate()
            .filter_map(|(i, tag)| {
                let rest = tag.begin.strip_prefix(trigger.as_str())?;
                Some(format!("{} body_{i}", literal(vocabulary, rest)))
            })
            .collect();
        let rests = rests.join(" | ");
        if has_special(vocabulary, trigger) {
            // Text cannot spell a special token.
            writeln!(rules, "unit_{k}: TEXT? {} ({rests})", literal(vocabulary, trigger)).unwrap();
        } else {
            in_text.push(regex_literal(trigger));
            writeln!(rules, "unit_{k}: text_{k} ({rests})").unwrap();
            writeln!(rules, "text_{k}[lazy]: /(?s:.*){}/", regex_literal(trigger)).unwrap();
        }
    }
    if in_text.is_empty() {
        writeln!(rules, "TEXT: /(?s:.+)/").unwrap();
    } else {
        writeln!(rules, "TEXT: /(?s:.+)/ & ~/(?s:.*)({})(?s:.*)/", in_text.join("|")).unwrap();
    }
    Ok(alternatives("unit", 0..source.triggers.len()))
}

fn start_rule(vocabulary: &Vocabulary, source: &Source, unit: &str) -> String {
    let separator = literal(vocabulary, &source.separator);
    let repeat = |item: &str, min: usize, max: Option<usize>| match max {
        Some(max) => format!("({item}){{{min},{max}}}"),
        None => format!("({item}){{{min},}}"),
    };
    if source.free_text {
        return format!("start: {} TEXT?", repeat(unit, source.min_tags, source.max_tags));
    }
    let more = match source.max_tags {
        Some(1) => String::new(),
        max => repeat(
            &format!("{separator} ({unit})"),
            source.min_tags.saturating_sub(1),
            max.map(|max| max - 1),
        ),
    };
    let tags = format!("({unit}) {more}");
    if source.min_tags == 0 {
        format!("start: ({tags})?")
    } else {
        format!("start: {tags}")
    }
}

fn alternatives(name: &str, numbers: std::ops::Range<usize>) -> String {
    numbers.map(|i| format!("{name}_{i}")).collect::<Vec<_>>().join(" | ")
}

fn content_rule(content: &Content) -> Result<String> {
    match content {
        Content::JsonSchema(schema) => Ok(format!("%json {}", schema::prepare(schema)?.schema)),
        Content::Regex(regex) => Ok(format!("/{}/", llguidance::regex_to_lark(regex, ""))),
        Content::Lark(grammar) => Ok(format!("%lark {{\n{grammar}\n}}")),
    }
}

fn has_special(vocabulary: &Vocabulary, text: &str) -> bool {
    text.char_indices().any(|(at, _)| vocabulary.special_at(&text[at..]).is_some())
}

/// `text` as terms of a rule: special tokens by number, the rest in quotes.
fn literal(vocabulary: &Vocabulary, text: &str) -> String {
    let mut terms = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let Some((length, id)) = vocabulary.special_at(rest) else {
            plain.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        if !plain.is_empty() {
            terms.push(Value::from(std::mem::take(&mut plain)).to_string());
        }
        terms.push(format!("<[{id}]>"));
        rest = &rest[length..];
    }
    if !plain.is_empty() {
        terms.push(Value::from(plain).to_string());
    }
    if terms.is_empty() {
        return String::from("\"\"");
    }
    terms.join(" ")
}

/// `text` as a part of a regular expression between slashes.
fn regex_literal(text: &str) -> String {
    let mut regex = String::new();
    for c in text.chars() {
        if c.is_alphanumeric() || c == ' ' {
            regex.push(c);
        } else {
            write!(regex, "\\x{{{:X}}}", c as u32).unwrap();
        }
    }
    regex
}
