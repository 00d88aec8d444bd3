//! Finds every check of a source file and rewrites it into one that asks the switch.
//!
//! What is a check: the condition of an `if`, `while`, match guard or predicate closure; every other
//! expression that is seen to be yes or no; a `let .. else`; a `?` on an option; an arm of a match on
//! constants; a value held within a bound (`min`, `max`, `clamp`). What is done to it: see [`Change`]'s variants. Where types forbid a change (a `let .. else`
//! cannot go on without its value, an error cannot be made up) there is none, and nothing to notice.

use crate::edits::Edits;
use crate::shape::{
    alternatives, flipped, gives_up, is_a_bound, is_bool, is_constant, is_logic, may_come_before, operands, otherwise,
    place, refuses, returns_bool, returns_option, takes_a_predicate,
};
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, Stmt};

/// One check, changed in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// Its number in the switch.
    pub id: u32,
    /// The number by which the switch says that the check was reached.
    pub site: u32,
    /// The source file, from the crate's `src`.
    pub file: String,
    /// The line of the check.
    pub line: usize,
    /// The function it stands in.
    pub function: String,
    /// Its text on one line, numbered if the function has it more than once.
    pub check: String,
    /// What is done to it.
    pub change: Change,
}

/// What is done to a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The condition is never met: a refusal is removed.
    Never,
    /// The condition is always met: everything is refused.
    Always,
    /// A comparison has another sign.
    Sign(&'static str, &'static str),
    /// `&&` for `||`, or the other way round.
    Logic(&'static str, &'static str),
    /// One operand, one alternative of a pattern, or the bound of a value is left out.
    Without(String),
    /// It is asked before the check in front of it: the precedence is wrong.
    Before(String),
    /// What this arm of a match does, another does.
    Arm(String),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("never"),
            Self::Always => f.write_str("always"),
            Self::Sign(old, new) | Self::Logic(old, new) => write!(f, "{old} becomes {new}"),
            Self::Without(what) => write!(f, "without {what}"),
            Self::Before(what) => write!(f, "asked before {what}"),
            Self::Arm(what) => write!(f, "does what {what} does"),
        }
    }
}

/// The functions of a source file that answer yes or no.
///
/// # Errors
/// When it is not Rust.
pub fn asks(source: &str) -> Result<BTreeSet<String>> {
    struct Asks(BTreeSet<String>);
    impl Visit<'_> for Asks {
        fn visit_signature(&mut self, signature: &syn::Signature) {
            if returns_bool(&signature.output) {
                self.0.insert(signature.ident.to_string());
            }
        }
    }
    let mut asks = Asks(BTreeSet::new());
    asks.visit_file(&syn::parse_file(source)?);
    Ok(asks.0)
}

/// A file's mutants, numbered from `next`, and its text with all of them in it.
///
/// # Errors
/// When it is not Rust.
pub fn find(file: &str, source: &str, asks: &BTreeSet<String>, next: &mut u32) -> Result<(Vec<Mutant>, String)> {
    let parsed = syn::parse_file(source).with_context(|| format!("{file} is not Rust"))?;
    let mut finder = Finder {
        file,
        asks,
        edits: Edits::of(source),
        next,
        mutants: Vec::new(),
        function: Vec::new(),
        scope: Scope::Other,
        judged: BTreeSet::new(),
    };
    finder.visit_file(&parsed);
    let mut mutants = finder.mutants;
    let text = finder.edits.finish();
    mutants.sort_by_key(|mutant| (mutant.line, mutant.id));
    let mut met = BTreeMap::new();
    for mutant in &mut mutants {
        let same = (mutant.function.clone(), mutant.check.clone(), mutant.change.to_string());
        let count = met.entry(same).and_modify(|count| *count += 1).or_insert(1);
        if *count > 1 {
            mutant.check = format!("{} ({count})", mutant.check);
        }
    }
    Ok((mutants, text))
}

/// What a `?` or `return None` leaves here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Option,
    Other,
}

struct Finder<'a> {
    file: &'a str,
    asks: &'a BTreeSet<String>,
    edits: Edits<'a>,
    next: &'a mut u32,
    mutants: Vec<Mutant>,
    function: Vec<String>,
    scope: Scope,
    /// Conditions that are judged where they stand, and need no judging of their own.
    judged: BTreeSet<(usize, usize)>,
}

/// The switch, as the rewritten source calls it.
const SWITCH: &str = "crate::interlock_mutants";

impl Finder<'_> {
    /// Mutants of one site, one for each change; the first one's number.
    fn site(&mut self, of: &impl Spanned, check: &str, changes: Vec<Change>) -> u32 {
        let site = *self.next;
        for change in changes {
            self.mutants.push(Mutant {
                id: *self.next,
                site,
                file: self.file.to_owned(),
                line: of.span().start().line,
                function: self.function.join("::"),
                check: check.to_owned(),
                change,
            });
            *self.next += 1;
        }
        site
    }

    fn shown(&self, of: &impl Spanned) -> String {
        one_line(self.edits.written(place(of)))
    }

    /// A condition: never, always, and what its inside has.
    fn condition(&mut self, cond: &Expr, check: &str) {
        let parts = operands(cond);
        if !parts.iter().any(|part| matches!(part, Expr::Let(_))) {
            self.force(cond, check);
            return;
        }
        for part in &parts {
            match part {
                Expr::Let(one) => self.visit_expr(&one.expr),
                other => {
                    self.judge(other);
                    let without = Change::Without(self.shown(other));
                    let id = self.site(other, check, vec![without]);
                    let text = self.edits.take(place(other));
                    self.edits.put(place(other), format!("({SWITCH}::on({id}) || ({text}))"));
                }
            }
        }
        let id = self.site(cond, check, vec![Change::Never]);
        self.edits.before(place(cond).start, format!("{SWITCH}::pass({id}) && "));
    }

    /// Visits a condition, which needs no judging of its own.
    fn judge(&mut self, cond: &Expr) {
        let mut inner = cond;
        loop {
            let at = place(inner);
            self.judged.insert((at.start, at.end));
            inner = match inner {
                Expr::Paren(paren) => &paren.expr,
                Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Not(_)) => &unary.expr,
                _ => break,
            };
        }
        self.visit_expr(cond);
    }

    /// Makes a condition false, or true.
    fn force(&mut self, cond: &Expr, check: &str) {
        self.judge(cond);
        let id = self.site(cond, check, vec![Change::Never, Change::Always]);
        let text = self.edits.take(place(cond));
        self.edits.put(place(cond), format!("{SWITCH}::force({id}, {text})"));
    }

    fn function(&mut self, signature: &syn::Signature, block: &Block) {
        if is_wording(&signature.output) {
            return;
        }
        self.function.push(signature.ident.to_string());
        if let Some(token) = &signature.constness {
            self.edits.put(place(token), String::new()); // the switch is read at run time
        }
        let scope = if returns_option(&signature.output) { Scope::Option } else { Scope::Other };
        let outer = std::mem::replace(&mut self.scope, scope);
        match (returns_bool(&signature.output), block.stmts.split_last()) {
            (true, Some((Stmt::Expr(answer, None), before))) => {
                before.iter().for_each(|stmt| self.visit_stmt(stmt));
                let check = self.shown(answer);
                self.force(answer, &check);
                self.ladder(before);
            }
            _ => self.visit_block(block),
        }
        self.scope = outer;
        self.function.pop();
    }

    /// Neighbouring refusals, asked in the wrong order.
    fn ladder(&mut self, stmts: &[Stmt]) {
        for (earlier, later) in stmts.iter().zip(stmts.iter().skip(1)) {
            if refuses(earlier) && refuses(later) && may_come_before(later, earlier) {
                let (first, second) = (self.asked(earlier), self.asked(later));
                let id = self.site(later, &second, vec![Change::Before(first)]);
                let text = self.edits.written(place(later));
                self.edits.before(place(earlier).start, format!("if {SWITCH}::on({id}) {{ {text} }} "));
            }
        }
    }

    /// A refusal without what it answers.
    fn asked(&self, stmt: &Stmt) -> String {
        match stmt {
            Stmt::Expr(Expr::If(one), _) => format!("if {}", self.shown(&one.cond)),
            Stmt::Local(local) => self.bound(local),
            Stmt::Item(_) | Stmt::Expr(..) | Stmt::Macro(_) => self.shown(stmt),
        }
    }

    fn bound(&self, local: &syn::Local) -> String {
        let end = local.init.as_ref().map_or(local.pat.span(), |init| init.expr.span()).byte_range().end;
        one_line(self.edits.written(place(local).start..end))
    }

    fn logic(&mut self, chain: &syn::ExprBinary, whole: &Expr) {
        let and = matches!(chain.op, BinOp::And(_));
        let (own, other) = if and { ("&&", "||") } else { ("||", "&&") };
        let check = self.shown(chain);
        let mut parts = Vec::new();
        for part in operands(whole) {
            self.judge(part);
            let without = Change::Without(self.shown(part));
            let id = self.site(part, &check, vec![without]);
            let text = self.edits.take(place(part));
            parts.push(match and {
                true => format!("({SWITCH}::on({id}) || ({text}))"),
                false => format!("({SWITCH}::pass({id}) && ({text}))"),
            });
        }
        let id = self.site(chain, &check, vec![Change::Logic(own, other)]);
        let (one, two) = (parts.join(&format!(" {own} ")), parts.join(&format!(" {other} ")));
        self.edits.put(place(chain), format!("(if {SWITCH}::on({id}) {{ {two} }} else {{ {one} }})"));
    }

    fn comparison(&mut self, compared: &syn::ExprBinary, sign: &'static str, others: &'static [&'static str]) {
        self.visit_expr(&compared.left);
        self.visit_expr(&compared.right);
        let check = self.shown(compared);
        let changes = others.iter().map(|other| Change::Sign(sign, other)).collect();
        let id = self.site(compared, &check, changes);
        let (left, right) = (self.edits.take(place(&compared.left)), self.edits.take(place(&compared.right)));
        let mut text = format!("(match {SWITCH}::at({id}, {}) {{ ", others.len());
        for (index, other) in others.iter().enumerate() {
            text.push_str(&format!("{} => {left} {other} {right}, ", index + 1));
        }
        text.push_str(&format!("_ => {left} {sign} {right} }})"));
        self.edits.put(place(compared), text);
    }

    /// `matches!(value, A | B if guard)`: without one of its alternatives, or without its guard.
    fn matches(&mut self, mac: &syn::Macro) {
        type Parsed = (Expr, syn::Pat, Option<Expr>);
        let parsed = mac.parse_body_with(|input: syn::parse::ParseStream<'_>| -> syn::Result<Parsed> {
            let value = input.parse()?;
            input.parse::<syn::Token![,]>()?;
            let pat = syn::Pat::parse_multi_with_leading_vert(input)?;
            let guard = if input.parse::<Option<syn::Token![if]>>()?.is_some() { Some(input.parse()?) } else { None };
            input.parse::<Option<syn::Token![,]>>()?;
            Ok((value, pat, guard))
        });
        let Ok((value, pat, guard)) = parsed else { return };
        let written = |of: Range<usize>| self.edits.written(of);
        let value = written(place(&value));
        let condition = guard.as_ref().map(|guard| format!(" if {}", written(place(guard)))).unwrap_or_default();
        let cases = alternatives(&pat);
        let mut changes = Vec::new();
        let mut texts = Vec::new();
        for case in cases.iter().filter(|_| cases.len() > 1) {
            let kept = cases.iter().filter(|other| place(*other) != place(case));
            let kept: Vec<&str> = kept.map(|other| written(place(other))).collect();
            changes.push(Change::Without(self.shown(case)));
            texts.push(format!("matches!({value}, {}{condition})", kept.join(" | ")));
        }
        if let Some(guard) = &guard {
            changes.push(Change::Without(self.shown(guard)));
            texts.push(format!("matches!({value}, {})", written(place(&pat))));
        }
        if changes.is_empty() {
            return;
        }
        let (many, check) = (changes.len(), self.shown(mac));
        let id = self.site(mac, &check, changes);
        let arms: String = texts.iter().enumerate().map(|(index, text)| format!("{} => {text}, ", index + 1)).collect();
        let own = self.edits.written(place(mac));
        self.edits.put(place(mac), format!("(match {SWITCH}::at({id}, {many}) {{ {arms}_ => {own} }})"));
    }

    /// `value.min(BOUND)`: without its bound.
    fn bounded(&mut self, call: &syn::ExprMethodCall) {
        let check = self.shown(call);
        let bound = self.edits.written(place(&call.receiver).end..place(call).end);
        let id = self.site(call, &check, vec![Change::Without(one_line(bound))]);
        let value = self.edits.written(place(&call.receiver));
        let own = self.edits.take(place(call));
        self.edits.put(place(call), format!("(if {SWITCH}::on({id}) {{ {value} }} else {{ {own} }})"));
    }

    /// Arms of a match on constants: each does what its neighbour does. An arm before a last `_` is
    /// never taken.
    fn arms(&mut self, matched: &syn::ExprMatch) {
        let plain: Vec<_> = matched.arms.iter().filter(|arm| is_constant(&arm.pat)).collect();
        for (index, arm) in plain.iter().enumerate() {
            let other = plain.get(index + 1).or_else(|| index.checked_sub(1).and_then(|before| plain.get(before)));
            let Some(other) = other else { continue };
            let text = self.edits.written(place(&other.body));
            if text == self.edits.written(place(&arm.body)) {
                continue;
            }
            let check = format!("match {}: {}", self.shown(&matched.expr), self.shown(&arm.pat));
            let id = self.site(*arm, &check, vec![Change::Arm(self.shown(&other.pat))]);
            let own = self.edits.take(place(&arm.body));
            self.edits.put(place(&arm.body), format!("{{ if {SWITCH}::on({id}) {{ {text} }} else {{ {own} }} }}"));
        }
        let Some((syn::Arm { pat: syn::Pat::Wild(_), .. }, before)) = matched.arms.split_last() else { return };
        for arm in before.iter().filter(|arm| !is_constant(&arm.pat) && !matches!(arm.pat, syn::Pat::Guard(_))) {
            let check = format!("match {}: {}", self.shown(&matched.expr), self.shown(&arm.pat));
            let id = self.site(arm, &check, vec![Change::Never]);
            self.edits.before(place(&arm.fat_arrow_token).start, format!("if {SWITCH}::pass({id}) "));
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !module.attrs.iter().any(|attribute| attribute.path().is_ident("cfg")) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}

    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}

    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}

    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        let of = |(path, _): &(syn::Path, _)| path.segments.last().map(|last| last.ident.to_string());
        if block.trait_.as_ref().and_then(of).is_some_and(|of| WORDING.contains(&of.as_str())) {
            return;
        }
        let name = match block.self_ty.as_ref() {
            syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
            _ => None,
        };
        self.function.push(name.unwrap_or_default());
        visit::visit_item_impl(self, block);
        self.function.pop();
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.function(&function.sig, &function.block);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.function(&function.sig, &function.block);
    }

    fn visit_block(&mut self, block: &'ast Block) {
        visit::visit_block(self, block);
        self.ladder(&block.stmts);
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        let Some(init) = &local.init else { return };
        self.visit_expr(&init.expr);
        let check = self.bound(local);
        if let Some(otherwise) = otherwise(local) {
            self.visit_expr(otherwise);
            let id = self.site(local, &check, vec![Change::Always]);
            let text = self.edits.written(place(otherwise));
            self.edits.before(place(local).start, format!("if {SWITCH}::on({id}) {text} "));
        } else if self.scope == Scope::Option && gives_up(&init.expr) {
            let id = self.site(local, &check, vec![Change::Never]);
            self.edits.before(place(local).start, format!("if {SWITCH}::on({id}) {{ return None; }} "));
        }
    }

    fn visit_expr_if(&mut self, one: &'ast syn::ExprIf) {
        let check = format!("if {}", self.shown(&one.cond));
        self.condition(&one.cond, &check);
        self.visit_block(&one.then_branch);
        if let Some((_, otherwise)) = &one.else_branch {
            self.visit_expr(otherwise);
        }
    }

    fn visit_expr_while(&mut self, one: &'ast syn::ExprWhile) {
        let check = format!("while {}", self.shown(&one.cond));
        self.condition(&one.cond, &check);
        self.visit_block(&one.body);
    }

    fn visit_pat_guard(&mut self, guarded: &'ast syn::PatGuard) {
        let check = self.shown(guarded);
        self.condition(&guarded.guard, &check);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        // `then` of an ordering takes another ordering.
        let of_a_condition = call.method == "then" && matches!(call.args.first(), Some(Expr::Closure(_)));
        if of_a_condition || call.method == "then_some" {
            let check = format!("{}.{}(..)", self.shown(&call.receiver), call.method);
            self.force(&call.receiver, &check);
        } else {
            self.visit_expr(&call.receiver);
        }
        for argument in &call.args {
            match argument {
                Expr::Closure(closure) if takes_a_predicate(&call.method) => {
                    let outer = std::mem::replace(&mut self.scope, Scope::Other);
                    let check = format!("{}({})", call.method, self.shown(closure));
                    self.force(&closure.body, &check);
                    self.scope = outer;
                }
                Expr::Closure(closure) => {
                    let option = call.method == "find_map" || call.method == "filter_map";
                    let scope = if option { Scope::Option } else { Scope::Other };
                    let outer = std::mem::replace(&mut self.scope, scope);
                    self.visit_expr(&closure.body);
                    self.scope = outer;
                }
                other => self.visit_expr(other),
            }
        }
        if is_a_bound(call) {
            self.bounded(call);
        }
    }

    fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
        let outer = std::mem::replace(&mut self.scope, Scope::Other);
        self.visit_expr(&closure.body);
        self.scope = outer;
    }

    fn visit_expr_match(&mut self, matched: &'ast syn::ExprMatch) {
        visit::visit_expr_match(self, matched);
        self.arms(matched);
    }

    fn visit_expr(&mut self, expr: &'ast Expr) {
        let at = place(expr);
        if is_bool(expr, self.asks) && self.judged.insert((at.start, at.end)) {
            let check = self.shown(expr);
            return self.force(expr, &check);
        }
        match expr {
            Expr::Binary(chain) if is_logic(&chain.op) => self.logic(chain, expr),
            Expr::Binary(compared) => match flipped(&compared.op) {
                Some((sign, others)) => self.comparison(compared, sign, others),
                None => visit::visit_expr(self, expr),
            },
            Expr::Macro(invoked) if invoked.mac.path.is_ident("matches") => self.matches(&invoked.mac),
            _ => visit::visit_expr(self, expr),
        }
    }

    fn visit_stmt_macro(&mut self, stmt: &'ast syn::StmtMacro) {
        if stmt.mac.path.is_ident("matches") {
            self.matches(&stmt.mac);
        }
    }

    fn visit_macro(&mut self, _: &'ast syn::Macro) {}
}

/// Traits that say how something is shown, stored or made: they decide nothing.
const WORDING: [&str; 6] = ["Debug", "Default", "Deserialize", "Display", "Error", "Serialize"];

/// A function that answers a fixed text names something; it decides nothing.
fn is_wording(output: &syn::ReturnType) -> bool {
    let syn::ReturnType::Type(_, of) = output else { return false };
    let syn::Type::Reference(of) = of.as_ref() else { return false };
    of.lifetime.as_ref().is_some_and(|lifetime| lifetime.ident == "static")
}

/// A text on one line, without comments.
fn one_line(text: &str) -> String {
    let lines = text.lines().map(|line| line.split_once("// ").map_or(line, |(before, _)| before));
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}
