// SPDX-License-Identifier: Apache-2.0
//! Where in a schema a refusal of llguidance belongs: its messages name no place. Each part is
//! compiled alone, the innermost first; the first that is refused is where the reason stands.

use std::time::{Duration, Instant};

use serde_json::{json, Map, Value};

use super::keywords::{self, Meaning};
use super::rewrite::reference;
use super::{escape, Prepared};

/// How long the search may take: in a small schema each part takes well under a millisecond.
const MAX_TIME: Duration = Duration::from_millis(300);

/// The error that `compile` gives for the innermost part that it refuses, its pointer before it.
/// `whole` is its error for the whole schema.
pub fn locate(
    prepared: &Prepared,
    whole: String,
    compile: impl Fn(Value) -> Result<(), String>,
) -> String {
    let mut root = prepared.schema.clone();
    let options = root.as_object_mut().and_then(|members| members.shift_remove("x-guidance"));
    for place in &prepared.places {
        let Some(target) = &place.target else { continue };
        let moved = reference(&format!("/$defs/root{target}"));
        if let Some(Value::Object(members)) = root.pointer_mut(&place.pointer) {
            if members.contains_key("$ref") {
                members["$ref"] = moved;
            }
        }
    }
    let mut places: Vec<&str> = prepared.places.iter().map(|p| p.pointer.as_str()).collect();
    places.sort_by_key(|pointer| std::cmp::Reverse(pointer.matches('/').count()));
    let started = Instant::now();
    for pointer in places {
        if started.elapsed() > MAX_TIME {
            break;
        }
        let Some(Value::Object(members)) = root.pointer(pointer) else { continue };
        let mut part = json!({
            "x-guidance": options,
            "$defs": {"root": root},
            "$ref": reference(&format!("/$defs/root{pointer}")),
        });
        if let Some(dialect) = root.get("$schema") {
            part["$schema"] = dialect.clone();
        }
        if let Err(message) = compile(part) {
            let keyword = guess(members, &message).map_or(String::new(), |k| "/".to_string() + &k);
            return format!("#{pointer}{keyword}: {}", plain(&message));
        }
    }
    format!("#: {}", plain(&whole))
}

/// The keyword of the part that the message is about, if it names one.
fn guess(members: &Map<String, Value>, message: &str) -> Option<String> {
    let means = |keyword: &str| keywords::meaning(keyword) != Meaning::Note;
    let named = members.keys().find(|k| means(k) && message.contains(k.as_str()));
    let patterns = || members.keys().find(|k| *k == "patternProperties");
    let patterns = || patterns().filter(|_| message.contains("patternProperty"));
    let regex = || members.keys().find(|k| *k == "pattern" && message.contains("egex"));
    named.or_else(patterns).or_else(regex).map(|keyword| escape(keyword))
}

/// The message in terms of schemas, without advice on options that clients do not have.
fn plain(message: &str) -> &str {
    if message.starts_with("oneOf constraints are not supported") {
        return "its branches cannot be told apart by their types or by a required property with \
                a const of its own in each; if they exclude each other, anyOf says the same";
    }
    message.lines().next().unwrap_or("").trim()
}
