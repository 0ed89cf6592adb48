// SPDX-License-Identifier: Apache-2.0
//! How deep the compilers and the validator recurse for a schema: once for each subschema within
//! another, through references. Bounded before they see it.

use std::collections::HashMap;

use serde_json::Value;

use super::walk::{is_ref, Applies, Edge, Walk};
use super::{escape, refs};
use crate::abi::{Error, Result};
use crate::graph::heaviest_ways;

/// Schemas on one way from the root, those that refer to each other in a circle counted together.
pub const MAX_DEPTH: usize = 1024;
/// Those of them that apply to one instance: the validator passes as many for each level of it.
pub const MAX_IN_PLACE: usize = 128;

pub fn check(walk: &Walk) -> Result<()> {
    let is_here = |edge: &Edge| matches!(edge.applies, Applies::Here(_));
    limit(walk, MAX_IN_PLACE, is_here, "subschemas of one value lie within each other")?;
    limit(walk, MAX_DEPTH, |_| true, "subschemas lie within each other")
}

fn limit(walk: &Walk, max: usize, counts: impl Fn(&Edge) -> bool, what: &str) -> Result<()> {
    let edges: Vec<Vec<usize>> = walk
        .places
        .iter()
        .map(|place| {
            let counted = place.edges.iter().filter(|edge| counts(edge));
            counted.map(|edge| edge.to).collect()
        })
        .collect();
    let depths = heaviest_ways(&edges, &vec![1; edges.len()]);
    // Of those that lie too deep, the least deep: where it begins.
    let deep = (0..depths.len()).filter(|&i| depths[i] > max).min_by_key(|&i| depths[i]);
    match deep {
        None => Ok(()),
        Some(i) => Err(Error::exhausted(format!(
            "#{}: more than {max} {what}, through references",
            walk.places[i].pointer
        ))),
    }
}

/// The same bound for a schema that nobody has walked through, and of which therefore anything may
/// be a schema: its objects and arrays, each reference that leads nowhere known leading everywhere.
pub fn check_any(root: &Value) -> Result<()> {
    let mut graph = Containers::default();
    graph.add(root, None);
    let anchors = refs::anchors(root)?;
    let anywhere = graph.edges.len();
    graph.edges.push((0..anywhere).collect());
    for (from, text) in std::mem::take(&mut graph.refs) {
        let target = refs::resolve(root, &anchors, "", &Value::from(text));
        let to = target.ok().and_then(|pointer| graph.ids.get(&address(root.pointer(&pointer)?)));
        graph.edges[from].push(*to.unwrap_or(&anywhere));
    }
    let mut weights = vec![1; graph.edges.len()];
    weights[anywhere] = 0;
    let depths = heaviest_ways(&graph.edges, &weights);
    let deep = (0..anywhere).filter(|&i| depths[i] > MAX_DEPTH).min_by_key(|&i| depths[i]);
    match deep {
        None => Ok(()),
        Some(i) => Err(Error::exhausted(format!(
            "#{}: more than {MAX_DEPTH} parts of the schema lie within each other, through references",
            graph.pointer(i)
        ))),
    }
}

fn address(value: &Value) -> usize {
    std::ptr::from_ref(value) as usize
}

/// The objects and arrays of a schema.
#[derive(Default)]
struct Containers {
    ids: HashMap<usize, usize>,
    edges: Vec<Vec<usize>>,
    /// Where each lies, and under which name.
    parents: Vec<Option<(usize, String)>>,
    refs: Vec<(usize, String)>,
}

impl Containers {
    /// Recurses as deep as the JSON is nested, which its reader bounds.
    fn add(&mut self, value: &Value, parent: Option<(usize, String)>) {
        if !value.is_object() && !value.is_array() {
            return;
        }
        let id = self.edges.len();
        self.ids.insert(address(value), id);
        self.edges.push(Vec::new());
        if let Some((parent, _)) = &parent {
            self.edges[*parent].push(id);
        }
        self.parents.push(parent);
        for (name, member) in value.as_object().into_iter().flatten() {
            match member {
                Value::String(text) if is_ref(name) => self.refs.push((id, text.clone())),
                _ => self.add(member, Some((id, escape(name)))),
            }
        }
        for (i, item) in value.as_array().into_iter().flatten().enumerate() {
            self.add(item, Some((id, i.to_string())));
        }
    }

    fn pointer(&self, id: usize) -> String {
        let mut steps = Vec::new();
        let mut at = id;
        while let Some((parent, name)) = &self.parents[at] {
            steps.push(format!("/{name:.200}"));
            at = *parent;
        }
        steps.into_iter().rev().collect()
    }
}
