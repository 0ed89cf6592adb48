// SPDX-License-Identifier: Apache-2.0
//! Python's ==, < and `in`.

use std::cmp::Ordering;
use std::sync::Arc;

use minijinja::Value;

use super::meter;
use super::value::{as_float, as_int, fail, items, kind, type_name, Dict, Kind, Res, Seq};

fn is_number(k: Kind) -> bool {
    matches!(k, Kind::Bool | Kind::Int | Kind::Float)
}

/// a == b. Visits are work, since shared sub-lists can make a small value large to compare.
pub fn equals(a: &Value, b: &Value) -> Res<bool> {
    meter::charge(meter::VISIT)?;
    let (ka, kb) = (kind(a), kind(b));
    if is_number(ka) && is_number(kb) {
        return Ok(match (as_int(a), as_int(b)) {
            (Some(x), Some(y)) => x == y,
            _ => as_float(a) == as_float(b),
        });
    }
    if ka != kb {
        return Ok(false);
    }
    match ka {
        Kind::Undefined | Kind::None => Ok(true),
        Kind::Str => {
            let (x, y) = (a.as_str().unwrap_or_default(), b.as_str().unwrap_or_default());
            meter::charge(x.len().min(y.len()))?;
            Ok(x == y)
        }
        Kind::List | Kind::Tuple | Kind::Range | Kind::View => {
            match (a.downcast_object_ref::<Seq>(), b.downcast_object_ref::<Seq>()) {
                (Some(x), Some(y)) => all_equal(&x.items, &y.items),
                _ => Ok(false),
            }
        }
        Kind::Dict => match (a.downcast_object_ref::<Dict>(), b.downcast_object_ref::<Dict>()) {
            (Some(x), Some(y)) => dicts_equal(x, y),
            _ => Ok(false),
        },
        _ => Ok(is_same(a, b)),
    }
}

fn all_equal(x: &[Value], y: &[Value]) -> Res<bool> {
    if x.len() != y.len() {
        return Ok(false);
    }
    for (a, b) in x.iter().zip(y) {
        if !equals(a, b)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn dicts_equal(x: &Dict, y: &Dict) -> Res<bool> {
    if x.entries().len() != y.entries().len() {
        return Ok(false);
    }
    for (key, a) in x.entries() {
        match y.get(key) {
            Some(b) if equals(a, b)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// `is`: the same object; for numbers, strings and constants equality of type and value.
pub fn is_same(a: &Value, b: &Value) -> bool {
    match (a.as_object(), b.as_object()) {
        (Some(_), Some(_)) => {
            let seqs = (a.downcast_object::<Seq>(), b.downcast_object::<Seq>());
            let dicts = (a.downcast_object::<Dict>(), b.downcast_object::<Dict>());
            matches!(seqs, (Some(x), Some(y)) if Arc::ptr_eq(&x, &y))
                || matches!(dicts, (Some(x), Some(y)) if Arc::ptr_eq(&x, &y))
        }
        (None, None) => kind(a) == kind(b) && a == b,
        _ => false,
    }
}

/// Python's ordering; None when both are numbers and one is NaN, an error between types that
/// Python does not order.
pub fn compare(a: &Value, b: &Value) -> Res<Option<Ordering>> {
    meter::charge(meter::VISIT)?;
    let (ka, kb) = (kind(a), kind(b));
    if is_number(ka) && is_number(kb) {
        return Ok(match (as_int(a), as_int(b)) {
            (Some(x), Some(y)) => Some(x.cmp(&y)),
            _ => as_float(a).partial_cmp(&as_float(b)),
        });
    }
    match (ka, kb) {
        (Kind::Str, Kind::Str) => {
            let (x, y) = (a.as_str().unwrap_or_default(), b.as_str().unwrap_or_default());
            meter::charge(x.len().min(y.len()))?;
            Ok(Some(x.cmp(y)))
        }
        (Kind::List, Kind::List) | (Kind::Tuple, Kind::Tuple) => {
            match (a.downcast_object_ref::<Seq>(), b.downcast_object_ref::<Seq>()) {
                (Some(x), Some(y)) => lexicographic(&x.items, &y.items),
                _ => unordered(a, b),
            }
        }
        _ => unordered(a, b),
    }
}

fn lexicographic(x: &[Value], y: &[Value]) -> Res<Option<Ordering>> {
    for (a, b) in x.iter().zip(y) {
        if !equals(a, b)? {
            return compare(a, b);
        }
    }
    Ok(Some(x.len().cmp(&y.len())))
}

fn unordered<T>(a: &Value, b: &Value) -> Res<T> {
    let (x, y) = (type_name(a), type_name(b));
    fail(format!("'<' not supported between instances of '{x}' and '{y}'"))
}

/// needle in haystack.
pub fn contains(haystack: &Value, needle: &Value) -> Res<bool> {
    if let Some(text) = haystack.as_str() {
        let Some(part) = needle.as_str() else {
            let got = type_name(needle);
            return fail(format!("'in <string>' requires string as left operand, not {got}"));
        };
        meter::charge(text.len())?;
        return Ok(text.contains(part));
    }
    if let Some(dict) = haystack.downcast_object_ref::<Dict>() {
        if matches!(kind(needle), Kind::List | Kind::Dict) {
            return fail(format!("unhashable type: '{}'", type_name(needle)));
        }
        return Ok(dict.get(needle).is_some());
    }
    for item in items(haystack)? {
        if equals(&item, needle)? {
            return Ok(true);
        }
    }
    Ok(false)
}
