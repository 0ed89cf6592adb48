// SPDX-License-Identifier: Apache-2.0
//! The tojson filter as transformers defines it: json.dumps with its keywords, non-ASCII kept,
//! nothing escaped for HTML.

use std::fmt::Write;

use minijinja::{State, Value};

use super::args::Args;
use super::compare::compare;
use super::meter;
use super::repr::float;
use super::value::{as_float, as_int, fail, items, kind, text, type_name, Dict, Kind, Res, Seq};

struct Writer {
    out: String,
    ascii: bool,
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    sort_keys: bool,
}

pub fn filter(_: &State, value: &Value, args: &mut Args) -> Res {
    let ascii = args.take_bool("ensure_ascii", false);
    let indent = match args.take("indent") {
        Some(v) if kind(&v) == Kind::None => None,
        Some(v) => match (v.as_str(), as_int(&v)) {
            (Some(s), _) => Some(s.to_string()),
            (None, Some(n)) => {
                let n = usize::try_from(n).unwrap_or(0);
                meter::charge_value(n)?;
                Some(" ".repeat(n))
            }
            _ => return fail("tojson: indent must be a number or a string"),
        },
        None => None,
    };
    let (mut item, mut key) =
        (if indent.is_some() { "," } else { ", " }.to_string(), ": ".to_string());
    if let Some(given) = args.take("separators").filter(|s| kind(s) != Kind::None) {
        let pair = items(&given)?;
        match (
            pair.first().and_then(Value::as_str),
            pair.get(1).and_then(Value::as_str),
            pair.len(),
        ) {
            (Some(i), Some(k), 2) => (item, key) = (i.to_string(), k.to_string()),
            _ => return fail("tojson: separators must be two strings"),
        }
    }
    let sort_keys = args.take_bool("sort_keys", false);
    let out = String::new();
    let mut writer =
        Writer { out, ascii, indent, item_separator: item, key_separator: key, sort_keys };
    writer.value(value, 0)?;
    text(writer.out)
}

impl Writer {
    fn value(&mut self, value: &Value, depth: usize) -> Res<()> {
        meter::charge(meter::VISIT)?;
        if self.out.len() > meter::MAX_VALUE_BYTES {
            return meter::charge_value(self.out.len());
        }
        match kind(value) {
            Kind::None => self.out.push_str("null"),
            Kind::Bool => self.out.push_str(if value.is_true() { "true" } else { "false" }),
            Kind::Int => self.out.push_str(&value.to_string()),
            Kind::Float => self.out.push_str(&number(as_float(value).unwrap_or(0.0))),
            Kind::Str => self.string(value.as_str().unwrap_or_default())?,
            Kind::List | Kind::Tuple => {
                let Some(seq) = value.downcast_object_ref::<Seq>() else { return Ok(()) };
                return self.array(&seq.items, depth);
            }
            Kind::Dict => {
                let Some(dict) = value.downcast_object_ref::<Dict>() else { return Ok(()) };
                return self.object(dict, depth);
            }
            _ => {
                let got = type_name(value);
                return fail(format!("Object of type {got} is not JSON serializable"));
            }
        }
        Ok(())
    }

    fn line(&mut self, depth: usize) {
        if let Some(indent) = &self.indent {
            self.out.push('\n');
            for _ in 0..depth {
                self.out.push_str(indent);
            }
        }
    }

    fn array(&mut self, all: &[Value], depth: usize) -> Res<()> {
        if all.is_empty() {
            self.out.push_str("[]");
            return Ok(());
        }
        self.out.push('[');
        for (i, item) in all.iter().enumerate() {
            if i > 0 {
                self.out.push_str(&self.item_separator);
            }
            self.line(depth + 1);
            self.value(item, depth + 1)?;
        }
        self.line(depth);
        self.out.push(']');
        Ok(())
    }

    fn object(&mut self, dict: &Dict, depth: usize) -> Res<()> {
        let mut entries: Vec<&(Value, Value)> = dict.entries().iter().collect();
        if entries.is_empty() {
            self.out.push_str("{}");
            return Ok(());
        }
        if self.sort_keys {
            let mut failure = None;
            entries.sort_by(|a, b| match compare(&a.0, &b.0) {
                Ok(order) => order.unwrap_or(std::cmp::Ordering::Equal),
                Err(error) => {
                    failure.get_or_insert(error);
                    std::cmp::Ordering::Equal
                }
            });
            failure.map_or(Ok(()), Err)?;
        }
        self.out.push('{');
        for (i, (key, item)) in entries.into_iter().enumerate() {
            if i > 0 {
                self.out.push_str(&self.item_separator);
            }
            self.line(depth + 1);
            self.key(key)?;
            self.out.push_str(&self.key_separator);
            self.value(item, depth + 1)?;
        }
        self.line(depth);
        self.out.push('}');
        Ok(())
    }

    fn key(&mut self, key: &Value) -> Res<()> {
        match kind(key) {
            Kind::Str => self.string(key.as_str().unwrap_or_default()),
            Kind::None => self.string("null"),
            Kind::Bool => self.string(if key.is_true() { "true" } else { "false" }),
            Kind::Int => self.string(&key.to_string()),
            Kind::Float => self.string(&number(as_float(key).unwrap_or(0.0))),
            _ => {
                fail(format!("keys must be str, int, float, bool or None, not {}", type_name(key)))
            }
        }
    }

    fn string(&mut self, s: &str) -> Res<()> {
        meter::charge(s.len())?;
        self.out.push('"');
        for c in s.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                c if c < ' ' || (self.ascii && !c.is_ascii()) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        let _ = write!(self.out, "\\u{unit:04x}");
                    }
                }
                c => self.out.push(c),
            }
        }
        self.out.push('"');
        Ok(())
    }
}

fn number(x: f64) -> String {
    if x.is_nan() {
        "NaN".into()
    } else if x.is_infinite() {
        if x > 0.0 {
            "Infinity".into()
        } else {
            "-Infinity".into()
        }
    } else {
        float(x)
    }
}
