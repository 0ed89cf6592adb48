// SPDX-License-Identifier: Apache-2.0
//! Jinja's tests: `value is name(args)`.

use std::cmp::Ordering;

use minijinja::Value;

use super::args::Args;
use super::compare::{compare, contains, equals, is_same};
use super::env::{is_filter, is_test};
use super::ops;
use super::repr::to_str;
use super::str_methods::{is_lower, is_upper};
use super::value::{as_int, int, is_macro, kind, length, Kind, Res};

pub type Check = fn(&Value, &mut Args) -> Res<bool>;

pub const CHECKS: &[(&str, Check)] = &[
    ("!=", |v, a| Ok(!equals(v, &a.need("other")?)?)),
    ("<", |v, a| ordered(v, a, |o| o == Ordering::Less)),
    ("<=", |v, a| ordered(v, a, |o| o != Ordering::Greater)),
    ("==", |v, a| equals(v, &a.need("other")?)),
    (">", |v, a| ordered(v, a, |o| o == Ordering::Greater)),
    (">=", |v, a| ordered(v, a, |o| o != Ordering::Less)),
    ("boolean", |v, _| Ok(kind(v) == Kind::Bool)),
    ("callable", |v, _| Ok(is_callable(v))),
    ("defined", |v, _| Ok(kind(v) != Kind::Undefined)),
    ("divisibleby", |v, a| equals(&ops::modulo(v, &a.need("num")?)?, &int(0))),
    ("eq", |v, a| equals(v, &a.need("other")?)),
    ("equalto", |v, a| equals(v, &a.need("other")?)),
    ("escaped", |v, _| Ok(v.is_safe())),
    ("even", |v, _| equals(&ops::modulo(v, &int(2))?, &int(0))),
    ("false", |v, _| Ok(kind(v) == Kind::Bool && !v.is_true())),
    ("filter", |v, _| Ok(v.as_str().is_some_and(is_filter))),
    ("float", |v, _| Ok(kind(v) == Kind::Float)),
    ("ge", |v, a| ordered(v, a, |o| o != Ordering::Less)),
    ("greaterthan", |v, a| ordered(v, a, |o| o == Ordering::Greater)),
    ("gt", |v, a| ordered(v, a, |o| o == Ordering::Greater)),
    ("in", |v, a| contains(&a.need("seq")?, v)),
    ("integer", |v, _| Ok(kind(v) == Kind::Int)),
    ("iterable", |v, _| Ok(is_iterable(v))),
    ("le", |v, a| ordered(v, a, |o| o != Ordering::Greater)),
    ("lessthan", |v, a| ordered(v, a, |o| o == Ordering::Less)),
    ("lower", |v, _| Ok(is_lower(&to_str(v)?))),
    ("lt", |v, a| ordered(v, a, |o| o == Ordering::Less)),
    ("mapping", |v, _| Ok(kind(v) == Kind::Dict || v.is_kwargs())),
    ("ne", |v, a| Ok(!equals(v, &a.need("other")?)?)),
    ("none", |v, _| Ok(kind(v) == Kind::None)),
    ("number", |v, _| Ok(matches!(kind(v), Kind::Bool | Kind::Int | Kind::Float))),
    ("odd", |v, _| equals(&ops::modulo(v, &int(2))?, &int(1))),
    ("sameas", |v, a| Ok(is_same(v, &a.need("other")?))),
    ("sequence", |v, _| Ok(is_sequence(v))),
    ("string", |v, _| Ok(kind(v) == Kind::Str)),
    ("test", |v, _| Ok(v.as_str().is_some_and(is_test))),
    ("true", |v, _| Ok(kind(v) == Kind::Bool && v.is_true())),
    ("undefined", |v, _| Ok(kind(v) == Kind::Undefined)),
    ("upper", |v, _| Ok(is_upper(&to_str(v)?))),
];

fn ordered(value: &Value, args: &mut Args, wanted: fn(Ordering) -> bool) -> Res<bool> {
    Ok(compare(value, &args.need("other")?)?.is_some_and(wanted))
}

/// Undefined values have the method __call__, and so has every function.
fn is_callable(value: &Value) -> bool {
    match kind(value) {
        Kind::Undefined | Kind::Method => true,
        Kind::Other => is_macro(value) || as_int(value).is_none(),
        _ => false,
    }
}

fn is_iterable(value: &Value) -> bool {
    !matches!(
        kind(value),
        Kind::None
            | Kind::Bool
            | Kind::Int
            | Kind::Float
            | Kind::Method
            | Kind::Namespace
            | Kind::Other
    ) || value.is_kwargs()
}

/// Has a length and answers to value[...].
fn is_sequence(value: &Value) -> bool {
    !matches!(kind(value), Kind::View | Kind::Generator | Kind::Other) && length(value).is_some()
}
