// SPDX-License-Identifier: Apache-2.0
//! Lark grammars of clients, looked through before they are compiled: how deep their rules and
//! terminals refer to each other, and schemas within them. Compilers recurse as deep.
//!
//! Reads lexemes as llguidance does (README of its "lark" syntax) and takes any name in a rule's
//! text for a reference: what it computes is never less than what the compiler does. Of a text that
//! is no grammar it reads what it can; the compiler then says what is wrong.

use std::collections::HashMap;

use serde::de::IgnoredAny;
use serde_json::Value;

use crate::abi::{Error, Result};
use crate::graph::heaviest_ways;
use crate::schema;

/// Rules on one way from the start, brackets within them included; those that refer to each other
/// in a circle count together.
const MAX_DEPTH: usize = 1024;
/// Of brackets of all kinds.
const MAX_BRACKETS: usize = 64;

/// What is to know of a grammar before it is compiled.
pub struct Facts {
    /// It has tokens that no text spells, or counts tokens: whether an output has its form cannot be
    /// told from its text.
    pub is_of_tokens: bool,
}

/// kExhausted: the grammar is too deep, with the name of a rule or, in a schema, a JSON pointer.
pub fn check(source: &str) -> Result<Facts> {
    let mut outline = Outline::default();
    outline.read(source)?;
    outline.check_depth()?;
    Ok(Facts { is_of_tokens: outline.is_of_tokens })
}

/// Rules of one `%lark { }`, or of the whole.
#[derive(Default)]
struct Scope {
    ids: HashMap<String, usize>,
    /// Brackets that were open outside of it.
    base: usize,
    /// The rule whose text is being read.
    rule: Option<usize>,
    /// Names since the last end of a line: a rule begins with the first when a colon follows.
    line: Vec<String>,
}

#[derive(Default)]
struct Outline {
    names: Vec<String>,
    edges: Vec<Vec<usize>>,
    weights: Vec<usize>,
    /// The innermost last.
    scopes: Vec<Scope>,
    brackets: usize,
    awaits_lark: bool,
    is_of_tokens: bool,
}

impl Outline {
    fn read(&mut self, source: &str) -> Result<()> {
        self.scopes.push(Scope::default());
        let mut rest = source;
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '#' => line_length(rest),
                '/' if rest.starts_with("//") => line_length(rest),
                '/' | '"' => 1 + quoted_length(&rest[1..], first),
                '<' => {
                    self.is_of_tokens = true;
                    rest.find('>').map_or(rest.len(), |end| end + 1)
                }
                '%' => self.read_keyword(rest)?,
                'a'..='z' | 'A'..='Z' => self.read_name(rest),
                _ => {
                    self.read_mark(first, rest)?;
                    first.len_utf8()
                }
            };
            rest = &rest[length..];
        }
        while let Some(mut scope) = self.scopes.pop() {
            self.end_line(&mut scope);
        }
        Ok(())
    }

    fn read_keyword(&mut self, rest: &str) -> Result<usize> {
        let letters = rest[1..].bytes().take_while(u8::is_ascii_lowercase).count();
        if let Some(schema) = rest.strip_prefix("%json") {
            let mut values = serde_json::Deserializer::from_str(schema).into_iter::<Value>();
            let Some(Ok(value)) = values.next() else { return Ok(rest.len()) };
            schema::check_depth(&value)?;
            return Ok("%json".len() + values.byte_offset());
        }
        for keyword in ["%llguidance", "%regex"] {
            let Some(argument) = rest.strip_prefix(keyword) else { continue };
            let mut values = serde_json::Deserializer::from_str(argument).into_iter::<IgnoredAny>();
            let Some(Ok(_)) = values.next() else { return Ok(rest.len()) };
            return Ok(keyword.len() + values.byte_offset());
        }
        self.awaits_lark = rest.starts_with("%lark");
        Ok(1 + letters)
    }

    fn read_name(&mut self, rest: &str) -> usize {
        let is_rule = rest.starts_with(|c: char| c.is_ascii_lowercase());
        let belongs = |byte: &u8| match byte {
            b'_' | b'-' | b'0'..=b'9' => true,
            b'a'..=b'z' => is_rule,
            b'A'..=b'Z' => !is_rule,
            _ => false,
        };
        let length = rest.bytes().take_while(belongs).count();
        self.is_of_tokens |= rest[..length] == *"max_tokens";
        self.scope().line.push(rest[..length].to_string());
        length
    }

    fn read_mark(&mut self, mark: char, rest: &str) -> Result<()> {
        match mark {
            '(' | '[' | '{' => {
                self.brackets += 1;
                if self.brackets > MAX_BRACKETS {
                    return Err(Error::exhausted(format!(
                        "the grammar has brackets within brackets, more than {MAX_BRACKETS} deep"
                    )));
                }
                let base = self.brackets;
                if std::mem::take(&mut self.awaits_lark) {
                    self.scopes.push(Scope { base, ..Scope::default() });
                } else if let Some(rule) = self.scope().rule {
                    let depth = 1 + base - self.scope().base;
                    self.weights[rule] = self.weights[rule].max(depth);
                }
            }
            ')' | ']' | '}' => self.close_bracket(),
            '\n' => self.with_scope(Outline::end_line),
            ':' if !rest.starts_with("::") => self.with_scope(Outline::begin_rule),
            _ => {}
        }
        Ok(())
    }

    fn close_bracket(&mut self) {
        if self.scopes.len() > 1 && self.scope().base == self.brackets {
            let mut scope = self.scopes.pop().unwrap();
            self.end_line(&mut scope);
        }
        self.brackets = self.brackets.saturating_sub(1);
    }

    fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().unwrap()
    }

    fn with_scope(&mut self, act: impl Fn(&mut Outline, &mut Scope)) {
        let mut scope = self.scopes.pop().unwrap();
        act(self, &mut scope);
        self.scopes.push(scope);
    }

    fn id(&mut self, scope: &mut Scope, name: String) -> usize {
        *scope.ids.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            self.edges.push(Vec::new());
            self.weights.push(1);
            self.names.len() - 1
        })
    }

    /// All names of the line are references.
    fn end_line(&mut self, scope: &mut Scope) {
        for name in std::mem::take(&mut scope.line) {
            let to = self.id(scope, name);
            if let Some(rule) = scope.rule {
                self.edges[rule].push(to);
            }
        }
    }

    /// The first name of the line is that of a rule; what follows up to the colon are attributes.
    fn begin_rule(&mut self, scope: &mut Scope) {
        if scope.line.is_empty() {
            return;
        }
        let name = scope.line.remove(0);
        scope.rule = Some(self.id(scope, name));
    }

    fn check_depth(&self) -> Result<()> {
        let depths = heaviest_ways(&self.edges, &self.weights);
        let deep = (0..depths.len()).filter(|&i| depths[i] > MAX_DEPTH).min_by_key(|&i| depths[i]);
        match deep {
            None => Ok(()),
            Some(i) => Err(Error::exhausted(format!(
                "the rules of the grammar refer to each other more than {MAX_DEPTH} deep at {:.100}",
                self.names[i]
            ))),
        }
    }
}

fn line_length(rest: &str) -> usize {
    rest.find('\n').unwrap_or(rest.len())
}

/// Up to and with `end`, in which a backslash takes the meaning of what follows it.
fn quoted_length(rest: &str, end: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == end => return at + 1,
            _ => {}
        }
    }
    rest.len()
}
