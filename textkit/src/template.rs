// SPDX-License-Identifier: Apache-2.0
//! Chat templates (`textkit_template.h`): minijinja with the environment and the value semantics
//! that transformers' templates are written for.
//!
//! In reading order: `source` (text before parsing), `rewrite` (operators become calls), `env`
//! (filters, tests, functions), `value` (Python's containers), `ops` / `compare` / `access`
//! (operators), `repr` (printing), `meter` (limits).

mod access;
mod args;
mod chars;
mod checks;
mod compare;
mod env;
mod filters;
mod functions;
mod json_in;
pub mod meter;
mod methods;
mod ops;
mod repr;
mod rewrite;
mod source;
mod str_format;
mod str_methods;
mod strftime;
mod text_filters;
mod tojson;
mod value;

use std::collections::BTreeMap;

use minijinja::machinery::{
    make_string_output, parse, CodeGenerator, Instructions, Vm, WhitespaceConfig,
};
use minijinja::{AutoEscape, ErrorKind, Value};

use crate::abi::{borrow, guard, put, Buffer, Error, Result, Slice};

/// A checked template: the prepared source, compiled anew for each render.
pub struct Template {
    source: String,
}

const NAME: &str = "chat_template";

type Compiled<'s> = (Instructions<'s>, BTreeMap<&'s str, Instructions<'s>>);

fn compile(source: &str) -> Result<Compiled<'_>> {
    let whitespace =
        WhitespaceConfig { keep_trailing_newline: false, lstrip_blocks: true, trim_blocks: true };
    let tree = parse(source, NAME, Default::default(), whitespace).map_err(explain)?;
    let tree = rewrite::Rewriter::new(source)
        .template(&tree)
        .map_err(|reason| Error::invalid(format!("template: {reason}")))?;
    let mut generator = CodeGenerator::new(NAME, source);
    generator.compile_stmt(&tree);
    Ok(generator.finish())
}

impl Template {
    pub fn parse(source: &str) -> Result<Template> {
        if source.len() > meter::MAX_SOURCE_BYTES {
            return Err(Error::exhausted(format!(
                "template has {} bytes; the limit is {}",
                source.len(),
                meter::MAX_SOURCE_BYTES
            )));
        }
        let source = source::prepare(source);
        compile(&source)?;
        Ok(Template { source })
    }

    /// Renders a request: a JSON object with "messages", "tools", "documents",
    /// "add_generation_prompt" and "vars" (see `textkit_template.h`).
    pub fn render(&self, request: &str, now_unix_seconds: i64) -> Result<String> {
        meter::start(now_unix_seconds);
        let request = json_in::parse(request).map_err(explain)?;
        self.render_root(variables(&request)?)
    }

    fn render_root(&self, root: Value) -> Result<String> {
        let (instructions, blocks) = compile(&self.source)?;
        let mut text = String::new();
        let mut output = make_string_output(&mut text);
        let vm = Vm::new(env::environment());
        let outcome = vm.eval(&instructions, root, &blocks, &mut output, AutoEscape::None);
        match outcome {
            Ok(_) => {
                drop(output);
                Ok(text)
            }
            Err(error) => Err(explain(error)),
        }
    }
}

/// The variables of a request, as transformers passes them: tools and documents are None when
/// absent, add_generation_prompt is false.
fn variables(request: &Value) -> Result<Value> {
    let Some(request) = request.downcast_object_ref::<value::Dict>() else {
        return Err(Error::invalid("a render request must be a JSON object"));
    };
    let mut all: Vec<(Value, Value)> = vec![
        ("add_generation_prompt".into(), false.into()),
        ("tools".into(), ().into()),
        ("documents".into(), ().into()),
    ];
    let mut vars = None;
    for (key, given) in request.entries() {
        match key.as_str().unwrap_or_default() {
            "messages" | "tools" | "documents" | "add_generation_prompt" => {
                if !given.is_none() {
                    all.push((key.clone(), given.clone()));
                }
            }
            // The time travels beside the request (`now_unix_seconds`).
            "now" => {}
            "vars" if given.is_none() => {}
            "vars" => vars = Some(given.clone()),
            other => {
                return Err(Error::invalid(format!(
                    "unknown member '{other}' of a render request; known are messages, tools, \
                     documents, add_generation_prompt, vars, now"
                )))
            }
        }
    }
    if let Some(vars) = vars {
        let Some(vars) = vars.downcast_object_ref::<value::Dict>() else {
            return Err(Error::invalid("'vars' must be a JSON object"));
        };
        for (key, given) in vars.entries() {
            if request.get(key).is_some_and(|v| !v.is_none()) && key.as_str() != Some("vars") {
                return Err(Error::invalid(format!("'{key}' is given twice, also in 'vars'")));
            }
            all.push((key.clone(), given.clone()));
        }
    }
    value::dict(all).map_err(explain)
}

/// The error in words for people, classed by whose fault it is.
fn explain(error: minijinja::Error) -> Error {
    match meter::verdict() {
        meter::Verdict::Raised(message) => return Error::invalid(message),
        meter::Verdict::Exhausted(message) => return Error::exhausted(message),
        meter::Verdict::Other => {}
    }
    if error.kind() == ErrorKind::OutOfFuel {
        return Error::exhausted(format!("template runs for more than {} steps", meter::MAX_FUEL));
    }
    let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_string);
    if detail.contains("recursion limit") {
        return Error::exhausted(format!("template recurses deeper than {}", meter::MAX_RECURSION));
    }
    match error.line() {
        Some(line) => Error::invalid(format!("template line {line}: {detail}")),
        None => Error::invalid(format!("template: {detail}")),
    }
}

/// # Safety
/// See `textkit_template.h`.
#[no_mangle]
pub unsafe extern "C" fn tk_template_parse(
    source: Slice,
    template: *mut *mut Template,
    error: *mut Buffer,
) -> i32 {
    guard(error, || {
        let parsed = Template::parse(source.text("template")?)?;
        put(template, Box::into_raw(Box::new(parsed)));
        Ok(())
    })
}

/// # Safety
/// See `textkit_template.h`.
#[no_mangle]
pub unsafe extern "C" fn tk_template_render(
    template: *const Template,
    request: Slice,
    now_unix_seconds: i64,
    text: *mut Buffer,
    error: *mut Buffer,
) -> i32 {
    guard(error, || {
        let template = borrow(template, "template")?;
        let rendered = template.render(request.text("request")?, now_unix_seconds)?;
        put(text, rendered.into());
        Ok(())
    })
}

/// # Safety
/// `template` is null or a live handle that no call uses.
#[no_mangle]
pub unsafe extern "C" fn tk_template_free(template: *mut Template) {
    if !template.is_null() {
        drop(Box::from_raw(template));
    }
}

#[cfg(test)]
mod tests;
