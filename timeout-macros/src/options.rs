//! Generates the options of a call, as statements in front of the operation.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::Expr;
use syn::spanned::Spanned;

use crate::bindings;
use crate::params::{Kind, Param};
use crate::plan::{Fallback, Limit, Plan};
use crate::slot::Given;
use crate::token;
use crate::values::Time;

/// All options of the call. Each option is a statement of its own, in source order, so that a lock
/// which an option takes is released before the next option and before the operation:
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
pub(crate) fn all(plan: &Plan<'_>, here: Span, result_type: &TokenStream) -> TokenStream {
    let mut options = Vec::from_iter(plan.limit.as_ref().map(limit));
    options.extend(plan.deadline.as_ref().map(deadline));
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
    if let Some(Fallback::Function(given)) = &plan.fallback {
        options.push(fallback(given, here, result_type));
    }
    options.extend(
        plan.on_late
            .as_ref()
            .map(|given| on_late(given, here, result_type, plan.run.moves_away())),
    );
    options.sort_by_key(|(place, _)| *place);
    let options = options.into_iter().map(|(_, option)| option);
    let caller = plan
        .params
        .iter()
        .map(|param| caller_token(param, &plan.runtime_path.token, here));
    let panic = matches!(plan.fallback, Some(Fallback::Panic))
        .then(|| panic(here, plan.item.sig.fn_token.span));
    let detached = (!plan.inherits).then(|| quote_spanned!(here=> .detached()));
    quote_spanned! {here=>
        let __options = __timeout_p::call_options(&__TIMEOUT_POLICY)#detached;
        #(#caller)*
        #(#options)*
        #panic
    }
}

/// Links the caller's token, which cancels the call. The runtime checks the type of the token and
/// reports a wrong one at the type. The body's token gets the resulting type, so that a wrong type
/// is one error. For a token with a `#[cfg]`:
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
/// The last mention uses the identifier in the attribute, if there is one: an editor then renames
/// the two together.
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

/// The function is evaluated with the other options. A closure calls it, and the span of that call
/// is the attribute:
///
/// ```text
/// let __fallback = __timeout_p::Fallback::<u32>::checked(panic_on_timeout).function();
/// let __fallback = __timeout_p::fallback_call(move |__error| __fallback(__error));
/// ```
///
/// A value that may be a closure gets its expected type:
/// `__timeout_p::fallback(__timeout_p::never_run::<u32>, |error| ..)`.
fn fallback(
    given: &Given<TokenStream>,
    here: Span,
    result_type: &TokenStream,
) -> (usize, TokenStream) {
    let function = &given.value;
    let checked = if has_type(function) || is_call(function) {
        quote_spanned!(here=> __timeout_p::Fallback::<#result_type>::checked(#function))
    } else {
        quote_spanned!(here=> __timeout_p::fallback(__timeout_p::never_run::<#result_type>, #function))
    };
    let statements = quote_spanned! {here=>
        let __fallback = #checked.function();
        let __fallback = __timeout_p::fallback_call(move |__error| __fallback(__error));
    };
    (given.place, statements)
}

/// A test that returns nothing panics when its call has no result. The method has the span of the
/// word `fn`, so that the panic is reported at the test and not at the attribute.
///
/// ```text
/// let __fallback = __timeout_p::fallback_call(|__error| __timeout_p::TestError(__error).fail());
/// ```
fn panic(here: Span, test: Span) -> TokenStream {
    let fail = quote_spanned!(test=> fail());
    quote_spanned! {here=>
        let __fallback = __timeout_p::fallback_call(|__error| __timeout_p::TestError(__error).#fail);
    }
}

/// Like `fallback`, for `on_late`, which may have to move to another thread:
///
/// ```text
/// let __on_late = __timeout_p::OnLateFunction::<Option<u32>>::checked(give_back).function();
/// let __on_late = __timeout_p::SendOnLate::moved(__on_late);
/// let __on_late = __timeout_p::on_late_call(__timeout_p::never_run::<Option<u32>>, move |__value| __on_late(__value));
/// ```
fn on_late(
    given: &Given<TokenStream>,
    here: Span,
    result_type: &TokenStream,
    moves_away: bool,
) -> (usize, TokenStream) {
    let function = &given.value;
    let checked = if has_type(function) || is_call(function) {
        quote_spanned!(here=> __timeout_p::OnLateFunction::<#result_type>::checked(#function))
    } else {
        quote_spanned!(here=> __timeout_p::on_late(__timeout_p::never_run::<#result_type>, #function))
    };
    let there = here.located_at(function.span());
    let moved = moves_away.then(
        || quote_spanned!(there=> let __on_late = __timeout_p::SendOnLate::moved(__on_late);),
    );
    let statements = quote_spanned! {here=>
        let __on_late = #checked.function();
        #moved
        let __on_late = __timeout_p::on_late_call(__timeout_p::never_run::<#result_type>, move |__value| __on_late(__value));
    };
    (given.place, statements)
}

fn deadline(option: &Given<TokenStream>) -> (usize, TokenStream) {
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
        (Some(literal @ TokenTree::Literal(_)), None) => set(option, &literal),
        _ => set_checked(option, takes, &ty, value),
    }
}

fn time<T>(option: &Given<T>, takes: &str, value: &Time) -> (usize, TokenStream) {
    match value {
        Time::Text(duration, span) => {
            let (secs, nanos) = (duration.as_secs(), duration.subsec_nanos());
            let here = Span::mixed_site().located_at(*span);
            set(
                option,
                &quote_spanned!(here=> __timeout_p::Duration::new(#secs, #nanos)),
            )
        }
        Time::Expr(value) => {
            let ty = quote_spanned!(here(option)=> __timeout_p::Duration);
            set_checked(option, takes, &ty, value)
        }
    }
}

/// Sets an option to a value, checked against the type that the option takes. If the expression has
/// a type of its own, a trait reports a wrong type and names the option that was probably meant.
/// Other expressions may depend on the expected type:
///
/// ```text
/// let __options = __options.ms(__timeout_p::Ms::given(self.limit));
/// let __given: u64 = text.parse()?;
/// let __options = __options.ms(__given);
/// ```
fn set_checked<T>(
    option: &Given<T>,
    takes: &str,
    ty: &impl ToTokens,
    value: &TokenStream,
) -> (usize, TokenStream) {
    let here = here(option);
    if has_type(value) {
        let takes = Ident::new(takes, here);
        return set(
            option,
            &quote_spanned!(here=> __timeout_p::#takes::given(#value)),
        );
    }
    let (place, statement) = set(option, &quote_spanned!(here=> __given));
    (
        place,
        quote_spanned!(here=> let __given: #ty = #value; #statement),
    )
}

/// Sets an option, in its place among the others.
fn set<T>(option: &Given<T>, value: &impl ToTokens) -> (usize, TokenStream) {
    let here = here(option);
    let method = Ident::new(&option.word.to_string(), here);
    (
        option.place,
        quote_spanned!(here=> let __options = __options.#method(#value);),
    )
}

/// The span of the statements of an option.
fn here<T>(option: &Given<T>) -> Span {
    Span::mixed_site().located_at(option.word.span())
}

/// Whether the type of `value` is independent of the expected type: a variable, a constant or a
/// field.
fn has_type(value: &TokenStream) -> bool {
    matches!(
        syn::parse2(value.clone()),
        Ok(Expr::Path(_) | Expr::Field(_))
    )
}

/// Whether `value` is a call. Its result is not a closure whose arguments would need a type.
fn is_call(value: &TokenStream) -> bool {
    matches!(
        syn::parse2(value.clone()),
        Ok(Expr::Call(_) | Expr::MethodCall(_))
    )
}
