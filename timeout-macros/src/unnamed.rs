//! Recognizes the argument without an option word: a limit such as `"50ms"`, in first place.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Expr, Token};

use crate::editor;
use crate::keys;

/// Whether the first argument is a value without an option word. A lower-case word alone is an
/// option if it resembles one: it is misspelt or half typed.
pub(crate) fn is_next(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    let Ok(word) = ahead.call(Ident::parse_any) else {
        return true;
    };
    if goes_on(&ahead) {
        return true;
    }
    if keys::is_option(&word) || ahead.peek(Token![=]) || ahead.peek(Token![:]) {
        return false;
    }
    match input.fork().parse::<Expr>() {
        Ok(Expr::Path(_)) | Err(_) => !resembles_option(&word),
        Ok(_) => true,
    }
}

/// Whether the word before the input is the start of a value such as `config.limit`,
/// `Duration::MAX` or `limit!()`.
pub(crate) fn goes_on(input: ParseStream<'_>) -> bool {
    input.peek(Token![::]) || input.peek(Token![.]) || input.peek(Token![!])
}

fn resembles_option(word: &Ident) -> bool {
    let typed = editor::typed_word(word);
    let is_lower = typed.starts_with(|first: char| first.is_lowercase() || first == '_');
    typed.is_empty() || is_lower && keys::meant(&typed).is_some()
}

/// The word that stands for the option in generated code, located at `value`. If the value starts
/// with an identifier, the word is not located there: an editor would take it for a mention of
/// that identifier.
pub(crate) fn word(value: &TokenStream) -> Ident {
    let here = match value.clone().into_iter().next() {
        Some(TokenTree::Ident(_)) | None => Span::call_site(),
        Some(token) => token.span(),
    };
    Ident::new("limit", here)
}
