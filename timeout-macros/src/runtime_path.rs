//! The path by which generated code reaches the runtime, and the name of the body's token.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::Path;
use syn::spanned::Spanned;

use crate::args::Args;
use crate::editor::{self, Typed};
use crate::item::Item;
use crate::token;

/// Both are known even if other parts of the attribute have mistakes.
pub(crate) struct RuntimePath {
    /// The path of the runtime crate, if it is not the default.
    pub(crate) runtime: Option<Path>,
    /// The name of the body's token.
    pub(crate) token: Ident,
    /// The same name in each hygiene context in which the body uses it. Empty if the body does not
    /// mention its token.
    pub(crate) uses: Vec<Ident>,
    /// The options as typed.
    pub(crate) typed: Vec<Typed>,
    /// The option word that an editor completes.
    pub(crate) completed: Option<Ident>,
}

impl RuntimePath {
    pub(crate) fn new(args: &mut Args, item: &Item, completed: Option<Ident>) -> Self {
        let runtime = args.runtime.given().map(|path| path.value.clone());
        let default = || Ident::new("cancel_token", Span::mixed_site());
        let typed = args.token.given().map(|name| &name.value);
        let token = typed.cloned().unwrap_or_else(default);
        let uses = item.token_uses(&token);
        let uses = match typed {
            Some(typed) => {
                let tied = |name| token::tied(name, typed);
                uses.into_iter().map(tied).collect()
            }
            None => uses,
        };
        Self {
            runtime,
            token,
            uses,
            typed: std::mem::take(&mut args.typed),
            completed,
        }
    }

    /// Imports the runtime. This is the only mention of its path, so a wrong path is one error, at
    /// the path. The option words follow: the runtime's module defines them.
    pub(crate) fn import(&self, here: Span) -> TokenStream {
        let (path, place) = match &self.runtime {
            Some(path) => (path.to_token_stream(), here.located_at(path.span())),
            // If this path is wrong, the option `crate` is missing from the attribute.
            None => (quote_spanned!(Span::mixed_site()=> ::timeout_runtime), here),
        };
        let completed = self.completed.as_ref();
        let completed = completed.map(|word| editor::completed(&path, word, place));
        let words = editor::words(&self.typed, here);
        quote_spanned! {place=>
            #completed
            use #path::__timeout_options::private as __timeout_p;
            #words
        }
    }
}
