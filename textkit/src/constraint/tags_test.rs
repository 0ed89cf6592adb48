// SPDX-License-Identifier: Apache-2.0
//! Text with tags over a vocabulary of bytes, an end and a special token.

use std::sync::Arc;

use serde_json::{json, Value};

use super::{Grammar, Vocabulary};

const END: i32 = 256;
const CALL: i32 = 257;
const TAGS: i32 = 4;

fn compile(source: &Value) -> Result<Grammar, String> {
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    tokens.push(b"</s>".to_vec());
    tokens.push(b"<|call|>".to_vec());
    let mut special = vec![0; 256];
    special.extend([1, 1]);
    let vocabulary = Arc::new(Vocabulary::new(tokens, &special, &[END]).unwrap());
    Grammar::new(vocabulary, TAGS, &source.to_string()).map_err(|error| error.message)
}

/// How far `text` gets ("<|call|>" is one token): all of it, and whether it may end there.
fn run(grammar: &Grammar, text: &str) -> (bool, bool) {
    let mut constraint = grammar.start();
    let mut rest = text;
    while !rest.is_empty() {
        let (id, length) = match rest.strip_prefix("<|call|>") {
            Some(_) => (CALL, 8),
            None => (i32::from(rest.as_bytes()[0]), 1),
        };
        if constraint.commit(id).is_err() {
            return (false, false);
        }
        rest = &rest[length..];
    }
    (true, constraint.is_accepting().unwrap())
}

const WHOLE: (bool, bool) = (true, true);
const OPEN: (bool, bool) = (true, false);
const NO: (bool, bool) = (false, false);

fn add_and_now() -> Value {
    let add = json!({"type": "object", "properties": {"a": {"type": "integer"}},
                     "required": ["a"], "additionalProperties": false});
    let now = json!({"type": "object", "additionalProperties": false});
    json!([
        {"begin": "<f=add>", "content": {"json_schema": add}, "end": "</f>"},
        {"begin": "<f=now>", "content": {"json_schema": now}, "end": "</f>"},
    ])
}

#[test]
fn text_is_free_until_a_trigger_comes() {
    let grammar =
        compile(&json!({"tags": add_and_now(), "triggers": ["<f"], "free_text": true})).unwrap();
    assert_eq!(run(&grammar, ""), WHOLE);
    assert_eq!(run(&grammar, "hello <b> <"), WHOLE);
    assert_eq!(run(&grammar, "hello <f"), OPEN);
    assert_eq!(run(&grammar, "hello <fx"), NO);
    assert_eq!(run(&grammar, "hello <f=add>{\"a\": 1}</f>"), WHOLE);
    assert_eq!(run(&grammar, "hello <f=add>{\"a\": true"), NO);
    assert_eq!(run(&grammar, "hello <f=add>{}"), NO);
    assert_eq!(run(&grammar, "1 <f=now>{}</f> 2 <f=add>{\"a\":2}</f> 3"), WHOLE);
    assert_eq!(run(&grammar, "1 <f=now>{}</f><f=now>{}</f>"), WHOLE);
    assert_eq!(run(&grammar, "1 <f=now>{}</f> 2 <f=add>"), OPEN);
}

#[test]
fn the_number_of_tags_is_kept() {
    let source = |min: usize, max: Option<usize>, free: bool| {
        let mut source = json!({"tags": add_and_now(), "triggers": ["<f="], "free_text": free,
                                "separator": "\n", "min_tags": min});
        if let Some(max) = max {
            source["max_tags"] = json!(max);
        }
        compile(&source).unwrap()
    };
    let now = "<f=now>{}</f>";
    let one = source(1, Some(1), false);
    assert_eq!(run(&one, ""), OPEN);
    assert_eq!(run(&one, "x"), NO);
    assert_eq!(run(&one, now), WHOLE);
    assert_eq!(run(&one, &format!("{now}\n")), NO);
    let some = source(1, None, false);
    assert_eq!(run(&some, &format!("{now}\n{now}")), WHOLE);
    assert_eq!(run(&some, &format!("{now}{now}")), NO);
    let in_text = source(1, Some(1), true);
    assert_eq!(run(&in_text, "text"), OPEN);
    assert_eq!(run(&in_text, &format!("text {now} more")), WHOLE);
    assert_eq!(run(&in_text, &format!("text {now} more <f=")), NO);
}

#[test]
fn special_tokens_begin_tags_and_are_no_text() {
    let tags = json!([{"begin": "<|call|>f", "content": {"regex": "[0-9]+"}, "end": ";"}]);
    let grammar =
        compile(&json!({"tags": tags, "triggers": ["<|call|>"], "free_text": true})).unwrap();
    assert_eq!(run(&grammar, "text"), WHOLE);
    assert_eq!(run(&grammar, "text <|call|>"), OPEN);
    assert_eq!(run(&grammar, "text <|call|>f12;"), WHOLE);
    assert_eq!(run(&grammar, "text <|call|>x"), NO);
    assert_eq!(run(&grammar, "<|call|>f1;<|call|>f2; and"), WHOLE);
}

#[test]
fn contents_may_be_lark() {
    let tags = json!([{"begin": "(", "content": {"lark": "start: A+\nA: \"ab\""}, "end": ")"}]);
    let grammar = compile(&json!({"tags": tags, "min_tags": 1, "max_tags": 1})).unwrap();
    assert_eq!(run(&grammar, "(abab)"), WHOLE);
    assert_eq!(run(&grammar, "(aba"), OPEN);
    assert_eq!(run(&grammar, "()"), NO);
}

#[test]
fn what_is_wrong_is_named() {
    let tag =
        |schema: Value| json!({"begin": "<a>", "content": {"json_schema": schema}, "end": ""});
    let error = |source: Value| compile(&source).err().unwrap();
    let bad = json!({"tags": [tag(json!({})), tag(json!({"properties": {"x": {"not": {}}}}))]});
    assert!(error(bad).starts_with("tag 1: #/properties/x/not: "));
    let overlap = json!({"oneOf": [{"type": "integer"}, {"type": "number"}]});
    let bad = json!({"tags": [tag(json!({})), tag(overlap)]});
    assert!(error(bad).starts_with("tag 1: #/oneOf: "));
    assert!(error(json!({"tags": []})).contains("1 to"));
    let no_trigger = json!({"tags": [tag(json!({}))], "triggers": ["<b"], "free_text": true});
    assert!(error(no_trigger).contains("no trigger begins"));
    let nested = json!({"tags": [tag(json!({}))], "triggers": ["<a", "<"], "free_text": true});
    assert!(error(nested).contains("part of the trigger"));
}

#[test]
fn triggers_are_at_most_128() {
    let source = |count: usize| {
        let triggers: Vec<String> = (0..count).map(|i| format!("<{i:06}>")).collect();
        json!({"tags": [{"begin": "<000000>", "content": {"regex": "a"}, "end": ""}],
               "triggers": triggers, "free_text": true})
    };
    assert!(compile(&source(128)).is_ok());
    assert!(compile(&source(129)).err().unwrap().contains("128 triggers"));
    let started = std::time::Instant::now();
    assert!(compile(&source(90_000)).is_err());
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
}

#[test]
fn special_tokens_are_found_in_long_tags_soon() {
    let tags: Vec<Value> = (0..100)
        .map(|i| {
            json!({"begin": "<|call|>".repeat(500), "content": {"regex": format!("a{i}")},
                        "end": "<".repeat(4000)})
        })
        .collect();
    let started = std::time::Instant::now();
    let made = compile(&json!({"tags": tags}));
    println!("{:?} in {:?}", made.err(), started.elapsed());
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
}
