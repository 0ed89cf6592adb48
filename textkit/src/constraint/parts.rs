// SPDX-License-Identifier: Apache-2.0
//! A Lark grammar in which places are JSON that obeys a schema. The caller writes the grammar; what
//! schemas may be, and how they are obeyed, is the same as for a schema alone.

use std::fmt::Write;

use serde::Deserialize;
use serde_json::Value;

use crate::abi::{Error, Result};
use crate::schema;

#[derive(Deserialize)]
#[serde(untagged)]
enum Part {
    Lark(String),
    Schema(Schema),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Schema {
    json_schema: Value,
}

pub fn lark(source: &str) -> Result<String> {
    let parts: Vec<Part> = serde_json::from_str(source)
        .map_err(|e| Error::invalid(format!("the parts of a grammar are not as expected: {e}")))?;
    let mut text = String::new();
    for part in &parts {
        match part {
            Part::Lark(piece) => text.push_str(piece),
            Part::Schema(Schema { json_schema }) => {
                write!(text, "%json {}", schema::prepare(json_schema)?.schema).unwrap();
            }
        }
    }
    Ok(text)
}
