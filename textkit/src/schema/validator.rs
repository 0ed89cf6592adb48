// SPDX-License-Identifier: Apache-2.0
//! A second implementation of JSON Schema, to look at values from outside.

use jsonschema::{Draft, ValidationError, Validator};
use serde_json::{json, Value};

const NAME: &str = "urn:tessera:schema";

/// The schema is given as a resource that the real root refers to. As the root it would be checked
/// against its meta-schema, whose recursion is unrolled for every new nesting and kept for ever:
/// gigabytes for a few kilobytes of nested `anyOf`. The walk has checked it.
pub fn validator(
    schema: &Value,
    formats: bool,
) -> Result<Validator, Box<ValidationError<'static>>> {
    let draft = Draft::default().detect(schema).unwrap_or_default();
    let mut schema = schema.clone();
    // Another base would take its own references elsewhere; all of them lie inside.
    if let Some(members) = schema.as_object_mut() {
        members.shift_remove("$id");
        members.shift_remove("id");
    }
    jsonschema::options()
        .with_draft(draft)
        .with_resource(NAME, draft.create_resource(schema))
        .should_validate_formats(formats)
        .build(&json!({ "$ref": NAME }))
        .map_err(Box::new)
}
