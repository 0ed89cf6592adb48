// SPDX-License-Identifier: Apache-2.0
//! The global functions of Jinja and transformers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use minijinja::value::{Object, ObjectRepr};
use minijinja::{State, Value};

use super::args::Args;
use super::meter;
use super::repr::to_str;
use super::strftime::strftime;
use super::value::{dict, fail, int, items, labelled, list, text, Dict, Res, Shape};

pub type Function = fn(&mut Args) -> Res;

pub const FUNCTIONS: &[(&str, Function)] = &[
    ("cycler", cycler),
    ("dict", make_dict),
    ("joiner", joiner),
    ("raise_exception", |args| Err(meter::raise(to_str(&args.need("message")?)?))),
    ("range", range),
    ("strftime_now", |args| text(strftime(&args.need_str("format")?, meter::now_unix_seconds()))),
];

fn range(args: &mut Args) -> Res {
    let Some(first) = args.take_int("start")? else { return fail("range expected an integer") };
    let second = args.take_int("stop")?;
    let step = args.take_int("step")?;
    let (start, stop) = second.map_or((0, first), |stop| (first, stop));
    let by = step.unwrap_or(1);
    if by == 0 {
        return fail("range() arg 3 must not be zero");
    }
    let span = if by > 0 { stop.saturating_sub(start) } else { start.saturating_sub(stop) };
    let count = span.max(0).saturating_add(by.abs() - 1) / by.abs();
    if count > meter::MAX_RANGE as i128 {
        return fail(format!(
            "Range too big. The sandbox blocks ranges larger than {}.",
            meter::MAX_RANGE
        ));
    }
    let label = match step {
        Some(step) if step != 1 => format!("range({start}, {stop}, {step})"),
        _ => format!("range({start}, {stop})"),
    };
    labelled(Shape::Range, (0..count).map(|i| int(start + i * by)).collect(), label)
}

fn make_dict(args: &mut Args) -> Res {
    let mut pairs = Vec::new();
    if let Some(source) = args.take("mapping") {
        match source.downcast_object_ref::<Dict>() {
            Some(source) => pairs.extend_from_slice(source.entries()),
            None => {
                for pair in items(&source)? {
                    let pair = items(&pair)?;
                    let [key, value] = pair.as_slice() else {
                        return fail("dictionary update sequence element must have length 2");
                    };
                    pairs.push((key.clone(), value.clone()));
                }
            }
        }
    }
    pairs.extend(args.keywords().into_iter().map(|(k, v)| (Value::from(k), v)));
    dict(pairs)
}

#[derive(Debug)]
struct Cycler {
    items: Value,
    len: usize,
    at: AtomicUsize,
}

fn cycler(args: &mut Args) -> Res {
    let all = args.rest();
    if all.is_empty() {
        return fail("at least one item has to be provided");
    }
    let len = all.len();
    Ok(Value::from_object(Cycler { items: list(all)?, len, at: AtomicUsize::new(0) }))
}

impl Object for Cycler {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let at = self.at.load(Ordering::Relaxed) % self.len;
        (key.as_str() == Some("current")).then(|| self.items.get_item_by_index(at).ok()).flatten()
    }
    fn call_method(self: &Arc<Self>, _: &State, name: &str, _: &[Value]) -> Res {
        match name {
            "next" => {
                let at = self.at.fetch_add(1, Ordering::Relaxed) % self.len;
                self.items.get_item_by_index(at)
            }
            "reset" => {
                self.at.store(0, Ordering::Relaxed);
                Ok(Value::from(()))
            }
            _ => fail(format!("'Cycler' object has no attribute '{name}'")),
        }
    }
}

pub fn is_cycler(value: &Value) -> bool {
    value.downcast_object_ref::<Cycler>().is_some()
}

#[derive(Debug)]
struct Joiner {
    separator: String,
    used: AtomicUsize,
}

fn joiner(args: &mut Args) -> Res {
    let separator = args.take_str("sep")?.unwrap_or_else(|| ", ".into());
    Ok(Value::from_object(Joiner { separator, used: AtomicUsize::new(0) }))
}

impl Object for Joiner {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }
    fn call(self: &Arc<Self>, _: &State, _: &[Value]) -> Res {
        let first = self.used.swap(1, Ordering::Relaxed) == 0;
        text(if first { String::new() } else { self.separator.clone() })
    }
}
