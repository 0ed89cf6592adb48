// SPDX-License-Identifier: Apache-2.0
//! A Lark grammar in which places have a form of their own: JSON that obeys a schema, or any other
//! that clients may ask for. The caller writes the grammar; what forms may be, and how they are
//! obeyed, is the same as for one alone.

use std::fmt::Write;

use serde::Deserialize;
use serde_json::Value;

use super::{grammar, lark, tags, Vocabulary};
use crate::abi::{Error, Result};
use crate::schema;

#[derive(Deserialize)]
#[serde(untagged)]
enum Part {
    Lark(String),
    Form(Form),
}

/// The strings are sources of a grammar of that kind.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Form {
    JsonSchema(Value),
    Regex(String),
    Lark(String),
    Choices(String),
    Tags(String),
}

pub fn lark(vocabulary: &Vocabulary, source: &str) -> Result<String> {
    let parts: Vec<Part> = serde_json::from_str(source)
        .map_err(|e| Error::invalid(format!("the parts of a grammar are not as expected: {e}")))?;
    let mut text = String::new();
    for part in &parts {
        match part {
            Part::Lark(piece) => text.push_str(piece),
            Part::Form(form) => write_form(vocabulary, form, &mut text)?,
        }
    }
    Ok(text)
}

fn write_form(vocabulary: &Vocabulary, form: &Form, text: &mut String) -> Result<()> {
    match form {
        Form::JsonSchema(schema) => write!(text, "%json {}", schema::prepare(schema)?.schema),
        Form::Regex(regex) => write!(text, "/{}/", llguidance::regex_to_lark(regex, "")),
        Form::Choices(choices) => {
            let regex = grammar::choice_regex(choices)?;
            write!(text, "/{}/", llguidance::regex_to_lark(&regex, ""))
        }
        Form::Lark(rules) => {
            lark::check(rules)?;
            write!(text, "%lark {{\n{rules}\n}}")
        }
        Form::Tags(tags) => write!(text, "%lark {{\n{}\n}}", tags::lark(vocabulary, tags)?),
    }
    .unwrap();
    Ok(())
}
