// SPDX-License-Identifier: Apache-2.0
//! Python's containers as minijinja objects. They are immutable, as in transformers' sandbox, and
//! know their nesting, so that no template builds one that is too deep to print or drop.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

use super::meter;
use super::methods;

pub type Res<T = Value> = Result<T, Error>;

pub fn fail<T>(message: impl Into<String>) -> Res<T> {
    Err(Error::new(ErrorKind::InvalidOperation, message.into()))
}

/// What Python would call the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Undefined,
    None,
    Bool,
    Int,
    Float,
    Str,
    List,
    Tuple,
    View,
    Range,
    Generator,
    Dict,
    Namespace,
    Method,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    List,
    Tuple,
    Keys,
    Values,
    Items,
    Range,
    /// Python's iterators: truthy, without length, read once.
    Generator,
}

#[derive(Clone, Copy, Debug, Default)]
struct Weight {
    depth: u32,
    holds_namespace: bool,
}

#[derive(Debug)]
pub struct Seq {
    pub items: Vec<Value>,
    pub shape: Shape,
    weight: Weight,
    /// How a range prints.
    pub label: String,
    /// Items of a generator that are consumed.
    cursor: AtomicUsize,
}

#[derive(Debug)]
pub struct Dict {
    entries: Vec<(Value, Value)>,
    index: HashMap<Value, usize>,
    weight: Weight,
}

/// `value.name` of a method that is not called yet.
#[derive(Debug)]
pub struct Method {
    pub receiver: Value,
    pub name: String,
}

fn weight_of(value: &Value) -> Weight {
    if let Some(seq) = value.downcast_object_ref::<Seq>() {
        seq.weight
    } else if let Some(dict) = value.downcast_object_ref::<Dict>() {
        dict.weight
    } else if let Some(method) = value.downcast_object_ref::<Method>() {
        let inner = weight_of(&method.receiver);
        Weight { depth: inner.depth + 1, ..inner }
    } else {
        Weight { depth: 0, holds_namespace: kind(value) == Kind::Namespace }
    }
}

fn weigh<'a>(items: impl Iterator<Item = &'a Value>) -> Res<Weight> {
    let mut all = Weight::default();
    for item in items {
        let one = weight_of(item);
        all.depth = all.depth.max(one.depth);
        all.holds_namespace |= one.holds_namespace;
    }
    all.depth += 1;
    if all.depth > meter::MAX_VALUE_DEPTH {
        return Err(meter::exhausted(format!(
            "template nests lists deeper than {}",
            meter::MAX_VALUE_DEPTH
        )));
    }
    Ok(all)
}

/// Whether a namespace sits inside: storing such a value in a namespace could make a cycle.
pub fn holds_namespace(value: &Value) -> bool {
    weight_of(value).holds_namespace
}

/// Makes a sequence of a shape; counts its items as work.
pub fn seq(shape: Shape, items: Vec<Value>) -> Res {
    labelled(shape, items, String::new())
}

pub fn labelled(shape: Shape, items: Vec<Value>, label: String) -> Res {
    meter::charge_value(items.len() * std::mem::size_of::<Value>())?;
    let weight = weigh(items.iter())?;
    Ok(Value::from_object(Seq { items, shape, weight, label, cursor: AtomicUsize::new(0) }))
}

pub fn list(items: Vec<Value>) -> Res {
    seq(Shape::List, items)
}

pub fn tuple(items: Vec<Value>) -> Res {
    seq(Shape::Tuple, items)
}

pub fn generator(items: Vec<Value>) -> Res {
    seq(Shape::Generator, items)
}

/// Makes text; counts its bytes as work.
pub fn text(s: String) -> Res {
    meter::charge_value(s.len())?;
    Ok(Value::from(s))
}

/// Markup: text that counts as escaped already. What joins it is escaped (`'<'|safe + '&'`).
pub fn markup(s: String) -> Res {
    meter::charge_value(s.len())?;
    Ok(Value::from_safe_string(s))
}

/// `value`, as Markup if `model` is Markup.
pub fn same_safety(model: &Value, value: Value) -> Value {
    match value.as_str() {
        Some(s) if model.is_safe() => Value::from_safe_string(s.to_string()),
        _ => value,
    }
}

/// Text for HTML, as markupsafe escapes it; Markup stays as it is.
pub fn escaped(value: &Value, s: &str) -> String {
    if value.is_safe() {
        return s.to_string();
    }
    let mut out = String::with_capacity(s.len());
    for c in s.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// What Python hashes: True, 1 and 1.0 are one key.
pub fn hash_key(key: &Value) -> Value {
    match kind(key) {
        Kind::Bool => int(i128::from(key.is_true())),
        Kind::Float => match as_float(key) {
            Some(x) if x.fract() == 0.0 && x.abs() < 1e18 => int(x as i128),
            _ => key.clone(),
        },
        _ => key.clone(),
    }
}

fn hashable(key: &Value) -> Res<()> {
    match kind(key) {
        Kind::List | Kind::Dict | Kind::View => {
            fail(format!("unhashable type: '{}'", type_name(key)))
        }
        Kind::Tuple if weight_of(key).depth > 3 => fail("tuple is nested too deep for a key"),
        _ => Ok(()),
    }
}

/// Makes a dict; a later value of an equal key replaces the earlier one in place.
pub fn dict(pairs: Vec<(Value, Value)>) -> Res {
    meter::charge_value(pairs.len() * 2 * std::mem::size_of::<Value>())?;
    let mut index = HashMap::with_capacity(pairs.len());
    let mut entries: Vec<(Value, Value)> = Vec::with_capacity(pairs.len());
    for (key, value) in pairs {
        hashable(&key)?;
        match index.get(&hash_key(&key)) {
            Some(&at) => {
                let slot: &mut (Value, Value) = &mut entries[at];
                slot.1 = value;
            }
            None => {
                index.insert(hash_key(&key), entries.len());
                entries.push((key, value));
            }
        }
    }
    let weight = weigh(entries.iter().flat_map(|(k, v)| [k, v]))?;
    Ok(Value::from_object(Dict { entries, index, weight }))
}

impl Dict {
    pub fn get(&self, key: &Value) -> Option<&Value> {
        if hashable(key).is_err() {
            return None;
        }
        self.index.get(&hash_key(key)).map(|&at| &self.entries[at].1)
    }
    pub fn entries(&self) -> &[(Value, Value)] {
        &self.entries
    }
}

impl Seq {
    /// The items that are left: all, or for a generator those not yet consumed, consuming them.
    pub fn take(&self) -> &[Value] {
        if self.shape != Shape::Generator {
            return &self.items;
        }
        let from = self.cursor.swap(self.items.len(), Ordering::Relaxed).min(self.items.len());
        &self.items[from..]
    }
    /// The next item; consumes it from a generator.
    pub fn next(&self) -> Option<Value> {
        if self.shape != Shape::Generator {
            return self.items.first().cloned();
        }
        let at = self.cursor.fetch_add(1, Ordering::Relaxed);
        self.items.get(at).cloned()
    }
}

impl Object for Seq {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.items.get(key.as_usize()?).cloned()
    }
    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.items.len())
    }
    fn is_true(self: &Arc<Self>) -> bool {
        self.shape == Shape::Generator || !self.items.is_empty()
    }
}

impl Object for Dict {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get(key).cloned()
    }
    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.entries.iter().map(|(k, _)| k.clone()).collect())
    }
    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.entries.len())
    }
}

impl Object for Method {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }
    fn is_true(self: &Arc<Self>) -> bool {
        true
    }
    fn call(self: &Arc<Self>, _state: &State, args: &[Value]) -> Res {
        methods::call(&self.receiver, &self.name, args)
    }
}

fn is_foreign(value: &Value, name: &str) -> bool {
    value.as_object().is_some_and(|o| o.type_name().ends_with(name))
}

pub fn is_loop(value: &Value) -> bool {
    is_foreign(value, "::Loop")
}

pub fn is_macro(value: &Value) -> bool {
    is_foreign(value, "::Macro")
}

pub fn kind(value: &Value) -> Kind {
    match value.kind() {
        ValueKind::Undefined => Kind::Undefined,
        ValueKind::None => Kind::None,
        ValueKind::Bool => Kind::Bool,
        ValueKind::Number if value.is_integer() => Kind::Int,
        ValueKind::Number => Kind::Float,
        ValueKind::String => Kind::Str,
        _ => {
            if let Some(seq) = value.downcast_object_ref::<Seq>() {
                return match seq.shape {
                    Shape::List => Kind::List,
                    Shape::Tuple => Kind::Tuple,
                    Shape::Range => Kind::Range,
                    Shape::Generator => Kind::Generator,
                    _ => Kind::View,
                };
            }
            if value.downcast_object_ref::<Dict>().is_some() {
                return Kind::Dict;
            }
            if value.downcast_object_ref::<Method>().is_some() {
                return Kind::Method;
            }
            if is_foreign(value, "::Namespace") {
                return Kind::Namespace;
            }
            Kind::Other
        }
    }
}

/// Python's name of the type, for messages.
pub fn type_name(value: &Value) -> &'static str {
    match kind(value) {
        Kind::Undefined => "Undefined",
        Kind::None => "NoneType",
        Kind::Bool => "bool",
        Kind::Int => "int",
        Kind::Float => "float",
        Kind::Str => "str",
        Kind::List => "list",
        Kind::Tuple => "tuple",
        Kind::View => match value.downcast_object_ref::<Seq>().map(|s| s.shape) {
            Some(Shape::Keys) => "dict_keys",
            Some(Shape::Values) => "dict_values",
            _ => "dict_items",
        },
        Kind::Range => "range",
        Kind::Generator => "generator",
        Kind::Dict => "dict",
        Kind::Namespace => "Namespace",
        Kind::Method => "builtin_function_or_method",
        Kind::Other if is_loop(value) => "LoopContext",
        Kind::Other if is_macro(value) => "Macro",
        Kind::Other => "object",
    }
}

/// An integer as Python sees it: booleans count.
pub fn as_int(value: &Value) -> Option<i128> {
    match kind(value) {
        Kind::Bool => Some(i128::from(value.is_true())),
        Kind::Int => i128::try_from(value.clone()).ok(),
        _ => None,
    }
}

/// A number as float: integers and booleans convert.
pub fn as_float(value: &Value) -> Option<f64> {
    match kind(value) {
        Kind::Float => f64::try_from(value.clone()).ok(),
        _ => as_int(value).map(|i| i as f64),
    }
}

/// An integer value in the narrowest form, which is how minijinja makes its own.
pub fn int(i: i128) -> Value {
    match i64::try_from(i) {
        Ok(small) => Value::from(small),
        Err(_) => Value::from(i),
    }
}

/// The items that iteration gives; consumes a generator. None where Python says "not iterable".
pub fn try_items(value: &Value) -> Option<Vec<Value>> {
    if let Some(seq) = value.downcast_object_ref::<Seq>() {
        return Some(seq.take().to_vec());
    }
    if let Some(dict) = value.downcast_object_ref::<Dict>() {
        return Some(dict.entries.iter().map(|(k, _)| k.clone()).collect());
    }
    match kind(value) {
        Kind::Str => value.as_str().map(|s| s.chars().map(char_value).collect()),
        Kind::Undefined => Some(Vec::new()),
        // Keyword maps of minijinja (`kwargs` of a call) and what only it makes.
        Kind::Other if !is_loop(value) && !is_macro(value) => value
            .as_object()
            .filter(|o| o.repr() != ObjectRepr::Plain)?
            .try_iter()
            .map(Iterator::collect),
        _ => None,
    }
}

pub fn items(value: &Value) -> Res<Vec<Value>> {
    let items = match try_items(value) {
        Some(items) => items,
        None => return fail(format!("'{}' object is not iterable", type_name(value))),
    };
    meter::charge(items.len() * std::mem::size_of::<Value>())?;
    Ok(items)
}

pub fn char_value(c: char) -> Value {
    let mut buffer = [0u8; 4];
    Value::from(&*c.encode_utf8(&mut buffer))
}

/// len(): None where Python says that the type has none.
pub fn length(value: &Value) -> Option<usize> {
    match kind(value) {
        Kind::Str => value.as_str().map(|s| s.chars().count()),
        Kind::Undefined => Some(0),
        Kind::Dict => value.downcast_object_ref::<Dict>().map(|d| d.entries.len()),
        Kind::List | Kind::Tuple | Kind::View | Kind::Range => {
            value.downcast_object_ref::<Seq>().map(|s| s.items.len())
        }
        Kind::Other => value.len(),
        _ => None,
    }
}
