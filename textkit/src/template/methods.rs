// SPDX-License-Identifier: Apache-2.0
//! Methods of Python's types that templates may call: those that do not change the value.

use minijinja::Value;

use super::args::Args;
use super::compare::equals;
use super::str_methods;
use super::value::{
    as_float, as_int, fail, int, items, kind, list, same_safety, seq, tuple, type_name, Dict, Kind,
    Res, Shape,
};

const DICT: [&str; 5] = ["copy", "get", "items", "keys", "values"];
const LIST: [&str; 3] = ["copy", "count", "index"];
const TUPLE: [&str; 2] = ["count", "index"];
const INT: [&str; 4] = ["as_integer_ratio", "bit_length", "conjugate", "is_integer"];
const FLOAT: [&str; 2] = ["conjugate", "is_integer"];

/// Methods of Markup that take their arguments as they are.
const KEEP_ARGUMENTS: [&str; 11] = [
    "count",
    "endswith",
    "find",
    "index",
    "partition",
    "rfind",
    "rindex",
    "rpartition",
    "rsplit",
    "split",
    "startswith",
];

pub fn has(kind: Kind, name: &str) -> bool {
    match kind {
        Kind::Str => str_methods::NAMES.binary_search(&name).is_ok(),
        Kind::Dict => DICT.contains(&name),
        Kind::List => LIST.contains(&name),
        Kind::Tuple | Kind::Range => TUPLE.contains(&name),
        Kind::Int | Kind::Bool => INT.contains(&name),
        Kind::Float => FLOAT.contains(&name),
        _ => false,
    }
}

/// Calls a method that `has` knows.
pub fn call(receiver: &Value, name: &str, args: &[Value]) -> Res {
    let mut args = Args::new(name, args);
    let result = match kind(receiver) {
        Kind::Str if receiver.is_safe() => {
            if name == "join" {
                args.escape_items()?;
            } else if !KEEP_ARGUMENTS.contains(&name) {
                args.escape_text();
            }
            same_safety_deep(receiver, str_methods::call(text_of(receiver), name, &mut args)?)?
        }
        Kind::Str => str_methods::call(text_of(receiver), name, &mut args)?,
        Kind::Dict => dict_method(receiver, name, &mut args)?,
        Kind::List | Kind::Tuple | Kind::Range => sequence_method(receiver, name, &mut args)?,
        _ => number_method(receiver, name)?,
    };
    args.finish()?;
    Ok(result)
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Methods of Markup give Markup, or lists and tuples of it.
fn same_safety_deep(model: &Value, result: Value) -> Res {
    match (kind(&result), super::value::try_items(&result)) {
        (Kind::List, Some(all)) => list(all.into_iter().map(|v| same_safety(model, v)).collect()),
        (Kind::Tuple, Some(all)) => tuple(all.into_iter().map(|v| same_safety(model, v)).collect()),
        _ => Ok(same_safety(model, result)),
    }
}

fn dict_method(receiver: &Value, name: &str, args: &mut Args) -> Res {
    let Some(dict) = receiver.downcast_object_ref::<Dict>() else { return Ok(Value::UNDEFINED) };
    let entries = dict.entries();
    match name {
        "copy" => Ok(receiver.clone()),
        "get" => {
            let key = args.need("key")?;
            if matches!(kind(&key), Kind::List | Kind::Dict) {
                return fail(format!("unhashable type: '{}'", type_name(&key)));
            }
            let fallback = args.take("default").unwrap_or_else(|| Value::from(()));
            Ok(dict.get(&key).cloned().unwrap_or(fallback))
        }
        "keys" => seq(Shape::Keys, entries.iter().map(|(k, _)| k.clone()).collect()),
        "values" => seq(Shape::Values, entries.iter().map(|(_, v)| v.clone()).collect()),
        _ => seq(Shape::Items, pairs(dict)?),
    }
}

/// (key, value) tuples.
pub fn pairs(dict: &Dict) -> Res<Vec<Value>> {
    dict.entries().iter().map(|(k, v)| tuple(vec![k.clone(), v.clone()])).collect()
}

fn sequence_method(receiver: &Value, name: &str, args: &mut Args) -> Res {
    let all = items(receiver)?;
    if name == "copy" {
        return list(all);
    }
    let wanted = args.need("value")?;
    if name == "count" {
        let mut count = 0;
        for item in &all {
            count += i128::from(equals(item, &wanted)?);
        }
        return Ok(int(count));
    }
    let len = all.len() as i128;
    let bound = |given: Option<i128>, fallback: i128| {
        let at = given.unwrap_or(fallback);
        (if at < 0 { at + len } else { at }).clamp(0, len) as usize
    };
    let start = bound(args.take_int("start")?, 0);
    let stop = bound(args.take_int("stop")?, len);
    for (at, item) in all.iter().enumerate().take(stop).skip(start) {
        if equals(item, &wanted)? {
            return Ok(int(at as i128));
        }
    }
    fail("the value is not in the list")
}

fn number_method(receiver: &Value, name: &str) -> Res {
    if let Some(i) = as_int(receiver) {
        return match name {
            "bit_length" => Ok(int(i128::from(128 - i.unsigned_abs().leading_zeros()))),
            "as_integer_ratio" => tuple(vec![int(i), int(1)]),
            "is_integer" => Ok(Value::from(true)),
            _ => Ok(int(i)),
        };
    }
    let x = as_float(receiver).unwrap_or(f64::NAN);
    Ok(if name == "is_integer" {
        Value::from(x.is_finite() && x.fract() == 0.0)
    } else {
        Value::from(x)
    })
}
