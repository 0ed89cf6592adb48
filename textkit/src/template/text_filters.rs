// SPDX-License-Identifier: Apache-2.0
//! Jinja's filters over text.

use minijinja::{State, Value};

use super::args::Args;
use super::chars::{decimal, is_line_end, is_space};
use super::filters::Filter;
use super::meter;
use super::methods;
use super::repr::{to_repr, to_str};
use super::str_format;
use super::str_methods;
use super::value::{
    as_float, as_int, dict, escaped, fail, items, kind, markup, same_safety, text, tuple, Dict,
    Kind, Res,
};

pub const FILTERS: &[(&str, Filter)] = &[
    ("capitalize", |_, v, _| method(v, "capitalize", &[])),
    ("center", |_, v, a| {
        let width = a.take_int("width")?.unwrap_or(80);
        text(str_methods::center(&to_str(v)?, usize::try_from(width).unwrap_or(0))?)
    }),
    ("e", |_, v, _| markup(escaped(v, &to_str(v)?))),
    ("escape", |_, v, _| markup(escaped(v, &to_str(v)?))),
    ("filesizeformat", file_size),
    ("forceescape", |_, v, _| markup(escaped(&Value::UNDEFINED, &to_str(v)?))),
    ("format", format),
    ("indent", indent),
    ("lower", |_, v, _| method(v, "lower", &[])),
    ("pprint", |_, v, _| text(to_repr(v)?)),
    ("replace", replace),
    ("safe", |_, v, _| markup(to_str(v)?)),
    ("string", |_, v, _| Ok(same_safety(v, text(to_str(v)?)?))),
    ("striptags", |_, v, _| text(strip_tags(&to_str(v)?))),
    ("title", |_, v, _| text(title(&to_str(v)?))),
    ("trim", trim),
    ("truncate", truncate),
    ("upper", |_, v, _| method(v, "upper", &[])),
    ("urlencode", url_encode),
    ("wordcount", |_, v, _| Ok(Value::from(word_count(&to_str(v)?)))),
    ("wordwrap", word_wrap),
];

/// Runs a str method that keeps Markup.
fn method(value: &Value, name: &str, args: &[Value]) -> Res {
    let soft = if kind(value) == Kind::Str { value.clone() } else { Value::from(to_str(value)?) };
    methods::call(&soft, name, args)
}

fn trim(_: &State, value: &Value, args: &mut Args) -> Res {
    let chars = args.take("chars").unwrap_or_else(|| Value::from(()));
    method(value, "strip", &[chars])
}

/// Upper case at the start and after white space and opening brackets or hyphens.
fn title(s: &str) -> String {
    let mut out = String::with_capacity(s.len());
    let mut starts = true;
    for c in s.chars() {
        let separates = is_space(c) || matches!(c, '-' | '(' | '{' | '[' | '<');
        if starts && !separates {
            out.extend(c.to_uppercase());
        } else {
            out.extend(c.to_lowercase());
        }
        starts = separates;
    }
    out
}

fn replace(_: &State, value: &Value, args: &mut Args) -> Res {
    let old = to_str(&args.need("old")?)?;
    let new = to_str(&args.need("new")?)?;
    let count = args.take_int("count")?.unwrap_or(-1);
    text(str_methods::replace(&to_str(value)?, &old, &new, count)?)
}

fn format(_: &State, value: &Value, args: &mut Args) -> Res {
    let positional = args.rest();
    let keywords = args.keywords();
    if !positional.is_empty() && !keywords.is_empty() {
        return fail("can't handle positional and keyword arguments at the same time");
    }
    let values = if keywords.is_empty() {
        tuple(positional)?
    } else {
        dict(keywords.into_iter().map(|(k, v)| (Value::from(k), v)).collect())?
    };
    text(str_format::percent(&to_str(value)?, &values)?)
}

fn lines(s: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = s;
    while !rest.is_empty() {
        let (end, next) = match rest.char_indices().find(|&(_, c)| is_line_end(c)) {
            None => (rest.len(), rest.len()),
            Some((at, '\r')) if rest[at..].starts_with("\r\n") => (at, at + 2),
            Some((at, c)) => (at, at + c.len_utf8()),
        };
        out.push(&rest[..end]);
        rest = &rest[next..];
    }
    out
}

fn indent(_: &State, value: &Value, args: &mut Args) -> Res {
    let width = args.take("width").unwrap_or_else(|| Value::from(4));
    let first = args.take_bool("first", false);
    let blank = args.take_bool("blank", false);
    let prefix = match (width.as_str(), as_int(&width)) {
        (Some(s), _) => s.to_string(),
        (None, Some(n)) => {
            let n = usize::try_from(n).unwrap_or(0);
            meter::charge_value(n)?;
            " ".repeat(n)
        }
        _ => return fail("indent needs a number or a string as width"),
    };
    // The line end that Jinja appends makes an empty text one empty line.
    let source = to_str(value)? + "\n";
    let all = lines(&source);
    meter::charge_value(source.len().saturating_add(all.len().saturating_mul(prefix.len())))?;
    let mut out = String::new();
    for (i, line) in all.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        if if i == 0 { first } else { blank || !line.is_empty() } {
            out.push_str(&prefix);
        }
        out.push_str(line);
    }
    Ok(same_safety(value, text(out)?))
}

fn truncate(_: &State, value: &Value, args: &mut Args) -> Res {
    let limit = usize::try_from(args.take_int("length")?.unwrap_or(255)).unwrap_or(0);
    let kill_words = args.take_bool("killwords", false);
    let end = args.take_str("end")?.unwrap_or_else(|| "...".into());
    let leeway = usize::try_from(args.take_int("leeway")?.unwrap_or(5)).unwrap_or(0);
    let source = to_str(value)?;
    let chars: Vec<char> = source.chars().collect();
    if chars.len() <= limit.saturating_add(leeway) {
        return text(source);
    }
    let keep = limit.saturating_sub(end.chars().count());
    let cut: String = chars[..keep].iter().collect();
    if kill_words {
        return text(cut + &end);
    }
    let at_word = cut.rfind(' ').map_or(cut.as_str(), |at| &cut[..at]);
    text(at_word.to_string() + &end)
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn word_count(s: &str) -> usize {
    s.split(|c| !is_word(c)).filter(|word| !word.is_empty()).count()
}

/// Wraps each line at white space; words longer than the width are cut unless told otherwise.
fn word_wrap(_: &State, value: &Value, args: &mut Args) -> Res {
    let width = usize::try_from(args.take_int("width")?.unwrap_or(79)).unwrap_or(0).max(1);
    let break_long = args.take_bool("break_long_words", true);
    let joiner = args.take_str("wrapstring")?.unwrap_or_else(|| "\n".into());
    let _on_hyphens = args.take_bool("break_on_hyphens", true);
    let source = to_str(value)?;
    let mut wrapped = Vec::new();
    for line in lines(&source) {
        let mut current = String::new();
        let mut used = 0;
        for word in line.split(' ') {
            let mut word: Vec<char> = word.chars().collect();
            if used > 0 && used + 1 + word.len() > width {
                wrapped.push(std::mem::take(&mut current).trim_end().to_string());
                used = 0;
            }
            while break_long && used == 0 && word.len() > width {
                wrapped.push(word.drain(..width).collect());
            }
            if used > 0 {
                current.push(' ');
                used += 1;
            }
            used += word.len();
            current.extend(word);
        }
        wrapped.push(current);
    }
    text(wrapped.join(&joiner))
}

fn strip_tags(s: &str) -> String {
    let mut out = String::new();
    let mut rest = s;
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        let tail = &rest[at..];
        let end = if tail.starts_with("<!--") {
            tail.find("-->").map(|e| e + 3)
        } else {
            tail.find('>').map(|e| e + 1)
        };
        match end {
            Some(end) => rest = &tail[end..],
            None => {
                out.push_str(tail);
                rest = "";
            }
        }
    }
    out.push_str(rest);
    for (name, c) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&#34;", "\""),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ] {
        out = out.replace(name, c);
    }
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn percent_encode(out: &mut String, s: &str, is_path: bool) {
    for byte in s.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(byte as char);
            }
            b'/' if is_path => out.push('/'),
            b' ' if !is_path => out.push('+'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
}

/// Text is encoded as a path, pairs as a query.
fn url_encode(_: &State, value: &Value, _: &mut Args) -> Res {
    let mut out = String::new();
    let pairs = match value.downcast_object_ref::<Dict>() {
        Some(dict) => methods::pairs(dict)?,
        None if matches!(kind(value), Kind::List | Kind::Tuple | Kind::View | Kind::Generator) => {
            items(value)?
        }
        None => {
            percent_encode(&mut out, &to_str(value)?, true);
            return text(out);
        }
    };
    for (i, pair) in pairs.iter().enumerate() {
        let pair = items(pair)?;
        let [key, item] = pair.as_slice() else { return fail("urlencode needs pairs") };
        if i > 0 {
            out.push('&');
        }
        percent_encode(&mut out, &to_str(key)?, false);
        out.push('=');
        percent_encode(&mut out, &to_str(item)?, false);
    }
    text(out)
}

fn file_size(_: &State, value: &Value, args: &mut Args) -> Res {
    let binary = args.take_bool("binary", false);
    let number = match value.as_str() {
        Some(s) => parse_float(s),
        None => as_float(value),
    };
    let Some(bytes) = number else { return fail("filesizeformat needs a number") };
    let base: f64 = if binary { 1024.0 } else { 1000.0 };
    if bytes == 1.0 {
        return text("1 Byte".into());
    }
    if bytes < base {
        return text(format!("{} Bytes", bytes.trunc()));
    }
    let units = if binary {
        ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"]
    } else {
        ["kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"]
    };
    let mut unit = base;
    for (i, name) in units.iter().enumerate() {
        unit *= base;
        if bytes < unit || i + 1 == units.len() {
            return text(format!("{:.1} {name}", base * bytes / unit));
        }
    }
    text(String::new())
}

/// int(text, base): blanks around, a sign, underscores between digits, digits of any script.
pub fn parse_int(s: &str, base: i128) -> Option<i128> {
    let trimmed = s.trim_matches(is_space);
    let (negative, body) = match trimmed.strip_prefix('-') {
        Some(body) => (true, body),
        None => (false, trimmed.strip_prefix('+').unwrap_or(trimmed)),
    };
    let lower = body.to_ascii_lowercase();
    let (radix, digits) = match (base, lower.get(..2)) {
        (16 | 0, Some("0x")) => (16, &body[2..]),
        (8 | 0, Some("0o")) => (8, &body[2..]),
        (2 | 0, Some("0b")) => (2, &body[2..]),
        (0, _) => (10, body),
        (2..=36, _) => (u32::try_from(base).ok()?, body),
        _ => return None,
    };
    if digits.is_empty()
        || digits.starts_with('_')
        || digits.ends_with('_')
        || digits.contains("__")
    {
        return None;
    }
    let mut value: i128 = 0;
    for c in digits.chars().filter(|&c| c != '_') {
        let digit = c.to_digit(radix).or_else(|| decimal(c).filter(|&d| d < radix))?;
        value = value.checked_mul(i128::from(radix))?.checked_add(i128::from(digit))?;
    }
    Some(if negative { -value } else { value })
}

/// float(text).
pub fn parse_float(s: &str) -> Option<f64> {
    let trimmed = s.trim_matches(is_space);
    let body = trimmed.trim_start_matches(['+', '-']);
    let bad = |c: char| !(c.is_ascii_digit() || "eE.+-_".contains(c));
    let word = body.to_ascii_lowercase();
    if matches!(word.as_str(), "inf" | "infinity" | "nan") {
        return trimmed.to_ascii_lowercase().parse().ok();
    }
    if body.contains(bad) || body.starts_with('_') || body.ends_with('_') || body.contains("__") {
        return None;
    }
    trimmed.replace('_', "").parse().ok()
}
