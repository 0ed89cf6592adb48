// SPDX-License-Identifier: Apache-2.0
//! Turns minijinja's syntax tree into one whose operators are calls of ours.
//!
//! Why: minijinja evaluates operators, literals and look-ups with its own rules (Euclidean //,
//! lists for tuples, lazy slices, no limit on what `~` and `*` build). Operators cannot be
//! overridden, so each becomes a call of a hidden global function (env.rs) with Python's rules and
//! our limits. Parsing, scopes, loops, macros and the instruction loop stay minijinja's.

use minijinja::machinery::ast::{
    self, BinOpKind, CallArg, CompareOpKind, Expr, Spanned, Stmt, UnaryOpKind,
};
use minijinja::machinery::Span;
use minijinja::Value;

use super::meter;

pub struct Rewriter<'a> {
    source: &'a str,
    /// The first thing that Jinja would refuse while compiling.
    failure: Option<String>,
    /// A macro uses `varargs` or `kwargs`: calls bind their arguments themselves.
    pub binds_calls: bool,
}

type Exprs<'a> = Vec<Expr<'a>>;

fn var<'a>(id: &'a str, span: Span) -> Expr<'a> {
    Expr::Var(Spanned::new(ast::Var { id }, span))
}

fn constant<'a>(value: Value, span: Span) -> Expr<'a> {
    Expr::Const(Spanned::new(ast::Const { value }, span))
}

fn none<'a>(span: Span) -> Expr<'a> {
    constant(Value::from(()), span)
}

/// Whether a break or continue in these statements leaves a loop outside of them.
fn leaves_loop(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match stmt {
        Stmt::Break(_) | Stmt::Continue(_) => true,
        Stmt::IfCond(s) => leaves_loop(&s.true_body) || leaves_loop(&s.false_body),
        Stmt::WithBlock(s) => leaves_loop(&s.body),
        Stmt::ForLoop(s) => leaves_loop(&s.else_body),
        _ => false,
    })
}

/// Whether a break or continue would leave captured output behind.
fn captures_leave_loop(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::SetBlock(s) => leaves_loop(&s.body),
        Stmt::FilterBlock(s) => leaves_loop(&s.body),
        Stmt::AutoEscape(s) => leaves_loop(&s.body),
        Stmt::ForLoop(s) => leaves_loop(&s.else_body),
        _ => false,
    }
}

impl<'a> Rewriter<'a> {
    pub fn new(source: &'a str) -> Self {
        let binds_calls = source.contains("varargs") || source.contains("kwargs");
        Rewriter { source, failure: None, binds_calls }
    }

    /// The rewritten tree, or what Jinja would say against it.
    pub fn template(mut self, tree: &Stmt<'a>) -> Result<Stmt<'a>, String> {
        let tree = self.stmt(tree);
        self.failure.map_or(Ok(tree), Err)
    }

    fn refuse(&mut self, message: String) {
        self.failure.get_or_insert(message);
    }

    fn call(&mut self, name: &'a str, args: Exprs<'a>, span: Span) -> Expr<'a> {
        if args.len() > meter::MAX_ARGUMENTS {
            self.refuse(format!("more than {} items in one expression", meter::MAX_ARGUMENTS));
            return none(span);
        }
        let args = args.into_iter().map(CallArg::Pos).collect();
        Expr::Call(Spanned::new(ast::Call { expr: var(name, span), args }, span))
    }

    fn body(&mut self, body: &[Stmt<'a>]) -> Vec<Stmt<'a>> {
        body.iter().map(|s| self.stmt(s)).collect()
    }

    fn stmt(&mut self, stmt: &Stmt<'a>) -> Stmt<'a> {
        if captures_leave_loop(stmt) {
            self.refuse("break and continue cannot leave a set, filter or else block".into());
        }
        match stmt {
            Stmt::Template(s) => {
                let children = self.body(&s.children);
                Stmt::Template(Spanned::new(ast::Template { children }, s.span()))
            }
            Stmt::EmitExpr(s) => {
                let expr = self.expr(&s.expr);
                Stmt::EmitExpr(Spanned::new(ast::EmitExpr { expr }, s.span()))
            }
            // Raw text goes through the formatter too, where output is counted.
            Stmt::EmitRaw(s) => {
                let expr = constant(Value::from(s.raw), s.span());
                Stmt::EmitExpr(Spanned::new(ast::EmitExpr { expr }, s.span()))
            }
            Stmt::ForLoop(s) => self.for_loop(s),
            Stmt::IfCond(s) => Stmt::IfCond(Spanned::new(
                ast::IfCond {
                    expr: self.expr(&s.expr),
                    true_body: self.body(&s.true_body),
                    false_body: self.body(&s.false_body),
                },
                s.span(),
            )),
            Stmt::WithBlock(s) => self.with_block(s),
            Stmt::Set(s) => {
                let mut expr = self.expr(&s.expr);
                if matches!(s.target, Expr::GetAttr(_)) {
                    expr = self.call("__for_namespace", vec![expr], s.span());
                }
                Stmt::Set(Spanned::new(ast::Set { target: self.target(&s.target), expr }, s.span()))
            }
            Stmt::SetBlock(s) => Stmt::SetBlock(Spanned::new(
                ast::SetBlock {
                    target: self.target(&s.target),
                    filter: s.filter.as_ref().map(|f| self.expr(f)),
                    body: self.body(&s.body),
                },
                s.span(),
            )),
            Stmt::AutoEscape(s) => Stmt::AutoEscape(Spanned::new(
                ast::AutoEscape { enabled: self.expr(&s.enabled), body: self.body(&s.body) },
                s.span(),
            )),
            Stmt::FilterBlock(s) => Stmt::FilterBlock(Spanned::new(
                ast::FilterBlock { filter: self.expr(&s.filter), body: self.body(&s.body) },
                s.span(),
            )),
            Stmt::Block(s) => Stmt::Block(Spanned::new(
                ast::Block { name: s.name, required: s.required, body: self.body(&s.body) },
                s.span(),
            )),
            Stmt::Macro(s) => Stmt::Macro(self.macro_decl(s)),
            Stmt::CallBlock(s) => self.call_block(s),
            Stmt::Continue(s) => Stmt::Continue(Spanned::new(ast::Continue, s.span())),
            Stmt::Break(s) => Stmt::Break(Spanned::new(ast::Break, s.span())),
            // Chat templates stand alone: there is nothing to load, and no `do` extension.
            Stmt::Import(s) => self.unknown_tag("import", s.span()),
            Stmt::FromImport(s) => self.unknown_tag("from", s.span()),
            Stmt::Extends(s) => self.unknown_tag("extends", s.span()),
            Stmt::Include(s) => self.unknown_tag("include", s.span()),
            Stmt::Do(s) => self.unknown_tag("do", s.span()),
        }
    }

    fn unknown_tag(&mut self, name: &str, span: Span) -> Stmt<'a> {
        self.refuse(format!("the tag '{name}' is not supported (line {})", span.start_line));
        Stmt::EmitExpr(Spanned::new(ast::EmitExpr { expr: none(span) }, span))
    }

    /// All values are computed before the first name is set, as one tuple: minijinja would let a
    /// later value see an earlier name.
    fn with_block(&mut self, s: &Spanned<ast::WithBlock<'a>>) -> Stmt<'a> {
        let span = s.span();
        let mut assignments = Vec::new();
        if let [(target, expr)] = s.assignments.as_slice() {
            assignments.push((self.target(target), self.expr(expr)));
        } else if !s.assignments.is_empty() {
            let items = s.assignments.iter().map(|(t, _)| self.target(t)).collect();
            let values = s.assignments.iter().map(|(_, e)| self.expr(e)).collect();
            let target = Expr::List(Spanned::new(ast::List { items }, span));
            assignments.push((target, self.call("__tuple", values, span)));
        }
        let mut body = self.body(&s.body);
        if !leaves_loop(&s.body) {
            return Stmt::WithBlock(Spanned::new(ast::WithBlock { assignments, body }, span));
        }
        // minijinja's break and continue do not close the scope of a with block, so the block
        // becomes statements of the loop body: its names live until the next round.
        let sets = assignments
            .into_iter()
            .map(|(target, expr)| Stmt::Set(Spanned::new(ast::Set { target, expr }, span)));
        let true_body = sets.chain(body.drain(..)).collect();
        let expr = constant(Value::from(true), span);
        Stmt::IfCond(Spanned::new(ast::IfCond { expr, true_body, false_body: Vec::new() }, span))
    }

    fn for_loop(&mut self, s: &Spanned<ast::ForLoop<'a>>) -> Stmt<'a> {
        let iter = self.expr(&s.iter);
        let unpacks = matches!(s.target, Expr::List(_));
        let iterate = if unpacks { "__iterate_unpacking" } else { "__iterate" };
        Stmt::ForLoop(Spanned::new(
            ast::ForLoop {
                target: self.target(&s.target),
                iter: self.call(iterate, vec![iter], s.iter.span()),
                filter_expr: s.filter_expr.as_ref().map(|f| self.expr(f)),
                recursive: s.recursive,
                body: self.body(&s.body),
                else_body: self.body(&s.else_body),
            },
            s.span(),
        ))
    }

    fn macro_decl(&mut self, s: &Spanned<ast::Macro<'a>>) -> Spanned<ast::Macro<'a>> {
        let mut args: Exprs = s.args.iter().map(|a| self.target(a)).collect();
        let mut defaults: Exprs = s.defaults.iter().map(|d| self.expr(d)).collect();
        let mut body = self.body(&s.body);
        if defaults.iter().any(|d| !matches!(d, Expr::Const(_))) {
            // minijinja computes the last default first; a default may use an earlier argument.
            let first = s.args.len() - defaults.len();
            let late = s.args[first..].iter().zip(defaults.drain(..));
            let mut prelude: Vec<Stmt> =
                late.map(|(arg, d)| self.default_if_missing(arg, d)).collect();
            prelude.append(&mut body);
            body = prelude;
        }
        if self.binds_calls {
            // Hidden trailing parameters; __call fills them.
            for name in ["varargs", "kwargs"] {
                args.push(var(name, s.span()));
                if !defaults.is_empty() {
                    defaults.push(none(s.span()));
                }
            }
        }
        Spanned::new(ast::Macro { name: s.name, args, defaults, body }, s.span())
    }

    /// {% if arg is undefined %}{% set arg = default %}{% endif %}
    fn default_if_missing(&mut self, arg: &Expr<'a>, default: Expr<'a>) -> Stmt<'a> {
        let span = arg.span();
        let missing = ast::Test { name: "undefined", expr: self.target(arg), args: Vec::new() };
        let set = ast::Set { target: self.target(arg), expr: default };
        Stmt::IfCond(Spanned::new(
            ast::IfCond {
                expr: Expr::Test(Spanned::new(missing, span)),
                true_body: vec![Stmt::Set(Spanned::new(set, span))],
                false_body: Vec::new(),
            },
            span,
        ))
    }

    fn call_block(&mut self, s: &Spanned<ast::CallBlock<'a>>) -> Stmt<'a> {
        let span = s.call.span();
        let call = match self.call_expr(&s.call) {
            Expr::Call(call) => call,
            _ => {
                self.refuse("a call block needs a call".into());
                Spanned::new(ast::Call { expr: none(span), args: Vec::new() }, span)
            }
        };
        let macro_decl = self.macro_decl(&s.macro_decl);
        Stmt::CallBlock(Spanned::new(ast::CallBlock { call, macro_decl }, s.span()))
    }

    /// What stands left of an assignment is copied as it is.
    fn target(&mut self, expr: &Expr<'a>) -> Expr<'a> {
        match expr {
            Expr::Var(v) => var(v.id, v.span()),
            Expr::List(l) => {
                let items = l.items.iter().map(|i| self.target(i)).collect();
                Expr::List(Spanned::new(ast::List { items }, l.span()))
            }
            Expr::GetAttr(g) => {
                let expr = self.target(&g.expr);
                Expr::GetAttr(Spanned::new(ast::GetAttr { expr, name: g.name }, g.span()))
            }
            other => {
                self.refuse("can't assign to this expression".into());
                none(other.span())
            }
        }
    }

    fn exprs(&mut self, exprs: &[Expr<'a>]) -> Exprs<'a> {
        exprs.iter().map(|e| self.expr(e)).collect()
    }

    fn expr(&mut self, expr: &Expr<'a>) -> Expr<'a> {
        let span = expr.span();
        match expr {
            Expr::Var(v) => var(v.id, span),
            Expr::Const(c) => constant(c.value.clone(), span),
            Expr::Slice(s) => {
                let mut args = vec![self.expr(&s.expr)];
                for bound in [&s.start, &s.stop, &s.step] {
                    args.push(bound.as_ref().map_or_else(|| none(span), |b| self.expr(b)));
                }
                self.call("__slice", args, span)
            }
            Expr::UnaryOp(u) => self.unary(u),
            Expr::BinOp(b) => self.binary(b),
            Expr::Compare(c) => self.comparison(c),
            Expr::IfExpr(i) => Expr::IfExpr(Spanned::new(
                ast::IfExpr {
                    test_expr: self.expr(&i.test_expr),
                    true_expr: self.expr(&i.true_expr),
                    false_expr: i.false_expr.as_ref().map(|f| self.expr(f)),
                },
                span,
            )),
            Expr::Filter(f) => Expr::Filter(Spanned::new(
                ast::Filter {
                    name: f.name,
                    expr: f.expr.as_ref().map(|e| self.expr(e)),
                    args: self.args(&f.args),
                },
                span,
            )),
            Expr::Test(t) => Expr::Test(Spanned::new(
                ast::Test { name: t.name, expr: self.expr(&t.expr), args: self.args(&t.args) },
                span,
            )),
            Expr::GetAttr(g) => {
                let name = constant(Value::from(g.name), span);
                self.postfix(&g.expr, "__attribute", vec![name], span)
            }
            Expr::GetItem(g) => {
                let key = self.expr(&g.subscript_expr);
                self.postfix(&g.expr, "__item", vec![key], span)
            }
            Expr::Call(c) => self.call_expr(c),
            Expr::List(l) => {
                let items = self.exprs(&l.items);
                let bracket = self.source.as_bytes().get(span.start_offset as usize) == Some(&b'[');
                self.call(if bracket { "__list" } else { "__tuple" }, items, span)
            }
            Expr::Map(m) => {
                let mut items = Vec::with_capacity(2 * m.keys.len());
                for (key, value) in m.keys.iter().zip(&m.values) {
                    items.push(self.expr(key));
                    items.push(self.expr(value));
                }
                self.call("__dict", items, span)
            }
        }
    }

    /// `-x.y` and `-x[y]`: minijinja's parser binds the minus closer than the look-up.
    fn postfix(&mut self, base: &Expr<'a>, name: &'a str, rest: Exprs<'a>, span: Span) -> Expr<'a> {
        let (inner, negated) = match base {
            Expr::UnaryOp(u) if matches!(u.op, UnaryOpKind::Neg) => (&u.expr, true),
            _ => (base, false),
        };
        let mut args = vec![self.expr(inner)];
        args.extend(rest);
        let found = self.call(name, args, span);
        if negated {
            self.call("__negate", vec![found], span)
        } else {
            found
        }
    }

    fn unary(&mut self, u: &Spanned<ast::UnaryOp<'a>>) -> Expr<'a> {
        let operand = self.expr(&u.expr);
        match u.op {
            UnaryOpKind::Not => Expr::UnaryOp(Spanned::new(
                ast::UnaryOp { op: UnaryOpKind::Not, expr: operand },
                u.span(),
            )),
            UnaryOpKind::Neg => self.call("__negate", vec![operand], u.span()),
        }
    }

    fn binary(&mut self, b: &Spanned<ast::BinOp<'a>>) -> Expr<'a> {
        let (left, right) = (self.expr(&b.left), self.expr(&b.right));
        let name = match b.op {
            BinOpKind::ScAnd | BinOpKind::ScOr => return self.logic(b.op, left, right, b.span()),
            BinOpKind::Eq => "__eq",
            BinOpKind::Ne => "__ne",
            BinOpKind::Lt => "__lt",
            BinOpKind::Lte => "__le",
            BinOpKind::Gt => "__gt",
            BinOpKind::Gte => "__ge",
            BinOpKind::In => "__in",
            BinOpKind::Add => "__add",
            BinOpKind::Sub => "__sub",
            BinOpKind::Mul => "__mul",
            BinOpKind::Div => "__div",
            BinOpKind::FloorDiv => "__floor_div",
            BinOpKind::Rem => "__modulo",
            BinOpKind::Pow => "__pow",
            BinOpKind::Concat => "__concat",
        };
        self.call(name, vec![left, right], b.span())
    }

    /// minijinja folds `and` of constants to a boolean; Python gives one of the two values.
    fn logic(&mut self, op: BinOpKind, left: Expr<'a>, right: Expr<'a>, span: Span) -> Expr<'a> {
        match left.as_const().map(|v| v.is_true() == matches!(op, BinOpKind::ScAnd)) {
            Some(true) => right,
            Some(false) => left,
            None => Expr::BinOp(Spanned::new(ast::BinOp { op, left, right }, span)),
        }
    }

    fn comparison(&mut self, c: &Spanned<ast::Compare<'a>>) -> Expr<'a> {
        let mut args = vec![self.expr(&c.expr)];
        for step in &c.ops {
            let op = match step.op {
                CompareOpKind::Eq => "__eq",
                CompareOpKind::Ne => "__ne",
                CompareOpKind::Lt => "__lt",
                CompareOpKind::Lte => "__le",
                CompareOpKind::Gt => "__gt",
                CompareOpKind::Gte => "__ge",
                CompareOpKind::In => "__in",
                CompareOpKind::NotIn => "not in",
            };
            args.push(constant(Value::from(op), c.span()));
            args.push(self.expr(&step.expr));
        }
        self.call("__compare", args, c.span())
    }

    fn args(&mut self, args: &[CallArg<'a>]) -> Vec<CallArg<'a>> {
        args.iter()
            .map(|arg| match arg {
                CallArg::Pos(e) => CallArg::Pos(self.expr(e)),
                CallArg::Kwarg(name, e) => CallArg::Kwarg(name, self.expr(e)),
                CallArg::PosSplat(e) => {
                    let all = self.expr(e);
                    CallArg::PosSplat(self.call("__iterate", vec![all], e.span()))
                }
                CallArg::KwargSplat(e) => CallArg::KwargSplat(self.expr(e)),
            })
            .collect()
    }

    fn call_expr(&mut self, c: &Spanned<ast::Call<'a>>) -> Expr<'a> {
        let span = c.span();
        let mut args = self.args(&c.args);
        let callee = match &c.expr {
            Expr::Var(v) if v.id == "loop" => {
                // minijinja jumps back into the loop, and only for this form.
                if let Some(CallArg::Pos(all)) = args.pop() {
                    args.push(CallArg::Pos(self.call("__iterate", vec![all], span)));
                }
                var(v.id, span)
            }
            Expr::Var(v) if self.binds_calls && !matches!(v.id, "super" | "namespace") => {
                let name = constant(Value::from(v.id), span);
                let mut bound = vec![CallArg::Pos(var(v.id, span)), CallArg::Pos(name)];
                bound.append(&mut args);
                args = bound;
                var("__call", span)
            }
            Expr::Var(v) => var(v.id, span),
            Expr::GetAttr(g) if matches!(&g.expr, Expr::Var(v) if v.id == "self") => Expr::GetAttr(
                Spanned::new(ast::GetAttr { expr: var("self", span), name: g.name }, span),
            ),
            Expr::GetAttr(g) => {
                let name = constant(Value::from(g.name), span);
                let mut bound = vec![CallArg::Pos(self.expr(&g.expr)), CallArg::Pos(name)];
                bound.append(&mut args);
                args = bound;
                var("__method", span)
            }
            other => self.expr(other),
        };
        Expr::Call(Spanned::new(ast::Call { expr: callee, args }, span))
    }
}
