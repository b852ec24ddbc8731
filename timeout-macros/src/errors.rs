//! The collector of mistakes: everything wrong with one use of the attribute, told in one compilation.

use std::fmt::Display;

use proc_macro2::TokenStream;
use quote::ToTokens;

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
            .map(syn::Error::to_compile_error)
            .collect()
    }
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
