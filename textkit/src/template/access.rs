// SPDX-License-Identifier: Apache-2.0
//! value.name, value[key], value[a:b:c] and value.name(...), as Jinja's sandbox resolves them:
//! a dot looks for the attribute first and the item second, brackets the other way round; what is
//! not there is undefined; underscore names and methods that change a value are not there.

use minijinja::{State, Value};

use super::methods;
use super::value::{
    as_int, char_value, fail, kind, list, same_safety, seq, text, try_items, tuple, Dict, Kind,
    Method, Res, Seq, Shape,
};

/// Label of the tuples that groupby makes: they answer to .grouper and .list too.
pub const GROUP: &str = "group";

fn undefined_access<T>(name: &str) -> Res<T> {
    fail(format!("the value has no attribute '{name}' because it is undefined"))
}

pub fn attribute(object: &Value, name: &str) -> Res {
    if kind(object) == Kind::Undefined {
        return undefined_access(name);
    }
    if let Some(method) = method(object, name) {
        return Ok(method);
    }
    if let Some(dict) = object.downcast_object_ref::<Dict>() {
        return Ok(dict.get(&Value::from(name)).cloned().unwrap_or_default());
    }
    if let Some(group) = object.downcast_object_ref::<Seq>().filter(|s| s.label == GROUP) {
        let at = usize::from(name == "list");
        let known = at == 1 || name == "grouper";
        return Ok(group.items.get(at).filter(|_| known).cloned().unwrap_or_default());
    }
    Ok(own_attribute(object, name))
}

/// Attributes of what minijinja makes: namespaces, loops, macros.
fn own_attribute(object: &Value, name: &str) -> Value {
    match kind(object) {
        Kind::Namespace | Kind::Other if !object.is_kwargs() => {
            let found = object.get_attr(name).unwrap_or_default();
            // What minijinja itself lists (a macro's arguments) are tuples in Jinja.
            match try_items(&found).filter(|_| found.downcast_object_ref::<Vec<Value>>().is_some())
            {
                Some(all) => tuple(all).unwrap_or_default(),
                None => found,
            }
        }
        _ => Value::UNDEFINED,
    }
}

fn method(object: &Value, name: &str) -> Option<Value> {
    if !methods::has(kind(object), name) {
        return None;
    }
    Some(Value::from_object(Method { receiver: object.clone(), name: name.to_string() }))
}

pub fn item(object: &Value, key: &Value) -> Res {
    if kind(object) == Kind::Undefined {
        return undefined_access(key.as_str().unwrap_or("[]"));
    }
    if let Some(dict) = object.downcast_object_ref::<Dict>() {
        if let Some(found) = dict.get(key) {
            return Ok(found.clone());
        }
    }
    if let Some(name) = key.as_str() {
        return Ok(method(object, name).unwrap_or_else(|| own_attribute(object, name)));
    }
    let Some(index) = as_int(key) else { return Ok(Value::UNDEFINED) };
    if let Some(s) = object.as_str() {
        return Ok(
            char_at(s, index).map_or(Value::UNDEFINED, |c| same_safety(object, char_value(c)))
        );
    }
    let Some(seq) = object.downcast_object_ref::<Seq>() else { return Ok(Value::UNDEFINED) };
    if !matches!(seq.shape, Shape::List | Shape::Tuple | Shape::Range) {
        return Ok(Value::UNDEFINED);
    }
    let at = if index < 0 { index + seq.items.len() as i128 } else { index };
    let found = usize::try_from(at).ok().and_then(|at| seq.items.get(at));
    Ok(found.cloned().unwrap_or_default())
}

fn char_at(s: &str, index: i128) -> Option<char> {
    if index >= 0 {
        s.chars().nth(usize::try_from(index).ok()?)
    } else {
        s.chars().rev().nth(usize::try_from(-(index + 1)).ok()?)
    }
}

/// Positions that a[start:stop:step] visits in a sequence of `len` items.
fn slice_positions(len: usize, bounds: [Option<i128>; 3]) -> Res<Vec<usize>> {
    let len = len as i128;
    let [start, stop, step] = bounds;
    let step = step.unwrap_or(1);
    if step == 0 {
        return fail("slice step cannot be zero");
    }
    let (low, high) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let clamp = |bound: Option<i128>, default: i128| match bound {
        None => default,
        Some(at) => (if at < 0 { at.saturating_add(len) } else { at }).clamp(low, high),
    };
    let (first, last) = if step > 0 { (low, high) } else { (high, low) };
    let (mut at, end) = (clamp(start, first), clamp(stop, last));
    let mut positions = Vec::new();
    while (step > 0 && at < end) || (step < 0 && at > end) {
        positions.push(at as usize);
        at = at.saturating_add(step);
    }
    Ok(positions)
}

pub fn slice(object: &Value, bounds: [&Value; 3]) -> Res {
    if kind(object) == Kind::Undefined {
        return undefined_access("[:]");
    }
    let sliceable = matches!(kind(object), Kind::Str | Kind::List | Kind::Tuple | Kind::Range);
    let mut numbers = [None; 3];
    for (number, bound) in numbers.iter_mut().zip(bounds) {
        *number = as_int(bound);
        if number.is_none() && sliceable && kind(bound) != Kind::None {
            return fail("slice indices must be integers or None");
        }
    }
    if let Some(s) = object.as_str() {
        let chars: Vec<char> = s.chars().collect();
        super::meter::charge(s.len())?;
        let positions = slice_positions(chars.len(), numbers)?;
        let cut = text(positions.into_iter().map(|at| chars[at]).collect())?;
        return Ok(same_safety(object, cut));
    }
    if kind(object) == Kind::Dict {
        return fail("unhashable type: 'slice'");
    }
    let Some(sequence) = object.downcast_object_ref::<Seq>() else { return Ok(Value::UNDEFINED) };
    let pick = |positions: Vec<usize>| -> Vec<Value> {
        positions.into_iter().map(|at| sequence.items[at].clone()).collect()
    };
    match sequence.shape {
        Shape::List | Shape::Range => list(pick(slice_positions(sequence.items.len(), numbers)?)),
        Shape::Tuple => seq(Shape::Tuple, pick(slice_positions(sequence.items.len(), numbers)?)),
        _ => Ok(Value::UNDEFINED),
    }
}

pub fn call_method(state: &State, object: &Value, name: &str, args: &[Value]) -> Res {
    if kind(object) == Kind::Undefined {
        return undefined_access(name);
    }
    if methods::has(kind(object), name) {
        return methods::call(object, name, args);
    }
    if super::value::is_loop(object) && matches!(name, "cycle" | "changed") {
        if name == "cycle" && args.is_empty() {
            return fail("no items for cycling given");
        }
        // loop.changed compares with minijinja's own equality: keep the values flat enough.
        for arg in args {
            super::repr::to_repr(arg)?;
        }
        return object.call_method(state, name, args);
    }
    if super::functions::is_cycler(object) {
        return object.call_method(state, name, args);
    }
    let callee = attribute(object, name)?;
    call(state, &callee, name, args)
}

pub fn call(state: &State, callee: &Value, name: &str, args: &[Value]) -> Res {
    if kind(callee) == Kind::Undefined {
        return fail(format!("'{name}' is undefined"));
    }
    callee.call(state, args)
}
