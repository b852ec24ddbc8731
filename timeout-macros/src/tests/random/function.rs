//! Splits functions and their expansions into sequences of tokens, for comparison.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::quote;
use syn::ItemFn;

use crate::returned_future::ReturnedFuture;
use crate::shape::Shape;

/// An item that the macro sees as a function with a body.
pub(super) struct Function {
    /// All tokens in front of the body.
    pub(super) head: TokenStream,
    /// The tokens between the braces, without inner attributes.
    pub(super) body: Vec<String>,
    /// The tokens between the braces of the `async` block that is the whole body.
    pub(super) future_block: Option<Vec<String>>,
    pub(super) parsed: ItemFn,
}

impl Function {
    pub(super) fn of(item: &TokenStream) -> Option<Self> {
        let mut tokens: Vec<TokenTree> = flat_groups(item.clone()).into_iter().collect();
        let Some(TokenTree::Group(body)) = tokens.pop() else {
            return None;
        };
        if body.delimiter() != Delimiter::Brace {
            return None;
        }
        let head: TokenStream = tokens.into_iter().collect();
        let parsed: ItemFn = syn::parse2(quote!(#head {})).ok()?;
        let inside = without_attributes(body.stream());
        let body = flat(inside.clone());
        let future_block = match (Shape::of(&parsed.sig), ReturnedFuture::of(inside)) {
            (Shape::Future(_), ReturnedFuture::WholeBody(future_block)) => {
                Some(flat(without_attributes(future_block.braces.stream())))
            }
            _ => None,
        };
        Some(Self {
            head,
            body,
            future_block,
            parsed,
        })
    }
}

/// `tokens` without the `#![…]` attributes in front.
fn without_attributes(tokens: TokenStream) -> TokenStream {
    let mut rest: Vec<TokenTree> = tokens.into_iter().collect();
    while starts_with_attribute(&rest) {
        rest.drain(..3);
    }
    rest.into_iter().collect()
}

/// Whether `tokens` start with `#![…]`.
fn starts_with_attribute(tokens: &[TokenTree]) -> bool {
    let [
        TokenTree::Punct(hash),
        TokenTree::Punct(bang),
        TokenTree::Group(group),
        ..,
    ] = tokens
    else {
        return false;
    };
    (hash.as_char(), bang.as_char(), group.delimiter()) == ('#', '!', Delimiter::Bracket)
}

/// `tokens` without the invisible groups around the whole and around the last token.
pub(super) fn flat_groups(tokens: TokenStream) -> TokenStream {
    let mut all: Vec<TokenTree> = tokens.into_iter().collect();
    while let Some(TokenTree::Group(group)) = all.last() {
        if group.delimiter() != Delimiter::None {
            break;
        }
        let inner = group.stream();
        all.pop();
        all.extend(inner);
    }
    all.into_iter().collect()
}

/// All identifiers, literals and punctuation of `tokens` in order. Invisible groups leave no trace.
pub(super) fn flat(tokens: TokenStream) -> Vec<String> {
    let mut row = Vec::new();
    for token in tokens {
        if let TokenTree::Group(group) = token {
            let (open, close) = match group.delimiter() {
                Delimiter::Parenthesis => ("(", ")"),
                Delimiter::Brace => ("{", "}"),
                Delimiter::Bracket => ("[", "]"),
                Delimiter::None => ("", ""),
            };
            row.push(open.to_owned());
            row.extend(flat(group.stream()));
            row.push(close.to_owned());
        } else {
            row.push(token.to_string());
        }
    }
    row.retain(|word| !word.is_empty());
    row
}

/// `tokens` with the body removed from the braces that hold it, because a body may not parse.
pub(super) fn without(body: &[String], tokens: TokenStream) -> TokenStream {
    let empty = |token: TokenTree| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
            let mut inner = without_attributes(group.stream());
            if flat(inner.clone()) == body {
                inner = TokenStream::new();
            }
            TokenTree::Group(Group::new(Delimiter::Brace, without(body, inner)))
        }
        TokenTree::Group(group) => {
            TokenTree::Group(Group::new(group.delimiter(), without(body, group.stream())))
        }
        token => token,
    };
    tokens.into_iter().map(empty).collect()
}

/// `head` without an empty `<>` and an empty `where`, which have no meaning.
pub(super) fn without_empty_lists(mut head: Vec<String>) -> Vec<String> {
    if head.last().is_some_and(|word| word == "where") {
        head.pop();
    }
    if let Some(at) = head.windows(3).position(|three| three == ["<", ">", "("]) {
        head.drain(at..at + 2);
    }
    head
}

pub(super) fn holds(tokens: &[String], part: &[String]) -> bool {
    part.is_empty() || tokens.windows(part.len()).any(|window| window == part)
}
