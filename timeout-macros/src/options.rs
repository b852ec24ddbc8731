//! What a call asks for: the options, as statements in front of the operation.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::Expr;
use syn::spanned::Spanned;

use crate::bindings;
use crate::params::{Kind, Param};
use crate::plan::{Limit, Plan};
use crate::slot::Given;
use crate::token;
use crate::values::Time;

/// What this call asks for. Each option is a statement of its own, in the order in which they are
/// written, so that a lock which one of them takes is free again for the next and for the
/// operation:
///
/// ```text
/// #[timeout(ms = self.config.lock().ms, grace = "5ms")] async fn load(&self, cancel_token: CancelToken) -> …
/// ```
///
/// becomes
///
/// ```text
/// let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
/// let __form = __timeout_p::Caller::new(&cancel_token).form();
/// let __options = __timeout_p::CallerToken::link(&cancel_token, __options);
/// let __options = __options.ms(self.config.lock().ms);
/// let __options = __options.grace(__timeout_p::Duration::new(0, 5_000_000));
/// ```
pub(crate) fn all(plan: &Plan<'_>, here: Span, answer: &TokenStream) -> TokenStream {
    let mut options = Vec::from_iter(plan.limit.as_ref().map(limit));
    options.extend(plan.deadline.as_ref().map(until));
    options.extend(plan.upstream.iter().flat_map(|upstream| {
        let tokens = upstream.value.iter();
        tokens.map(|token| link(upstream, token))
    }));
    options.extend(
        plan.run
            .grace()
            .map(|grace| time(grace, "Grace", &grace.value)),
    );
    options.extend(
        plan.max_abandoned
            .as_ref()
            .map(|count| number(count, "MaxAbandoned", "usize", &count.value)),
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
        let __options = __timeout_p::call_options(&__TIMEOUT_POLICY)#detached;
        #(#caller)*
        #(#options)*
    }
}

/// The caller's token stops the call as well. Its type is judged by the runtime, at the type; what
/// the body gets in its place has the type that comes out, so that a wrong one is one error. A
/// token that may not be there:
///
/// ```text
/// let __form = __timeout_p::ByValue;
/// #[cfg(unix)]
/// let __form = __timeout_p::Caller::new(&cancel_token).form();
/// #[cfg(unix)]
/// let __options = __timeout_p::CallerToken::link(&cancel_token, __options);
/// #[cfg(unix)]
/// let _ = &cancel_token;
/// ```
///
/// The second mention is made of the name in the attribute, if there is one: an editor renames the
/// two together.
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
        #(#conditions)* let __form = __timeout_p::Caller::new(#token).form();
        #(#conditions)* let __options = __timeout_p::CallerToken::link(#token, __options);
        #(#conditions)* let _ = &#typed;
    }
}

/// The function is evaluated with the other options, and called by a closure whose call stands at
/// the attribute:
///
/// ```text
/// let __fallback = __timeout_p::Fallback::<u32>::checked(panic_on_timeout).function();
/// let __fallback = __timeout_p::fallback_call(move |__error| __fallback(__error));
/// ```
///
/// What may be a closure gets its expected type:
/// `__timeout_p::fallback(__timeout_p::never_run::<u32>, |error| ..)`.
fn fallback(given: &Given<TokenStream>, here: Span, answer: &TokenStream) -> (usize, TokenStream) {
    let function = &given.value;
    let checked = if has_type(function) || is_call(function) {
        quote_spanned!(here=> __timeout_p::Fallback::<#answer>::checked(#function))
    } else {
        quote_spanned!(here=> __timeout_p::fallback(__timeout_p::never_run::<#answer>, #function))
    };
    let statements = quote_spanned! {here=>
        let __fallback = #checked.function();
        let __fallback = __timeout_p::fallback_call(move |__error| __fallback(__error));
    };
    (given.place, statements)
}

/// The same for `on_late`, which may have to move to another thread:
///
/// ```text
/// let __on_late = __timeout_p::OnLateFunction::<Option<u32>>::checked(give_back).function();
/// let __on_late = __timeout_p::SendOnLate::moved(__on_late);
/// let __on_late = __timeout_p::on_late_call(__timeout_p::never_run::<Option<u32>>, move |__value| __on_late(__value));
/// ```
fn on_late(
    given: &Given<TokenStream>,
    here: Span,
    answer: &TokenStream,
    moves_away: bool,
) -> (usize, TokenStream) {
    let function = &given.value;
    let checked = if has_type(function) || is_call(function) {
        quote_spanned!(here=> __timeout_p::OnLateFunction::<#answer>::checked(#function))
    } else {
        quote_spanned!(here=> __timeout_p::on_late(__timeout_p::never_run::<#answer>, #function))
    };
    let there = here.located_at(function.span());
    let moved = moves_away.then(
        || quote_spanned!(there=> let __on_late = __timeout_p::SendOnLate::moved(__on_late);),
    );
    let statements = quote_spanned! {here=>
        let __on_late = #checked.function();
        #moved
        let __on_late = __timeout_p::on_late_call(__timeout_p::never_run::<#answer>, move |__value| __on_late(__value));
    };
    (given.place, statements)
}

fn until(option: &Given<TokenStream>) -> (usize, TokenStream) {
    let (here, value) = (here(option), &option.value);
    (
        option.place,
        quote_spanned!(here=> let __options = __timeout_p::SharedDeadline::set(#value, __options);),
    )
}

fn link<T>(option: &Given<T>, token: &TokenStream) -> (usize, TokenStream) {
    let here = here(option);
    (
        option.place,
        quote_spanned!(here=> let __options = __timeout_p::Upstream::link(#token, __options);),
    )
}

fn limit(limit: &Given<Limit>) -> (usize, TokenStream) {
    match &limit.value {
        Limit::Ms(ms) => number(limit, "Ms", "u64", ms),
        Limit::Secs(secs) => number(limit, "Secs", "u64", secs),
        Limit::Time(value) => time(limit, "Limit", value),
    }
}

fn number<T>(
    option: &Given<T>,
    takes: &str,
    ty: &str,
    value: &TokenStream,
) -> (usize, TokenStream) {
    let mut tokens = value.clone().into_iter();
    let ty = Ident::new(ty, here(option));
    match (tokens.next(), tokens.next()) {
        (Some(literal @ TokenTree::Literal(_)), None) => ask(option, &literal),
        _ => ask_for(option, takes, &ty, value),
    }
}

fn time<T>(option: &Given<T>, takes: &str, value: &Time) -> (usize, TokenStream) {
    match value {
        Time::Text(duration, span) => {
            let (secs, nanos) = (duration.as_secs(), duration.subsec_nanos());
            let here = Span::mixed_site().located_at(*span);
            ask(
                option,
                &quote_spanned!(here=> __timeout_p::Duration::new(#secs, #nanos)),
            )
        }
        Time::Expr(value) => {
            let ty = quote_spanned!(here(option)=> __timeout_p::Duration);
            ask_for(option, takes, &ty, value)
        }
    }
}

/// Asks for a value that has the type which the option takes. Where the expression has a type of
/// its own, a trait tells of another one and says what was meant. Elsewhere the expression may
/// depend on the type that is wanted:
///
/// ```text
/// let __options = __options.ms(__timeout_p::Ms::given(self.limit));
/// let __given: u64 = text.parse()?;
/// let __options = __options.ms(__given);
/// ```
fn ask_for<T>(
    option: &Given<T>,
    takes: &str,
    ty: &impl ToTokens,
    value: &TokenStream,
) -> (usize, TokenStream) {
    let here = here(option);
    if has_type(value) {
        let takes = Ident::new(takes, here);
        return ask(
            option,
            &quote_spanned!(here=> __timeout_p::#takes::given(#value)),
        );
    }
    let (place, ask) = ask(option, &quote_spanned!(here=> __given));
    (
        place,
        quote_spanned!(here=> let __given: #ty = #value; #ask),
    )
}

/// Adds an option to what is asked for, in its place among the others.
fn ask<T>(option: &Given<T>, value: &impl ToTokens) -> (usize, TokenStream) {
    let here = here(option);
    let method = Ident::new(&option.word.to_string(), here);
    (
        option.place,
        quote_spanned!(here=> let __options = __options.#method(#value);),
    )
}

/// Where the statements of an option seem to stand.
fn here<T>(option: &Given<T>) -> Span {
    Span::mixed_site().located_at(option.word.span())
}

/// Whether the type of `value` does not depend on the type that is wanted: a variable, a constant,
/// a field.
fn has_type(value: &TokenStream) -> bool {
    matches!(
        syn::parse2(value.clone()),
        Ok(Expr::Path(_) | Expr::Field(_))
    )
}

/// Whether `value` is what a function returns, which is no closure whose arguments would need a
/// type.
fn is_call(value: &TokenStream) -> bool {
    matches!(
        syn::parse2(value.clone()),
        Ok(Expr::Call(_) | Expr::MethodCall(_))
    )
}
