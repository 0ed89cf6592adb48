// SPDX-License-Identifier: Apache-2.0
//! What each keyword of JSON Schema means here. The table of docs/http.md says the same.

use serde_json::{Map, Value};

/// Obeyed, to the letter.
const OBEYED: &[&str] = &[
    "$ref",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "required",
    "type",
];

/// Notes to people and tools: without effect by the specification, or what they hold is reached by
/// $ref.
const NOTES: &[&str] = &[
    "$anchor",
    "$comment",
    "$defs",
    "$schema",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "deprecated",
    "description",
    "discriminator",
    "example",
    "examples",
    "externalDocs",
    "readOnly",
    "title",
    "writeOnly",
    "xml",
];

/// Assertions that cannot be kept token by token, or not yet. Some ask for nothing in some forms:
/// see `asks_for_nothing`.
const REFUSED: &[&str] = &[
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$vocabulary",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "id",
    "if",
    "maxContains",
    "minContains",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

/// Formats of strings that are enforced.
pub const FORMATS: &[&str] =
    &["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"];

/// Formats of numbers in OpenAPI: hints about their storage, not about their values.
pub const NUMBER_FORMATS: &[&str] = &["int32", "int64", "float", "double"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    Obeyed,
    Note,
    Refused,
    /// By the specification a note too, but perhaps a slip of the pen.
    Unknown,
}

pub fn meaning(keyword: &str) -> Meaning {
    if OBEYED.contains(&keyword) {
        Meaning::Obeyed
    } else if NOTES.contains(&keyword) || keyword.starts_with("x-") {
        Meaning::Note
    } else if REFUSED.contains(&keyword) {
        Meaning::Refused
    } else {
        Meaning::Unknown
    }
}

/// Whether a refused keyword changes nothing where it stands.
pub fn asks_for_nothing(keyword: &str, value: &Value, schema: &Map<String, Value>) -> bool {
    let has = |other: &str| schema.contains_key(other);
    match keyword {
        "not" => *value == Value::Bool(false),
        "if" => !has("then") && !has("else"),
        "then" | "else" => !has("if"),
        "contains" => schema.get("minContains") == Some(&Value::from(0)) && !has("maxContains"),
        "minContains" | "maxContains" => !has("contains"),
        "uniqueItems" => {
            *value == Value::Bool(false)
                || schema.get("maxItems").and_then(Value::as_u64).is_some_and(|max| max <= 1)
        }
        "propertyNames" | "unevaluatedItems" => is_anything(value),
        "unevaluatedProperties" => is_anything(value) || has("additionalProperties"),
        "dependentRequired" | "dependentSchemas" | "dependencies" => {
            value.as_object().is_some_and(Map::is_empty)
        }
        _ => false,
    }
}

/// Whether this is an `unevaluatedProperties` that sees no other keyword than those that
/// additionalProperties sees: the same by another name.
pub fn is_additional(keyword: &str, value: &Value, schema: &Map<String, Value>) -> bool {
    let joins =
        ["$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"];
    keyword == "unevaluatedProperties"
        && *value == Value::Bool(false)
        && !joins.iter().any(|keyword| schema.contains_key(*keyword))
}

pub fn is_anything(schema: &Value) -> bool {
    *schema == Value::Bool(true) || schema.as_object().is_some_and(Map::is_empty)
}
