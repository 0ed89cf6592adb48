// SPDX-License-Identifier: Apache-2.0
//! The same schema in terms of what llguidance knows: keywords without effect taken out, references
//! as plain pointers, and three equivalences:
//!
//! - where values are listed (`enum`, `const`), those that the other keywords allow are listed;
//! - a `oneOf` of distinct values is an `anyOf`;
//! - an `unevaluatedProperties` that stands alone is an `additionalProperties`.

use std::collections::{BTreeSet, HashSet};

use percent_encoding::{utf8_percent_encode, AsciiSet, NON_ALPHANUMERIC};
use serde_json::{Map, Value};

use super::keywords::{self, Meaning};
use super::validator::validator;
use super::walk::{has_values, is_ref, mentions_refs, Place, Walk};
use super::{refuse, wrong};
use crate::abi::Result;

const MAX_WHOLE: i64 = 1 << 53;
/// What a pointer may hold as it is in a URI fragment.
const FRAGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'~').remove(b'$').remove(b'-').remove(b'_').remove(b'.');

pub fn rewrite(root: &Value, walk: &Walk) -> Result<Value> {
    let targets: BTreeSet<&str> =
        walk.places.iter().filter_map(|place| place.target.as_deref()).collect();
    // The first that is not less has the prefix, if any has.
    let is_target =
        |under: &str| targets.range(under..).next().is_some_and(|target| target.starts_with(under));
    let mut schema = root.clone();
    // Parts before what they are part of: a rule below may replace the whole of it.
    let mut places: Vec<&Place> = walk.places.iter().collect();
    places.sort_by_key(|place| std::cmp::Reverse(place.pointer.len()));
    for place in places {
        let Some(Value::Object(members)) = schema.pointer_mut(&place.pointer) else { continue };
        drop_idle(&place.pointer, members);
        if let Some(target) = &place.target {
            members["$ref"] = reference(target);
        }
        if let Some(value) = members.shift_remove("unevaluatedProperties") {
            members.insert("additionalProperties".to_string(), value);
        }
        bound_multiples(members);
        choose_values(&place.pointer, members, root, &is_target)?;
        if !is_target(&format!("{}/oneOf/", place.pointer)) {
            join_values(members);
        }
    }
    Ok(schema)
}

pub fn reference(pointer: &str) -> Value {
    Value::String(format!("#{}", utf8_percent_encode(pointer, FRAGMENT)))
}

fn drop_idle(pointer: &str, schema: &mut Map<String, Value>) {
    let idle: Vec<String> = schema
        .iter()
        .filter(|(keyword, value)| {
            let is_id = pointer.is_empty() && (*keyword == "$id" || *keyword == "id");
            keywords::meaning(keyword) == Meaning::Refused
                && (is_id || keywords::asks_for_nothing(keyword, value, schema))
        })
        .map(|(keyword, _)| keyword.clone())
        .chain([String::from("$anchor"), String::from("x-guidance")])
        .collect();
    for keyword in idle {
        schema.shift_remove(&keyword);
    }
}

/// Multiples stay where 64-bit floats are whole numbers: beyond, no reader can tell them.
fn bound_multiples(schema: &mut Map<String, Value>) {
    if !schema.contains_key("multipleOf") {
        return;
    }
    if !schema.contains_key("minimum") && !schema.contains_key("exclusiveMinimum") {
        schema.insert("minimum".to_string(), Value::from(-MAX_WHOLE));
    }
    if !schema.contains_key("maximum") && !schema.contains_key("exclusiveMaximum") {
        schema.insert("maximum".to_string(), Value::from(MAX_WHOLE));
    }
}

/// Lists the values that all keywords of the schema allow, and drops the others.
fn choose_values(
    pointer: &str,
    schema: &mut Map<String, Value>,
    root: &Value,
    is_target: &dyn Fn(&str) -> bool,
) -> Result<()> {
    let others: Vec<&String> = schema
        .keys()
        .filter(|keyword| !matches!(keyword.as_str(), "type" | "enum" | "const"))
        .filter(|k| matches!(keywords::meaning(k), Meaning::Obeyed | Meaning::Refused))
        .collect();
    if !has_values(schema) || others.is_empty() {
        return Ok(());
    }
    let refers = schema.keys().any(|key| is_ref(key)) || mentions_refs(schema.values());
    if refers || is_target(&format!("{pointer}/")) {
        let refused = others.iter().find(|k| keywords::meaning(k) == Meaning::Refused);
        return match refused {
            Some(keyword) => Err(refuse(pointer, keyword, "stands among references")),
            None => Ok(()), // The compiler of grammars intersects the rest.
        };
    }
    let mut alone = schema.clone();
    if let Some(dialect) = root.get("$schema") {
        alone.insert("$schema".to_string(), dialect.clone());
    }
    let validator =
        validator(&Value::Object(alone), true).map_err(|error| wrong(pointer, "enum", error))?;
    let listed = match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => vec![value.clone()],
        (None, Some(Value::Array(values))) => values.clone(),
        _ => Vec::new(),
    };
    let good: Vec<Value> = listed.into_iter().filter(|value| validator.is_valid(value)).collect();
    if good.is_empty() {
        let keyword = if schema.contains_key("const") { "const" } else { "enum" };
        return Err(wrong(pointer, keyword, "no value passes the other keywords"));
    }
    // What others refer to stays, should this be the root.
    schema.retain(|keyword, _| keywords::meaning(keyword) == Meaning::Note);
    schema.insert("enum".to_string(), Value::Array(good));
    Ok(())
}

/// `oneOf` -> `anyOf` where all branches are values and no value stands in two.
fn join_values(schema: &mut Map<String, Value>) {
    let Some(Value::Array(branches)) = schema.get("oneOf") else { return };
    if schema.contains_key("anyOf") {
        return;
    }
    let mut seen: HashSet<String> = HashSet::new();
    for branch in branches {
        let Some(values) = only_values(branch) else { return };
        let values: Vec<String> = values.into_iter().map(canonical).collect();
        if values.iter().any(|value| seen.contains(value)) {
            return;
        }
        seen.extend(values);
    }
    let branches = schema["oneOf"].take();
    schema.shift_remove("oneOf");
    schema.insert("anyOf".to_string(), branches);
}

fn only_values(branch: &Value) -> Option<Vec<&Value>> {
    let members = branch.as_object()?;
    let is_plain = members.keys().all(|keyword| {
        matches!(keyword.as_str(), "const" | "enum" | "type")
            || keywords::meaning(keyword) == Meaning::Note
    });
    match (members.get("const"), members.get("enum")) {
        (Some(value), None) if is_plain => Some(vec![value]),
        (None, Some(Value::Array(values))) if is_plain => Some(values.iter().collect()),
        _ => None,
    }
}

/// One text for all that JSON Schema takes for the same: numbers by value, members in any order.
fn canonical(value: &Value) -> String {
    match value {
        // Zero has two signs.
        Value::Number(number) => format!("{:?}", number.as_f64().unwrap_or(0.0) + 0.0),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(","))
        }
        Value::Object(members) => {
            let mut texts: Vec<String> = members
                .iter()
                .map(|(name, member)| {
                    format!("{}:{}", Value::from(name.as_str()), canonical(member))
                })
                .collect();
            texts.sort();
            format!("{{{}}}", texts.join(","))
        }
        other => other.to_string(),
    }
}
