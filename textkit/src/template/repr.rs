// SPDX-License-Identifier: Apache-2.0
//! Python's str() and repr() of values.

use std::fmt::Write;

use minijinja::Value;

use super::meter;
use super::value::{
    as_float, is_loop, is_macro, kind, type_name, Dict, Kind, Method, Res, Seq, Shape,
};

/// str(value).
pub fn to_str(value: &Value) -> Res<String> {
    if let Some(s) = value.as_str() {
        meter::charge(s.len())?;
        return Ok(s.to_string());
    }
    if kind(value) == Kind::Undefined {
        return Ok(String::new());
    }
    to_repr(value)
}

/// repr(value).
pub fn to_repr(value: &Value) -> Res<String> {
    let mut out = String::new();
    write_repr(&mut out, value)?;
    Ok(out)
}

fn write_repr(out: &mut String, value: &Value) -> Res<()> {
    let before = out.len();
    match kind(value) {
        Kind::Undefined => out.push_str("Undefined"),
        Kind::None => out.push_str("None"),
        Kind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        Kind::Int => out.push_str(&value.to_string()),
        Kind::Float => out.push_str(&float(as_float(value).unwrap_or(0.0))),
        Kind::Str => write_text(out, value, value.as_str().unwrap_or_default()),
        Kind::Dict => return write_dict(out, value),
        Kind::List | Kind::Tuple | Kind::View | Kind::Range => return write_seq(out, value),
        Kind::Namespace => return write_namespace(out, value),
        Kind::Generator => out.push_str("<generator object>"),
        Kind::Method => {
            let name = value.downcast_object_ref::<Method>().map_or("", |m| m.name.as_str());
            let _ = write!(out, "<built-in method {name}>");
        }
        Kind::Other if is_loop(value) || is_macro(value) => out.push_str(&value.to_string()),
        Kind::Other => {
            let _ = write!(out, "<{}>", type_name(value));
        }
    }
    meter::charge_value(out.len())?;
    meter::charge(out.len() - before)
}

fn write_items(out: &mut String, items: &[Value]) -> Res<()> {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        write_repr_bounded(out, item)?;
    }
    Ok(())
}

/// Shared sub-lists make text exponential in the size of the value: stop at the value limit.
fn write_repr_bounded(out: &mut String, value: &Value) -> Res<()> {
    if out.len() > meter::MAX_VALUE_BYTES {
        return meter::charge_value(out.len());
    }
    meter::charge(meter::VISIT)?;
    match kind(value) {
        Kind::Str => {
            let s = value.as_str().unwrap_or_default();
            meter::charge(s.len())?;
            write_text(out, value, s);
            Ok(())
        }
        Kind::Dict => write_dict(out, value),
        Kind::List | Kind::Tuple | Kind::View | Kind::Range => write_seq(out, value),
        Kind::Namespace => write_namespace(out, value),
        _ => {
            let mut one = String::new();
            write_repr(&mut one, value)?;
            out.push_str(&one);
            Ok(())
        }
    }
}

fn write_seq(out: &mut String, value: &Value) -> Res<()> {
    let Some(seq) = value.downcast_object_ref::<Seq>() else { return Ok(()) };
    let (open, close) = match seq.shape {
        Shape::Tuple => ("(", if seq.items.len() == 1 { ",)" } else { ")" }),
        Shape::Keys => ("dict_keys([", "])"),
        Shape::Values => ("dict_values([", "])"),
        Shape::Items => ("dict_items([", "])"),
        Shape::Range => {
            out.push_str(&seq.label);
            return Ok(());
        }
        _ => ("[", "]"),
    };
    out.push_str(open);
    write_items(out, &seq.items)?;
    out.push_str(close);
    Ok(())
}

fn write_dict(out: &mut String, value: &Value) -> Res<()> {
    let Some(dict) = value.downcast_object_ref::<Dict>() else { return Ok(()) };
    out.push('{');
    for (i, (key, item)) in dict.entries().iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        write_repr_bounded(out, key)?;
        out.push_str(": ");
        write_repr_bounded(out, item)?;
    }
    out.push('}');
    Ok(())
}

fn write_namespace(out: &mut String, value: &Value) -> Res<()> {
    out.push_str("<Namespace {");
    let pairs = value.as_object().and_then(|o| o.try_iter_pairs()).into_iter().flatten();
    for (i, (key, item)) in pairs.enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        write_repr_bounded(out, &key)?;
        out.push_str(": ");
        write_repr_bounded(out, &item)?;
    }
    out.push_str("}>");
    Ok(())
}

/// repr(float): the shortest digits that round-trip, exponent form outside [1e-4, 1e16).
pub fn float(x: f64) -> String {
    if x.is_nan() {
        return "nan".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let scientific = format!("{x:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if x == 0.0 || (-4..16).contains(&exponent) {
        let plain = format!("{x}");
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

fn write_text(out: &mut String, value: &Value, s: &str) {
    if value.is_safe() {
        out.push_str("Markup(");
        write_quoted(out, s);
        out.push(')');
    } else {
        write_quoted(out, s);
    }
}

/// repr(str): single quotes unless the text has them and no double ones.
fn write_quoted(out: &mut String, s: &str) {
    let quote = if s.contains('\'') && !s.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in s.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if is_printable(c) => out.push(c),
            c => {
                let code = c as u32;
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
}

/// str.isprintable() of one character: neither separator (but space), control, format, surrogate,
/// private nor unassigned. Unassigned code points inside assigned blocks count as printable here.
pub fn is_printable(c: char) -> bool {
    let code = c as u32;
    if code < 0x7f {
        return code >= 0x20;
    }
    if c.is_control() || (c.is_whitespace() && c != ' ') {
        return false;
    }
    !matches!(code,
        0xad | 0x600..=0x605 | 0x61c | 0x6dd | 0x70f | 0x890..=0x891 | 0x8e2 | 0x180e
        | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0xe000..=0xf8ff | 0xfeff
        | 0xfdd0..=0xfdef | 0xfff0..=0xfffb | 0xfffe..=0xffff | 0x110bd | 0x110cd | 0x13430..=0x1343f
        | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0000..=0xe00ff | 0xe01f0..=0x10ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_python_prints_them() {
        for (x, expected) in [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (1e20, "1e+20"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.5e300, "1.5e+300"),
            (-0.0, "-0.0"),
            (123456789.125, "123456789.125"),
            (f64::INFINITY, "inf"),
            (5e-324, "5e-324"),
        ] {
            assert_eq!(float(x), expected);
        }
    }

    #[test]
    fn strings_are_quoted_as_python_quotes_them() {
        for (s, expected) in [
            ("a", "'a'"),
            ("it's", "\"it's\""),
            ("\"", "'\"'"),
            ("'\"", "'\\'\"'"),
            ("\n\t\\", "'\\n\\t\\\\'"),
            ("\u{0}\u{7f}\u{a0}", "'\\x00\\x7f\\xa0'"),
            ("é文🧭", "'é文🧭'"),
            ("\u{2028}\u{200b}", "'\\u2028\\u200b'"),
        ] {
            let mut out = String::new();
            write_quoted(&mut out, s);
            assert_eq!(out, expected);
        }
    }
}
