// SPDX-License-Identifier: Apache-2.0
//! Jinja's filters over sequences and plain values. Text filters stand in text_filters.rs.

use std::cmp::Ordering;

use minijinja::{State, Value};

use super::access;
use super::args::Args;
use super::compare::{compare, equals};
use super::meter;
use super::methods::pairs;
use super::repr::to_str;
use super::text_filters;
use super::value::{
    as_float, as_int, fail, generator, hash_key, int, items, kind, labelled, length, list, text,
    tuple, type_name, Dict, Kind, Res, Seq, Shape,
};

pub type Filter = fn(&State, &Value, &mut Args) -> Res;

pub const FILTERS: &[(&str, Filter)] = &[
    ("abs", abs),
    ("attr", attr),
    ("batch", batch),
    ("count", count),
    ("d", default),
    ("default", default),
    ("dictsort", dictsort),
    ("first", first),
    ("float", to_float),
    ("groupby", groupby),
    ("int", to_int),
    ("items", item_pairs),
    ("join", join),
    ("last", last),
    ("length", count),
    ("list", to_list),
    ("map", map),
    ("max", max),
    ("min", min),
    ("reject", |s, v, a| select(s, v, a, false)),
    ("rejectattr", |s, v, a| selectattr(s, v, a, false)),
    ("reverse", reverse),
    ("round", round),
    ("select", |s, v, a| select(s, v, a, true)),
    ("selectattr", |s, v, a| selectattr(s, v, a, true)),
    ("slice", slice),
    ("sort", sort),
    ("sum", sum),
    ("tojson", super::tojson::filter),
    ("unique", unique),
];

/// Looks up "a.0.b" step by step, each like value[step].
fn by_path(value: &Value, path: &Value, fallback: Option<&Value>) -> Res {
    let mut current = value.clone();
    let Some(dotted) = path.as_str() else { return access::item(&current, path) };
    for step in dotted.split('.') {
        let key = step.parse::<u64>().map_or_else(|_| Value::from(step), Value::from);
        current = access::item(&current, &key)?;
        if let (Kind::Undefined, Some(fallback)) = (kind(&current), fallback) {
            return Ok(fallback.clone());
        }
    }
    Ok(current)
}

/// Lower case for comparison unless the filter is case sensitive.
fn folded(value: Value, case_sensitive: bool) -> Value {
    match value.as_str() {
        Some(s) if !case_sensitive => Value::from(s.to_lowercase()),
        _ => value,
    }
}

fn sort_key(value: &Value, attribute: Option<&Value>, case_sensitive: bool) -> Res {
    match attribute {
        Some(path) => Ok(folded(by_path(value, path, None)?, case_sensitive)),
        None => Ok(folded(value.clone(), case_sensitive)),
    }
}

/// A stable sort by keys; the first error of a comparison is the result.
fn sort_by_keys(
    mut keyed: Vec<(Vec<Value>, Value)>,
    reverse: bool,
) -> Res<Vec<(Vec<Value>, Value)>> {
    let mut failure = None;
    keyed.sort_by(|(a, _), (b, _)| {
        for (x, y) in a.iter().zip(b) {
            match compare(x, y) {
                Ok(Some(Ordering::Equal)) => {}
                Ok(order) => {
                    let order = order.unwrap_or(Ordering::Equal);
                    return if reverse { order.reverse() } else { order };
                }
                Err(error) => {
                    failure.get_or_insert(error);
                    return Ordering::Equal;
                }
            }
        }
        Ordering::Equal
    });
    failure.map_or(Ok(keyed), Err)
}

fn sort(_: &State, value: &Value, args: &mut Args) -> Res {
    let reverse = args.take_bool("reverse", false);
    let case_sensitive = args.take_bool("case_sensitive", false);
    let attribute = args.take("attribute").filter(|a| kind(a) != Kind::None);
    let paths: Vec<Option<Value>> = match &attribute {
        Some(a) => match a.as_str() {
            Some(several) => several.split(',').map(|p| Some(Value::from(p.trim()))).collect(),
            None => vec![Some(a.clone())],
        },
        None => vec![None],
    };
    let mut keyed = Vec::new();
    for item in items(value)? {
        let keys: Res<Vec<Value>> =
            paths.iter().map(|p| sort_key(&item, p.as_ref(), case_sensitive)).collect();
        // Keys by attribute are lists in Jinja: equal members are passed over, not ordered.
        let keys = if attribute.is_some() { vec![list(keys?)?] } else { keys? };
        keyed.push((keys, item));
    }
    list(sort_by_keys(keyed, reverse)?.into_iter().map(|(_, item)| item).collect())
}

fn dictsort(_: &State, value: &Value, args: &mut Args) -> Res {
    let case_sensitive = args.take_bool("case_sensitive", false);
    let by = args.take_str("by")?.unwrap_or_else(|| "key".into());
    let reverse = args.take_bool("reverse", false);
    let at = match by.as_str() {
        "key" => 0,
        "value" => 1,
        _ => return fail("You can only sort by either \"key\" or \"value\""),
    };
    let Some(dict) = value.downcast_object_ref::<Dict>() else {
        return fail(format!("'{}' object has no attribute 'items'", type_name(value)));
    };
    let mut keyed = Vec::new();
    for (k, v) in dict.entries() {
        let key = if at == 0 { k } else { v };
        keyed.push((vec![folded(key.clone(), case_sensitive)], tuple(vec![k.clone(), v.clone()])?));
    }
    list(sort_by_keys(keyed, reverse)?.into_iter().map(|(_, item)| item).collect())
}

fn groupby(_: &State, value: &Value, args: &mut Args) -> Res {
    let path = args.need("attribute")?;
    let fallback = args.take("default").filter(|d| kind(d) != Kind::None);
    let case_sensitive = args.take_bool("case_sensitive", false);
    let mut keyed = Vec::new();
    for item in items(value)? {
        let key = by_path(&item, &path, fallback.as_ref())?;
        keyed.push((vec![folded(key, case_sensitive)], item));
    }
    let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
    for (mut key, item) in sort_by_keys(keyed, false)? {
        let key = key.pop().unwrap_or_default();
        match groups.last_mut() {
            Some((last, members)) if equals(last, &key)? => members.push(item),
            _ => groups.push((key, vec![item])),
        }
    }
    let mut out = Vec::new();
    for (_, members) in groups {
        // The group shows the first member's own spelling of the key.
        let key = by_path(&members[0], &path, fallback.as_ref())?;
        out.push(labelled(Shape::Tuple, vec![key, list(members)?], access::GROUP.into())?);
    }
    list(out)
}

fn unique(_: &State, value: &Value, args: &mut Args) -> Res {
    let case_sensitive = args.take_bool("case_sensitive", false);
    let attribute = args.take("attribute").filter(|a| kind(a) != Kind::None);
    let mut keyed = Vec::new();
    for item in items(value)? {
        keyed.push((sort_key(&item, attribute.as_ref(), case_sensitive)?, item));
    }
    // A dict keeps the first position of each key; what it cannot hash, Python's set cannot.
    let mut firsts = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for (key, item) in keyed {
        if matches!(kind(&key), Kind::List | Kind::Dict) {
            return fail(format!("unhashable type: '{}'", type_name(&key)));
        }
        if seen.insert(hash_key(&key)) {
            firsts.push(item);
        }
    }
    generator(firsts)
}

fn extreme(value: &Value, args: &mut Args, wanted: Ordering) -> Res {
    let case_sensitive = args.take_bool("case_sensitive", false);
    let attribute = args.take("attribute").filter(|a| kind(a) != Kind::None);
    let mut best: Option<(Value, Value)> = None;
    for item in items(value)? {
        let key = sort_key(&item, attribute.as_ref(), case_sensitive)?;
        let better = match &best {
            Some((best_key, _)) => compare(&key, best_key)? == Some(wanted),
            None => true,
        };
        if better {
            best = Some((key, item));
        }
    }
    Ok(best.map_or(Value::UNDEFINED, |(_, item)| item))
}

fn max(_: &State, value: &Value, args: &mut Args) -> Res {
    extreme(value, args, Ordering::Greater)
}

fn min(_: &State, value: &Value, args: &mut Args) -> Res {
    extreme(value, args, Ordering::Less)
}

fn sum(_: &State, value: &Value, args: &mut Args) -> Res {
    let attribute = args.take("attribute").filter(|a| kind(a) != Kind::None);
    let mut total = args.take("start").unwrap_or_else(|| int(0));
    if kind(&total) == Kind::Str {
        return fail("sum() can't sum strings [use ''.join(seq) instead]");
    }
    for item in items(value)? {
        let item = match &attribute {
            Some(path) => by_path(&item, path, None)?,
            None => item,
        };
        total = super::ops::add(&total, &item)?;
    }
    Ok(total)
}

/// map and select look at their input only when it is true: None and 0 count as empty.
fn items_unless_false(value: &Value) -> Res<Vec<Value>> {
    if value.is_true() {
        items(value)
    } else {
        Ok(Vec::new())
    }
}

fn map(state: &State, value: &Value, args: &mut Args) -> Res {
    let all = items_unless_false(value)?;
    let mut positional = args.rest();
    let mut keywords = args.keywords();
    let mut out = Vec::with_capacity(all.len());
    if positional.is_empty() {
        let mut take = |name: &str| {
            let at = keywords.iter().position(|(key, _)| key == name)?;
            Some(keywords.remove(at).1)
        };
        let Some(path) = take("attribute") else {
            return fail("map requires a filter argument");
        };
        let fallback = take("default");
        if let Some((name, _)) = keywords.first() {
            return fail(format!("Unexpected keyword argument '{name}'"));
        }
        for item in all {
            out.push(by_path(&item, &path, fallback.as_ref())?);
        }
    } else {
        let name = positional.remove(0);
        let Some(name) = name.as_str().map(str::to_string) else {
            return fail("map needs the name of a filter");
        };
        for item in all {
            let mut call = vec![item];
            call.extend(positional.iter().cloned());
            if !keywords.is_empty() {
                call.push(Value::from(minijinja::value::Kwargs::from_iter(
                    keywords.iter().map(|(k, v)| (k.as_str(), v.clone())),
                )));
            }
            out.push(state.apply_filter(&name, &call)?);
        }
    }
    generator(out)
}

fn passes(state: &State, test: &mut Vec<Value>, name: Option<&str>, value: Value) -> Res<bool> {
    meter::charge(meter::VISIT)?;
    match name {
        None => Ok(value.is_true()),
        Some(name) => {
            test[0] = value;
            state.perform_test(name, test)
        }
    }
}

/// The test's name and its arguments behind a slot for the value.
fn test_call(args: &mut Args) -> Res<(Option<String>, Vec<Value>)> {
    let mut rest = args.rest();
    if rest.is_empty() {
        return Ok((None, vec![Value::UNDEFINED]));
    }
    match rest[0].as_str().map(str::to_string) {
        Some(name) => {
            rest[0] = Value::UNDEFINED;
            Ok((Some(name), rest))
        }
        None => fail("select needs the name of a test"),
    }
}

fn select(state: &State, value: &Value, args: &mut Args, keep: bool) -> Res {
    let (name, mut test) = test_call(args)?;
    let mut out = Vec::new();
    for item in items_unless_false(value)? {
        if passes(state, &mut test, name.as_deref(), item.clone())? == keep {
            out.push(item);
        }
    }
    generator(out)
}

fn selectattr(state: &State, value: &Value, args: &mut Args, keep: bool) -> Res {
    let path = args.need("attribute")?;
    let (name, mut test) = test_call(args)?;
    let mut out = Vec::new();
    for item in items_unless_false(value)? {
        let found = by_path(&item, &path, None)?;
        if passes(state, &mut test, name.as_deref(), found)? == keep {
            out.push(item);
        }
    }
    generator(out)
}

fn batch(_: &State, value: &Value, args: &mut Args) -> Res {
    let size = args.take_int("linecount")?.unwrap_or(1).max(1) as usize;
    let fill = args.take("fill_with").filter(|f| kind(f) != Kind::None);
    let mut out = Vec::new();
    for chunk in items(value)?.chunks(size) {
        let mut chunk = chunk.to_vec();
        if let Some(fill) = &fill {
            meter::charge_value(size.saturating_mul(std::mem::size_of::<Value>()))?;
            chunk.resize(size, fill.clone());
        }
        out.push(list(chunk)?);
    }
    generator(out)
}

fn slice(_: &State, value: &Value, args: &mut Args) -> Res {
    let slices = args.take_int("slices")?.unwrap_or(0);
    let fill = args.take("fill_with").filter(|f| kind(f) != Kind::None);
    if !(1..=meter::MAX_RANGE as i128).contains(&slices) {
        return fail("slice needs a positive number of slices");
    }
    let all = items(value)?;
    let slices = slices as usize;
    let (each, extra) = (all.len() / slices, all.len() % slices);
    let mut out = Vec::new();
    let mut at = 0;
    for i in 0..slices {
        let take = each + usize::from(i < extra);
        let mut part = all[at..at + take].to_vec();
        at += take;
        if let (Some(fill), true) = (&fill, i >= extra) {
            part.push(fill.clone());
        }
        out.push(list(part)?);
    }
    generator(out)
}

fn first(_: &State, value: &Value, _: &mut Args) -> Res {
    if let Some(seq) = value.downcast_object_ref::<Seq>() {
        return Ok(seq.next().unwrap_or_default());
    }
    Ok(items(value)?.into_iter().next().unwrap_or_default())
}

fn last(_: &State, value: &Value, _: &mut Args) -> Res {
    if kind(value) == Kind::Generator {
        return fail("'generator' object is not reversible");
    }
    Ok(items(value)?.into_iter().next_back().unwrap_or_default())
}

fn count(_: &State, value: &Value, _: &mut Args) -> Res {
    match length(value) {
        Some(n) => Ok(int(n as i128)),
        None => fail(format!("object of type '{}' has no len()", type_name(value))),
    }
}

fn to_list(_: &State, value: &Value, _: &mut Args) -> Res {
    list(items(value)?)
}

fn reverse(_: &State, value: &Value, _: &mut Args) -> Res {
    if let Some(s) = value.as_str() {
        return text(s.chars().rev().collect());
    }
    let mut all = items(value)?;
    all.reverse();
    if kind(value) == Kind::Generator {
        list(all)
    } else {
        generator(all)
    }
}

fn join(_: &State, value: &Value, args: &mut Args) -> Res {
    let separator = to_str(&args.take("d").unwrap_or_else(|| Value::from("")))?;
    let attribute = args.take("attribute").filter(|a| kind(a) != Kind::None);
    let mut out = String::new();
    for (i, item) in items(value)?.iter().enumerate() {
        if i > 0 {
            out.push_str(&separator);
        }
        match &attribute {
            Some(path) => out.push_str(&to_str(&by_path(item, path, None)?)?),
            None => out.push_str(&to_str(item)?),
        }
        if out.len() > meter::MAX_VALUE_BYTES {
            meter::charge_value(out.len())?;
        }
    }
    text(out)
}

fn item_pairs(_: &State, value: &Value, _: &mut Args) -> Res {
    match value.downcast_object_ref::<Dict>() {
        Some(dict) => generator(pairs(dict)?),
        None if kind(value) == Kind::Undefined => generator(Vec::new()),
        None => fail("Can only get item pairs from a mapping."),
    }
}

fn default(_: &State, value: &Value, args: &mut Args) -> Res {
    let fallback = args.take("default_value").unwrap_or_else(|| Value::from(""));
    let any_false = args.take_bool("boolean", false);
    let missing = kind(value) == Kind::Undefined || (any_false && !value.is_true());
    Ok(if missing { fallback } else { value.clone() })
}

fn attr(_: &State, value: &Value, args: &mut Args) -> Res {
    let name = args.need_str("name")?;
    if value.downcast_object_ref::<Dict>().is_some() && !super::methods::has(Kind::Dict, &name) {
        return Ok(Value::UNDEFINED);
    }
    access::attribute(value, &name)
}

fn abs(_: &State, value: &Value, _: &mut Args) -> Res {
    if let Some(i) = as_int(value) {
        return if i < 0 { super::ops::negate(value) } else { Ok(int(i)) };
    }
    match as_float(value) {
        Some(x) => Ok(Value::from(x.abs())),
        None => fail(format!("bad operand type for abs(): '{}'", type_name(value))),
    }
}

fn to_int(_: &State, value: &Value, args: &mut Args) -> Res {
    let fallback = args.take("default").unwrap_or_else(|| int(0));
    let base = args.take_int("base")?.unwrap_or(10);
    if kind(value) == Kind::Undefined {
        return fail("the value is undefined");
    }
    if let Some(s) = value.as_str() {
        let parsed = text_filters::parse_int(s, base);
        let parsed = parsed.or_else(|| text_filters::parse_float(s).and_then(truncated));
        return Ok(parsed.map_or(fallback, int));
    }
    let whole = as_int(value).or_else(|| as_float(value).and_then(truncated));
    Ok(whole.map_or(fallback, int))
}

fn truncated(x: f64) -> Option<i128> {
    (x.is_finite() && x.abs() < 1.7e38).then_some(x.trunc() as i128)
}

fn to_float(_: &State, value: &Value, args: &mut Args) -> Res {
    let fallback = args.take("default").unwrap_or_else(|| Value::from(0.0));
    if kind(value) == Kind::Undefined {
        return fail("the value is undefined");
    }
    let parsed = match value.as_str() {
        Some(s) => text_filters::parse_float(s),
        None => as_float(value),
    };
    Ok(parsed.map_or(fallback, Value::from))
}

fn round(_: &State, value: &Value, args: &mut Args) -> Res {
    let precision = args.take_int("precision")?.unwrap_or(0).clamp(-300, 300) as i32;
    let method = args.take_str("method")?.unwrap_or_else(|| "common".into());
    let Some(x) = as_float(value) else {
        return fail(format!("type {} doesn't define __round__ method", type_name(value)));
    };
    let scale = 10f64.powi(precision);
    match method.as_str() {
        "common" => match as_int(value) {
            Some(i) if precision >= 0 => Ok(int(i)),
            Some(i) => Ok(int(round_int(i, (-precision) as u32))),
            None => Ok(Value::from(round_float(x, precision))),
        },
        "ceil" => Ok(Value::from((x * scale).ceil() / scale)),
        "floor" => Ok(Value::from((x * scale).floor() / scale)),
        _ => fail("method must be common, ceil or floor"),
    }
}

/// Correctly rounded decimal places, halves of the exact value to even, as in CPython.
fn round_float(x: f64, precision: i32) -> f64 {
    if !x.is_finite() {
        return x;
    }
    if precision >= 0 {
        return format!("{x:.*}", precision as usize).parse().unwrap_or(x);
    }
    let scale = 10f64.powi(-precision);
    let scaled = (x / scale).round_ties_even();
    scaled * scale
}

fn round_int(i: i128, digits: u32) -> i128 {
    let Some(unit) = 10i128.checked_pow(digits) else { return 0 };
    let (floor, rest) = (i.div_euclid(unit), i.rem_euclid(unit));
    let up = rest * 2 > unit || (rest * 2 == unit && floor % 2 != 0);
    (floor + i128::from(up)) * unit
}
