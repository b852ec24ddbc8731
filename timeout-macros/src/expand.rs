//! Generates the annotated function from a plan. Nothing here can fail.
//!
//! Generated names are hygienic where the compiler allows it. Items cannot be hygienic, so their
//! names are ones that users do not write.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{FnArg, Signature};

use crate::call;
use crate::item::Item;
use crate::options;
use crate::plan::Plan;
use crate::run::Run;
use crate::shape::Shape;
use crate::types;

/// The function, with its body turned into an operation:
///
/// ```text
/// #[timeout(name = "scan", ms = 200)]
/// pub fn scan(mut rows: Vec<Row>) -> Result<usize, TimeoutError> { BODY }
/// ```
///
/// becomes
///
/// ```text
/// pub fn scan(rows: Vec<Row>) -> Result<usize, TimeoutError> {
///     use ::timeout_runtime::__timeout_options::private as __timeout_p;
///     static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new("scan");
///     let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
///     let __options = __options.ms(200);
///     return __timeout_p::sync_worker::<Result<usize, TimeoutError>, _, _>(__options, OPERATION);
/// }
/// ```
pub(crate) fn wrapped(plan: &Plan<'_>) -> TokenStream {
    let Item {
        attrs,
        vis,
        sig,
        body,
        ..
    } = plan.item;
    let inputs = match &plan.future_block {
        Some(_) => sig.inputs.clone(),
        None => plan.params.iter().map(FnArg::from).collect(),
    };
    let signature = Signature {
        inputs,
        ..sig.clone()
    };
    let expansion = Expansion::new(plan);
    let (policy, checks, options, call) = (
        expansion.policy(),
        expansion.return_type_checks(),
        options::all(plan, expansion.here, &expansion.result_type),
        call::of(plan, expansion.here, &expansion.result_type),
    );
    let (inner_attrs, runtime_path) = (&body.attrs, plan.runtime_path.import(expansion.here));
    // The braces keep their span: with any other span, unused functions are no longer reported.
    let block = braces(
        quote!(#inner_attrs #runtime_path #policy #checks #options #call),
        body.braces,
    );
    quote!(#(#attrs)* #vis #signature #block)
}

/// The span of generated code. It has the hygiene of this crate, so lints about the user's code
/// ignore it. It is located at the word `fn`: the compiler's errors point at the function, and an
/// editor that looks for the function's name finds no other token.
pub(crate) fn here(sig: &Signature) -> Span {
    Span::mixed_site().located_at(sig.fn_token.span)
}

/// The type of the result, as it can be written inside the body.
pub(crate) fn result_type(shape: Shape<'_>, here: Span) -> TokenStream {
    let nothing = || quote_spanned!(here=> ());
    let result_type = shape.result_type().map(types::inferred);
    result_type.map_or_else(nothing, ToTokens::into_token_stream)
}

pub(crate) fn braces(tokens: TokenStream, span: Span) -> TokenTree {
    let mut group = Group::new(Delimiter::Brace, tokens);
    group.set_span(span);
    TokenTree::Group(group)
}

struct Expansion<'a> {
    plan: &'a Plan<'a>,
    here: Span,
    /// The type of the result as it can be written inside the body.
    result_type: TokenStream,
}

impl<'a> Expansion<'a> {
    fn new(plan: &'a Plan<'a>) -> Self {
        let here = here(&plan.item.sig);
        let result_type = result_type(plan.shape, here);
        Self {
            plan,
            here,
            result_type,
        }
    }

    /// The policy, which all calls of the function share.
    fn policy(&self) -> TokenStream {
        let Self { plan, here, .. } = *self;
        let path = || {
            let function = plan.item.sig.ident.unraw().to_string();
            quote_spanned!(here=> __timeout_p::concat!(__timeout_p::module_path!(), "::", #function))
        };
        let name = plan.name.clone().unwrap_or_else(path);
        let keep_running = plan
            .run
            .keeps_running()
            .then(|| quote_spanned!(here=> .keep_running()));
        quote_spanned! {here=>
            static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new(#name)#keep_running;
        }
    }

    /// Checks of the return type, before the call that depends on it. Here, the error shows only
    /// the text of a trait, and not the place in the runtime that requires the trait. A type with
    /// `impl Trait` in it cannot be named and is not checked.
    ///
    /// ```text
    /// __timeout_p::returns(<Rows as __timeout_p::FromTimeout>::from_timeout);
    /// <Rows as __timeout_p::Sent>::sent();
    /// __timeout_p::Covered::check(__timeout_p::ReturnType::new(__timeout_p::never_run::<Rows>).covered());
    /// ```
    ///
    /// The last line rejects a boxed future behind a type alias: the limit would not cover its
    /// await. Without `fallback`, `FromTimeout` already rejects a future that is not inside another
    /// type.
    fn return_type_checks(&self) -> TokenStream {
        let Self {
            plan,
            here,
            result_type,
        } = self;
        let Some(ty) = plan.shape.result_type().filter(|ty| !types::is_hidden(ty)) else {
            return TokenStream::new();
        };
        let here = here.located_at(ty.span());
        let converts = plan.fallback.is_none().then(|| {
            quote_spanned!(here=> __timeout_p::returns(<#result_type as __timeout_p::FromTimeout>::from_timeout);)
        });
        // For an async call, the `.await` would report the same error again.
        let sent = matches!(plan.run, Run::SyncWorker(_))
            .then(|| quote_spanned!(here=> <#result_type as __timeout_p::Sent>::sent();));
        let may_be_a_future = matches!(plan.shape, Shape::Sync(_)) && types::is_path(ty);
        let covered = may_be_a_future.then(|| {
            let covered = if plan.fallback.is_some() {
                "covered"
            } else {
                "content_covered"
            };
            let covered = Ident::new(covered, here);
            quote_spanned! {here=>
                __timeout_p::Covered::check(__timeout_p::ReturnType::new(__timeout_p::never_run::<#result_type>).#covered());
            }
        });
        quote_spanned!(here=> #converts #sent #covered)
    }
}
