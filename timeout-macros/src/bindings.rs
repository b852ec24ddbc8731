//! Generates the bindings of the operation in front of the body: its arguments and its token.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Pat, ReceiverKind, Type};

use crate::mentions;
use crate::params::{Kind, Param};
use crate::plan::Plan;
use crate::token;
use crate::types;

/// All arguments in order, and then the token:
///
/// ```text
/// fn scan(&self, mut rows: Vec<Row>, (from, to): (u32, u32)) -> …
/// ```
///
/// becomes
///
/// ```text
/// let _ = &self;
/// let mut rows = rows;
/// let _ = &rows; // where an option mentions `rows`
/// let mut __arg2 = __arg2;
/// let (from, to) = __arg2;
/// let cancel_token = __token;
/// let _ = &cancel_token;
/// ```
///
/// So the operation captures every argument, mentioned or not, and drops them in the order of a
/// plain function.
pub(crate) fn all(plan: &Plan<'_>, here: Span) -> TokenStream {
    let bindings = Bindings { plan, here };
    plan.params
        .iter()
        .map(|param| bindings.argument(param))
        .chain([bindings.token()])
        .collect()
}

/// Only the token, for an operation that already has its arguments.
pub(crate) fn token(plan: &Plan<'_>, here: Span) -> TokenStream {
    Bindings { plan, here }.token()
}

struct Bindings<'a> {
    plan: &'a Plan<'a>,
    here: Span,
}

impl Bindings<'_> {
    fn argument(&self, param: &Param) -> TokenStream {
        let Param {
            conditions,
            lints,
            kind,
            ..
        } = param;
        match kind {
            Kind::Receiver(receiver) => {
                let this = &receiver.self_token;
                let mut this = quote_spanned!(this.span=> &#this);
                if let ReceiverKind::Typed(_, ty) = &receiver.kind {
                    this = relocated(this, ty.span());
                }
                let capture = if self.plan.run.moves_away() {
                    quote_spanned!(self.here=> __timeout_p::Moved::lent(#this);)
                } else {
                    quote_spanned!(self.here=> let _ = #this;)
                };
                quote_spanned!(self.here=> #(#conditions)* #capture)
            }
            Kind::Name {
                mutability,
                ident,
                ty,
            } => {
                let mut value = self.argument_value(param.outer_name(ident), ty);
                // Binding an unused name to another one has no effect, and Clippy reports that.
                if !self.plan.run.moves_away() && ident.unraw().to_string().starts_with('_') {
                    value = quote_spanned!(self.here=> __timeout_p::keep(#value));
                }
                let used = self
                    .used(ident)
                    .into_iter()
                    .map(|mention| quote_spanned!(self.here=> #(#conditions)* let _ = &#mention;));
                quote_spanned! {self.here=>
                    #(#conditions)* #(#lints)* let #mutability #ident = #value;
                    #(#used)*
                }
            }
            Kind::Parts {
                parts, outer, ty, ..
            } => {
                if parts.is_empty() {
                    return TokenStream::new();
                }
                let values = outer.iter().map(|part| self.argument_value(part, ty));
                let bound = parts.iter().map(|part| {
                    let (mutability, ident) = (&part.mutability, &part.ident);
                    quote!(#mutability #ident)
                });
                quote_spanned! {self.here=>
                    #(#conditions)* #(#lints)* let (#(#bound,)*) = (#(#values,)*);
                }
            }
            Kind::Pattern { slot, pat, ty } => {
                let value = self.argument_value(slot, ty);
                // `let _ = …` would bind nothing, and lints report it.
                if matches!(**pat, Pat::Wild(_)) {
                    return quote_spanned!(self.here=> #(#conditions)* let #slot = #value;);
                }
                // A part may be `ref mut`. The macro cannot always see that: another macro may
                // generate it.
                quote_spanned! {self.here=>
                    #(#conditions)* let mut #slot = #value;
                    #(#conditions)* #(#lints)* let #pat = #slot;
                }
            }
            Kind::Token { .. } => TokenStream::new(),
        }
    }

    /// The mentions of the argument in the options, so that it does not count as unused. The
    /// expansion repeats each mention after the binding of the argument. An editor then renames it
    /// together with the body, for which that binding is the argument.
    fn used(&self, argument: &Ident) -> Vec<Ident> {
        let wanted = std::slice::from_ref(argument);
        let options = self.plan.expressions.iter();
        let mentions = options.flat_map(|option| {
            let mentions = mentions::all(option, wanted);
            // A format string has no identifier of its own.
            let is_named = mentions.is_empty() && !token::uses(option, argument).is_empty();
            let named = is_named.then(|| argument.clone());
            mentions.into_iter().chain(named)
        });
        mentions
            .map(|mention| token::tied(argument.clone(), &mention))
            .collect()
    }

    /// The value of the argument. If the operation must own and send it, a type that does not allow
    /// that is reported at the type.
    fn argument_value(&self, ident: &Ident, ty: &Type) -> TokenStream {
        if !self.plan.run.moves_away() {
            return ident.to_token_stream();
        }
        let value = relocated(ident.to_token_stream(), ty.span());
        let here = self.here.located_at(ty.span());
        if types::is_generic(ty, &self.plan.item.sig.generics) {
            quote_spanned!(here=> __timeout_p::MovedType::moved(#value))
        } else {
            quote_spanned!(here=> __timeout_p::Moved::moved(#value))
        }
    }

    /// Binds the token under each name that the body uses. If callers pass a token, its type
    /// decides whether the body gets a token of its own or a reference to one:
    ///
    /// ```text
    /// let cancel_token = __form.bind(&__token);
    /// let _ = &cancel_token;
    /// ```
    fn token(&self) -> TokenStream {
        let (here, uses) = (self.here, &self.plan.runtime_path.uses);
        let parameter = self.plan.params.iter().find_map(|param| match &param.kind {
            Kind::Token {
                mutability, ident, ..
            } => Some((&param.lints, mutability, ident)),
            _ => None,
        });
        let bind = |(index, name): (usize, &Ident)| {
            let silence = quote_spanned!(here=> let _ = &#name;);
            match parameter {
                Some((lints, mutability, parameter)) => {
                    let name = relocated(name.to_token_stream(), parameter.span());
                    quote_spanned!(here=> #(#lints)* let #mutability #name = __form.bind(&__token); #silence)
                }
                None if index + 1 == uses.len() => {
                    quote_spanned!(here=> let #name = __token; #silence)
                }
                None => {
                    quote_spanned!(here=> let #name = __timeout_p::Clone::clone(&__token); #silence)
                }
            }
        };
        uses.iter().enumerate().map(bind).collect()
    }
}

/// `tokens` with their hygiene, located at `place`.
pub(crate) fn relocated(tokens: TokenStream, place: Span) -> TokenStream {
    let relocate = |mut token: TokenTree| {
        token.set_span(token.span().located_at(place));
        token
    };
    tokens.into_iter().map(relocate).collect()
}
