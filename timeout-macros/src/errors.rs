//! The collector of mistakes: everything wrong with one use of the attribute, told in one
//! compilation.

use std::fmt::Display;

use proc_macro2::{Group, Literal, TokenStream, TokenTree};
use quote::ToTokens;
use syn::Lit;

/// The mistakes found so far. It has to be asked, with [`Errors::into_tokens`], before it goes.
#[derive(Debug, Default)]
#[must_use = "mistakes that nobody asks for would compile"]
pub(crate) struct Errors {
    found: Vec<syn::Error>,
    asked: bool,
}

impl Errors {
    /// Notes a mistake whose span is that of `at`, first token to last.
    pub(crate) fn add(&mut self, at: impl ToTokens, message: impl Display) {
        self.push(syn::Error::new_spanned(at, message));
    }

    pub(crate) fn push(&mut self, error: syn::Error) {
        self.found.push(error);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// One `compile_error!` for each mistake, in the order in which they were found.
    pub(crate) fn into_tokens(mut self) -> TokenStream {
        self.asked = true;
        self.found
            .iter()
            .flat_map(syn::Error::to_compile_error)
            .map(on_one_line)
            .collect()
    }
}

/// The same token with each text on one line: messages quote values, names and types of users.
fn on_one_line(token: TokenTree) -> TokenTree {
    let span = token.span();
    let mut token = match token {
        TokenTree::Group(group) => {
            let inside = group.stream().into_iter().map(on_one_line);
            Group::new(group.delimiter(), inside.collect()).into()
        }
        TokenTree::Literal(literal) => match Lit::new(literal.clone()) {
            Lit::Str(text) => Literal::string(&escaped(&text.value())).into(),
            _ => literal.into(),
        },
        other => other,
    };
    token.set_span(span);
    token
}

/// The standard library escapes these for literals. In a message they stay readable as they are.
const KEPT: [char; 3] = ['"', '\'', '\\'];

/// `text` without line breaks, control characters and invisible or bidirectional format characters.
fn escaped(text: &str) -> String {
    let pieces = text.split_inclusive(KEPT).map(|piece| {
        let escaped = piece.strip_suffix(KEPT).unwrap_or(piece);
        let kept = &piece[escaped.len()..];
        format!("{}{kept}", escaped.escape_debug())
    });
    pieces.collect()
}

impl Drop for Errors {
    fn drop(&mut self) {
        debug_assert!(
            self.asked || std::thread::panicking(),
            "mistakes were found and dropped: {:?}",
            self.found
        );
    }
}
