// SPDX-License-Identifier: Apache-2.0
//! From the root of a schema along everything that can apply to an instance, through references.
//! What nothing refers to is not looked at: a library of definitions may hold what we lack.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::keywords::{self, Meaning};
use super::{bounds, escape, refs, refuse, shape, wrong};
use crate::abi::{Error, Result};

const MAX_PLACES: usize = 20_000;
/// Of the pointers to all places together: a long name stands in each pointer below it.
const MAX_POINTER_BYTES: usize = 16 << 20;
const MAX_NOTES: usize = 16;
/// Whole numbers up to here survive every reader of JSON, our own compiler included.
const MAX_WHOLE: u64 = 1 << 53;

/// A schema or subschema that can apply.
#[derive(Clone, Debug)]
pub struct Place {
    pub pointer: String,
    /// What its `$ref` means, as a pointer.
    pub target: Option<String>,
    pub edges: Vec<Edge>,
}

/// From a place to one that applies through it.
#[derive(Clone, Debug)]
pub struct Edge {
    /// Index in Walk::places.
    pub to: usize,
    pub applies: Applies,
}

/// To which values a schema applies, seen from the value of the one that it is part of.
#[derive(Clone, Debug)]
pub enum Applies {
    /// To the same, by this keyword: $ref, allOf, anyOf, oneOf.
    Here(&'static str),
    /// To the member of this name.
    Member(String),
    /// To members, whatever their name (or if it is like a pattern).
    Members,
    /// To the item at this index.
    Item(usize),
    Items,
}

pub struct Walk {
    pub places: Vec<Place>,
    /// Pointer -> index in `places`.
    pub ids: HashMap<String, usize>,
    pub notes: Vec<String>,
    pub draft: Draft,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Draft {
    Four,
    Six,
    Seven,
    Y2019,
    Y2020,
}

impl Walk {
    pub fn run(root: &Value) -> Result<Walk> {
        let draft = draft_of(root)?;
        let mut walker = Walker {
            root,
            anchors: refs::anchors(root)?,
            walk: Walk { places: Vec::new(), ids: HashMap::new(), notes: Vec::new(), draft },
            pointer_bytes: 0,
            multiples: Vec::new(),
        };
        walker.find(String::new())?;
        // Breadth first: places are added while we go along.
        let mut next = 0;
        while next < walker.walk.places.len() {
            walker.visit(next)?;
            next += 1;
        }
        Ok(walker.walk)
    }
}

struct Walker<'a> {
    root: &'a Value,
    anchors: HashMap<String, String>,
    walk: Walk,
    pointer_bytes: usize,
    multiples: Vec<bounds::Multiple>,
}

impl Walker<'_> {
    /// The index of the place at `pointer`, which may be new.
    fn find(&mut self, pointer: String) -> Result<usize> {
        if let Some(&known) = self.walk.ids.get(&pointer) {
            return Ok(known);
        }
        let id = self.walk.places.len();
        if id == MAX_PLACES {
            return Err(Error::exhausted(format!(
                "#{pointer}: the schema has more than {MAX_PLACES} subschemas"
            )));
        }
        self.pointer_bytes += pointer.len();
        if self.pointer_bytes > MAX_POINTER_BYTES {
            return Err(refs::too_long(MAX_POINTER_BYTES));
        }
        self.walk.ids.insert(pointer.clone(), id);
        self.walk.places.push(Place { pointer, target: None, edges: Vec::new() });
        Ok(id)
    }

    fn follow(&mut self, from: usize, pointer: String, applies: Applies) -> Result<()> {
        let to = self.find(pointer)?;
        self.walk.places[from].edges.push(Edge { to, applies });
        Ok(())
    }

    fn visit(&mut self, place: usize) -> Result<()> {
        let pointer = self.walk.places[place].pointer.clone();
        let root = self.root;
        match root.pointer(&pointer).unwrap_or(&Value::Null) {
            Value::Bool(_) => Ok(()),
            Value::Object(schema) => {
                for (keyword, value) in schema {
                    self.check(&pointer, schema, keyword, value)?;
                }
                if let Some(reference) = schema.get("$ref") {
                    let target = refs::resolve(root, &self.anchors, &pointer, reference)?;
                    self.walk.places[place].target = Some(target.clone());
                    self.follow(place, target, Applies::Here("$ref"))?;
                }
                bounds::check(&pointer, schema)?;
                bounds::check_multiple(&pointer, schema, &mut self.multiples)?;
                self.follow_children(place, &pointer, schema)
            }
            other => {
                let what = kind_of(other);
                Err(Error::invalid(format!(
                    "#{pointer}: is {what}, expected a schema (an object, true or false)"
                )))
            }
        }
    }

    fn check(
        &mut self,
        pointer: &str,
        schema: &Map<String, Value>,
        keyword: &str,
        value: &Value,
    ) -> Result<()> {
        let is_root_id = pointer.is_empty() && (keyword == "$id" || keyword == "id");
        match keywords::meaning(keyword) {
            Meaning::Obeyed => self.check_obeyed(pointer, schema, keyword, value),
            Meaning::Note if keyword == "$schema" && !pointer.is_empty() => {
                Err(refuse(pointer, keyword, "only the whole schema may name its dialect"))
            }
            Meaning::Note => Ok(()),
            Meaning::Refused if is_root_id => Ok(()),
            Meaning::Refused if keywords::asks_for_nothing(keyword, value, schema) => Ok(()),
            Meaning::Refused if keywords::is_additional(keyword, value, schema) => Ok(()),
            // Where values are listed, the others only choose among them: see `rewrite`.
            Meaning::Refused
                if has_values(schema)
                    && !schema.keys().any(|key| is_ref(key))
                    && !mentions_refs(schema.values()) =>
            {
                Ok(())
            }
            Meaning::Refused => Err(refuse(pointer, keyword, REFUSAL)),
            Meaning::Unknown => {
                if self.walk.notes.len() < MAX_NOTES {
                    self.walk.notes.push(format!(
                        "#{pointer}/{}: this keyword is not known and has no effect",
                        escape(keyword)
                    ));
                }
                Ok(())
            }
        }
    }

    fn check_obeyed(
        &self,
        pointer: &str,
        schema: &Map<String, Value>,
        keyword: &str,
        value: &Value,
    ) -> Result<()> {
        let draft = self.walk.draft;
        let is_missing = match keyword {
            "const" => draft < Draft::Six,
            "prefixItems" => draft < Draft::Y2020,
            "additionalItems" => draft == Draft::Y2020,
            _ => false,
        };
        if is_missing {
            let hint = "the dialect of this schema does not have this keyword";
            return Err(refuse(pointer, keyword, hint));
        }
        shape::check(pointer, keyword, value, draft)?;
        match keyword {
            "type" => check_type(pointer, value),
            "const" => check_value(pointer, keyword, value),
            "enum" => match value.as_array() {
                Some(values) if !values.is_empty() => {
                    values.iter().try_for_each(|value| check_value(pointer, keyword, value))
                }
                _ => Err(wrong(pointer, keyword, "expected an array with at least one value")),
            },
            "format" => check_format(pointer, schema, value),
            "pattern" => check_pattern(pointer, keyword, value.as_str()),
            "patternProperties" => match value.as_object() {
                Some(members) => {
                    let at = format!("{pointer}/patternProperties");
                    members.keys().try_for_each(|regex| check_pattern(&at, regex, Some(regex)))
                }
                None => Err(wrong(pointer, keyword, "expected an object")),
            },
            _ => Ok(()),
        }
    }

    /// The subschemas of those keywords that have a meaning here.
    fn follow_children(
        &mut self,
        place: usize,
        pointer: &str,
        schema: &Map<String, Value>,
    ) -> Result<()> {
        for (keyword, value) in schema {
            let at = format!("{pointer}/{}", escape(keyword));
            let items = value.as_array().map_or(0, Vec::len);
            match keyword.as_str() {
                "properties" | "patternProperties" => {
                    for name in value.as_object().into_iter().flat_map(Map::keys) {
                        let applies = match keyword.as_str() {
                            "properties" => Applies::Member(name.clone()),
                            _ => Applies::Members,
                        };
                        self.follow(place, format!("{at}/{}", escape(name)), applies)?;
                    }
                }
                "prefixItems" | "items" if value.is_array() => {
                    for i in 0..items {
                        self.follow(place, format!("{at}/{i}"), Applies::Item(i))?;
                    }
                }
                "items" | "additionalItems" => self.follow(place, at, Applies::Items)?,
                "additionalProperties" => self.follow(place, at, Applies::Members)?,
                _ => {
                    let Some(list) = IN_PLACE.into_iter().find(|name| name == keyword) else {
                        continue;
                    };
                    for i in 0..items {
                        self.follow(place, format!("{at}/{i}"), Applies::Here(list))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Lists of schemas for the instance itself.
const IN_PLACE: [&str; 3] = ["allOf", "anyOf", "oneOf"];

const REFUSAL: &str = "this keyword cannot be enforced; leave it out, or say the same with others";

/// The places where only listed values are left: other keywords choose among them.
pub fn has_values(schema: &Map<String, Value>) -> bool {
    schema.contains_key("enum") || schema.contains_key("const")
}

pub fn mentions_refs<'a>(mut values: impl Iterator<Item = &'a Value>) -> bool {
    values.any(|value| match value {
        Value::Object(members) => {
            members.keys().any(|key| is_ref(key)) || mentions_refs(members.values())
        }
        Value::Array(items) => mentions_refs(items.iter()),
        _ => false,
    })
}

pub fn is_ref(keyword: &str) -> bool {
    matches!(keyword, "$ref" | "$dynamicRef" | "$recursiveRef")
}

fn draft_of(root: &Value) -> Result<Draft> {
    let Some(name) = root.get("$schema") else { return Ok(Draft::Y2020) };
    let text = name.as_str().unwrap_or_default().trim_end_matches('#');
    match text {
        "https://json-schema.org/draft/2020-12/schema" => Ok(Draft::Y2020),
        "https://json-schema.org/draft/2019-09/schema" => Ok(Draft::Y2019),
        "http://json-schema.org/draft-07/schema" => Ok(Draft::Seven),
        "http://json-schema.org/draft-06/schema" => Ok(Draft::Six),
        "http://json-schema.org/draft-04/schema" => Ok(Draft::Four),
        _ => Err(refuse("", "$schema", format!("the dialect {name} is not known"))),
    }
}

pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

fn check_type(pointer: &str, value: &Value) -> Result<()> {
    let is_type = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    let is_good = match value {
        Value::Array(names) => !names.is_empty() && names.iter().all(is_type),
        other => is_type(other),
    };
    if is_good {
        return Ok(());
    }
    Err(wrong(pointer, "type", format!("{value} is no type; there are {}", TYPES.join(", "))))
}

/// Whether instances of `kind` ("string", ...) can pass the `type` of a schema.
pub fn allows_type(schema: &Map<String, Value>, kind: &str) -> bool {
    match schema.get("type") {
        None => true,
        Some(Value::Array(names)) => names.iter().any(|name| name == kind),
        Some(name) => name == kind,
    }
}

fn check_format(pointer: &str, schema: &Map<String, Value>, value: &Value) -> Result<()> {
    let Some(name) = value.as_str() else {
        return Err(wrong(pointer, "format", "expected a string"));
    };
    let is_number = keywords::NUMBER_FORMATS.contains(&name) && !allows_type(schema, "string");
    if keywords::FORMATS.contains(&name) || is_number {
        return Ok(());
    }
    let known = keywords::FORMATS.join(", ");
    Err(refuse(pointer, "format", format!("{name:?} cannot be enforced; there are {known}")))
}

/// Regular expressions are ECMA's; ours are Rust's. What both spell but read in two ways is
/// refused.
fn check_pattern(pointer: &str, keyword: &str, regex: Option<&str>) -> Result<()> {
    let Some(regex) = regex else {
        return Err(wrong(pointer, keyword, "expected a regular expression (a string)"));
    };
    if let Err(error) = regex_syntax::Parser::new().parse(regex) {
        let reason = error.to_string();
        let reason = reason.lines().last().unwrap_or("").trim_start_matches("error: ");
        return Err(wrong(
            pointer,
            keyword,
            format!("{regex:?} is no regular expression: {reason}"),
        ));
    }
    if has_set_operation(regex) {
        return Err(refuse(
            pointer,
            keyword,
            format!("{regex:?} has [, &&, -- or ~~ inside of a class; escape these"),
        ));
    }
    Ok(())
}

fn has_set_operation(regex: &str) -> bool {
    let bytes = regex.as_bytes();
    let (mut i, mut in_class) = (0, false);
    while i < bytes.len() {
        match bytes[i] {
            b'\\' => i += 1,
            b'[' if in_class => return true,
            b'[' => {
                in_class = true;
                // A bracket or a caret at the beginning stands for itself.
                i += usize::from(bytes.get(i + 1) == Some(&b'^'));
                i += usize::from(bytes.get(i + 1) == Some(&b']'));
            }
            b']' => in_class = false,
            c @ (b'&' | b'-' | b'~') if in_class && bytes.get(i + 1) == Some(&c) => return true,
            _ => {}
        }
        i += 1;
    }
    false
}

/// A literal of `const` or `enum`: one that the grammar can spell to the letter.
fn check_value(pointer: &str, keyword: &str, value: &Value) -> Result<()> {
    match value {
        Value::Number(_) => check_number(pointer, keyword, value),
        Value::String(text) if text.chars().any(is_unspeakable) => Err(refuse(
            pointer,
            keyword,
            format!("{value} has a control character, which cannot be generated"),
        )),
        Value::Array(items) => items.iter().try_for_each(|v| check_value(pointer, keyword, v)),
        Value::Object(members) => members.iter().try_for_each(|(name, member)| {
            check_value(pointer, keyword, &Value::String(name.clone()))?;
            check_value(pointer, keyword, member)
        }),
        _ => Ok(()),
    }
}

/// Characters that JSON spells as \u00XX only.
fn is_unspeakable(c: char) -> bool {
    (c < ' ' && !"\u{8}\u{c}\n\r\t".contains(c)) || c == '\u{7f}'
}

/// A number that survives 64-bit floating point and has a short decimal form.
pub fn check_number(pointer: &str, keyword: &str, value: &Value) -> Result<()> {
    let Some(number) = value.as_f64() else {
        return Err(wrong(pointer, keyword, format!("{value} is no number")));
    };
    let whole = value.as_i64().map(i64::unsigned_abs).or(value.as_u64());
    let fits = if let Some(whole) = whole {
        whole <= MAX_WHOLE
    } else if number.fract() == 0.0 {
        number.abs() <= MAX_WHOLE as f64
    } else {
        number.abs() <= 1e9 && number.to_string().len() <= 17
    };
    if fits {
        return Ok(());
    }
    Err(refuse(
        pointer,
        keyword,
        format!("{value} cannot be kept exactly: too large, or too many digits"),
    ))
}
