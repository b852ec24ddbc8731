//! A plan -> tokens. Nothing here can fail.
//!
//! Generated names are hygienic where they can be; items cannot, so these have names that nobody
//! writes.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{FnArg, Signature};

use crate::bindings;
use crate::flow;
use crate::item::Item;
use crate::made::Block;
use crate::options;
use crate::plan::{Plan, Run};
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
    let inputs = match &plan.made {
        Some(_) => sig.inputs.clone(),
        None => plan.params.iter().map(FnArg::from).collect(),
    };
    let signature = Signature {
        inputs,
        ..sig.clone()
    };
    let expansion = Expansion::new(plan);
    let (policy, asked, options, call) = (
        expansion.policy(),
        expansion.asked(),
        options::all(plan, expansion.here, &expansion.answer),
        expansion.call(),
    );
    let (inner_attrs, door) = (&body.attrs, plan.door.open(expansion.here));
    // The braces keep their place: with any other, functions that nobody calls are no longer
    // reported.
    let block = braces(
        quote!(#inner_attrs #door #policy #asked #options #call),
        body.braces,
    );
    quote!(#(#attrs)* #vis #signature #block)
}

/// Where generated code seems to stand. With the hygiene of this crate, it is out of sight of lints
/// about what the user wrote. At the word `fn`, the compiler's errors about it are at the function,
/// and an editor that looks for the function by its name finds nothing else.
pub(crate) fn here(sig: &Signature) -> Span {
    Span::mixed_site().located_at(sig.fn_token.span)
}

/// The type of what callers get, as it can be written inside the body.
pub(crate) fn answer(shape: Shape<'_>, here: Span) -> TokenStream {
    let nothing = || quote_spanned!(here=> ());
    let answer = shape.answer().map(types::inferred);
    answer.map_or_else(nothing, ToTokens::into_token_stream)
}

pub(crate) fn braces(tokens: TokenStream, span: Span) -> TokenTree {
    let mut group = Group::new(Delimiter::Brace, tokens);
    group.set_span(span);
    TokenTree::Group(group)
}

struct Expansion<'a> {
    plan: &'a Plan<'a>,
    here: Span,
    /// The return type as it can be written inside the body, at the place where it is written
    /// outside.
    answer: TokenStream,
}

impl<'a> Expansion<'a> {
    fn new(plan: &'a Plan<'a>) -> Self {
        let here = here(&plan.item.sig);
        let answer = answer(plan.shape, here);
        Self { plan, here, answer }
    }

    /// What all calls of the function share.
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

    /// What the compiler is asked about the return type, before the call that depends on it. Here
    /// it answers with the text of a trait alone, and without the place in the runtime that asks
    /// for it. A type that hides a part is not known yet.
    ///
    /// ```text
    /// __timeout_p::returns(<Rows as __timeout_p::FromTimeout>::from_timeout);
    /// <Rows as __timeout_p::Sent>::sent();
    /// __timeout_p::Covered::check(__timeout_p::ReturnType::new(__timeout_p::never_run::<Rows>).covered());
    /// ```
    ///
    /// The last line refuses a boxed future behind a type alias, whose await the limit would not
    /// cover. Without `fallback`, a future that is not inside something else is refused as a return
    /// type.
    fn asked(&self) -> TokenStream {
        let Self { plan, here, answer } = self;
        let Some(ty) = plan.shape.answer().filter(|ty| !types::is_hidden(ty)) else {
            return TokenStream::new();
        };
        let here = here.located_at(ty.span());
        let converts = plan.fallback.is_none().then(|| {
            quote_spanned!(here=> __timeout_p::returns(<#answer as __timeout_p::FromTimeout>::from_timeout);)
        });
        // Of an async call, the `.await` would ask again.
        let sent = matches!(plan.run, Run::SyncWorker(_))
            .then(|| quote_spanned!(here=> <#answer as __timeout_p::Sent>::sent();));
        let may_be_a_future = matches!(plan.shape, Shape::Sync(_)) && types::is_path(ty);
        let covered = may_be_a_future.then(|| {
            let covered = if plan.fallback.is_some() {
                "covered"
            } else {
                "content_covered"
            };
            let covered = Ident::new(covered, here);
            quote_spanned! {here=>
                __timeout_p::Covered::check(__timeout_p::ReturnType::new(__timeout_p::never_run::<#answer>).#covered());
            }
        });
        quote_spanned!(here=> #converts #sent #covered)
    }

    /// The one call into the runtime, for an `async fn` with `.await` behind it:
    ///
    /// ```text
    /// __timeout_p::sync_worker::<Result<usize, TimeoutError>, _, _>(__options, OPERATION)
    /// ```
    ///
    /// For a function that returns a future, the operation makes it at the call, and callers get it
    /// with the call around it, in a box if theirs is in one:
    ///
    /// ```text
    /// __timeout_p::Box::pin(__timeout_p::returned_future_inline::<Result<usize, TimeoutError>, _, _, _>(__options, OPERATION))
    /// ```
    ///
    /// With `fallback`, nothing is asked of the return type, and what it would have answered is
    /// handed over; `conversion` has the rest:
    ///
    /// ```text
    /// __timeout_p::sync_worker_or::<usize, _, _, _>(__options, __fallback, OPERATION, |__value| __timeout_p::ReturnValue(__value).ending())
    /// ```
    fn call(&self) -> TokenStream {
        let Self { plan, here, answer } = self;
        if let Some(made) = &plan.made {
            return self.call_in_block(made);
        }
        let entry = match plan.run {
            Run::AsyncInline(_) => {
                return self.call_in_place();
            }
            Run::SyncWorker(_) => "sync_worker",
            Run::SyncInline(_) => "sync_inline",
            Run::AsyncTask(_) => "async_task",
            Run::AsyncWorker(_) => "async_worker",
            Run::MadeInline(_) => "returned_future_inline",
        };
        let (parameter, operation) = (self.parameter(), self.operation());
        let another = quote_spanned!(*here=> , _);
        let (result, future) = match plan.shape {
            Shape::Sync(_) => (Some(answer.clone()), None),
            Shape::Async(_) => (None, Some(another)),
            Shape::Future(future) => (
                Some(types::inferred(future.whole).into_token_stream()),
                Some(another),
            ),
        };
        let result = result.map(|ty| quote_spanned!(*here=> -> #ty));
        let operation = quote_spanned!(*here=> move |#parameter| #result #operation);
        let operation = self.guarded(
            match plan.shape {
                Shape::Sync(_) => "guard_operation",
                Shape::Async(_) | Shape::Future(_) => "guard_returned_future",
            },
            operation,
        );
        let call = if let Some(Conversion {
            answer,
            convert,
            classify,
        }) = self.conversion()
        {
            let entry = format_ident!("{entry}_or", span = *here);
            quote_spanned! {*here=>
                __timeout_p::#entry::<#answer, _, _ #future, _>(__options, #convert, #operation, #classify)
            }
        } else {
            let entry = Ident::new(entry, *here);
            quote_spanned!(*here=> __timeout_p::#entry::<#answer, _, _ #future>(__options, #operation))
        };
        match plan.shape {
            Shape::Sync(_) => quote_spanned!(*here=> return #call;),
            Shape::Async(_) => quote_spanned!(*here=> return #call.await;),
            Shape::Future(future) if future.boxed => {
                quote_spanned!(*here=> __timeout_p::Box::pin(#call))
            }
            Shape::Future(_) => call,
        }
    }

    /// An operation that is polled in place lives inside the caller's future, and the call beside
    /// it. The body is no argument of `pin!`: an editor would expand it a second time there, and
    /// renaming an argument would change half of the places.
    ///
    /// ```text
    /// let mut __call = __timeout_p::InlineCall::new(__options);
    /// let __token = __call.param::<__timeout_p::CancelToken>();
    /// let __op = OPERATION;
    /// let __op = __timeout_p::pin!(__op);
    /// return __call.until_verdict::<Result<usize, TimeoutError>, _>(__op).await;
    /// ```
    ///
    /// A `return` drops its temporaries before the call in every edition. Before 2024, the last
    /// expression of a block drops them after it, and a lint reports that.
    fn call_in_place(&self) -> TokenStream {
        let Self { plan, here, answer } = self;
        let token = (!plan.door.uses.is_empty()).then(
            || quote_spanned!(*here=> let __token = __call.param::<__timeout_p::CancelToken>();),
        );
        let operation = self.guarded("guard_future", self.operation());
        let wait = if let Some(Conversion {
            answer,
            convert,
            classify,
        }) = self.conversion()
        {
            quote_spanned! {*here=>
                __call.until_verdict_or::<#answer, _, _>(#convert, __op, #classify).await
            }
        } else {
            quote_spanned!(*here=> __call.until_verdict::<#answer, _>(__op).await)
        };
        quote_spanned! {*here=>
            let mut __call = __timeout_p::InlineCall::new(__options);
            #token
            let __op = #operation;
            let __op = __timeout_p::pin!(__op);
            return #wait;
        }
    }

    /// A future that is the whole body has its call inside: it is an `async` block again, alone or
    /// boxed, which is what other attributes look for in a function that returns a future, and
    /// whose braces they take for the user's. It has the arguments that the user's own block
    /// mentions.
    ///
    /// ```text
    /// Box::pin(async move {
    ///     let mut __call = __timeout_p::InlineCall::new(__options);
    ///     let __token = __call.param::<__timeout_p::CancelToken>();
    ///     let __op = OPERATION;
    ///     let __op = __timeout_p::pin!(__op);
    ///     __call.until_verdict::<Result<usize, TimeoutError>, _>(__op).await
    /// })
    /// ```
    fn call_in_block(&self, made: &Block) -> TokenStream {
        let block = braces(self.call_in_place(), made.braces.span());
        let here = self.here.located_at(made.words.span());
        made.around(quote_spanned!(here=> async move #block))
    }

    /// What callers get, where that is more than the return type says. With `on_late`, the answer
    /// is wrapped until a caller has it:
    ///
    /// ```text
    /// __timeout_p::sync_worker_or::<__timeout_p::LateGuard<Option<Connection>, _>, _, _, _>(
    ///     __options,
    ///     __timeout_p::disarm_or_convert::<Option<Connection>>(),
    ///     __timeout_p::guard_operation(__on_late, OPERATION),
    ///     __timeout_p::guarded_ending::<Option<Connection>, _>(),
    /// )
    /// ```
    fn conversion(&self) -> Option<Conversion> {
        let Self { plan, here, answer } = self;
        let guarded = || quote_spanned!(*here=> __timeout_p::LateGuard<#answer, _>);
        let (answer, convert, classify) = match (&plan.fallback, &plan.on_late) {
            (None, None) => return None,
            (Some(_), None) => (
                answer.clone(),
                quote_spanned!(*here=> __fallback),
                quote_spanned!(*here=> |__value| __timeout_p::ReturnValue(__value).ending()),
            ),
            (Some(_), Some(_)) => (
                guarded(),
                quote_spanned!(*here=> __timeout_p::disarm(__fallback)),
                quote_spanned!(*here=> |__value| __timeout_p::ReturnValue(__value.value()).ending()),
            ),
            (None, Some(_)) => (
                guarded(),
                quote_spanned!(*here=> __timeout_p::disarm_or_convert::<#answer>()),
                quote_spanned!(*here=> __timeout_p::guarded_ending::<#answer, _>()),
            ),
        };
        Some(Conversion {
            answer,
            convert,
            classify,
        })
    }

    /// The operation, with its answer wrapped by the runtime's function `wrap` where there is an
    /// `on_late`.
    fn guarded(&self, wrap: &str, operation: TokenStream) -> TokenStream {
        if self.plan.on_late.is_none() {
            return operation;
        }
        let wrap = Ident::new(wrap, self.here);
        quote_spanned!(self.here=> __timeout_p::#wrap(__on_late, #operation))
    }

    /// The body with what it needs, as the runtime calls it. For a `fn`:
    ///
    /// ```text
    /// { BINDINGS ({ BODY }) }
    /// ```
    ///
    /// The inner braces are the user's, untouched, and in parentheses so that they do not count as
    /// needless. The outer ones have the rules of this crate's edition: what the last expression of
    /// a body borrows may be a binding.
    ///
    /// For an `async fn`:
    ///
    /// ```text
    /// async move {
    ///     if false {
    ///         return __timeout_p::never_run::<Result<usize, TimeoutError>>();
    ///     }
    ///     BINDINGS
    ///     ({ BODY })
    /// }
    /// ```
    ///
    /// The block of a returned future is turned into the same, with the words and the arguments
    /// that it has.
    ///
    /// An async block cannot name the type of its answer, but its first `return` can, so that a
    /// mismatch is reported at the expression that does not match.
    ///
    /// Where the answer may be a future, as a `JoinHandle` is, the body is what a `return` returns:
    /// clippy asks to await the last expression of an async block that is a future. Behind a body
    /// that never ends, a `return` would be unreachable.
    fn operation(&self) -> TokenStream {
        let Self { plan, here, answer } = self;
        let pin = quote_spanned!(*here=> if false { return __timeout_p::never_run::<#answer>(); });
        if let Some(made) = &plan.made {
            let (words, block, token) = (&made.words, &made.braces, bindings::token(plan, *here));
            return quote_spanned!(*here=> #words { #pin #token (#block) });
        }
        let (bindings, block) = (bindings::all(plan, *here), &plan.item.body.block);
        let Shape::Async(_) = plan.shape else {
            return quote_spanned!(*here=> { #bindings (#block) });
        };
        let may_be_a_future = plan.shape.answer().is_some_and(types::may_be_a_future);
        let body = if may_be_a_future && !flow::never_ends(block) {
            quote_spanned!(*here=> return (#block);)
        } else {
            quote_spanned!(*here=> (#block))
        };
        quote_spanned!(*here=> async move { #pin #bindings #body })
    }

    /// The token that the runtime hands to the operation. A body that does not ask gets none, and
    /// none is made.
    fn parameter(&self) -> TokenStream {
        if self.plan.door.uses.is_empty() {
            quote_spanned!(self.here=> (): ())
        } else {
            quote_spanned!(self.here=> __token: __timeout_p::CancelToken)
        }
    }
}

/// What callers get, as the runtime is told.
struct Conversion {
    /// The type of what the operation gives.
    answer: TokenStream,
    /// What is made of the ending.
    convert: TokenStream,
    /// What an answer means.
    classify: TokenStream,
}
