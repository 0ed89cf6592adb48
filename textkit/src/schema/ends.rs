// SPDX-License-Identifier: Apache-2.0
//! Schemas that have no end: references that lead back to themselves before anything is written,
//! and schemas whose every instance would contain another, for ever.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::walk::{has_values, Walk};
use super::{escape, wrong};
use crate::abi::{Error, Result};

pub fn check(root: &Value, walk: &Walk) -> Result<()> {
    check_cycles(root, walk)?;
    check_finite(root, walk)
}

/// What applies to the same instance as the schema at `pointer`: (keyword, pointer).
fn in_place(root: &Value, pointer: &str, target: Option<&str>) -> Vec<(&'static str, String)> {
    let mut found: Vec<_> = target.map(|t| ("$ref", t.to_string())).into_iter().collect();
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let items = root.pointer(&format!("{pointer}/{keyword}")).and_then(Value::as_array);
        for i in 0..items.map_or(0, Vec::len) {
            found.push((keyword, format!("{pointer}/{keyword}/{i}")));
        }
    }
    found
}

fn check_cycles(root: &Value, walk: &Walk) -> Result<()> {
    let targets: HashMap<&str, Option<&str>> =
        walk.places.iter().map(|p| (p.pointer.as_str(), p.target.as_deref())).collect();
    let mut done: HashSet<String> = HashSet::new();
    for place in &walk.places {
        // Depth first without recursion: the path, and what is left to follow at each of its steps.
        let edges =
            |pointer: &str| in_place(root, pointer, targets.get(pointer).copied().flatten());
        let mut path = vec![(place.pointer.clone(), edges(&place.pointer))];
        let mut on_path = HashSet::from([place.pointer.clone()]);
        while let Some((pointer, rest)) = path.last_mut() {
            let Some((keyword, next)) = rest.pop() else {
                on_path.remove(pointer);
                done.insert(pointer.clone());
                path.pop();
                continue;
            };
            if on_path.contains(&next) {
                return Err(wrong(pointer, keyword, "leads back to itself without an end"));
            }
            if !done.contains(&next) {
                on_path.insert(next.clone());
                let following = edges(&next);
                path.push((next, following));
            }
        }
    }
    Ok(())
}

/// The least fixed point: a schema is finite when what it demands is.
fn check_finite(root: &Value, walk: &Walk) -> Result<()> {
    let mut finite: HashSet<&str> = HashSet::new();
    loop {
        let before = finite.len();
        for place in &walk.places {
            let pointer = place.pointer.as_str();
            if finite.contains(pointer) {
                continue;
            }
            let is_finite = match root.pointer(pointer) {
                Some(Value::Object(schema)) => {
                    demands_finite(schema, pointer, place.target.as_deref(), &finite)
                }
                _ => true,
            };
            if is_finite {
                finite.insert(pointer);
            }
        }
        if finite.contains("") {
            return Ok(());
        }
        if finite.len() == before {
            return Err(Error::invalid(
                "#: every value of this schema would be endless: what it requires contains itself",
            ));
        }
    }
}

fn demands_finite(
    schema: &Map<String, Value>,
    pointer: &str,
    target: Option<&str>,
    finite: &HashSet<&str>,
) -> bool {
    if has_values(schema) {
        return true;
    }
    let items = |keyword: &str| -> Vec<String> {
        let count = schema.get(keyword).and_then(Value::as_array).map_or(0, Vec::len);
        (0..count).map(|i| format!("{pointer}/{keyword}/{i}")).collect()
    };
    let ends = |pointer: &String| finite.contains(pointer.as_str());
    let some = |keyword: &str| {
        let options = items(keyword);
        options.is_empty() || options.iter().any(ends)
    };
    target.is_none_or(|target| finite.contains(target))
        && items("allOf").iter().all(ends)
        && some("anyOf")
        && some("oneOf")
        && (!is_only(schema, "object") || properties_end(schema, pointer, finite))
        && (!is_only(schema, "array") || array_ends(schema, pointer, finite))
}

/// Other types would be a way out.
fn is_only(schema: &Map<String, Value>, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::Array(names)) => names.iter().all(|name| name == kind),
        Some(name) => name == kind,
        None => false,
    }
}

fn properties_end(schema: &Map<String, Value>, pointer: &str, finite: &HashSet<&str>) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    let properties = schema.get("properties").and_then(Value::as_object);
    required.into_iter().flatten().filter_map(Value::as_str).all(|name| {
        let is_known = properties.is_some_and(|known| known.contains_key(name));
        !is_known || finite.contains(format!("{pointer}/properties/{}", escape(name)).as_str())
    })
}

fn array_ends(schema: &Map<String, Value>, pointer: &str, finite: &HashSet<&str>) -> bool {
    let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0) as usize;
    let list = |keyword: &str| schema.get(keyword).and_then(Value::as_array).map_or(0, Vec::len);
    let first = if list("prefixItems") > 0 { "prefixItems" } else { "items" };
    let listed = list(first).min(least);
    (0..listed).all(|i| finite.contains(format!("{pointer}/{first}/{i}").as_str()))
        && (least <= list(first)
            || !schema.get("items").is_some_and(Value::is_object)
            || finite.contains(format!("{pointer}/items").as_str()))
}
