// SPDX-License-Identifier: Apache-2.0
//! The environment of all templates: whitespace rules, filters, tests and functions, the hidden
//! functions that rewrite.rs calls, and the formatter of `{{ }}`.

use std::cmp::Ordering;
use std::sync::OnceLock;

use minijinja::value::{Kwargs, Rest};
use minijinja::{AutoEscape, Environment, Output, State, UndefinedBehavior, Value};

use super::access;
use super::args::Args;
use super::checks::{Check, CHECKS};
use super::compare::{compare, contains, equals};
use super::filters::{self, Filter};
use super::functions::{Function, FUNCTIONS};
use super::meter;
use super::ops;
use super::repr::to_str;
use super::text_filters;
use super::value::{
    dict, fail, holds_namespace, is_macro, items, kind, list, tuple, Kind, Res, Seq,
};

pub fn environment() -> &'static Environment<'static> {
    static ENVIRONMENT: OnceLock<Environment<'static>> = OnceLock::new();
    ENVIRONMENT.get_or_init(build)
}

pub fn is_filter(name: &str) -> bool {
    filters::FILTERS.iter().chain(text_filters::FILTERS).any(|(known, _)| *known == name)
}

pub fn is_test(name: &str) -> bool {
    CHECKS.iter().any(|(known, _)| *known == name)
}

fn build() -> Environment<'static> {
    let mut env = Environment::empty();
    env.set_trim_blocks(true);
    env.set_lstrip_blocks(true);
    env.set_debug(false);
    // minijinja refuses the instruction that empties the tank.
    env.set_fuel(Some(meter::MAX_FUEL + 1));
    env.set_recursion_limit(meter::MAX_RECURSION);
    env.set_undefined_behavior(UndefinedBehavior::Lenient);
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_formatter(emit);
    for &(name, filter) in filters::FILTERS.iter().chain(text_filters::FILTERS) {
        add_filter(&mut env, name, filter);
    }
    for &(name, check) in CHECKS {
        add_test(&mut env, name, check);
    }
    for &(name, function) in FUNCTIONS {
        add_function(&mut env, name, function);
    }
    env.add_function("namespace", namespace);
    add_operators(&mut env);
    env
}

fn emit(out: &mut Output, _: &State, value: &Value) -> Res<()> {
    let shown;
    let text = match value.as_str() {
        Some(text) => text,
        None => {
            shown = to_str(value)?;
            &shown
        }
    };
    meter::charge_output(text.len())?;
    Ok(out.write_str(text)?)
}

fn split_first(values: &[Value]) -> (Value, &[Value]) {
    match values.split_first() {
        Some((first, rest)) => (first.clone(), rest),
        None => (Value::UNDEFINED, values),
    }
}

fn add_filter(env: &mut Environment<'static>, name: &'static str, filter: Filter) {
    env.add_filter(name, move |state: &State, all: Rest<Value>| -> Res {
        let (value, rest) = split_first(&all);
        meter::charge(value.as_str().map_or(1, str::len))?;
        let mut args = Args::new(name, rest);
        let result = filter(state, &value, &mut args)?;
        args.finish()?;
        Ok(result)
    });
}

fn add_test(env: &mut Environment<'static>, name: &'static str, check: Check) {
    env.add_test(name, move |all: Rest<Value>| -> Res<bool> {
        let (value, rest) = split_first(&all);
        let mut args = Args::new(name, rest);
        let result = check(&value, &mut args)?;
        args.finish()?;
        Ok(result)
    });
}

fn add_function(env: &mut Environment<'static>, name: &'static str, function: Function) {
    env.add_function(name, move |all: Rest<Value>| -> Res {
        let mut args = Args::new(name, &all);
        let result = function(&mut args)?;
        args.finish()?;
        Ok(result)
    });
}

/// minijinja's own namespace objects, because only they can be assigned to.
fn namespace(all: Rest<Value>) -> Res {
    let mut args = Args::new("namespace", &all);
    let mut pairs = Vec::new();
    if let Some(source) = args.take("mapping") {
        match source.downcast_object_ref::<super::value::Dict>() {
            Some(source) => {
                for (key, value) in source.entries() {
                    pairs.push((to_str(key)?, value.clone()));
                }
            }
            None => return fail("namespace() needs a dict or keyword arguments"),
        }
    }
    pairs.extend(args.keywords());
    args.finish()?;
    let kwargs: Kwargs = pairs.iter().map(|(k, v)| (k.as_str(), v.clone())).collect();
    minijinja::functions::namespace(Some(Value::from(kwargs)))
}

fn order(name: &str, a: &Value, b: &Value) -> Res<bool> {
    match name {
        "__eq" => equals(a, b),
        "__ne" => Ok(!equals(a, b)?),
        "__in" => contains(b, a),
        "not in" => Ok(!contains(b, a)?),
        _ => {
            let order = compare(a, b)?;
            Ok(match name {
                "__lt" => order == Some(Ordering::Less),
                "__le" => order.is_some_and(|o| o != Ordering::Greater),
                "__gt" => order == Some(Ordering::Greater),
                _ => order.is_some_and(|o| o != Ordering::Less),
            })
        }
    }
}

fn comparison_chain(all: &[Value]) -> Res<bool> {
    let mut left = &all[0];
    for step in all[1..].chunks_exact(2) {
        if !order(step[0].as_str().unwrap_or_default(), left, &step[1])? {
            return Ok(false);
        }
        left = &step[1];
    }
    Ok(true)
}

fn add_operators(env: &mut Environment<'static>) {
    type Binary = fn(&Value, &Value) -> Res;
    let arithmetic: [(&str, Binary); 8] = [
        ("__add", ops::add),
        ("__sub", ops::sub),
        ("__mul", ops::mul),
        ("__div", ops::div),
        ("__floor_div", ops::floor_div),
        ("__modulo", ops::modulo),
        ("__pow", ops::pow),
        ("__concat", ops::concat),
    ];
    for (name, op) in arithmetic {
        env.add_function(name, move |a: &Value, b: &Value| op(a, b));
    }
    for name in ["__eq", "__ne", "__lt", "__le", "__gt", "__ge", "__in"] {
        env.add_function(name, move |a: &Value, b: &Value| order(name, a, b));
    }
    env.add_function("__compare", |all: Rest<Value>| comparison_chain(&all));
    env.add_function("__negate", |a: &Value| ops::negate(a));
    env.add_function("__list", |all: Rest<Value>| list(all.0));
    env.add_function("__tuple", |all: Rest<Value>| tuple(all.0));
    env.add_function("__dict", |all: Rest<Value>| {
        dict(all.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
    });
    env.add_function("__iterate", iterate);
    env.add_function("__iterate_unpacking", iterate_unpacking);
    env.add_function("__for_namespace", for_namespace);
    env.add_function("__attribute", |object: &Value, name: &str| access::attribute(object, name));
    env.add_function("__item", |object: &Value, key: &Value| access::item(object, key));
    env.add_function("__slice", |object: &Value, a: &Value, b: &Value, c: &Value| {
        access::slice(object, [a, b, c])
    });
    env.add_function("__method", |state: &State, all: Rest<Value>| {
        let name = all[1].as_str().unwrap_or_default();
        access::call_method(state, &all[0], name, &all[2..])
    });
    env.add_function("__call", |state: &State, all: Rest<Value>| {
        let name = all[1].as_str().unwrap_or_default();
        let args = if is_macro(&all[0]) { bind(&all[0], &all[2..])? } else { all[2..].to_vec() };
        access::call(state, &all[0], name, &args)
    });
}

/// What a loop runs over: the items, as a sequence of known length.
fn iterate(value: &Value) -> Res {
    match (kind(value), value.downcast_object_ref::<Seq>()) {
        (Kind::List | Kind::Tuple | Kind::View | Kind::Range, Some(_)) => Ok(value.clone()),
        _ => list(items(value)?),
    }
}

/// As `iterate`, for a loop that unpacks its items: text unpacks to characters.
fn iterate_unpacking(value: &Value) -> Res {
    let spread = |item: Value| if item.as_str().is_some() { list(items(&item)?) } else { Ok(item) };
    list(items(value)?.into_iter().map(spread).collect::<Res<Vec<Value>>>()?)
}

/// A namespace inside a namespace's value could close a cycle, which would never be freed.
fn for_namespace(value: &Value) -> Res {
    if holds_namespace(value) {
        return fail("a namespace cannot hold another namespace");
    }
    Ok(value.clone())
}

/// Binds a macro's arguments where `varargs` and `kwargs` are hidden trailing parameters.
fn bind(callee: &Value, given: &[Value]) -> Res<Vec<Value>> {
    let names = items(&callee.get_attr("arguments")?)?;
    let Some(known) = names.len().checked_sub(2) else { return Ok(given.to_vec()) };
    let mut args = Args::new("macro", given);
    let mut bound = Vec::with_capacity(names.len());
    for name in &names[..known] {
        bound.push(args.take(name.as_str().unwrap_or_default()).unwrap_or_default());
    }
    bound.push(tuple(args.rest())?);
    let (caller, others): (Vec<_>, Vec<_>) =
        args.keywords().into_iter().partition(|(name, _)| name == "caller");
    let others = others.into_iter().map(|(name, value)| (Value::from(name), value)).collect();
    bound.push(dict(others)?);
    if let Some((name, value)) = caller.into_iter().next() {
        bound.push(Value::from([(name, value)].into_iter().collect::<Kwargs>()));
    }
    Ok(bound)
}
