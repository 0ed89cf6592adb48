// SPDX-License-Identifier: Apache-2.0
//! Of which kind the value of each keyword is: what the meta-schemas say. (`validator` says why
//! they are not asked.)

use serde_json::Value;

use super::walk::{kind_of, Draft};
use super::wrong;
use crate::abi::Result;

/// Checks a keyword that is obeyed. Subschemas are checked where the walk meets them; numbers,
/// counts, `type`, `enum` and patterns have checks of their own.
pub fn check(pointer: &str, keyword: &str, value: &Value, draft: Draft) -> Result<()> {
    let expected = match keyword {
        "properties" | "patternProperties" if !value.is_object() => "an object of schemas",
        "allOf" | "anyOf" | "oneOf" if !is_list(value) => "an array of at least one schema",
        "prefixItems" if !value.is_array() => "an array of schemas",
        "required" if !is_list_of_names(value) => "an array of strings",
        "items" if value.is_array() && draft == Draft::Y2020 => {
            "one schema; for a list of them use prefixItems, or name the dialect in $schema"
        }
        "exclusiveMinimum" | "exclusiveMaximum" if value.is_boolean() != (draft == Draft::Four) => {
            "a number (in draft 4: true or false)"
        }
        _ => return Ok(()),
    };
    Err(wrong(pointer, keyword, format!("is {}, expected {expected}", kind_of(value))))
}

fn is_list(value: &Value) -> bool {
    value.as_array().is_some_and(|items| !items.is_empty())
}

fn is_list_of_names(value: &Value) -> bool {
    value.as_array().is_some_and(|names| names.iter().all(Value::is_string))
}
