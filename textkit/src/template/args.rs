// SPDX-License-Identifier: Apache-2.0
//! Arguments of a call, bound as Python binds them: by position, by keyword, none left over.

use minijinja::value::Kwargs;
use minijinja::Value;

use super::value::{as_int, escaped, fail, items, kind, list, type_name, Kind, Res};

pub struct Args {
    callee: String,
    positional: Vec<Value>,
    keywords: Vec<(String, Value)>,
    next: usize,
}

impl Args {
    /// Splits what minijinja passes: keywords travel as a marked last argument.
    pub fn new(callee: &str, values: &[Value]) -> Args {
        let mut positional = values.to_vec();
        let mut keywords = Vec::new();
        if positional.last().is_some_and(Value::is_kwargs) {
            if let Some(Ok(map)) = positional.pop().map(Kwargs::try_from) {
                for name in map.args() {
                    let value = map.peek::<Value>(name).unwrap_or_default();
                    keywords.push((name.to_string(), value));
                }
            }
        }
        Args { callee: callee.to_string(), positional, keywords, next: 0 }
    }

    /// The next argument, whether given by position or by `name`.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        if let Some(value) = self.positional.get(self.next) {
            self.next += 1;
            return Some(value.clone());
        }
        let at = self.keywords.iter().position(|(key, _)| key == name)?;
        Some(self.keywords.remove(at).1)
    }

    pub fn need(&mut self, name: &str) -> Res {
        match self.take(name) {
            Some(value) => Ok(value),
            None => fail(format!("{}() misses the argument '{name}'", self.callee)),
        }
    }

    /// A string; `None` where absent or Python's None.
    pub fn take_str(&mut self, name: &str) -> Res<Option<String>> {
        match self.take(name) {
            None => Ok(None),
            Some(v) if kind(&v) == Kind::None => Ok(None),
            Some(v) => match v.as_str() {
                Some(s) => Ok(Some(s.to_string())),
                None => self.wrong(name, "a string", &v),
            },
        }
    }

    pub fn need_str(&mut self, name: &str) -> Res<String> {
        let value = self.need(name)?;
        match value.as_str() {
            Some(s) => Ok(s.to_string()),
            None => self.wrong(name, "a string", &value),
        }
    }

    /// An integer; `None` where absent or Python's None.
    pub fn take_int(&mut self, name: &str) -> Res<Option<i128>> {
        match self.take(name) {
            None => Ok(None),
            Some(v) if kind(&v) == Kind::None => Ok(None),
            Some(v) => match as_int(&v) {
                Some(i) => Ok(Some(i)),
                None => self.wrong(name, "an integer", &v),
            },
        }
    }

    pub fn take_bool(&mut self, name: &str, fallback: bool) -> bool {
        self.take(name).map_or(fallback, |v| v.is_true())
    }

    /// Escapes all text that is not Markup: what methods of Markup do with their arguments.
    pub fn escape_text(&mut self) {
        let all = self.positional.iter_mut().chain(self.keywords.iter_mut().map(|(_, v)| v));
        for value in all {
            if let Some(s) = value.as_str() {
                *value = Value::from_safe_string(escaped(value, s));
            }
        }
    }

    /// Escapes the items of the first argument: what Markup.join() does.
    pub fn escape_items(&mut self) -> Res<()> {
        if let Some(first) = self.positional.first_mut() {
            let escape = |v: Value| match v.as_str() {
                Some(s) => Value::from_safe_string(escaped(&v, s)),
                None => v,
            };
            *first = list(items(first)?.into_iter().map(escape).collect())?;
        }
        Ok(())
    }

    /// All positional arguments that are left.
    pub fn rest(&mut self) -> Vec<Value> {
        let rest = self.positional.get(self.next..).unwrap_or_default().to_vec();
        self.next = self.positional.len();
        rest
    }

    pub fn keywords(&mut self) -> Vec<(String, Value)> {
        std::mem::take(&mut self.keywords)
    }

    pub fn finish(self) -> Res<()> {
        if self.next < self.positional.len() {
            return fail(format!("{}() takes at most {} arguments", self.callee, self.next));
        }
        match self.keywords.first() {
            Some((name, _)) => {
                fail(format!("{}() got an unexpected keyword argument '{name}'", self.callee))
            }
            None => Ok(()),
        }
    }

    fn wrong<T>(&self, name: &str, expected: &str, got: &Value) -> Res<T> {
        let callee = &self.callee;
        fail(format!("{callee}(): '{name}' must be {expected}, not '{}'", type_name(got)))
    }
}
