// SPDX-License-Identifier: Apache-2.0
//! Bounds of one schema: that they are numbers we can keep, and that something lies between them.

use serde_json::{Map, Value};

use super::walk::{allows_type, check_number};
use super::{refuse, wrong};
use crate::abi::Result;

type Schema = Map<String, Value>;

/// coefficient / 10^digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multiple {
    coefficient: u64,
    digits: u32,
}

pub fn check(pointer: &str, schema: &Schema) -> Result<()> {
    for keyword in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
        match schema.get(keyword) {
            None | Some(Value::Bool(_)) => {} // Draft 4's exclusive ones.
            Some(value) => check_number(pointer, keyword, value)?,
        }
    }
    check_range(pointer, schema)?;
    for what in ["Length", "Items", "Properties"] {
        check_count(pointer, schema, &format!("min{what}"), &format!("max{what}"))?;
    }
    check_properties(pointer, schema)
}

fn check_count(pointer: &str, schema: &Schema, low: &str, high: &str) -> Result<()> {
    let count = |keyword: &str| -> Result<Option<f64>> {
        let Some(value) = schema.get(keyword) else { return Ok(None) };
        match value.as_f64() {
            Some(n) if n >= 0.0 && n.fract() == 0.0 => Ok(Some(n)),
            _ => Err(wrong(pointer, keyword, format!("{value} is no whole number from 0 on"))),
        }
    };
    match (count(low)?, count(high)?) {
        (Some(min), Some(max)) if min > max => {
            Err(wrong(pointer, low, format!("{min} is greater than {high}, {max}")))
        }
        _ => Ok(()),
    }
}

/// The numbers that the bounds leave, each with whether it is excluded itself.
fn range(schema: &Schema) -> ((f64, bool), (f64, bool)) {
    let number = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    let is_set = |keyword: &str| schema.get(keyword) == Some(&Value::Bool(true));
    let mut low = (number("minimum").unwrap_or(f64::NEG_INFINITY), is_set("exclusiveMinimum"));
    let mut high = (number("maximum").unwrap_or(f64::INFINITY), is_set("exclusiveMaximum"));
    if let Some(bound) = number("exclusiveMinimum").filter(|bound| *bound >= low.0) {
        low = (bound, true);
    }
    if let Some(bound) = number("exclusiveMaximum").filter(|bound| *bound <= high.0) {
        high = (bound, true);
    }
    (low, high)
}

fn check_range(pointer: &str, schema: &Schema) -> Result<()> {
    let ((low, above), (high, below)) = range(schema);
    let keyword = ["minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"]
        .into_iter()
        .find(|keyword| schema.contains_key(*keyword));
    let Some(keyword) = keyword else { return Ok(()) };
    let nothing = |what: &str| Err(wrong(pointer, keyword, format!("no {what} lies between")));
    if low > high || (low == high && (above || below)) {
        return nothing("number");
    }
    if allows_type(schema, "number") || !allows_type(schema, "integer") {
        return Ok(());
    }
    let mut first = low.ceil();
    if above && first == low {
        first += 1.0;
    }
    let mut last = high.floor();
    if below && last == high {
        last -= 1.0;
    }
    if first > last {
        return nothing("whole number");
    }
    let step = schema.get("multipleOf").and_then(Value::as_f64).unwrap_or(1.0);
    if step >= 1.0
        && step.fract() == 0.0
        && first.is_finite()
        && (first / step).ceil() * step > last
    {
        return nothing(&format!("multiple of {step}"));
    }
    Ok(())
}

/// llguidance counts multiples in 32 bits, those of several schemas together by their least common
/// multiple: what could overflow is refused.
pub fn check_multiple(pointer: &str, schema: &Schema, seen: &mut Vec<Multiple>) -> Result<()> {
    let Some(value) = schema.get("multipleOf") else { return Ok(()) };
    let number = value.as_f64().unwrap_or(0.0);
    if number <= 0.0 {
        return Err(wrong(pointer, "multipleOf", format!("{value} is not greater than 0")));
    }
    // Of 0.01 readers that divide floats do not find 2.3 a multiple.
    if (number * f64::from(1u32 << 20)).fract() != 0.0 {
        let why = format!("{value} has no exact form in binary floats, as 5, 0.5 and 0.125 have");
        return Err(refuse(pointer, "multipleOf", why));
    }
    let too_long = || refuse(pointer, "multipleOf", format!("{value} has too many digits"));
    let mut multiple = Multiple { coefficient: 0, digits: 0 };
    let mut scaled = number;
    while scaled.fract() != 0.0 {
        scaled *= 10.0;
        multiple.digits += 1;
        if multiple.digits > 6 {
            return Err(too_long());
        }
    }
    if scaled > 1e6 {
        return Err(too_long());
    }
    multiple.coefficient = scaled as u64;
    for other in seen.iter() {
        let digits = multiple.digits.max(other.digits);
        let scale = |m: &Multiple| u128::from(m.coefficient) * 10u128.pow(digits - m.digits);
        if scale(&multiple) * scale(other) > u128::from(u32::MAX) {
            return Err(refuse(
                pointer,
                "multipleOf",
                format!("{value} and the others of the schema are too large together"),
            ));
        }
    }
    if !seen.contains(&multiple) {
        seen.push(multiple);
    }
    Ok(())
}

fn check_properties(pointer: &str, schema: &Schema) -> Result<()> {
    let names: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let count = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
    if count("maxProperties").is_some_and(|max| max < names.len() as u64) {
        return Err(wrong(pointer, "maxProperties", "is less than the number of required names"));
    }
    // A grammar cannot keep two names that it does not know beforehand from being the same.
    if count("minProperties").is_some_and(|min| min > names.len() as u64 + 1) {
        return Err(refuse(
            pointer,
            "minProperties",
            "can be enforced up to one more than the number of required names",
        ));
    }
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false))
        && !schema.contains_key("patternProperties");
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_known = |name: &str| properties.is_some_and(|known| known.contains_key(name));
    match names.iter().find(|name| is_closed && !is_known(name)) {
        Some(name) => Err(wrong(
            pointer,
            "required",
            format!("{name:?} is no property, and additionalProperties is false"),
        )),
        None => Ok(()),
    }
}
