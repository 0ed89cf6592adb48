// SPDX-License-Identifier: Apache-2.0
//! `$ref`: to a place inside the schema, by JSON pointer or by anchor. Nothing is ever fetched.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::{escape, refuse, wrong};
use crate::abi::Result;

/// `$anchor`s of the schema -> JSON pointers.
pub fn anchors(root: &Value) -> HashMap<String, String> {
    let mut found = HashMap::new();
    collect(root, &mut String::new(), &mut found);
    found
}

fn collect(value: &Value, pointer: &mut String, found: &mut HashMap<String, String>) {
    let length = pointer.len();
    match value {
        Value::Object(members) => {
            if let Some(Value::String(name)) = members.get("$anchor") {
                found.entry(name.clone()).or_insert_with(|| pointer.clone());
            }
            for (key, member) in members {
                pointer.push('/');
                pointer.push_str(&escape(key));
                collect(member, pointer, found);
                pointer.truncate(length);
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                pointer.push_str(&format!("/{i}"));
                collect(item, pointer, found);
                pointer.truncate(length);
            }
        }
        _ => {}
    }
}

/// The pointer that the `$ref` of the schema at `pointer` means.
pub fn resolve(
    root: &Value,
    anchors: &HashMap<String, String>,
    pointer: &str,
    reference: &Value,
) -> Result<String> {
    let Value::String(text) = reference else {
        return Err(wrong(pointer, "$ref", "a reference is a string"));
    };
    let Some(fragment) = text.strip_prefix('#') else {
        return Err(refuse(
            pointer,
            "$ref",
            format!("{text:?} lies outside of the schema; only references that begin with # work"),
        ));
    };
    let dangling = || wrong(pointer, "$ref", format!("{text:?} refers to nothing"));
    let fragment = percent_decode_str(fragment).decode_utf8().map_err(|_| dangling())?;
    if fragment.is_empty() || fragment.starts_with('/') {
        root.pointer(&fragment).ok_or_else(dangling)?;
        return Ok(fragment.into_owned());
    }
    anchors.get(fragment.as_ref()).cloned().ok_or_else(dangling)
}
