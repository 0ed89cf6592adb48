// SPDX-License-Identifier: Apache-2.0
//! JSON Schema for constrained output. llguidance compiles schemas to grammars; this module decides
//! which schemas it may have, so that an accepted one is obeyed to the letter:
//!
//! - `keywords`: what is obeyed, what is a note to people, what is refused;
//! - `walk`: from the root along everything that can apply, each keyword checked where it stands;
//! - `refs`: references, all of them to places inside the schema;
//! - `shape`: of which kind the value of each keyword is;
//! - `bounds`: bounds that nothing satisfies;
//! - `ends`: schemas whose every instance would be endless;
//! - `depth`: how deep whoever compiles or validates them recurses;
//! - `rewrite`: the same schema in terms of what llguidance knows;
//! - `validator`: another implementation, to look at values from outside;
//! - `work`: whether that would take too long;
//! - `locate`: which part of a schema llguidance's own refusal is about.
//!
//! Every refusal begins with a JSON pointer to the keyword, as a URI fragment: `#/properties/a/not`.
//! Reading order: keywords, walk, then the others.

mod bounds;
mod depth;
mod ends;
mod keywords;
mod locate;
mod refs;
mod rewrite;
mod shape;
mod validator;
mod walk;
mod work;

use serde_json::{json, Value};

use crate::abi::{Error, Result};
pub use depth::check_any as check_depth;
pub use locate::locate;
pub use validator::validator;
pub use walk::Place;
pub use work::Work;

/// JSON on one line, with a space after commas and colons or without: more white space would be
/// tokens without content, with which small models fill their answers to the end.
const COMMA: &str = r",\x20?";
const COLON: &str = r":\x20?";
/// Escapes in strings. Without \u every string has one spelling, so that no name of a property can
/// pass for another; and none is needed but for control characters.
const ESCAPES: &str = "nrbtf\\\"";

/// A schema that may be compiled.
#[derive(Debug)]
pub struct Prepared {
    /// For llguidance, its options included.
    pub schema: Value,
    /// All that applies, the root first.
    pub places: Vec<Place>,
    /// Keywords without any effect that are not known, one sentence each.
    pub notes: Vec<String>,
}

/// Checks a schema. kInvalid: it is wrong, or nothing satisfies it. kUnimplemented: it cannot be
/// enforced.
pub fn prepare(schema: &Value) -> Result<Prepared> {
    if !schema.is_object() {
        return Err(Error::invalid(format!(
            "#: the schema is {}, expected an object",
            walk::kind_of(schema)
        )));
    }
    let walk = walk::Walk::run(schema)?;
    ends::check(schema, &walk)?;
    depth::check(&walk)?;
    let mut rewritten = rewrite::rewrite(schema, &walk)?;
    rewritten["x-guidance"] = options();
    Ok(Prepared { schema: rewritten, places: walk.places, notes: walk.notes })
}

fn options() -> Value {
    json!({
        "whitespace_flexible": false,
        "item_separator": COMMA,
        "key_separator": COLON,
        "json_allowed_escapes": ESCAPES,
    })
}

/// A refusal of the keyword at `pointer`.
fn refuse(pointer: &str, keyword: &str, why: impl std::fmt::Display) -> Error {
    Error::unimplemented(format!("#{pointer}/{}: {why}", escape(keyword)))
}

/// A mistake at the keyword at `pointer`.
fn wrong(pointer: &str, keyword: &str, what: impl std::fmt::Display) -> Error {
    Error::invalid(format!("#{pointer}/{}: {what}", escape(keyword)))
}

/// A step of a JSON pointer (RFC 6901).
fn escape(step: &str) -> String {
    step.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests;
