// SPDX-License-Identifier: Apache-2.0
//! Schemas that have no end: references that lead back to themselves before anything is written,
//! and schemas whose every instance would contain another, for ever.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::walk::{has_values, Applies, Place, Walk};
use super::{escape, wrong};
use crate::abi::{Error, Result};

pub fn check(root: &Value, walk: &Walk) -> Result<()> {
    check_cycles(walk)?;
    check_finite(root, walk)
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    OnPath,
    Done,
}

/// Along what applies to the same instance, depth first without recursion.
fn check_cycles(walk: &Walk) -> Result<()> {
    let mut states = vec![State::New; walk.places.len()];
    for start in 0..walk.places.len() {
        // The path, and which edge to follow next at each of its places.
        let mut path = if states[start] == State::New { vec![(start, 0)] } else { Vec::new() };
        while let Some((place, next)) = path.last_mut() {
            let from = &walk.places[*place];
            states[*place] = State::OnPath;
            let Some(edge) = from.edges.get(*next) else {
                states[*place] = State::Done;
                path.pop();
                continue;
            };
            *next += 1;
            let Applies::Here(keyword) = edge.applies else { continue };
            match states[edge.to] {
                State::OnPath => {
                    let why = "leads back to itself without an end";
                    return Err(wrong(&from.pointer, keyword, why));
                }
                State::New => path.push((edge.to, 0)),
                State::Done => {}
            }
        }
    }
    Ok(())
}

/// What has to be finite for a place to be so: all of its needs, each by one of its ways.
struct Needs<'a> {
    walk: &'a Walk,
    /// Open needs of each place.
    open: Vec<usize>,
    /// The place of each need, until it is met.
    need_of: Vec<Option<usize>>,
    /// By place: the needs that it meets.
    meets: Vec<Vec<usize>>,
}

impl Needs<'_> {
    fn one_of(&mut self, place: usize, ways: impl IntoIterator<Item = String>) {
        let need = self.need_of.len();
        self.need_of.push(Some(place));
        self.open[place] += 1;
        for way in ways {
            if let Some(&id) = self.walk.ids.get(&way) {
                self.meets[id].push(need);
            }
        }
    }

    fn all_of(&mut self, place: usize, ways: impl IntoIterator<Item = String>) {
        for way in ways {
            self.one_of(place, [way]);
        }
    }
}

/// The least fixed point: a schema is finite when what it demands is. Each place is looked at once,
/// when it has turned out to be finite.
fn check_finite(root: &Value, walk: &Walk) -> Result<()> {
    let count = walk.places.len();
    let mut needs =
        Needs { walk, open: vec![0; count], need_of: Vec::new(), meets: vec![Vec::new(); count] };
    for (i, place) in walk.places.iter().enumerate() {
        if let Some(Value::Object(schema)) = root.pointer(&place.pointer) {
            add_needs(&mut needs, i, schema);
        }
    }
    let mut finite: Vec<usize> = (0..count).filter(|&place| needs.open[place] == 0).collect();
    while let Some(place) = finite.pop() {
        if place == 0 {
            return Ok(());
        }
        for &need in &needs.meets[place] {
            let Some(of) = needs.need_of[need].take() else { continue };
            needs.open[of] -= 1;
            if needs.open[of] == 0 {
                finite.push(of);
            }
        }
    }
    Err(Error::invalid(
        "#: every value of this schema would be endless: what it requires contains itself",
    ))
}

fn add_needs(needs: &mut Needs, place: usize, schema: &Map<String, Value>) {
    if has_values(schema) {
        return;
    }
    let Place { pointer, target, .. } = &needs.walk.places[place];
    needs.all_of(place, target.clone());
    let items = |keyword: &str| -> Vec<String> {
        let count = schema.get(keyword).and_then(Value::as_array).map_or(0, Vec::len);
        (0..count).map(|i| format!("{pointer}/{keyword}/{i}")).collect()
    };
    needs.all_of(place, items("allOf"));
    for keyword in ["anyOf", "oneOf"] {
        let options = items(keyword);
        if !options.is_empty() {
            needs.one_of(place, options);
        }
    }
    if is_only(schema, "object") {
        needs.all_of(place, demanded_properties(schema, pointer));
    }
    if is_only(schema, "array") {
        needs.all_of(place, demanded_items(schema, pointer));
    }
}

/// Other types would be a way out.
fn is_only(schema: &Map<String, Value>, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::Array(names)) => names.iter().all(|name| name == kind),
        Some(name) => name == kind,
        None => false,
    }
}

fn demanded_properties(schema: &Map<String, Value>, pointer: &str) -> Vec<String> {
    let required = schema.get("required").and_then(Value::as_array);
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_known = |name: &&str| properties.is_some_and(|known| known.contains_key(*name));
    let names = required.into_iter().flatten().filter_map(Value::as_str).filter(is_known);
    let distinct: HashSet<&str> = names.collect();
    distinct.into_iter().map(|name| format!("{pointer}/properties/{}", escape(name))).collect()
}

fn demanded_items(schema: &Map<String, Value>, pointer: &str) -> Vec<String> {
    let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
    let least = usize::try_from(least).unwrap_or(usize::MAX);
    let list = |keyword: &str| schema.get(keyword).and_then(Value::as_array).map_or(0, Vec::len);
    let first = if list("prefixItems") > 0 { "prefixItems" } else { "items" };
    let mut demanded: Vec<String> =
        (0..list(first).min(least)).map(|i| format!("{pointer}/{first}/{i}")).collect();
    if least > list(first) && schema.get("items").is_some_and(Value::is_object) {
        demanded.push(format!("{pointer}/items"));
    }
    demanded
}
