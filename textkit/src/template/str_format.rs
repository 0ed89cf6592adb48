// SPDX-License-Identifier: Apache-2.0
//! Python's three ways to format: `%`, str.format() and the format mini-language behind it.

use minijinja::Value;

use super::access;
use super::meter;
use super::repr::{to_repr, to_str};
use super::value::{as_float, as_int, fail, kind, type_name, Dict, Kind, Res, Seq};

/// [[fill]align][sign][#][0][width][grouping][.precision][type]
#[derive(Clone, Debug, Default)]
struct Spec {
    fill: Option<char>,
    align: Option<char>,
    sign: Option<char>,
    alternate: bool,
    width: usize,
    grouping: Option<char>,
    precision: Option<usize>,
    conversion: Option<char>,
}

fn digits(chars: &[char], at: &mut usize) -> Option<usize> {
    let start = *at;
    let mut value = 0usize;
    while let Some(digit) = chars.get(*at).and_then(|c| c.to_digit(10)) {
        value = value.saturating_mul(10).saturating_add(digit as usize);
        *at += 1;
    }
    (*at > start).then_some(value)
}

fn parse_spec(source: &str) -> Res<Spec> {
    let chars: Vec<char> = source.chars().collect();
    let mut spec = Spec::default();
    let mut at = 0;
    let is_align = |c: Option<&char>| c.is_some_and(|c| "<>=^".contains(*c));
    if is_align(chars.get(1)) {
        spec.fill = Some(chars[0]);
        spec.align = Some(chars[1]);
        at = 2;
    } else if is_align(chars.first()) {
        spec.align = Some(chars[0]);
        at = 1;
    }
    if let Some(&sign @ ('+' | '-' | ' ')) = chars.get(at) {
        spec.sign = Some(sign);
        at += 1;
    }
    if chars.get(at) == Some(&'#') {
        spec.alternate = true;
        at += 1;
    }
    if chars.get(at) == Some(&'0') {
        spec.fill = spec.fill.or(Some('0'));
        spec.align = spec.align.or(Some('='));
        at += 1;
    }
    spec.width = digits(&chars, &mut at).unwrap_or(0);
    if let Some(&grouping @ (',' | '_')) = chars.get(at) {
        spec.grouping = Some(grouping);
        at += 1;
    }
    if chars.get(at) == Some(&'.') {
        at += 1;
        match digits(&chars, &mut at) {
            Some(precision) => spec.precision = Some(precision),
            None => return fail("Format specifier missing precision"),
        }
    }
    spec.conversion = chars.get(at).copied();
    if chars.len() > at + 1 {
        return fail(format!("Invalid format specifier '{source}'"));
    }
    Ok(spec)
}

fn pad(spec: &Spec, sign: &str, body: &str, default_align: char) -> Res<String> {
    let len = sign.chars().count() + body.chars().count();
    let missing = spec.width.saturating_sub(len);
    let fill = spec.fill.unwrap_or(' ');
    meter::charge_value(missing.saturating_mul(fill.len_utf8()))?;
    let fills = |n: usize| -> String { std::iter::repeat_n(fill, n).collect() };
    Ok(match spec.align.unwrap_or(default_align) {
        '<' => format!("{sign}{body}{}", fills(missing)),
        '^' => format!("{}{sign}{body}{}", fills(missing / 2), fills(missing - missing / 2)),
        '=' => format!("{sign}{}{body}", fills(missing)),
        _ => format!("{}{sign}{body}", fills(missing)),
    })
}

fn sign_of(negative: bool, spec: &Spec) -> &'static str {
    match (negative, spec.sign) {
        (true, _) => "-",
        (false, Some('+')) => "+",
        (false, Some(' ')) => " ",
        _ => "",
    }
}

fn grouped(whole: &str, separator: Option<char>, every: usize) -> String {
    let Some(separator) = separator else { return whole.to_string() };
    let mut out = String::new();
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % every == 0 {
            out.push(separator);
        }
        out.push(c);
    }
    out
}

fn format_int(i: i128, spec: &Spec) -> Res<String> {
    let magnitude = i.unsigned_abs();
    let (prefix, body, every) = match spec.conversion {
        Some('b') => ("0b", format!("{magnitude:b}"), 4),
        Some('o') => ("0o", format!("{magnitude:o}"), 4),
        Some('x') => ("0x", format!("{magnitude:x}"), 4),
        Some('X') => ("0X", format!("{magnitude:X}"), 4),
        Some('c') => match u32::try_from(i).ok().and_then(char::from_u32) {
            Some(c) => return pad(spec, "", &c.to_string(), '<'),
            None => return fail("%c arg not in range(0x110000)"),
        },
        Some('d' | 'n') | None => ("", magnitude.to_string(), 3),
        Some(_) => return format_float(i as f64, spec),
    };
    let sign = sign_of(i < 0, spec).to_string() + if spec.alternate { prefix } else { "" };
    pad(spec, &sign, &grouped(&body, spec.grouping, every), '>')
}

/// The digits of a float without its sign.
fn float_digits(x: f64, spec: &Spec) -> String {
    if !x.is_finite() {
        return if x.is_nan() { "nan".into() } else { "inf".into() };
    }
    let precision = spec.precision.unwrap_or(6).min(1000);
    match spec.conversion.map(|c| c.to_ascii_lowercase()) {
        Some('f') => format!("{x:.precision$}"),
        Some('e') => exponent_form(x, precision),
        Some('%') => format!("{:.precision$}%", x * 100.0),
        Some('g') => general(x, precision, spec.alternate),
        None if spec.precision.is_none() => super::repr::float(x),
        _ => {
            let text = general(x, precision, spec.alternate);
            if text.contains(['.', 'e']) {
                text
            } else {
                text + ".0"
            }
        }
    }
}

fn exponent_form(x: f64, precision: usize) -> String {
    let text = format!("{x:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

fn general(x: f64, precision: usize, keep_zeros: bool) -> String {
    let precision = precision.max(1);
    let scientific = format!("{x:.*e}", precision - 1);
    let exponent: i32 = scientific.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let trim = |text: String| {
        if keep_zeros || !text.contains('.') {
            return text;
        }
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    };
    if exponent < -4 || exponent >= precision as i32 {
        let form = exponent_form(x, precision - 1);
        let (mantissa, tail) = form.split_once('e').unwrap_or((&form, "+00"));
        return format!("{}e{tail}", trim(mantissa.to_string()));
    }
    trim(format!("{x:.*}", (precision as i32 - 1 - exponent).max(0) as usize))
}

fn format_float(x: f64, spec: &Spec) -> Res<String> {
    if !matches!(spec.conversion, None | Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | 'n' | '%')) {
        let code = spec.conversion.unwrap_or(' ');
        return fail(format!("Unknown format code '{code}' for object of type 'float'"));
    }
    let mut body = float_digits(x.abs(), spec);
    if let Some(separator) = spec.grouping {
        let end = body.find(['.', 'e', '%']).unwrap_or(body.len());
        body = grouped(&body[..end], Some(separator), 3) + &body[end..];
    }
    if spec.conversion.is_some_and(|c| c.is_ascii_uppercase()) {
        body = body.to_uppercase();
    }
    pad(spec, sign_of(x.is_sign_negative() && !x.is_nan(), spec), &body, '>')
}

/// format(value, spec).
pub fn format_value(value: &Value, source: &str) -> Res<String> {
    if source.is_empty() {
        return to_str(value);
    }
    let spec = parse_spec(source)?;
    match kind(value) {
        Kind::Int => format_int(as_int(value).unwrap_or(0), &spec),
        Kind::Bool => format_int(as_int(value).unwrap_or(0), &spec),
        Kind::Float => format_float(as_float(value).unwrap_or(0.0), &spec),
        Kind::Str => {
            if !matches!(spec.conversion, None | Some('s')) {
                let code = spec.conversion.unwrap_or(' ');
                return fail(format!("Unknown format code '{code}' for object of type 'str'"));
            }
            let all = to_str(value)?;
            let cut: String = match spec.precision {
                Some(precision) => all.chars().take(precision).collect(),
                None => all,
            };
            pad(&spec, "", &cut, '<')
        }
        _ => fail(format!("unsupported format string passed to {}.__format__", type_name(value))),
    }
}

struct Fields<'a> {
    positional: &'a [Value],
    named: &'a dyn Fn(&str) -> Option<Value>,
    automatic: usize,
}

impl Fields<'_> {
    /// name(.attribute|[item])*
    fn lookup(&mut self, path: &str) -> Res {
        let end = path.find(['.', '[']).unwrap_or(path.len());
        let (head, mut rest) = path.split_at(end);
        let mut value = if head.is_empty() {
            self.automatic += 1;
            self.positional(self.automatic - 1)?
        } else if let Ok(index) = head.parse::<usize>() {
            self.positional(index)?
        } else {
            match (self.named)(head) {
                Some(value) => value,
                None => return fail(format!("format misses the field '{head}'")),
            }
        };
        while !rest.is_empty() {
            if let Some(tail) = rest.strip_prefix('.') {
                let end = tail.find(['.', '[']).unwrap_or(tail.len());
                value = access::attribute(&value, &tail[..end])?;
                rest = &tail[end..];
            } else {
                let Some(end) = rest.find(']') else { return fail("expected ']' in a field") };
                let key = &rest[1..end];
                let key = key.parse::<i64>().map_or_else(|_| Value::from(key), Value::from);
                value = access::item(&value, &key)?;
                rest = &rest[end + 1..];
            }
        }
        Ok(value)
    }

    fn positional(&self, index: usize) -> Res {
        match self.positional.get(index) {
            Some(value) => Ok(value.clone()),
            None => fail(format!("Replacement index {index} out of range for positional args")),
        }
    }
}

fn expand(template: &str, fields: &mut Fields, depth: u32) -> Res<String> {
    if depth > 2 {
        return fail("Max string recursion exceeded");
    }
    let mut out = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        let (brace, tail) = (&rest[at..=at], &rest[at + 1..]);
        if let Some(tail) = tail.strip_prefix(brace) {
            out.push_str(brace);
            rest = tail;
            continue;
        }
        if brace == "}" {
            return fail("Single '}' encountered in format string");
        }
        let Some(end) = matching_brace(tail) else {
            return fail("Single '{' encountered in format string");
        };
        out.push_str(&expand_field(&tail[..end], fields, depth)?);
        meter::charge_value(out.len())?;
        rest = &tail[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

fn matching_brace(s: &str) -> Option<usize> {
    let mut open = 1;
    for (at, c) in s.char_indices() {
        match c {
            '{' => open += 1,
            '}' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some(at);
        }
    }
    None
}

fn expand_field(field: &str, fields: &mut Fields, depth: u32) -> Res<String> {
    let (path, spec) = field.split_once(':').unwrap_or((field, ""));
    let (path, conversion) = path.split_once('!').map_or((path, None), |(p, c)| (p, Some(c)));
    let value = fields.lookup(path)?;
    let value = match conversion {
        None => value,
        Some("s") => Value::from(to_str(&value)?),
        Some("r" | "a") => Value::from(to_repr(&value)?),
        Some(other) => return fail(format!("Unknown conversion specifier '{other}'")),
    };
    let spec = expand(spec, fields, depth + 1)?;
    format_value(&value, &spec)
}

/// template.format(*positional, **named).
pub fn braces(template: &str, positional: &[Value], named: &[(String, Value)]) -> Res<String> {
    let find = |name: &str| named.iter().find(|(key, _)| key == name).map(|(_, v)| v.clone());
    expand(template, &mut Fields { positional, named: &find, automatic: 0 }, 0)
}

/// template.format_map(mapping).
pub fn braces_map(template: &str, mapping: &Value) -> Res<String> {
    let find = |name: &str| {
        let dict = mapping.downcast_object_ref::<Dict>()?;
        dict.get(&Value::from(name)).cloned()
    };
    expand(template, &mut Fields { positional: &[], named: &find, automatic: 0 }, 0)
}

/// `template % values`.
pub fn percent(template: &str, values: &Value) -> Res<String> {
    let all: Vec<Value> = match (kind(values), values.downcast_object_ref::<Seq>()) {
        (Kind::Tuple, Some(tuple)) => tuple.items.clone(),
        _ => vec![values.clone()],
    };
    let chars: Vec<char> = template.chars().collect();
    let mut state = Percent { chars: &chars, at: 0, all: &all, next: 0, mapped: false, values };
    let mut out = String::new();
    while let Some(&c) = chars.get(state.at) {
        state.at += 1;
        if c == '%' {
            out.push_str(&state.conversion()?);
            meter::charge_value(out.len())?;
        } else {
            out.push(c);
        }
    }
    if state.next < all.len() && !state.mapped && kind(values) != Kind::Dict {
        return fail("not all arguments converted during string formatting");
    }
    Ok(out)
}

struct Percent<'a> {
    chars: &'a [char],
    at: usize,
    all: &'a [Value],
    next: usize,
    mapped: bool,
    values: &'a Value,
}

impl Percent<'_> {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn argument(&mut self) -> Res {
        match self.all.get(self.next) {
            Some(value) => {
                self.next += 1;
                Ok(value.clone())
            }
            None => fail("not enough arguments for format string"),
        }
    }

    fn number(&mut self) -> Res<Option<usize>> {
        if self.peek() != Some('*') {
            return Ok(digits(self.chars, &mut self.at));
        }
        self.at += 1;
        match as_int(&self.argument()?).and_then(|i| usize::try_from(i).ok()) {
            Some(n) => Ok(Some(n)),
            None => fail("* wants int"),
        }
    }

    fn conversion(&mut self) -> Res<String> {
        let key = self.mapping_key()?;
        let mut spec = Spec::default();
        let mut left = false;
        while let Some(flag @ ('-' | '+' | ' ' | '#' | '0')) = self.peek() {
            match flag {
                '-' => left = true,
                '+' => spec.sign = Some('+'),
                ' ' => spec.sign = spec.sign.or(Some(' ')),
                '#' => spec.alternate = true,
                _ => spec.fill = Some('0'),
            }
            self.at += 1;
        }
        spec.width = self.number()?.unwrap_or(0);
        if self.peek() == Some('.') {
            self.at += 1;
            spec.precision = Some(self.number()?.unwrap_or(0));
        }
        while let Some('h' | 'l' | 'L') = self.peek() {
            self.at += 1;
        }
        let Some(code) = self.peek() else { return fail("incomplete format") };
        self.at += 1;
        if code == '%' {
            return Ok("%".into());
        }
        spec.align = Some(if left {
            '<'
        } else if spec.fill.is_some() {
            '='
        } else {
            '>'
        });
        if left {
            spec.fill = None;
        }
        let value = match key {
            Some(value) => value,
            None => self.argument()?,
        };
        one_percent(&value, code, spec)
    }

    fn mapping_key(&mut self) -> Res<Option<Value>> {
        if self.peek() != Some('(') {
            return Ok(None);
        }
        let Some(len) = self.chars[self.at..].iter().position(|&c| c == ')') else {
            return fail("incomplete format key");
        };
        let key: String = self.chars[self.at + 1..self.at + len].iter().collect();
        self.at += len + 1;
        self.mapped = true;
        let Some(dict) = self.values.downcast_object_ref::<Dict>() else {
            return fail("format requires a mapping");
        };
        match dict.get(&Value::from(key.as_str())) {
            Some(value) => Ok(Some(value.clone())),
            None => fail(format!("'{key}'")),
        }
    }
}

fn one_percent(value: &Value, code: char, mut spec: Spec) -> Res<String> {
    let textual = |spec: &Spec, all: String| {
        let cut: String = match spec.precision {
            Some(precision) => all.chars().take(precision).collect(),
            None => all,
        };
        let spec = Spec {
            fill: None,
            align: spec.align.map(|a| if a == '=' { '>' } else { a }),
            ..spec.clone()
        };
        pad(&spec, "", &cut, '>')
    };
    match code {
        's' => textual(&spec, to_str(value)?),
        'r' | 'a' => textual(&spec, to_repr(value)?),
        'c' => match (value.as_str(), as_int(value)) {
            (Some(s), _) if s.chars().count() == 1 => textual(&spec, s.to_string()),
            (_, Some(_)) => {
                spec.conversion = Some('c');
                format_int(as_int(value).unwrap_or(0), &spec)
            }
            _ => fail("%c requires int or char"),
        },
        'd' | 'i' | 'u' | 'x' | 'X' | 'o' => {
            let number = match kind(value) {
                Kind::Float if matches!(code, 'd' | 'i' | 'u') => {
                    as_float(value).map(|x| x.trunc() as i128)
                }
                _ => as_int(value),
            };
            let Some(number) = number else {
                let got = type_name(value);
                return fail(format!("%{code} format: a real number is required, not {got}"));
            };
            spec.conversion = Some(if matches!(code, 'i' | 'u') { 'd' } else { code });
            if let Some(precision) = spec.precision.take() {
                let digits = format!(
                    "{:0>precision$}",
                    number.unsigned_abs(),
                    precision = precision.min(1000)
                );
                return pad(&spec, sign_of(number < 0, &spec), &digits, '>');
            }
            format_int(number, &spec)
        }
        'e' | 'E' | 'f' | 'F' | 'g' | 'G' => {
            let Some(x) = as_float(value) else {
                return fail(format!("must be real number, not {}", type_name(value)));
            };
            spec.conversion = Some(code);
            format_float(x, &spec)
        }
        other => fail(format!("unsupported format character '{other}'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(value: Value, spec: &str) -> String {
        meter::start(0);
        format_value(&value, spec).unwrap()
    }

    #[test]
    fn the_format_mini_language_is_pythons() {
        for (value, format, expected) in [
            (Value::from(42), "05d", "00042"),
            (Value::from(-42), "+,d", "-42"),
            (Value::from(1234567), ",", "1,234,567"),
            (Value::from(255), "#x", "0xff"),
            (Value::from(3.14159), ".2f", "3.14"),
            (Value::from(3.0), "", "3.0"),
            (Value::from(1234.5), ",.1f", "1,234.5"),
            (Value::from(0.25), ".0%", "25%"),
            (Value::from(1e10), "g", "1e+10"),
            (Value::from("ab"), ">5", "   ab"),
            (Value::from("ab"), "*^5", "*ab**"),
            (Value::from("abc"), ".2", "ab"),
        ] {
            assert_eq!(spec(value, format), expected, "{format}");
        }
    }

    #[test]
    fn percent_formats_as_printf() {
        meter::start(0);
        assert_eq!(
            percent(
                "%05.1f|%-4s|%x",
                &super::super::value::tuple(vec![
                    Value::from(2.25),
                    Value::from("a"),
                    Value::from(255)
                ])
                .unwrap()
            )
            .unwrap(),
            "002.2|a   |ff"
        );
        assert!(percent("%d", &Value::from("a")).is_err());
        assert!(percent("%s", &super::super::value::tuple(vec![]).unwrap()).is_err());
    }
}
