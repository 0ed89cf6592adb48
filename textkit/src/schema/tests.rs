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

/// Definitions a0 -> a1 -> ... each of which refers to the next as `link` says, the last being any
/// value; `length` schemas apply, the root among them.
fn chain(length: usize, link: impl Fn(Value) -> Value) -> Value {
    let name = |i: usize| json!(format!("#/$defs/a{i}"));
    let mut definitions = serde_json::Map::new();
    let last = length - 2;
    for i in 0..last {
        definitions.insert(format!("a{i}"), link(name(i + 1)));
    }
    definitions.insert(format!("a{last}"), json!({}));
    json!({"$ref": "#/$defs/a0", "$defs": definitions})
}

/// From the thread of a test, whose stack has 2 MiB.
fn assert_limit(at_limit: &Value, above: &Value, place: &str) {
    if let Err(error) = Grammar::new(vocabulary(), 0, &at_limit.to_string()) {
        panic!("refused at the limit: {}", error.message);
    }
    let error = Grammar::new(vocabulary(), 0, &above.to_string()).err().expect("not refused");
    assert_eq!(error.code, Code::ResourceExhausted);
    assert!(error.message.starts_with(place), "{}", error.message);
}

#[test]
fn references_of_one_value_lie_128_deep_and_no_deeper() {
    let link = |name: Value| json!({"$ref": name});
    assert_limit(&chain(128, link), &chain(129, link), "#/$defs/a127: ");
    assert_limit(&chain(128, link), &chain(19_000, link), "#/$defs/a127: ");
    let any_of = |name: Value| json!({"anyOf": [{"type": "null"}, {"$ref": name}]});
    assert_limit(&chain(64, any_of), &chain(6_000, any_of), "#/$defs/a");
}

#[test]
fn schemas_lie_1024_deep_and_no_deeper() {
    // The item is a schema of its own: two places a link, one for the root and one for the end.
    let link = |name: Value| json!({"type": "array", "items": {"$ref": name}});
    assert_limit(&chain(513, link), &chain(514, link), "#/$defs/a511/items: ");
    assert_limit(&chain(513, link), &chain(6_000, link), "#/$defs/a511/items: ");
    let circle = |length: usize| {
        let mut schema = chain(length, |name| json!({"type": "array", "items": {"$ref": name}}));
        schema["$defs"][format!("a{}", length - 2)] = json!({"items": {"$ref": "#/$defs/a0"}});
        schema
    };
    assert_limit(&circle(512), &circle(513), "#/$defs/a");
    assert_limit(&circle(512), &circle(6_000), "#/$defs/a");
}

/// 10,000 of them went through 10,000 passes over all places.
#[test]
fn a_long_chain_of_demands_is_looked_at_once() {
    let link = |name: Value| {
        json!({"type": "object", "properties": {"x": {"$ref": name}},
                                    "required": ["x"]})
    };
    let started = std::time::Instant::now();
    assert!(prepare(&chain(9_999, link)).is_err());
    assert!(started.elapsed().as_millis() < 1000, "{:?}", started.elapsed());
}

#[test]
fn long_names_on_the_ways_to_many_subschemas_are_refused() {
    let schema = |items: usize| {
        let items: Vec<Value> = (0..items).map(|_| json!(true)).collect();
        json!({"properties": {"n".repeat(100_000): {"prefixItems": items}}})
    };
    assert!(prepare(&schema(100)).is_ok());
    assert_eq!(prepare(&schema(1_000)).unwrap_err().code, Code::ResourceExhausted);
}

#[test]
fn many_values_in_one_of_are_told_apart_soon() {
    let values = |from: usize| json!({"enum": (from..from + 40_000).collect::<Vec<_>>()});
    let started = std::time::Instant::now();
    let apart = prepare(&json!({"oneOf": [values(0), values(50_000)]})).unwrap();
    assert!(apart.schema.get("anyOf").is_some());
    let same = prepare(&json!({"oneOf": [values(0), {"enum": [39_999.0]}]})).unwrap();
    assert!(same.schema.get("oneOf").is_some());
    assert!(started.elapsed().as_millis() < 2000, "{:?}", started.elapsed());
}

#[test]
fn what_a_validator_would_never_end_with_is_not_asked_of_it() {
    // Each refers to the next twice: two to the power of 40 ways.
    for keyword in ["anyOf", "allOf"] {
        let mut definitions = serde_json::Map::new();
        for i in 0..40 {
            let next = json!({"$ref": format!("#/$defs/a{}", i + 1)});
            definitions.insert(format!("a{i}"), json!({keyword: [next, next]}));
        }
        definitions.insert("a40".to_string(), json!({"type": "integer"}));
        let schema = json!({"$ref": "#/$defs/a0", "$defs": definitions});
        let started = std::time::Instant::now();
        match Grammar::new(vocabulary(), 0, &schema.to_string()) {
            Ok(grammar) => {
                assert_eq!(grammar.validate("1").unwrap_err().code, Code::ResourceExhausted);
            }
            Err(error) => println!("{keyword} is refused: {}", error.message),
        }
        assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
    }
}

#[test]
fn holding_a_value_against_a_schema_is_bounded() {
    let consts: Vec<Value> = (0..9_000).map(|i| json!({"const": i})).collect();
    let grammar = grammar(&json!({"type": "array", "items": {"anyOf": consts}})).unwrap();
    let items = |count: usize| json!(vec![8_999; count]).to_string();
    assert!(grammar.validate(&items(100)).is_ok());
    let started = std::time::Instant::now();
    assert_eq!(grammar.validate(&items(100_000)).unwrap_err().code, Code::ResourceExhausted);
    assert!(started.elapsed().as_millis() < 2000, "{:?}", started.elapsed());
}
