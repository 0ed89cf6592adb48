// SPDX-License-Identifier: Apache-2.0
//! Schemas as JSON-Schema-Test-Suite has them (`cases.json`): each is refused at the keyword that
//! the case names, or its valid instances can be generated and its invalid ones cannot; what is
//! generated at random passes another implementation of JSON Schema.

use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::{json, Value};

use super::prepare;
use crate::abi::Code;
use crate::constraint::{Constraint, Grammar, Vocabulary};

const END: i32 = 256;

/// The 256 bytes and an end.
fn vocabulary() -> Arc<Vocabulary> {
    static BYTES: OnceLock<Arc<Vocabulary>> = OnceLock::new();
    BYTES
        .get_or_init(|| {
            let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
            tokens.push(b"</s>".to_vec());
            let mut special = vec![0; 256];
            special.push(1);
            Arc::new(Vocabulary::new(tokens, &special, &[END]).unwrap())
        })
        .clone()
}

fn grammar(schema: &Value) -> Result<Grammar, String> {
    Grammar::new(vocabulary(), 0, &schema.to_string()).map_err(|error| error.message)
}

fn refusal(schema: Value) -> String {
    grammar(&schema).err().unwrap_or_else(|| panic!("accepted: {schema}"))
}

fn accepts(grammar: &Grammar, instance: &Value) -> bool {
    let mut constraint = grammar.start();
    let text = instance.to_string();
    text.bytes().all(|byte| constraint.commit(i32::from(byte)).is_ok())
        && constraint.is_accepting().unwrap_or(false)
}

#[derive(Deserialize)]
struct Case {
    description: String,
    schema: Value,
    /// Where it is refused; absent: it is accepted.
    refused: Option<String>,
    #[serde(default)]
    tests: Vec<Test>,
}

#[derive(Deserialize)]
struct Test {
    data: Value,
    valid: bool,
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("cases.json")).unwrap()
}

#[test]
fn schemas_are_obeyed_or_refused_where_the_cases_say() {
    let mut failures = Vec::new();
    for case in cases() {
        let name = &case.description;
        match (grammar(&case.schema), &case.refused) {
            (Err(message), Some(place)) => {
                if !message.starts_with(&format!("{place}: ")) {
                    failures.push(format!("{name}: refused with {message}, expected at {place}"));
                }
            }
            (Err(message), None) => failures.push(format!("{name}: refused: {message}")),
            (Ok(_), Some(place)) => failures.push(format!("{name}: not refused at {place}")),
            (Ok(grammar), None) => {
                for Test { data, valid } in &case.tests {
                    if accepts(&grammar, data) != *valid {
                        failures.push(format!("{name}: {data} should be valid: {valid}"));
                    }
                    if grammar.validate(&data.to_string()).is_ok() != *valid {
                        failures.push(format!("{name}: the validator disagrees on {data}"));
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// Small, repeatable, and good enough to wander through grammars.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }
}

/// A random output, or nothing when it grows too long. Ends, quotes and brackets are likelier than
/// their share, or nothing would ever end.
fn wander(constraint: &mut Constraint, dice: &mut Dice) -> Option<String> {
    let mut text = Vec::new();
    let mut mask = [0u32; 9];
    for _ in 0..400 {
        constraint.mask(&mut mask).unwrap();
        let allowed: Vec<i32> =
            (0..=END).filter(|&id| mask[id as usize / 32] >> (id % 32) & 1 == 1).collect();
        let closing: Vec<i32> = allowed
            .iter()
            .copied()
            .filter(|&id| id == END || b"\"}],:".contains(&(id.min(255) as u8)))
            .collect();
        let from = if closing.is_empty() || dice.below(3) == 0 { &allowed } else { &closing };
        let id = from[dice.below(from.len())];
        constraint.commit(id).unwrap();
        if id == END {
            return Some(String::from_utf8(text).unwrap());
        }
        text.push(id as u8);
    }
    None
}

#[test]
fn what_is_generated_is_valid() {
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let mut finished = 0;
    for case in cases() {
        let Ok(grammar) = grammar(&case.schema) else { continue };
        for _ in 0..30 {
            let Some(text) = wander(&mut grammar.start(), &mut dice) else { continue };
            finished += 1;
            if let Err(error) = grammar.validate(&text) {
                panic!("{}: generated {text}: {}", case.description, error.message);
            }
        }
    }
    assert!(finished > 1000, "{finished}");
}

#[test]
fn unknown_keywords_are_noted_and_change_nothing() {
    let prepared = prepare(&json!({"type": "string", "minLenght": 3, "x-mine": 1})).unwrap();
    assert_eq!(prepared.notes.len(), 1);
    assert!(prepared.notes[0].starts_with("#/minLenght: "), "{}", prepared.notes[0]);
}

#[test]
fn options_of_the_compiler_are_not_the_clients() {
    let lenient = json!({"x-guidance": {"lenient": true}, "type": "array", "uniqueItems": true});
    assert!(refusal(lenient).starts_with("#/uniqueItems: "));
    let nested = json!({"properties": {"a": {"x-guidance": {"lenient": true}, "not": {}}}});
    assert!(refusal(nested).starts_with("#/properties/a/not: "));
}

#[test]
fn schemas_that_are_no_objects_are_refused() {
    for schema in [json!(7), json!(null), json!([]), json!("object"), json!(true)] {
        assert!(refusal(schema).starts_with("#: "));
    }
}

#[test]
fn json_comes_on_one_line() {
    let grammar = grammar(&json!({"type": "array", "items": {"type": "null"}})).unwrap();
    let takes = |text: &str| {
        let mut constraint = grammar.start();
        text.bytes().all(|byte| constraint.commit(i32::from(byte)).is_ok())
    };
    assert!(takes("[null,null, null]"));
    for text in ["[ ", "[\n", "[null ,", "[null,  ", "[null,\n", " ["] {
        assert!(!takes(text), "{text}");
    }
}

#[test]
fn hostile_schemas_end_in_an_error_soon() {
    let wide: Vec<Value> = (0..60)
        .map(|i| json!({"anyOf": [{"minimum": i}, {"minLength": i}, {"minItems": i}]}))
        .collect();
    // Twice as many parts with each level.
    let doubled = |levels: usize| {
        (0..levels).fold(
            json!({}),
            |inner, _| json!({"anyOf": [inner, {"type": "array", "items": inner}]}),
        )
    };
    let deep = (0..60).fold(json!({}), |inner, _| json!({"items": inner}));
    let started = std::time::Instant::now();
    for schema in [
        json!({"allOf": wide}),
        json!({"type": "string", "minLength": 4_000_000_000u64}),
        json!({"type": "array", "minItems": 4_000_000_000u64}),
        json!({"pattern": "(a{1000}){1000}"}),
        json!({"pattern": "(((((a{0,99}){0,99}){0,99}){0,99}){0,99})"}),
        doubled(8),
        doubled(12),
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"properties": {"a": deep}, "required": ["b"]}),
    ] {
        let begin = std::time::Instant::now();
        let refused = grammar(&schema).err();
        let text: String = schema.to_string().chars().take(40).collect();
        println!("{:?} for {text}: {refused:?}", begin.elapsed());
    }
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn too_many_subschemas_are_one_too_many() {
    let schema = |count: usize| {
        let items: Vec<Value> = (0..count).map(|_| json!(true)).collect();
        json!({"prefixItems": items})
    };
    assert!(prepare(&schema(19_999)).is_ok());
    assert_eq!(prepare(&schema(20_000)).unwrap_err().code, Code::ResourceExhausted);
}
