// SPDX-License-Identifier: Apache-2.0
//! Where in a schema a refusal of llguidance belongs: its messages name no place. Each part is
//! compiled alone, the innermost first; the first that is refused is where the reason stands.

use serde_json::{json, Map, Value};

use super::rewrite::reference;
use super::{escape, Prepared};

/// Parts that are tried. Each takes well under a millisecond.
const MAX_TRIED: usize = 200;

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
    for pointer in places.into_iter().take(MAX_TRIED) {
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
            return format!("#{pointer}{keyword}: {}", first_line(&message));
        }
    }
    format!("#: {}", first_line(&whole))
}

/// The keyword of the part that the message is about, if it names one.
fn guess(members: &Map<String, Value>, message: &str) -> Option<String> {
    let named = members.keys().find(|keyword| message.contains(keyword.as_str()));
    let regex = || members.keys().find(|k| *k == "pattern" && message.contains("egex"));
    named.or_else(regex).map(|keyword| escape(keyword))
}

fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or("").trim()
}
