// SPDX-License-Identifier: Apache-2.0
//! How much work it is to hold a value against a schema. A validator tries what the schema offers
//! without a bound: `allOf` of two references, each to another such, doubles its work with every
//! step. Counted before it starts.

use serde_json::Value;

use super::walk::{has_values, Applies, Place};

/// Steps of a validator, of which it takes some ten millions in a second.
const MAX_STEPS: usize = 5_000_000;

/// The places of a schema, the root first, and what each costs by itself.
pub struct Work {
    places: Vec<Place>,
    values: Vec<usize>,
}

impl Work {
    pub fn new(schema: &Value, places: Vec<Place>) -> Work {
        let values = |place: &Place| match schema.pointer(&place.pointer) {
            Some(Value::Object(members)) if has_values(members) => {
                members.get("enum").and_then(Value::as_array).map_or(1, Vec::len)
            }
            _ => 0,
        };
        Work { values: places.iter().map(values).collect(), places }
    }

    /// Whether a validator may be asked about the value.
    pub fn is_bearable(&self, value: &Value) -> bool {
        let mut left = MAX_STEPS;
        // What applies to what, still to be counted.
        let mut open = vec![(0, value)];
        while let Some((place, value)) = open.pop() {
            let edges = &self.places[place].edges;
            let cost = 1 + self.values[place] + edges.len();
            for edge in edges {
                let to = edge.to;
                match (&edge.applies, value) {
                    (Applies::Here(_), _) => open.push((to, value)),
                    (Applies::Member(name), Value::Object(members)) => {
                        open.extend(members.get(name).map(|member| (to, member)));
                    }
                    (Applies::Members, Value::Object(members)) => {
                        open.extend(members.values().map(|member| (to, member)));
                    }
                    (Applies::Item(i), Value::Array(items)) => {
                        open.extend(items.get(*i).map(|item| (to, item)));
                    }
                    (Applies::Items, Value::Array(items)) => {
                        open.extend(items.iter().map(|item| (to, item)));
                    }
                    _ => {}
                }
                if open.len() > left {
                    return false;
                }
            }
            match left.checked_sub(cost) {
                Some(rest) => left = rest,
                None => return false,
            }
        }
        true
    }
}
