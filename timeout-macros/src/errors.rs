//! Collects the mistakes in one use of the attribute, so that one compilation reports all of them.

use std::fmt::Display;

use proc_macro2::{Group, Literal, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::Lit;

/// The mistakes found so far. Must be consumed by [`Errors::into_tokens`] before it is dropped.
#[derive(Debug, Default)]
#[must_use = "mistakes that are not reported would compile"]
pub(crate) struct Errors {
    found: Vec<syn::Error>,
    /// Mistakes unless the crate is compiled as a test.
    outside_tests: Vec<syn::Error>,
    reported: bool,
}

impl Errors {
    /// Adds a mistake whose span covers `at`, from the first token to the last.
    pub(crate) fn add(&mut self, at: impl ToTokens, message: impl Display) {
        self.push(syn::Error::new_spanned(at, message));
    }

    /// Adds a mistake that is none in a test build. The item is expanded as if it was right.
    pub(crate) fn add_outside_tests(&mut self, at: impl ToTokens, message: impl Display) {
        let error = syn::Error::new_spanned(at, message);
        self.outside_tests.push(error);
    }

    pub(crate) fn push(&mut self, error: syn::Error) {
        self.found.push(error);
    }

    /// Whether the item is expanded.
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// One `compile_error!` for each mistake, in the order in which they were found.
    pub(crate) fn into_tokens(mut self) -> TokenStream {
        self.reported = true;
        let found = self.found.iter().map(syn::Error::to_compile_error);
        let outside_tests = self.outside_tests.iter().map(|error| {
            let error = error.to_compile_error();
            quote_spanned!(Span::mixed_site()=> #[cfg(not(test))] #error)
        });
        let all = found.chain(outside_tests).flatten();
        all.map(on_one_line).collect()
    }
}

/// Returns the token with each string on one line: messages quote values, names and types of users.
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

/// The standard library escapes these characters for literals. In a message they stay as they are.
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
            self.reported || std::thread::panicking(),
            "mistakes were dropped without a report: {:?}",
            self.found
        );
    }
}
