// SPDX-License-Identifier: Apache-2.0
//! Python's str methods. Positions count characters.

use minijinja::Value;

use super::args::Args;
use super::chars::{decimal, is_alpha, is_digit, is_line_end, is_space, push_title};
use super::meter;
use super::repr::is_printable;
use super::str_format;
use super::value::{fail, int, items, kind, list, text, tuple, type_name, Kind, Res, Seq};

/// In ASCII order, for binary search.
pub const NAMES: [&str; 45] = [
    "capitalize",
    "casefold",
    "center",
    "count",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "format_map",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "translate",
    "upper",
    "zfill",
];

pub fn call(s: &str, name: &str, args: &mut Args) -> Res {
    meter::charge(s.len())?;
    match name {
        "capitalize" => text(capitalize(s)),
        "casefold" => text(s.to_lowercase().replace('ß', "ss")),
        "center" | "ljust" | "rjust" => text(justify(s, name, args)?),
        "count" | "find" | "rfind" | "index" | "rindex" => search(s, name, args),
        "startswith" | "endswith" => affix(s, name, args),
        "expandtabs" => {
            let width = args.take_int("tabsize")?.unwrap_or(8);
            text(expand_tabs(s, usize::try_from(width).unwrap_or(0).min(1000)))
        }
        "format" => {
            let positional = args.rest();
            text(str_format::braces(s, &positional, &args.keywords())?)
        }
        "format_map" => text(str_format::braces_map(s, &args.need("mapping")?)?),
        "join" => text(join(s, &args.need("iterable")?)?),
        "lower" => text(s.to_lowercase()),
        "upper" => text(s.chars().flat_map(char::to_uppercase).collect()),
        "strip" | "lstrip" | "rstrip" => {
            let chars = args.take_str("chars")?;
            text(strip(s, name, chars.as_deref()).to_string())
        }
        "partition" | "rpartition" => partition(s, name, args),
        "removeprefix" => {
            let prefix = args.need_str("prefix")?;
            text(s.strip_prefix(prefix.as_str()).unwrap_or(s).to_string())
        }
        "removesuffix" => {
            let suffix = args.need_str("suffix")?;
            text(s.strip_suffix(suffix.as_str()).unwrap_or(s).to_string())
        }
        "replace" => {
            let (old, new) = (args.need_str("old")?, args.need_str("new")?);
            text(replace(s, &old, &new, args.take_int("count")?.unwrap_or(-1))?)
        }
        "split" | "rsplit" => split(s, name, args),
        "splitlines" => split_lines(s, args.take_bool("keepends", false)),
        "swapcase" => text(s.chars().map(swap_case).collect()),
        "title" => text(title(s)),
        "zfill" => text(zfill(s, args.take_int("width")?.unwrap_or(0))?),
        "translate" => fail("str.translate() is not supported"),
        _ => Ok(Value::from(is_class(s, name))),
    }
}

pub fn capitalize(s: &str) -> String {
    let mut out = String::with_capacity(s.len());
    let mut chars = s.chars();
    if let Some(first) = chars.next() {
        push_title(&mut out, first);
    }
    out + &chars.as_str().to_lowercase()
}

/// Upper case after every character that is no letter.
pub fn title(s: &str) -> String {
    let mut out = String::with_capacity(s.len());
    let mut inside = false;
    for c in s.chars() {
        if inside {
            out.extend(c.to_lowercase());
        } else {
            push_title(&mut out, c);
        }
        inside = c.is_alphabetic();
    }
    out
}

fn swap_case(c: char) -> String {
    if c.is_uppercase() {
        c.to_lowercase().collect()
    } else {
        c.to_uppercase().collect()
    }
}

fn padding(count: usize, fill: char) -> Res<String> {
    meter::charge_value(count.saturating_mul(fill.len_utf8()))?;
    Ok(std::iter::repeat_n(fill, count).collect())
}

fn justify(s: &str, name: &str, args: &mut Args) -> Res<String> {
    let width = match args.take_int("width")? {
        Some(width) => usize::try_from(width.max(0)).unwrap_or(usize::MAX),
        None => return fail(format!("{name}() misses the argument 'width'")),
    };
    let fill = args.take_str("fillchar")?.unwrap_or_else(|| " ".into());
    let mut fill_chars = fill.chars();
    let (Some(fill), None) = (fill_chars.next(), fill_chars.next()) else {
        return fail("The fill character must be exactly one character long");
    };
    let missing = width.saturating_sub(s.chars().count());
    let left = match name {
        "ljust" => 0,
        "rjust" => missing,
        // CPython gives the odd one to the left when the width is odd.
        _ => missing / 2 + (missing & width & 1),
    };
    Ok(padding(left, fill)? + s + &padding(missing - left, fill)?)
}

/// Centres as Jinja's filter does.
pub fn center(s: &str, width: usize) -> Res<String> {
    let missing = width.saturating_sub(s.chars().count());
    let left = missing / 2 + (missing & width & 1);
    Ok(padding(left, ' ')? + s + &padding(missing - left, ' ')?)
}

fn zfill(s: &str, width: i128) -> Res<String> {
    let width = usize::try_from(width.max(0)).unwrap_or(usize::MAX);
    let zeros = padding(width.saturating_sub(s.chars().count()), '0')?;
    Ok(match s.chars().next() {
        Some(sign @ ('+' | '-')) => format!("{sign}{zeros}{}", &s[1..]),
        _ => zeros + s,
    })
}

fn expand_tabs(s: &str, width: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for c in s.chars() {
        if c == '\t' {
            let spaces = if width == 0 { 0 } else { width - column % width };
            out.extend(std::iter::repeat_n(' ', spaces));
            column += spaces;
        } else {
            out.push(c);
            column = if matches!(c, '\n' | '\r') { 0 } else { column + 1 };
        }
    }
    out
}

/// The bytes of s[start:stop] in characters, and how many characters precede it. None where start
/// lies behind the end, where even the empty string is not found.
fn window(s: &str, args: &mut Args) -> Res<Option<(usize, usize, usize)>> {
    let (start, stop) = (args.take_int("start")?, args.take_int("end")?);
    if start.is_none() && stop.is_none() {
        return Ok(Some((0, s.len(), 0)));
    }
    let len = s.chars().count() as i128;
    let fix = |at: i128| (if at < 0 { at + len } else { at }).max(0);
    let (from, to) = (fix(start.unwrap_or(0)), fix(stop.unwrap_or(len)).min(len));
    if from > len || from > to {
        return Ok(None);
    }
    let byte = |at: i128| s.char_indices().nth(at as usize).map_or(s.len(), |(byte, _)| byte);
    Ok(Some((byte(from), byte(to), from as usize)))
}

fn search(s: &str, name: &str, args: &mut Args) -> Res {
    let part = args.need_str("sub")?;
    let Some((from, to, skipped)) = window(s, args)? else {
        return if name.ends_with("index") {
            fail("substring not found")
        } else {
            Ok(int(if name == "count" { 0 } else { -1 }))
        };
    };
    let text = &s[from..to];
    if name == "count" {
        let count =
            if part.is_empty() { text.chars().count() + 1 } else { text.matches(&*part).count() };
        return Ok(int(count as i128));
    }
    let found = if name.starts_with('r') { text.rfind(&*part) } else { text.find(&*part) };
    match found {
        Some(at) => Ok(int((skipped + text[..at].chars().count()) as i128)),
        None if name.ends_with("index") => fail("substring not found"),
        None => Ok(int(-1)),
    }
}

fn affix(s: &str, name: &str, args: &mut Args) -> Res {
    let wanted = args.need(if name == "startswith" { "prefix" } else { "suffix" })?;
    let options = match (kind(&wanted), wanted.downcast_object_ref::<Seq>()) {
        (Kind::Str, _) => vec![wanted.clone()],
        (Kind::Tuple, Some(options)) => options.items.clone(),
        _ => {
            let got = type_name(&wanted);
            return fail(format!("{name} first arg must be str or a tuple of str, not {got}"));
        }
    };
    let window = window(s, args)?;
    for option in &options {
        let Some(option) = option.as_str() else {
            return fail(format!("tuple for {name} must only contain str"));
        };
        let Some((from, to, _)) = window else { continue };
        let text = &s[from..to];
        if if name == "startswith" { text.starts_with(option) } else { text.ends_with(option) } {
            return Ok(Value::from(true));
        }
    }
    Ok(Value::from(false))
}

fn join(separator: &str, iterable: &Value) -> Res<String> {
    let mut out = String::new();
    for (i, item) in items(iterable)?.iter().enumerate() {
        let Some(part) = item.as_str() else {
            let got = type_name(item);
            return fail(format!("sequence item {i}: expected str instance, {got} found"));
        };
        if i > 0 {
            out.push_str(separator);
        }
        out.push_str(part);
        if out.len() > meter::MAX_VALUE_BYTES {
            meter::charge_value(out.len())?;
        }
    }
    Ok(out)
}

pub fn strip<'a>(s: &'a str, name: &str, chars: Option<&str>) -> &'a str {
    let drops = |c: char| chars.map_or_else(|| is_space(c), |set| set.contains(c));
    match name {
        "lstrip" => s.trim_start_matches(drops),
        "rstrip" => s.trim_end_matches(drops),
        _ => s.trim_matches(drops),
    }
}

fn partition(s: &str, name: &str, args: &mut Args) -> Res {
    let separator = args.need_str("sep")?;
    if separator.is_empty() {
        return fail("empty separator");
    }
    let last = name == "rpartition";
    let at = if last { s.rfind(&*separator) } else { s.find(&*separator) };
    let parts = match at {
        Some(at) => [&s[..at], &*separator, &s[at + separator.len()..]],
        None if last => ["", "", s],
        None => [s, "", ""],
    };
    tuple(parts.into_iter().map(Value::from).collect())
}

/// str.replace(): a negative count means all; an empty `old` matches between all characters.
pub fn replace(s: &str, old: &str, new: &str, count: i128) -> Res<String> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let hits = if old.is_empty() { s.chars().count() + 1 } else { s.matches(old).count() };
    meter::charge_value(s.len().saturating_add(hits.min(count).saturating_mul(new.len())))?;
    Ok(s.replacen(old, new, count))
}

fn split(s: &str, name: &str, args: &mut Args) -> Res {
    let separator = args.take_str("sep")?;
    let limit = args.take_int("maxsplit")?.unwrap_or(-1);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let from_end = name == "rsplit";
    let parts: Vec<&str> = match separator.as_deref() {
        Some("") => return fail("empty separator"),
        Some(separator) if from_end => {
            let mut parts: Vec<&str> = s.rsplitn(limit.saturating_add(1), separator).collect();
            parts.reverse();
            parts
        }
        Some(separator) => s.splitn(limit.saturating_add(1), separator).collect(),
        None if from_end => split_spaces_from_end(s, limit),
        None => split_spaces(s, limit),
    };
    list(parts.into_iter().map(Value::from).collect())
}

fn split_spaces(s: &str, limit: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = s.trim_start_matches(is_space);
    while !rest.is_empty() {
        if parts.len() == limit {
            parts.push(rest.trim_end_matches(is_space));
            break;
        }
        let end = rest.find(is_space).unwrap_or(rest.len());
        parts.push(&rest[..end]);
        rest = rest[end..].trim_start_matches(is_space);
    }
    parts
}

fn split_spaces_from_end(s: &str, limit: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = s.trim_end_matches(is_space);
    while !rest.is_empty() {
        if parts.len() == limit {
            parts.push(rest.trim_start_matches(is_space));
            break;
        }
        let start = rest.char_indices().rev().find(|&(_, c)| is_space(c));
        let start = start.map_or(0, |(at, c)| at + c.len_utf8());
        parts.push(&rest[start..]);
        rest = rest[..start].trim_end_matches(is_space);
    }
    parts.reverse();
    parts
}

fn split_lines(s: &str, keep_ends: bool) -> Res {
    let mut lines = Vec::new();
    let mut rest = s;
    while !rest.is_empty() {
        let (end, next) = match rest.char_indices().find(|&(_, c)| is_line_end(c)) {
            None => (rest.len(), rest.len()),
            Some((at, '\r')) if rest[at..].starts_with("\r\n") => (at, at + 2),
            Some((at, c)) => (at, at + c.len_utf8()),
        };
        lines.push(Value::from(&rest[..if keep_ends { next } else { end }]));
        rest = &rest[next..];
    }
    list(lines)
}

/// The is...() methods.
fn is_class(s: &str, name: &str) -> bool {
    let all = |test: fn(char) -> bool| !s.is_empty() && s.chars().all(test);
    match name {
        "isalnum" => all(|c| is_alpha(c) || c.is_numeric()),
        "isalpha" => all(is_alpha),
        "isascii" => s.is_ascii(),
        "isdecimal" => all(|c| decimal(c).is_some()),
        "isdigit" => all(is_digit),
        "isnumeric" => all(char::is_numeric),
        "isprintable" => s.chars().all(is_printable),
        "isspace" => all(is_space),
        "isidentifier" => {
            all(|c| c == '_' || c.is_alphanumeric()) && !s.starts_with(char::is_numeric)
        }
        "islower" => s.chars().any(char::is_lowercase) && !s.chars().any(char::is_uppercase),
        "isupper" => s.chars().any(char::is_uppercase) && !s.chars().any(char::is_lowercase),
        "istitle" => s.chars().any(char::is_uppercase) && title(s) == s,
        _ => false,
    }
}

pub fn is_lower(s: &str) -> bool {
    is_class(s, "islower")
}

pub fn is_upper(s: &str) -> bool {
    is_class(s, "isupper")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted() {
        assert!(NAMES.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn white_space_splits_as_in_python() {
        assert_eq!(split_spaces("  a b  c ", 1), ["a", "b  c"]);
        assert_eq!(split_spaces_from_end("  a b  c ", 1), ["a b", "c"]);
        assert!(split_spaces(" \t", usize::MAX).is_empty());
        assert_eq!(split_spaces("a\u{1c}b", usize::MAX), ["a", "b"]);
    }

    #[test]
    fn title_case_starts_after_every_non_letter() {
        assert_eq!(title("they're bill's 3rd"), "They'Re Bill'S 3Rd");
        assert_eq!(capitalize("ßA"), "Ssa");
    }
}
