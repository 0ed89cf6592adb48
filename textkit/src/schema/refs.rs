// SPDX-License-Identifier: Apache-2.0
//! `$ref`: to a place inside the schema, by JSON pointer or by anchor. Nothing is ever fetched.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::{escape, refuse, wrong};
use crate::abi::{Error, Result};

/// Of the pointers to all anchors together.
const MAX_POINTER_BYTES: usize = 4 << 20;

pub fn too_long(limit: usize) -> Error {
    Error::exhausted(format!(
        "#: the names on the ways to all subschemas have more than {limit} bytes together"
    ))
}

/// `$anchor`s of the schema -> JSON pointers.
pub fn anchors(root: &Value) -> Result<HashMap<String, String>> {
    let mut found = Anchors { pointers: HashMap::new(), bytes: 0 };
    found.collect(root, &mut String::new());
    if found.bytes > MAX_POINTER_BYTES {
        return Err(too_long(MAX_POINTER_BYTES));
    }
    Ok(found.pointers)
}

struct Anchors {
    pointers: HashMap<String, String>,
    bytes: usize,
}

impl Anchors {
    fn add(&mut self, name: &str, pointer: &str) {
        if self.bytes > MAX_POINTER_BYTES || self.pointers.contains_key(name) {
            return;
        }
        self.bytes += pointer.len();
        self.pointers.insert(name.to_string(), pointer.to_string());
    }

    fn collect(&mut self, value: &Value, pointer: &mut String) {
        let length = pointer.len();
        match value {
            Value::Object(members) => {
                if let Some(Value::String(name)) = members.get("$anchor") {
                    self.add(name, pointer);
                }
                for (key, member) in members {
                    pointer.push('/');
                    pointer.push_str(&escape(key));
                    self.collect(member, pointer);
                    pointer.truncate(length);
                }
            }
            Value::Array(items) => {
                for (i, item) in items.iter().enumerate() {
                    pointer.push_str(&format!("/{i}"));
                    self.collect(item, pointer);
                    pointer.truncate(length);
                }
            }
            _ => {}
        }
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
