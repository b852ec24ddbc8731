//! The values of options: which expressions each option accepts, and what they mean.

use std::time::Duration;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::{
    Expr, ExprClosure, ExprLit, ExprReference, ExprUnary, Lit, LitInt, LitStr, Path, Token, UnOp,
};

use crate::args::Key;
use crate::duration;
use crate::suggest::{self, hint};

/// How long, as a duration in text or an expression.
#[derive(Clone)]
pub(crate) enum Time {
    Text(Duration, Span),
    Expr(TokenStream),
}

/// Where the operation runs, as asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Worker,
    Inline,
    Task,
}

const PLACES: [(&str, Place); 3] = [
    ("worker", Place::Worker),
    ("inline", Place::Inline),
    ("task", Place::Task),
];

/// An expression, sorted by what can be said of it before it is compiled.
enum Kind<'a> {
    Literal(&'a Lit),
    /// A literal with a minus in front.
    Negative(&'a Lit),
    Other,
}

/// Literals that arrive inside invisible groups, through a `macro_rules!`, are literals all the same.
fn kind(expr: &Expr) -> Kind<'_> {
    match visible(expr) {
        Expr::Lit(ExprLit { lit, .. }) => Kind::Literal(lit),
        Expr::Unary(ExprUnary {
            op: UnOp::Neg(_),
            expr,
            ..
        }) => match visible(expr) {
            Expr::Lit(ExprLit { lit, .. }) => Kind::Negative(lit),
            _ => Kind::Other,
        },
        _ => Kind::Other,
    }
}

fn visible(mut expr: &Expr) -> &Expr {
    while let Expr::Group(group) = expr {
        expr = &group.expr;
    }
    expr
}

/// A string literal, or an expression.
pub(crate) fn text(expr: &Expr, key: &Key) -> syn::Result<TokenStream> {
    match kind(expr) {
        Kind::Literal(Lit::Str(_)) | Kind::Other => Ok(expr.to_token_stream()),
        _ => Err(key.refuse(expr)),
    }
}

/// An integer literal above zero, or an expression.
pub(crate) fn count(expr: &Expr, key: &Key) -> syn::Result<TokenStream> {
    match kind(expr) {
        Kind::Literal(Lit::Int(literal)) => in_range(literal, key).map(|()| expr.to_token_stream()),
        Kind::Negative(Lit::Int(_)) => Err(key.refuse_with(expr, "must be at least 1")),
        Kind::Other => Ok(expr.to_token_stream()),
        _ => Err(key.refuse(expr)),
    }
}

const INTEGERS: [&str; 13] = [
    "", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize",
];

fn in_range(literal: &LitInt, key: &Key) -> syn::Result<()> {
    // Such as `50ms`.
    if !INTEGERS.contains(&literal.suffix()) {
        return Err(key.refuse(literal));
    }
    match literal.base10_parse::<u64>() {
        Ok(0) => Err(key.refuse_with(literal, "must be at least 1")),
        Ok(_) => Ok(()),
        Err(_) => Err(key.refuse_with(literal, format_args!("must be at most {}", u64::MAX))),
    }
}

/// A string literal that holds a duration longer than zero, or an expression.
pub(crate) fn time(expr: &Expr, key: &Key) -> syn::Result<Time> {
    match kind(expr) {
        Kind::Literal(Lit::Str(literal)) => match duration::parse(&literal.value()) {
            Ok(Duration::ZERO) => Err(key.refuse_with(literal, "must be longer than zero")),
            Ok(duration) => Ok(Time::Text(duration, literal.span())),
            Err(problem) => Err(syn::Error::new_spanned(literal, problem)),
        },
        Kind::Other => Ok(Time::Expr(expr.to_token_stream())),
        _ => Err(key.refuse(expr)),
    }
}

pub(crate) fn flag(expr: &Expr, key: &Key) -> syn::Result<bool> {
    match kind(expr) {
        Kind::Literal(Lit::Bool(literal)) => Ok(literal.value),
        _ => Err(key.refuse(expr)),
    }
}

pub(crate) fn run(expr: &Expr, key: &Key) -> syn::Result<Place> {
    let Kind::Literal(Lit::Str(literal)) = kind(expr) else {
        return Err(key.refuse(expr));
    };
    let typed = literal.value();
    PLACES
        .iter()
        .find(|(word, _)| *word == typed)
        .map(|(_, place)| *place)
        .ok_or_else(|| unknown_run(literal, &typed))
}

fn unknown_run(literal: &LitStr, typed: &str) -> syn::Error {
    let words = PLACES.map(|(word, _)| format!("`{word}`")).join(", ");
    let hint = hint(suggest::nearest(typed, PLACES.map(|(word, _)| word)));
    syn::Error::new_spanned(
        literal,
        format_args!("unknown value `{typed}` of `run`; expected one of {words}{hint}"),
    )
}

pub(crate) fn identifier(expr: &Expr, key: &Key) -> syn::Result<Ident> {
    match visible(expr) {
        Expr::Path(path) if path.attrs.is_empty() && path.qself.is_none() => match path
            .path
            .get_ident()
        {
            // `self` parses as a path, and nothing else can bear its name.
            Some(ident)
                if ident != "self" && ident != "Self" && ident != "super" && ident != "crate" =>
            {
                Ok(ident.clone())
            }
            _ => Err(key.refuse(expr)),
        },
        _ => Err(key.refuse(expr)),
    }
}

/// References to an expression that is not a literal, or to each of several between brackets, which may differ in their types.
pub(crate) fn references(expr: &Expr, key: &Key) -> syn::Result<Vec<TokenStream>> {
    let reference = |expr: &Expr| {
        expression(expr, key)?;
        let here = Span::mixed_site().located_at(expr.span());
        Ok(ExprReference {
            attrs: Vec::new(),
            and_token: Token![&](here),
            mutability: None,
            expr: Box::new(expr.clone()),
        }
        .into_token_stream())
    };
    match visible(expr) {
        Expr::Array(array) => array.elems.iter().map(reference).collect(),
        expr => Ok(vec![reference(expr)?]),
    }
}

/// Any expression that is not a literal.
pub(crate) fn expression(expr: &Expr, key: &Key) -> syn::Result<TokenStream> {
    match kind(expr) {
        Kind::Other => Ok(expr.to_token_stream()),
        _ => Err(key.refuse(expr)),
    }
}

/// An expression that is not a literal; a duration in text is meant for another option.
pub(crate) fn moment(expr: &Expr, key: &Key) -> syn::Result<TokenStream> {
    expression(expr, key).map_err(|error| match kind(expr) {
        Kind::Literal(Lit::Str(_)) => {
            let hint = hint(as_limit(expr));
            syn::Error::new_spanned(expr, format_args!("{}{hint}", key.expects()))
        }
        _ => error,
    })
}

/// A closure of one argument, or any other expression that is not a literal.
pub(crate) fn function(expr: &Expr, key: &Key) -> syn::Result<TokenStream> {
    match visible(expr) {
        Expr::Closure(ExprClosure {
            inputs_begin,
            inputs,
            inputs_end,
            ..
        }) if inputs.len() != 1 => Err(key.refuse(&quote!(#inputs_begin #inputs #inputs_end))),
        _ => expression(expr, key),
    }
}

/// The option that sets the limit to `expr`, as it could be written.
pub(crate) fn as_limit(expr: &Expr) -> Option<String> {
    match kind(expr) {
        Kind::Literal(Lit::Int(literal)) if literal.suffix().is_empty() => {
            Some(format!("ms = {literal}"))
        }
        Kind::Literal(Lit::Int(literal)) => as_duration(&literal.to_string()),
        Kind::Literal(Lit::Str(literal)) => as_duration(&literal.value()),
        Kind::Literal(_) | Kind::Negative(_) => None,
        Kind::Other => Some("limit = ..".to_owned()),
    }
}

fn as_duration(text: &str) -> Option<String> {
    let is_duration = duration::parse(text).is_ok();
    is_duration.then(|| format!("limit = {text:?}"))
}

/// A path without arguments, or a string that holds one.
pub(crate) fn path(expr: &Expr, key: &Key) -> syn::Result<Path> {
    match visible(expr) {
        Expr::Path(path)
            if path.attrs.is_empty() && path.qself.is_none() && is_plain(&path.path) =>
        {
            Ok(path.path.clone())
        }
        Expr::Lit(ExprLit {
            lit: Lit::Str(literal),
            ..
        }) => literal
            .parse_with(Path::parse_mod_style)
            .ok()
            .filter(is_plain)
            .ok_or_else(|| key.refuse(expr)),
        _ => Err(key.refuse(expr)),
    }
}

fn is_plain(path: &Path) -> bool {
    path.segments
        .iter()
        .all(|segment| segment.arguments.is_none() && is_name(&segment.ident))
}

/// Whether `ident` can stand in a path: other keywords parse there as well.
fn is_name(ident: &Ident) -> bool {
    ["self", "super", "crate"].iter().any(|word| ident == word)
        || syn::parse2::<Ident>(ident.to_token_stream()).is_ok()
}
