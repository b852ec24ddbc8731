//! Functions, and what is left of them, as rows of tokens.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::quote;
use syn::ItemFn;

use crate::made::Made;
use crate::shape::Shape;

/// An item that is a function with a body, as far as the macro looks.
pub(super) struct Function {
    /// All in front of the body.
    pub(super) head: TokenStream,
    /// What is between the braces, but for attributes.
    pub(super) body: Vec<String>,
    /// What is between the braces of the `async` block that is the whole body.
    pub(super) made: Option<Vec<String>>,
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
        let made = match (Shape::of(&parsed.sig), Made::of(inside)) {
            (Shape::Future(_), Made::Alone(made)) => {
                Some(flat(without_attributes(made.braces.stream())))
            }
            _ => None,
        };
        Some(Self {
            head,
            body,
            made,
            parsed,
        })
    }
}

/// What is between braces, without the `#![…]` in front.
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

/// The words and signs of `tokens` in a row; invisible groups leave no trace.
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

/// `tokens` with nothing between the braces that hold `body`, so that it does not matter whether a
/// body can be parsed.
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

/// An empty `<>` and an empty `where` are nothing.
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
