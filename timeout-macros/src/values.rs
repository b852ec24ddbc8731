//! Parses the values of options: which expressions each option accepts, and what they mean.

use std::time::Duration;

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Expr, ExprClosure, ExprLit, ExprPath, ExprUnary, Lit, LitInt, LitStr, Path, Token, UnOp,
};

use crate::duration;
use crate::groups;
use crate::keys::Key;
use crate::suggest::{self, expected, hint};

/// The value of an option: the parsed expression, and its tokens as typed. The expansion uses the
/// tokens, because a parsed expression has lost which of its groups the compiler made.
pub(crate) struct Value {
    pub(crate) expr: Expr,
    pub(crate) typed: TokenStream,
}

impl Parse for Value {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let begin = input.fork();
        let expr = input.parse()?;
        let typed = between(&begin, input);
        // Tokens that `parse` leaves over in an inner group are an error only at the end of all
        // parsing, and not together with other mistakes.
        syn::parse2::<Expr>(typed.clone())?;
        Ok(Self { expr, typed })
    }
}

/// The tokens from one place of the input to another.
pub(crate) fn between(begin: ParseStream<'_>, end: ParseStream<'_>) -> TokenStream {
    let mut tokens = TokenStream::new();
    while begin.cursor() != end.cursor() {
        let Ok(token) = begin.parse::<TokenTree>() else {
            break;
        };
        tokens.extend([token]);
    }
    tokens
}

/// A duration, as text or as an expression.
#[derive(Clone)]
pub(crate) enum Time {
    Text(Duration, Span),
    Expr(TokenStream),
}

/// The value of `run`.
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

/// An expression, classified by what is known before compilation.
enum Kind<'a> {
    Literal(&'a Lit),
    /// A literal with a minus sign in front.
    Negative(&'a Lit),
    Other,
}

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

/// `expr` without the parentheses around it, which may come from a fragment of a `macro_rules!`.
fn visible(mut expr: &Expr) -> &Expr {
    while let Expr::Paren(paren) = expr {
        expr = &paren.expr;
    }
    expr
}

/// A string literal, or an expression.
pub(crate) fn text(value: &Value, key: &Key) -> syn::Result<TokenStream> {
    match kind(&value.expr) {
        Kind::Literal(Lit::Str(_)) | Kind::Other => Ok(value.typed.clone()),
        _ => Err(key.refuse(&value.typed)),
    }
}

/// An integer literal above zero, or an expression.
pub(crate) fn count(value: &Value, key: &Key) -> syn::Result<TokenStream> {
    match kind(&value.expr) {
        Kind::Literal(Lit::Int(literal)) => in_range(literal, key).map(|()| value.typed.clone()),
        Kind::Negative(Lit::Int(_)) => Err(key.refuse_with(&value.typed, "must be at least 1")),
        Kind::Other if is_duration(&value.expr) => Err(key.refuse_with(
            &value.typed,
            "takes an integer; for a `Duration`, write `limit = ..`",
        )),
        Kind::Other => Ok(value.typed.clone()),
        _ => Err(key.refuse(&value.typed)),
    }
}

/// Whether `expr` is written as a `Duration`: a call of one of its functions, or one of its
/// constants.
fn is_duration(expr: &Expr) -> bool {
    match visible(expr) {
        Expr::Path(path) => {
            let mut segments = path.path.segments.iter().rev().skip(1);
            segments.next().is_some_and(|ty| ty.ident == "Duration")
        }
        Expr::Call(call) => is_duration(&call.func),
        Expr::Binary(sum) => is_duration(&sum.left) || is_duration(&sum.right),
        _ => false,
    }
}

const INTEGERS: [&str; 13] = [
    "", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize",
];

fn in_range(literal: &LitInt, key: &Key) -> syn::Result<()> {
    // A suffix such as in `50ms`.
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
pub(crate) fn time(value: &Value, key: &Key) -> syn::Result<Time> {
    match kind(&value.expr) {
        Kind::Literal(Lit::Str(literal)) => match duration::parse(&literal.value()) {
            Ok(Duration::ZERO) => Err(key.refuse_with(literal, "must be longer than zero")),
            Ok(duration) => Ok(Time::Text(duration, literal.span())),
            Err(problem) => Err(syn::Error::new_spanned(literal, problem)),
        },
        Kind::Other => Ok(Time::Expr(value.typed.clone())),
        _ => Err(key.refuse(&value.typed)),
    }
}

/// A limit without an option word.
pub(crate) fn unnamed(value: &Value, key: &Key) -> syn::Result<Time> {
    let refuse = |message: String| Err(syn::Error::new_spanned(&value.typed, message));
    match kind(&value.expr) {
        Kind::Literal(Lit::Int(literal)) if literal.suffix().is_empty() => refuse(format!(
            "a limit without a name has a unit; write `ms = {literal}` or `\"{literal}ms\"`"
        )),
        Kind::Literal(Lit::Int(literal)) if duration::parse(&literal.to_string()).is_ok() => {
            refuse(format!(
                "a limit without a name has quotes; write `\"{literal}\"`"
            ))
        }
        Kind::Literal(Lit::Str(literal)) if is_word(&literal.value()) => refuse(format!(
            "{}; for the name, write `name = {:?}`",
            key.expects(),
            literal.value()
        )),
        _ => time(value, key),
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(char::is_alphabetic)
}

pub(crate) fn flag(value: &Value, key: &Key) -> syn::Result<bool> {
    match kind(&value.expr) {
        Kind::Literal(Lit::Bool(literal)) => Ok(literal.value),
        _ => Err(key.refuse(&value.typed)),
    }
}

pub(crate) fn run(value: &Value, key: &Key) -> syn::Result<Place> {
    let Kind::Literal(Lit::Str(literal)) = kind(&value.expr) else {
        return Err(key.refuse(&value.typed));
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
    let nearest = suggest::nearest(typed, PLACES.map(|(word, _)| word));
    syn::Error::new_spanned(
        literal,
        format_args!(
            "unknown value `{typed}` of `run`; {}",
            expected(nearest, words)
        ),
    )
}

/// An identifier, or a string that holds one.
pub(crate) fn identifier(value: &Value, key: &Key) -> syn::Result<Ident> {
    match visible(&value.expr) {
        Expr::Path(path) if path.attrs.is_empty() && path.qself.is_none() => match path
            .path
            .get_ident()
        {
            // `self` parses as a path, and no other variable can have its name.
            Some(ident)
                if ident != "self" && ident != "Self" && ident != "super" && ident != "crate" =>
            {
                Ok(ident.clone())
            }
            _ => Err(key.refuse(&value.typed)),
        },
        Expr::Lit(ExprLit {
            lit: Lit::Str(literal),
            ..
        }) => literal.parse().map_err(|_| key.refuse(&value.typed)),
        _ => Err(key.refuse(&value.typed)),
    }
}

/// References to an expression that is not a literal, or to each element in brackets. Elements may
/// have different types.
pub(crate) fn references(value: &Value, key: &Key) -> syn::Result<Vec<TokenStream>> {
    let reference = |value: &Value| {
        expression(value, key)?;
        let here = Span::mixed_site().located_at(value.typed.span());
        let operand = groups::operand(&value.typed);
        Ok(quote_spanned!(here=> &#operand))
    };
    match visible(&value.expr) {
        Expr::Array(_) => {
            let elements = Punctuated::<Value, Token![,]>::parse_terminated;
            let elements = elements.parse2(groups::opened(inside(&value.typed)))?;
            elements.iter().map(reference).collect()
        }
        _ => Ok(vec![reference(value)?]),
    }
}

/// The tokens between the brackets in `tokens`, also if the brackets are in parentheses.
fn inside(tokens: &TokenStream) -> TokenStream {
    match tokens.clone().into_iter().next() {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket => group.stream(),
        Some(TokenTree::Group(group)) => inside(&group.stream()),
        _ => TokenStream::new(),
    }
}

/// Any expression that is not a literal.
pub(crate) fn expression(value: &Value, key: &Key) -> syn::Result<TokenStream> {
    match kind(&value.expr) {
        Kind::Other => Ok(value.typed.clone()),
        _ => Err(key.refuse(&value.typed)),
    }
}

/// An expression that is not a literal. For a duration in text, the error suggests another option.
pub(crate) fn moment(value: &Value, key: &Key) -> syn::Result<TokenStream> {
    expression(value, key).map_err(|error| match kind(&value.expr) {
        Kind::Literal(Lit::Str(_)) => {
            let hint = hint(as_limit(&value.expr));
            syn::Error::new_spanned(&value.typed, format_args!("{}{hint}", key.expects()))
        }
        _ => error,
    })
}

/// A closure of one argument, a string that holds a path, or any other expression that is not a
/// literal. Strings are accepted because some macros that read the attributes below them, such as
/// the `test_case` of `ntest`, panic unless all values are literals.
pub(crate) fn function(value: &Value, key: &Key) -> syn::Result<TokenStream> {
    match visible(&value.expr) {
        Expr::Closure(ExprClosure {
            inputs_begin,
            inputs,
            inputs_end,
            ..
        }) if inputs.len() != 1 => Err(key.refuse(&quote!(#inputs_begin #inputs #inputs_end))),
        Expr::Lit(ExprLit {
            lit: Lit::Str(literal),
            ..
        }) => {
            let path = literal.parse::<ExprPath>();
            path.and_then(|_| literal.parse()).map_err(|_| {
                let rule = "takes a path between quotes; drop the quotes around anything else";
                key.refuse_with(literal, rule)
            })
        }
        _ => expression(value, key),
    }
}

/// An option that would set the limit to `expr`, for error messages.
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
pub(crate) fn path(value: &Value, key: &Key) -> syn::Result<Path> {
    match visible(&value.expr) {
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
            .ok_or_else(|| key.refuse(&value.typed)),
        _ => Err(key.refuse(&value.typed)),
    }
}

fn is_plain(path: &Path) -> bool {
    path.segments
        .iter()
        .all(|segment| segment.arguments.is_none() && is_name(&segment.ident))
}

/// Whether `ident` can be a segment of a path. Other keywords parse as segments as well.
fn is_name(ident: &Ident) -> bool {
    ["self", "super", "crate"].iter().any(|word| ident == word)
        || syn::parse2::<Ident>(ident.to_token_stream()).is_ok()
}
