// SPDX-License-Identifier: Apache-2.0
//! Python's arithmetic on values. Integers have 128 bits; Python's have no limit, so what does not
//! fit is an error instead of a wrong number.

use minijinja::Value;

use super::meter;
use super::repr::to_str;
use super::str_format;
use super::value::{
    as_float, as_int, dict, escaped, fail, int, kind, list, markup, same_safety, text, tuple,
    type_name, Dict, Kind, Res, Seq,
};

fn unsupported<T>(op: &str, a: &Value, b: &Value) -> Res<T> {
    for side in [a, b] {
        if kind(side) == Kind::Undefined {
            return fail(format!("undefined value used with {op}"));
        }
    }
    let (x, y) = (type_name(a), type_name(b));
    fail(format!("unsupported operand type(s) for {op}: '{x}' and '{y}'"))
}

fn checked(op: &str, result: Option<i128>) -> Res {
    match result {
        Some(value) => Ok(int(value)),
        None => fail(format!("the result of {op} does not fit into 128 bits")),
    }
}

pub fn add(a: &Value, b: &Value) -> Res {
    if let (Some(x), Some(y)) = (as_int(a), as_int(b)) {
        return checked("+", x.checked_add(y));
    }
    if let (Some(x), Some(y)) = (as_float(a), as_float(b)) {
        return Ok(Value::from(x + y));
    }
    if let (Some(x), Some(y)) = (a.as_str(), b.as_str()) {
        if a.is_safe() || b.is_safe() {
            return markup(escaped(a, x) + &escaped(b, y));
        }
        meter::charge_value(x.len() + y.len())?;
        return Ok(Value::from([x, y].concat()));
    }
    match (kind(a), kind(b)) {
        (Kind::List, Kind::List) => list(joined(a, b)?),
        (Kind::Tuple, Kind::Tuple) => tuple(joined(a, b)?),
        _ => unsupported("+", a, b),
    }
}

fn joined(a: &Value, b: &Value) -> Res<Vec<Value>> {
    let empty: &[Value] = &[];
    let x = a.downcast_object_ref::<Seq>().map_or(empty, |s| &s.items);
    let y = b.downcast_object_ref::<Seq>().map_or(empty, |s| &s.items);
    meter::charge_value((x.len() + y.len()) * std::mem::size_of::<Value>())?;
    Ok([x, y].concat())
}

pub fn sub(a: &Value, b: &Value) -> Res {
    if let (Some(x), Some(y)) = (as_int(a), as_int(b)) {
        return checked("-", x.checked_sub(y));
    }
    match (as_float(a), as_float(b)) {
        (Some(x), Some(y)) => Ok(Value::from(x - y)),
        _ => unsupported("-", a, b),
    }
}

pub fn mul(a: &Value, b: &Value) -> Res {
    if let (Some(x), Some(y)) = (as_int(a), as_int(b)) {
        return checked("*", x.checked_mul(y));
    }
    if let (Some(x), Some(y)) = (as_float(a), as_float(b)) {
        return Ok(Value::from(x * y));
    }
    match (as_int(a), as_int(b)) {
        (None, Some(n)) => repeat(a, n, b),
        (Some(n), None) => repeat(b, n, a),
        _ => unsupported("*", a, b),
    }
}

fn repeat(what: &Value, times: i128, other: &Value) -> Res {
    let times = usize::try_from(times.max(0)).unwrap_or(usize::MAX);
    if let Some(s) = what.as_str() {
        meter::charge_value(s.len().saturating_mul(times))?;
        return Ok(same_safety(what, Value::from(s.repeat(times))));
    }
    let (Kind::List | Kind::Tuple, Some(seq)) = (kind(what), what.downcast_object_ref::<Seq>())
    else {
        return unsupported("*", what, other);
    };
    let bytes = seq.items.len().saturating_mul(std::mem::size_of::<Value>());
    meter::charge_value(bytes.saturating_mul(times))?;
    let rounds = if seq.items.is_empty() { 0 } else { times };
    let items = (0..rounds).flat_map(|_| seq.items.iter().cloned()).collect();
    if kind(what) == Kind::Tuple {
        tuple(items)
    } else {
        list(items)
    }
}

pub fn div(a: &Value, b: &Value) -> Res {
    match (as_float(a), as_float(b)) {
        (Some(_), Some(0.0)) => fail("division by zero"),
        (Some(x), Some(y)) => Ok(Value::from(x / y)),
        _ => unsupported("/", a, b),
    }
}

/// Rounds towards minus infinity.
pub fn floor_div(a: &Value, b: &Value) -> Res {
    if let (Some(x), Some(y)) = (as_int(a), as_int(b)) {
        if y == 0 {
            return fail("integer division or modulo by zero");
        }
        let exact = x.checked_rem(y) == Some(0);
        let truncated = x.checked_div(y);
        let floors = !exact && (x < 0) != (y < 0);
        return checked("//", truncated.map(|q| q - i128::from(floors)));
    }
    match (as_float(a), as_float(b)) {
        (Some(_), Some(0.0)) => fail("float floor division by zero"),
        (Some(x), Some(y)) => Ok(Value::from(((x - float_modulo(x, y)) / y).round())),
        _ => unsupported("//", a, b),
    }
}

/// The result has the sign of the divisor; of a string it is printf formatting.
pub fn modulo(a: &Value, b: &Value) -> Res {
    if let Some(template) = a.as_str() {
        if a.is_safe() {
            return markup(str_format::percent(template, &escape_all(b)?)?);
        }
        return text(str_format::percent(template, b)?);
    }
    if let (Some(x), Some(y)) = (as_int(a), as_int(b)) {
        if y == 0 {
            return fail("integer division or modulo by zero");
        }
        let r = x.wrapping_rem(y);
        return Ok(int(if r != 0 && (r < 0) != (y < 0) { r + y } else { r }));
    }
    match (as_float(a), as_float(b)) {
        (Some(_), Some(0.0)) => fail("float modulo"),
        (Some(x), Some(y)) => Ok(Value::from(float_modulo(x, y))),
        _ => unsupported("%", a, b),
    }
}

/// The operands of Markup % ...: their text is escaped first.
fn escape_all(values: &Value) -> Res {
    let one = |v: &Value| v.as_str().map_or_else(|| v.clone(), |s| Value::from(escaped(v, s)));
    match (kind(values), values.downcast_object_ref::<Seq>(), values.downcast_object_ref::<Dict>())
    {
        (Kind::Tuple, Some(seq), _) => tuple(seq.items.iter().map(one).collect()),
        (_, _, Some(d)) => dict(d.entries().iter().map(|(k, v)| (k.clone(), one(v))).collect()),
        _ => Ok(one(values)),
    }
}

fn float_modulo(x: f64, y: f64) -> f64 {
    let r = x % y;
    if r != 0.0 && (r < 0.0) != (y < 0.0) {
        r + y
    } else if r == 0.0 {
        0.0_f64.copysign(y)
    } else {
        r
    }
}

pub fn pow(a: &Value, b: &Value) -> Res {
    if let (Some(x), Some(y)) = (as_int(a), as_int(b)) {
        if y >= 0 {
            let power = u32::try_from(y).ok();
            return match (x, power) {
                (0 | 1, None) => Ok(int(x)),
                (-1, None) => Ok(int(if y % 2 == 0 { 1 } else { -1 })),
                (_, None) => checked("**", None),
                (_, Some(n)) => checked("**", x.checked_pow(n)),
            };
        }
    }
    match (as_float(a), as_float(b)) {
        (Some(0.0), Some(y)) if y < 0.0 => fail("0.0 cannot be raised to a negative power"),
        (Some(x), Some(y)) if x < 0.0 && y.fract() != 0.0 => {
            fail("complex numbers are not supported")
        }
        (Some(x), Some(y)) => Ok(Value::from(x.powf(y))),
        _ => unsupported("**", a, b),
    }
}

pub fn negate(a: &Value) -> Res {
    if let Some(x) = as_int(a) {
        return checked("-", x.checked_neg());
    }
    match as_float(a) {
        Some(x) => Ok(Value::from(-x)),
        None => fail(format!("bad operand type for unary -: '{}'", type_name(a))),
    }
}

/// `~`: both sides as text.
pub fn concat(a: &Value, b: &Value) -> Res {
    let (x, y) = (to_str(a)?, to_str(b)?);
    meter::charge_value(x.len() + y.len())?;
    Ok(Value::from(x + &y))
}
