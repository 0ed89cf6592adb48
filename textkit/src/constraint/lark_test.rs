// SPDX-License-Identifier: Apache-2.0
//! Lark grammars as clients write them: how deep they may be, and which outputs can be looked at.

use std::sync::Arc;

use serde_json::json;

use super::{Grammar, Vocabulary};
use crate::abi::Code;

const LARK: i32 = 2;

/// From the thread of a test, whose stack has 2 MiB.
fn compile(source: &str) -> Result<Grammar, (Code, String)> {
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    tokens.push(b"</s>".to_vec());
    tokens.push(b"<|call|>".to_vec());
    let mut special = vec![0; 256];
    special.extend([1, 1]);
    let vocabulary = Arc::new(Vocabulary::new(tokens, &special, &[256]).unwrap());
    Grammar::new(vocabulary, LARK, source).map_err(|error| (error.code, error.message))
}

fn assert_limit(grammar: impl Fn(usize) -> String, limit: usize) {
    if let Err((_, message)) = compile(&grammar(limit)) {
        panic!("refused at {limit}: {message}");
    }
    for above in [limit + 1, 30_000] {
        let Err((code, message)) = compile(&grammar(above)) else { panic!("{above} accepted") };
        assert_eq!(code, Code::ResourceExhausted, "{message}");
        assert!(message.contains("deep"), "{message}");
    }
}

/// `start: a1`, `a1: a2`, ...: `count` names in all.
fn chain(count: usize, name: &str, link: impl Fn(String) -> String) -> String {
    let mut grammar = format!("start: {name}1\n");
    for i in 1..count - 1 {
        grammar += &format!("{name}{i}: {}\n", link(format!("{name}{}", i + 1)));
    }
    grammar + &format!("{name}{}: \"x\"\n", count - 1)
}

#[test]
fn rules_refer_to_each_other_1024_deep_and_no_deeper() {
    assert_limit(|count| chain(count, "a", |next| next), 1024);
    assert_limit(|count| chain(count, "a", |next| format!("\"y\" {next} | \"z\"")), 1024);
    // In a circle.
    assert_limit(|count| chain(count, "a", |next| format!("{next} | \"y\" a1")), 1024);
}

#[test]
fn terminals_refer_to_each_other_1024_deep_and_no_deeper() {
    assert_limit(|count| chain(count, "A", |next| next), 1024);
    assert_limit(|count| chain(count, "A", |next| format!("\"y\" {next}")), 1024);
}

#[test]
fn names_are_found_where_lark_has_them() {
    let deep = |link: fn(String) -> String| compile(&chain(3000, "a", link)).err().unwrap().1;
    for message in [
        deep(|next| format!("(\"x\" | [{next}])")),
        deep(|next| format!("\"\\\"#\" {next} // \"comment\n  | \"x\"")),
        deep(|next| format!("/[\"#]\\//i {next} # \"comment")),
        deep(|next| format!("<|call|> {next} %json {{\"const\": \"\\\"a\"}}")),
        deep(|next| format!("%regex {{\"substring_chars\": \"ab\"}} {next}")),
    ] {
        assert!(message.contains("deep"), "{message}");
    }
    let nested = format!("start: %lark {{\n{}\n}}\n", chain(3000, "a", |next| next));
    assert_eq!(compile(&nested).err().unwrap().0, Code::ResourceExhausted);
    // The rules of the one are not those of the other.
    let twice = format!(
        "{}b: %lark {{\n{}\n}}\n",
        chain(600, "a", |next| next).replace("\"x\"", "b"),
        chain(600, "a", |next| next)
    );
    if let Err((_, message)) = compile(&twice) {
        panic!("{message}");
    }
}

#[test]
fn brackets_lie_within_brackets_no_deeper_than_parsers_go() {
    let template =
        |depth: usize| format!("start: {}\"x\"{}\n", "a{".repeat(depth), "}".repeat(depth));
    for depth in [65, 200_000] {
        assert_eq!(compile(&template(depth)).err().unwrap().0, Code::ResourceExhausted);
    }
    assert_eq!(compile(&template(64)).err().unwrap().0, Code::InvalidArgument);
    let condition = format!("start: a::0\na::_: \"x\" %if {}", "not(".repeat(200_000));
    assert_eq!(compile(&condition).err().unwrap().0, Code::ResourceExhausted);
}

#[test]
fn schemas_within_a_grammar_are_bounded_too() {
    let schema = |count: usize, by_id: bool| {
        let mut definitions = serde_json::Map::new();
        for i in 0..count {
            let link = match by_id {
                true => {
                    json!({"$id": format!("http://x/a{i}"), "$ref": format!("http://x/a{}", i + 1)})
                }
                false => json!({"$ref": format!("#/$defs/a{}", i + 1)}),
            };
            definitions.insert(format!("a{i}"), link);
        }
        definitions.insert(format!("a{count}"), json!({"$id": format!("http://x/a{count}")}));
        format!("start: %json {}\n", json!({"$ref": "#/$defs/a0", "$defs": definitions}))
    };
    if let Err((_, message)) = compile(&schema(500, false)) {
        panic!("{message}");
    }
    for by_id in [false, true] {
        let (code, message) = compile(&schema(15_000, by_id)).err().unwrap();
        assert_eq!(code, Code::ResourceExhausted, "{message}");
        assert!(message.starts_with('#'), "{message}");
    }
}

#[test]
fn outputs_with_tokens_that_text_does_not_show_are_not_judged_by_text() {
    let special = compile("start: \"a\" <|call|> \"b\"\n").unwrap();
    assert!(special.validate("ab").is_ok());
    let counted = compile("start: text \"!\"\ntext[max_tokens=2]: /[a-z]+/\n").unwrap();
    assert!(counted.validate("abcdef!").is_ok());
    let text = compile("start: \"a\" \"<|call|>\" \"b\"\n").unwrap();
    assert!(text.validate("a<|call|>b").is_ok());
    assert!(text.validate("ab").is_err());
}
