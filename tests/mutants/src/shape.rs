//! What an expression, pattern or statement is, as far as its text tells: no types are known here.

use proc_macro2::TokenTree;
use std::collections::BTreeSet;
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{BinOp, Block, Expr, Ident, Local, Pat, ReturnType, Stmt, Type};

/// Where something stands in its file, in bytes.
pub(crate) fn place(of: &impl Spanned) -> Range<usize> {
    of.span().byte_range()
}

/// Methods of the standard library that answer yes or no.
const ASKS: [&str; 18] = [
    "all",
    "any",
    "contains",
    "contains_key",
    "is_char_boundary",
    "is_empty",
    "is_err",
    "is_ge",
    "is_gt",
    "is_le",
    "is_lt",
    "is_ne",
    "is_none",
    "is_none_or",
    "is_ok",
    "is_some",
    "is_some_and",
    "starts_with",
];

/// Methods whose closure answers yes or no.
const PREDICATES: [&str; 9] =
    ["all", "any", "filter", "find", "is_none_or", "is_some_and", "next_if", "position", "retain"];

/// Whether a method's closure is a condition.
pub(crate) fn takes_a_predicate(method: &Ident) -> bool {
    PREDICATES.iter().any(|known| method == known)
}

/// Whether a method holds its value within a bound.
pub(crate) fn is_a_bound(call: &syn::ExprMethodCall) -> bool {
    ["min", "max", "clamp"].iter().any(|known| call.method == known) && !call.args.is_empty()
}

/// Whether an expression answers yes or no. `asks` are the functions of the scanned sources that do.
pub(crate) fn is_bool(expr: &Expr, asks: &BTreeSet<String>) -> bool {
    match expr {
        Expr::Paren(inner) => is_bool(&inner.expr, asks),
        Expr::Unary(unary) => matches!(unary.op, syn::UnOp::Not(_)),
        Expr::Binary(binary) => is_logic(&binary.op) || flipped(&binary.op).is_some(),
        Expr::Macro(invoked) => invoked.mac.path.is_ident("matches"),
        Expr::MethodCall(call) => {
            let name = call.method.to_string();
            ASKS.contains(&name.as_str()) || asks.contains(&name)
        }
        Expr::Call(call) => match call.func.as_ref() {
            Expr::Path(path) => path.path.segments.last().is_some_and(|last| asks.contains(&last.ident.to_string())),
            _ => false,
        },
        _ => false,
    }
}

pub(crate) fn is_logic(op: &BinOp) -> bool {
    matches!(op, BinOp::And(_) | BinOp::Or(_))
}

/// A comparison's sign, and what it may become: the other side of its bound, and its contrary.
pub(crate) fn flipped(op: &BinOp) -> Option<(&'static str, &'static [&'static str])> {
    Some(match op {
        BinOp::Eq(_) => ("==", &["!="]),
        BinOp::Ne(_) => ("!=", &["=="]),
        BinOp::Lt(_) => ("<", &["<=", ">="]),
        BinOp::Le(_) => ("<=", &["<", ">"]),
        BinOp::Gt(_) => (">", &[">=", "<="]),
        BinOp::Ge(_) => (">=", &[">", "<"]),
        _ => return None,
    })
}

/// The operands of a chain of one logical operator, outermost first.
pub(crate) fn operands(expr: &Expr) -> Vec<&Expr> {
    let Expr::Binary(outer) = expr else { return vec![expr] };
    if !is_logic(&outer.op) {
        return vec![expr];
    }
    let same = |inner: &Expr| matches!(inner, Expr::Binary(inner) if std::mem::discriminant(&inner.op) == std::mem::discriminant(&outer.op));
    let left = if same(&outer.left) { operands(&outer.left) } else { vec![outer.left.as_ref()] };
    left.into_iter().chain([outer.right.as_ref()]).collect()
}

/// Whether a pattern is a constant: nothing is bound, nothing is looked into.
pub(crate) fn is_constant(pat: &Pat) -> bool {
    match pat {
        Pat::Path(_) | Pat::Lit(_) | Pat::Wild(_) => true,
        Pat::Ident(name) => name.subpat.is_none() && name.ident.to_string().starts_with(char::is_uppercase),
        Pat::Or(or) => or.cases.iter().all(is_constant),
        Pat::Paren(inner) => is_constant(&inner.pat),
        Pat::Tuple(tuple) => tuple.elems.iter().all(is_constant),
        Pat::Reference(inner) => is_constant(&inner.pat),
        _ => false,
    }
}

/// The alternatives of a pattern.
pub(crate) fn alternatives(pat: &Pat) -> Vec<&Pat> {
    match pat {
        Pat::Or(or) => or.cases.iter().collect(),
        other => vec![other],
    }
}

pub(crate) fn returns_bool(output: &ReturnType) -> bool {
    matches!(output, ReturnType::Type(_, of) if matches!(of.as_ref(), Type::Path(path) if path.path.is_ident("bool")))
}

/// Whether a function's result is `Option<..>`.
pub(crate) fn returns_option(output: &ReturnType) -> bool {
    let ReturnType::Type(_, of) = output else { return false };
    let Type::Path(path) = of.as_ref() else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "Option")
}

/// Whether an expression ends with `?`, whatever is called on the way.
pub(crate) fn gives_up(expr: &Expr) -> bool {
    matches!(expr, Expr::Try(_))
}

/// A statement that refuses: an `if` or `let .. else` that leaves the function, and nothing else.
pub(crate) fn refuses(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Expr(Expr::If(one), _) => one.else_branch.is_none() && leaves(&one.then_branch),
        Stmt::Local(local) => matches!(otherwise(local), Some(Expr::Block(block)) if leaves(&block.block)),
        Stmt::Item(_) | Stmt::Expr(..) | Stmt::Macro(_) => false,
    }
}

/// What a `let .. else` does if its pattern does not match.
pub(crate) fn otherwise(local: &Local) -> Option<&Expr> {
    Some(local.init.as_ref()?.diverge.as_ref()?.1.as_ref())
}

fn leaves(block: &Block) -> bool {
    matches!(block.stmts.last(), Some(Stmt::Expr(Expr::Return(_), _)))
}

/// Whether `later` may be evaluated before `earlier`: it uses none of its names, and takes nothing away
/// that is used again.
pub(crate) fn may_come_before(later: &Stmt, earlier: &Stmt) -> bool {
    if let Stmt::Local(local) = later
        && local.init.as_ref().is_some_and(|init| matches!(init.expr.as_ref(), Expr::Path(_)))
    {
        return false;
    }
    let Stmt::Local(earlier) = earlier else { return true };
    let mut bound = Bound::default();
    bound.visit_pat(&earlier.pat);
    !mentions(later, &bound.0)
}

#[derive(Default)]
struct Bound(BTreeSet<String>);

impl Visit<'_> for Bound {
    fn visit_pat_ident(&mut self, name: &syn::PatIdent) {
        self.0.insert(name.ident.to_string());
    }
}

fn mentions(stmt: &Stmt, names: &BTreeSet<String>) -> bool {
    fn any(tokens: proc_macro2::TokenStream, names: &BTreeSet<String>) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(ident) => names.contains(&ident.to_string()),
            TokenTree::Group(group) => any(group.stream(), names),
            // An argument of `format!` may stand inside of the text.
            TokenTree::Literal(literal) => names.iter().any(|name| literal.to_string().contains(&format!("{{{name}"))),
            TokenTree::Punct(_) => false,
        })
    }
    any(quote::ToTokens::to_token_stream(stmt), names)
}

#[cfg(test)]
mod tests {
    use super::{is_constant, may_come_before, operands};
    use syn::parse::Parser;

    #[test]
    fn a_chain_has_its_operands_in_order() {
        let expr = syn::parse_str("a && (b || c) && d == e").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(operands(&expr).len(), 3);
    }

    #[test]
    fn constants_bind_nothing() {
        for (text, expected) in [("A::B | A::C", true), ("_", true), ("true", true), ("Some(_)", false), ("x", false)] {
            let pat = syn::Pat::parse_multi.parse_str(text).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(is_constant(&pat), expected, "{text}");
        }
    }

    #[test]
    fn what_uses_a_name_stays_behind_it() {
        let stmts = syn::Block::parse_within
            .parse_str("let Some(a) = f() else { return 1 }; if g(a) { return 2 } if h(b) { return 3 }")
            .unwrap_or_else(|e| panic!("{e}"));
        let [first, second, third] = stmts.as_slice() else { panic!("{}", stmts.len()) };
        assert!(!may_come_before(second, first) && may_come_before(third, first) && may_come_before(third, second));
    }
}
