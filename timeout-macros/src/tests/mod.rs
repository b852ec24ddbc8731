//! Tests of the macro as a function from tokens to tokens.

mod broken_input;
mod editor;
mod expansion;
mod functions;
mod groups;
mod mistakes;
mod random;
mod together;
mod unnamed;
mod values;

use proc_macro2::{TokenStream, TokenTree};

/// The expansion of the `#[timeout(…)]` in front of `source`.
fn expand(source: &str) -> TokenStream {
    let (args, item) = split(source);
    crate::expand(args, item)
}

/// The arguments of the attribute in front of `source`, and the item after the attribute.
fn split(source: &str) -> (TokenStream, TokenStream) {
    let mut tokens = source
        .parse::<TokenStream>()
        .expect("tokens are balanced")
        .into_iter()
        .skip(1);
    let attribute = tokens.next().map(inside).expect("an attribute comes first");
    let args = attribute.into_iter().nth(1).map(inside).unwrap_or_default();
    (args, tokens.collect())
}

fn inside(token: TokenTree) -> TokenStream {
    match token {
        TokenTree::Group(group) => group.stream(),
        _ => TokenStream::new(),
    }
}
