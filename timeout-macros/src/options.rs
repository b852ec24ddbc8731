//! What a call asks for: the options, as statements in front of the operation.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::spanned::Spanned;

use crate::bindings;
use crate::params::{Kind, Param};
use crate::plan::{Limit, Plan};
use crate::slot::Given;
use crate::token;
use crate::values::Time;

/// What this call asks for. Each option is a statement of its own, in the order in which they are written, so that
/// a lock which one of them takes is free again for the next and for the operation:
///
/// ```text
/// #[timeout(ms = self.config.lock().ms, grace = "5ms")] async fn load(&self, cancel_token: CancelToken) -> …
/// ```
///
/// becomes
///
/// ```text
/// let __ask = __timeout_p::ask(&__TIMEOUT_POLICY);
/// let (__ask, __form) = __ask.caller_token(&cancel_token);
/// let __ask = __ask.ms(self.config.lock().ms);
/// let __ask = __ask.grace(__timeout_p::Duration::new(0, 5_000_000));
/// ```
pub(crate) fn all(plan: &Plan<'_>, here: Span, answer: &TokenStream) -> TokenStream {
    let mut options = Vec::from_iter(plan.limit.as_ref().map(limit));
    options.extend(
        plan.deadline
            .as_ref()
            .map(|deadline| ask(deadline, "deadline", &deadline.value)),
    );
    options.extend(plan.upstream.iter().flat_map(|upstream| {
        let tokens = upstream.value.iter();
        tokens.map(|token| ask(upstream, "upstream", token))
    }));
    options.extend(
        plan.run
            .grace()
            .map(|grace| ask(grace, "grace", time(&grace.value))),
    );
    options.extend(
        plan.max_abandoned
            .as_ref()
            .map(|count| ask(count, "max_abandoned", &count.value)),
    );
    options.extend(
        plan.fallback
            .as_ref()
            .map(|given| fallback(given, here, answer)),
    );
    options.extend(
        plan.on_late
            .as_ref()
            .map(|given| on_late(given, here, answer, plan.run.moves_away())),
    );
    options.sort_by_key(|(place, _)| *place);
    let options = options.into_iter().map(|(_, option)| option);
    let caller = plan
        .params
        .iter()
        .map(|param| caller_token(param, &plan.door.token, here));
    let detached = (!plan.inherits).then(|| quote_spanned!(here=> .detached()));
    quote_spanned! {here=>
        let __ask = __timeout_p::ask(&__TIMEOUT_POLICY)#detached;
        #(#caller)*
        #(#options)*
    }
}

/// The caller's token stops the call as well. Its type is judged by the runtime, at the type; what the body gets
/// in its place has the type that comes out, so that a wrong one is one error. A token that may not be there:
///
/// ```text
/// let __form = __timeout_p::ByValue;
/// #[cfg(unix)]
/// let (__ask, __form) = __ask.caller_token(&cancel_token);
/// #[cfg(unix)]
/// let _ = &cancel_token;
/// ```
///
/// The second mention is made of the name in the attribute, if there is one: an editor renames the two together.
fn caller_token(param: &Param, name: &Ident, here: Span) -> TokenStream {
    let (Kind::Token { ident, ty, .. }, conditions) = (&param.kind, &param.conditions) else {
        return TokenStream::new();
    };
    let otherwise =
        (!conditions.is_empty()).then(|| quote_spanned!(here=> let __form = __timeout_p::ByValue;));
    let outer = param.outer_name(ident);
    let token = bindings::relocated(quote_spanned!(here=> &#outer), ty.span());
    let typed = token::tied(ident.clone(), name);
    quote_spanned! {here=>
        #otherwise
        #(#conditions)* let (__ask, __form) = __ask.caller_token(#token);
        #(#conditions)* let _ = &#typed;
    }
}

/// The function is evaluated with the other options, and called by a closure whose call stands at the attribute:
///
/// ```text
/// let __fallback = __timeout_p::fallback(__timeout_p::never_run::<u32>, panic_on_timeout).function();
/// let __fallback = __timeout_p::or(move |__error| __fallback(__error));
/// ```
fn fallback(given: &Given<TokenStream>, here: Span, answer: &TokenStream) -> (usize, TokenStream) {
    let function = &given.value;
    let statements = quote_spanned! {here=>
        let __fallback = __timeout_p::fallback(__timeout_p::never_run::<#answer>, #function).function();
        let __fallback = __timeout_p::or(move |__error| __fallback(__error));
    };
    (given.place, statements)
}

/// The same for `on_late`, which may have to go to another thread:
///
/// ```text
/// let __on_late = __timeout_p::on_late(__timeout_p::never_run::<Option<u32>>, give_back).function();
/// let __on_late = __timeout_p::on_late_elsewhere(__on_late);
/// let __on_late = __timeout_p::late(__timeout_p::never_run::<Option<u32>>, move |__answer| __on_late(__answer));
/// ```
fn on_late(
    given: &Given<TokenStream>,
    here: Span,
    answer: &TokenStream,
    moves_away: bool,
) -> (usize, TokenStream) {
    let function = &given.value;
    let there = here.located_at(function.span());
    let sent = moves_away.then(
        || quote_spanned!(there=> let __on_late = __timeout_p::on_late_elsewhere(__on_late);),
    );
    let statements = quote_spanned! {here=>
        let __on_late = __timeout_p::on_late(__timeout_p::never_run::<#answer>, #function).function();
        #sent
        let __on_late = __timeout_p::late(__timeout_p::never_run::<#answer>, move |__answer| __on_late(__answer));
    };
    (given.place, statements)
}

fn limit(limit: &Given<Limit>) -> (usize, TokenStream) {
    match &limit.value {
        Limit::Ms(ms) => ask(limit, "ms", ms),
        Limit::Secs(secs) => ask(limit, "secs", secs),
        Limit::Time(value) => ask(limit, "limit", time(value)),
    }
}

/// Adds an option to what is asked for, in its place among the others.
fn ask<T>(option: &Given<T>, method: &str, value: impl ToTokens) -> (usize, TokenStream) {
    let here = Span::mixed_site().located_at(option.word.span());
    let method = Ident::new(method, here);
    (
        option.place,
        quote_spanned!(here=> let __ask = __ask.#method(#value);),
    )
}

fn time(value: &Time) -> TokenStream {
    match value {
        Time::Text(duration, span) => {
            let (secs, nanos) = (duration.as_secs(), duration.subsec_nanos());
            quote_spanned!(Span::mixed_site().located_at(*span)=> __timeout_p::Duration::new(#secs, #nanos))
        }
        Time::Expr(expr) => expr.to_token_stream(),
    }
}
