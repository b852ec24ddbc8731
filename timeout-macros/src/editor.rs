//! Adds code to an expansion that helps editors: the option words, each of which names a documented
//! constant, and after a mistake the values as typed, so that completion finds the arguments of the
//! function.
//!
//! rust-analyzer expands the attribute twice to complete it: as typed, and with a word of its own
//! at the cursor. It reads the types around the cursor from the first expansion, at the position of
//! the word in the second. So both expansions must be the same up to that position.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};

/// The word that rust-analyzer inserts at the cursor.
const AT_CURSOR: &str = "intellijRulezz";

/// An option as typed, understood or not.
pub(crate) struct Typed {
    /// `None` for a value without an option word.
    word: Option<Ident>,
    /// The tokens after the `=`.
    value: TokenStream,
}

impl Typed {
    pub(crate) fn new(word: Ident, behind: TokenStream) -> Self {
        let mut behind = behind.into_iter().peekable();
        behind.next_if(|token| matches!(token, TokenTree::Punct(sign) if sign.as_char() == '='));
        let value = behind.collect();
        Self {
            word: Some(word),
            value,
        }
    }

    /// A value without an option word.
    pub(crate) fn unnamed(value: TokenStream) -> Self {
        Self { word: None, value }
    }

    /// The option word, if the cursor is in it.
    pub(crate) fn at_cursor(self) -> Option<Ident> {
        self.word
            .filter(|word| word.to_string().contains(AT_CURSOR))
    }
}

/// The text of `word` without the cursor in it.
pub(crate) fn typed_word(word: &Ident) -> String {
    word.to_string().replace(AT_CURSOR, "")
}

/// `tokens` without the word that an editor inserted, or `None` if there is no such word.
pub(crate) fn without_cursor(tokens: &TokenStream) -> Option<TokenStream> {
    let is_at_cursor = tokens.to_string().contains(AT_CURSOR);
    is_at_cursor.then(|| tokens.clone().into_iter().flat_map(restored).collect())
}

fn restored(token: TokenTree) -> TokenStream {
    match token {
        TokenTree::Group(group) => {
            let inner = group.stream().into_iter().flat_map(restored).collect();
            let mut restored = proc_macro2::Group::new(group.delimiter(), inner);
            restored.set_span(group.span());
            TokenTree::Group(restored).into()
        }
        token => {
            let text = token.to_string();
            if !text.contains(AT_CURSOR) {
                return token.into();
            }
            let typed = text.replace(AT_CURSOR, "").parse::<TokenStream>();
            let at_place = |mut part: TokenTree| {
                part.set_span(token.span());
                part
            };
            typed
                .unwrap_or_default()
                .into_iter()
                .map(at_place)
                .collect()
        }
    }
}

/// The option words, as mentions of constants:
///
/// ```text
/// const _: __timeout_p::options::Words<2> = [__timeout_p::options::ms, __timeout_p::options::grace];
/// ```
pub(crate) fn words(typed: &[Typed], here: Span) -> TokenStream {
    let words = typed.iter().filter_map(|option| option.word.as_ref());
    let mut known: Vec<Ident> = Vec::new();
    // `crate` cannot be the name of a constant.
    for word in words.filter(|word| crate::keys::is_option(word) && *word != "crate") {
        let mut word = word.clone();
        word.set_span(here.located_at(word.span()));
        known.push(word);
    }
    let count = known.len();
    quote_spanned! {here=>
        const _: __timeout_p::options::Words<#count> = [#(__timeout_p::options::#known,)*];
    }
}

/// The values as typed, for an editor only: they may not be expressions yet. The compiler does not
/// even parse them.
///
/// ```text
/// #[allow(unexpected_cfgs)]
/// {
///     #[cfg(rust_analyzer)]
///     __timeout_p::options::typed! {
///         let _: u64 = limits.;
///         __timeout_p::fallback(__timeout_p::never_run::<usize>, |error| error.);
///     }
/// }
/// ```
pub(crate) fn values(typed: &[Typed], result_type: &TokenStream, here: Span) -> TokenStream {
    let statements = typed.iter().map(|Typed { word, value }| {
        let word = word.as_ref().map(Ident::to_string);
        let ty = match word.as_deref().unwrap_or("limit") {
            "crate" | "token" => return TokenStream::new(),
            function @ ("fallback" | "on_late") => {
                let function = Ident::new(function, here);
                return quote_spanned!(here=> __timeout_p::#function(__timeout_p::never_run::<#result_type>, #value););
            }
            "ms" | "secs" => quote_spanned!(here=> u64),
            "max_abandoned" => quote_spanned!(here=> usize),
            "cancel" | "inherit" => quote_spanned!(here=> bool),
            "name" | "run" => quote_spanned!(here=> &'static str),
            "limit" | "grace" => quote_spanned!(here=> __timeout_p::Duration),
            _ => quote_spanned!(here=> _),
        };
        quote_spanned!(here=> let _: #ty = #value;)
    });
    quote_spanned! {here=>
        #[allow(unexpected_cfgs)]
        {
            #[cfg(rust_analyzer)]
            __timeout_p::options::typed! { #(#statements)* }
        }
    }
}

/// The word at the cursor, in a place where an editor completes it with the constants. In the
/// expansion without the cursor, the path of the runtime is at the same position.
///
/// ```text
/// use ::timeout_runtime::__timeout_options::intellijRulezz as _;
/// ```
pub(crate) fn completed(path: &impl ToTokens, word: &Ident, here: Span) -> TokenStream {
    quote_spanned!(here=> use #path::__timeout_options::#word as _;)
}
