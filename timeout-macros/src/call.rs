//! Generates the call into the runtime, with the operation as its argument.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::spanned::Spanned;

use crate::bindings;
use crate::expand::braces;
use crate::flow;
use crate::plan::Plan;
use crate::returned_future::Block;
use crate::run::Run;
use crate::shape::Shape;
use crate::types;

/// The call, in the form that the operation's place needs.
pub(crate) fn of(plan: &Plan<'_>, here: Span, result_type: &TokenStream) -> TokenStream {
    let call = Call {
        plan,
        here,
        result_type,
    };
    if let Some(future_block) = &plan.future_block {
        return call.in_block(future_block);
    }
    let entry = match plan.run {
        Run::AsyncInline(_) => return call.in_place(),
        Run::SyncWorker(_) => "sync_worker",
        Run::SyncInline(_) => "sync_inline",
        Run::AsyncTask(_) => "async_task",
        Run::AsyncWorker(_) => "async_worker",
        Run::ReturnedFutureInline(_) => "returned_future_inline",
    };
    call.through(entry)
}

struct Call<'a> {
    plan: &'a Plan<'a>,
    here: Span,
    /// The type of the result as it can be written inside the body.
    result_type: &'a TokenStream,
}

impl Call<'_> {
    /// The call of an entry point of the runtime, followed by `.await` for an `async fn`:
    ///
    /// ```text
    /// __timeout_p::sync_worker::<Result<usize, TimeoutError>, _, _>(__options, OPERATION)
    /// ```
    ///
    /// For a function that returns a future, the operation creates that future at the call. Callers
    /// get it wrapped in the call, and boxed if the return type is boxed:
    ///
    /// ```text
    /// __timeout_p::Box::pin(__timeout_p::returned_future_inline::<Result<usize, TimeoutError>, _, _, _>(__options, OPERATION))
    /// ```
    ///
    /// With `fallback`, the return type needs no trait. The conversion and the classification of
    /// the result are passed as arguments, as in `conversion`:
    ///
    /// ```text
    /// __timeout_p::sync_worker_or::<usize, _, _, _>(__options, __fallback, OPERATION, |__value| __timeout_p::ReturnValue(__value).returned())
    /// ```
    fn through(&self, entry: &str) -> TokenStream {
        let Self {
            plan,
            here,
            result_type,
        } = *self;
        let (parameter, operation) = (self.parameter(), self.operation());
        let another = quote_spanned!(here=> , _);
        let (result, future) = match plan.shape {
            Shape::Sync(_) => (Some(result_type.clone()), None),
            Shape::Async(_) => (None, Some(another)),
            Shape::Future(future) => (
                Some(types::inferred(future.whole).into_token_stream()),
                Some(another),
            ),
        };
        let result = result.map(|ty| quote_spanned!(here=> -> #ty));
        let operation = quote_spanned!(here=> move |#parameter| #result #operation);
        let operation = self.guarded(
            match plan.shape {
                Shape::Sync(_) => "guard_operation",
                Shape::Async(_) | Shape::Future(_) => "guard_returned_future",
            },
            operation,
        );
        let call = if let Some(Conversion {
            result_type,
            convert,
            classify,
        }) = self.conversion()
        {
            let entry = format_ident!("{entry}_or", span = here);
            quote_spanned! {here=>
                __timeout_p::#entry::<#result_type, _, _ #future, _>(__options, #convert, #operation, #classify)
            }
        } else {
            let entry = Ident::new(entry, here);
            quote_spanned!(here=> __timeout_p::#entry::<#result_type, _, _ #future>(__options, #operation))
        };
        match plan.shape {
            Shape::Sync(_) => quote_spanned!(here=> return #call;),
            Shape::Async(_) => quote_spanned!(here=> return #call.await;),
            Shape::Future(future) if future.boxed => {
                quote_spanned!(here=> __timeout_p::Box::pin(#call))
            }
            Shape::Future(_) => call,
        }
    }

    /// An operation that is polled in place lives inside the caller's future, next to the call. The
    /// body is not an argument of `pin!`: an editor would expand it a second time there, and
    /// renaming an argument would change only half of the places.
    ///
    /// ```text
    /// let mut __call = __timeout_p::InlineCall::new(__options);
    /// let __token = __call.param::<__timeout_p::CancelToken>();
    /// let __op = OPERATION;
    /// let __op = __timeout_p::pin!(__op);
    /// return __call.until_verdict::<Result<usize, TimeoutError>, _>(__op).await;
    /// ```
    ///
    /// A `return` drops its temporaries before the call in every edition. Before edition 2024, the
    /// last expression of a block drops them after the call, and a lint reports that.
    fn in_place(&self) -> TokenStream {
        let Self {
            plan,
            here,
            result_type,
        } = *self;
        let token = (!plan.runtime_path.uses.is_empty()).then(
            || quote_spanned!(here=> let __token = __call.param::<__timeout_p::CancelToken>();),
        );
        let operation = self.guarded("guard_future", self.operation());
        let wait = if let Some(Conversion {
            result_type,
            convert,
            classify,
        }) = self.conversion()
        {
            quote_spanned! {here=>
                __call.until_verdict_or::<#result_type, _, _>(#convert, __op, #classify).await
            }
        } else {
            quote_spanned!(here=> __call.until_verdict::<#result_type, _>(__op).await)
        };
        quote_spanned! {here=>
            let mut __call = __timeout_p::InlineCall::new(__options);
            #token
            let __op = #operation;
            let __op = __timeout_p::pin!(__op);
            return #wait;
        }
    }

    /// Puts the call inside a future that is the whole body. The expansion is an `async` block
    /// again, plain or boxed, because other attributes look for such a block in a function that
    /// returns a future and take its braces for the user's. The block captures the arguments that
    /// the user's own block mentions.
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
    fn in_block(&self, future_block: &Block) -> TokenStream {
        let block = braces(self.in_place(), future_block.braces.span());
        let here = self.here.located_at(future_block.words.span());
        future_block.around(quote_spanned!(here=> async move #block))
    }

    /// The conversion of the result, if `fallback` or `on_late` is given. With `on_late`, the
    /// result is wrapped until a caller gets it:
    ///
    /// ```text
    /// __timeout_p::sync_worker_or::<__timeout_p::LateGuard<Option<Connection>, _>, _, _, _>(
    ///     __options,
    ///     __timeout_p::disarm_or_convert::<Option<Connection>>(),
    ///     __timeout_p::guard_operation(__on_late, OPERATION),
    ///     __timeout_p::guarded_returned::<Option<Connection>, _>(),
    /// )
    /// ```
    fn conversion(&self) -> Option<Conversion> {
        let Self {
            plan,
            here,
            result_type,
        } = *self;
        let guarded = || quote_spanned!(here=> __timeout_p::LateGuard<#result_type, _>);
        let (result_type, convert, classify) = match (&plan.fallback, &plan.on_late) {
            (None, None) => return None,
            (Some(_), None) => (
                result_type.clone(),
                quote_spanned!(here=> __fallback),
                quote_spanned!(here=> |__value| __timeout_p::ReturnValue(__value).returned()),
            ),
            (Some(_), Some(_)) => (
                guarded(),
                quote_spanned!(here=> __timeout_p::disarm(__fallback)),
                quote_spanned!(here=> |__value| __timeout_p::ReturnValue(__value.value()).returned()),
            ),
            (None, Some(_)) => (
                guarded(),
                quote_spanned!(here=> __timeout_p::disarm_or_convert::<#result_type>()),
                quote_spanned!(here=> __timeout_p::guarded_returned::<#result_type, _>()),
            ),
        };
        Some(Conversion {
            result_type,
            convert,
            classify,
        })
    }

    /// The operation. With `on_late`, the runtime's function `wrap` wraps its result.
    fn guarded(&self, wrap: &str, operation: TokenStream) -> TokenStream {
        if self.plan.on_late.is_none() {
            return operation;
        }
        let wrap = Ident::new(wrap, self.here);
        quote_spanned!(self.here=> __timeout_p::#wrap(__on_late, #operation))
    }

    /// The body with its bindings, as the runtime calls it. For a `fn`:
    ///
    /// ```text
    /// { BINDINGS ({ BODY }) }
    /// ```
    ///
    /// The inner braces are the user's and stay untouched. The parentheses keep the compiler from
    /// reporting them as needless. The outer braces follow the rules of this crate's edition: the
    /// last expression of a body may borrow from a binding.
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
    /// The block of a returned future gets the same form, with its own words and arguments.
    ///
    /// An async block cannot name the type of its result, but its first `return` can. So a mismatch
    /// is reported at the expression that does not match.
    ///
    /// If the result may be a future, such as a `JoinHandle`, the body is the operand of a
    /// `return`: Clippy asks to await the last expression of an async block if it is a future.
    /// After a body that never ends, a `return` would be unreachable.
    fn operation(&self) -> TokenStream {
        let Self {
            plan,
            here,
            result_type,
        } = *self;
        let type_hint =
            quote_spanned!(here=> if false { return __timeout_p::never_run::<#result_type>(); });
        if let Some(future_block) = &plan.future_block {
            let (words, block, token) = (
                &future_block.words,
                &future_block.braces,
                bindings::token(plan, here),
            );
            return quote_spanned!(here=> #words { #type_hint #token (#block) });
        }
        let (bindings, block) = (bindings::all(plan, here), &plan.item.body.block);
        let Shape::Async(_) = plan.shape else {
            return quote_spanned!(here=> { #bindings (#block) });
        };
        let may_be_a_future = plan.shape.result_type().is_some_and(types::may_be_a_future);
        let body = if may_be_a_future && !flow::never_ends(block) {
            quote_spanned!(here=> return (#block);)
        } else {
            quote_spanned!(here=> (#block))
        };
        quote_spanned!(here=> async move { #type_hint #bindings #body })
    }

    /// The parameter for the operation's token. A body that does not mention the token gets none,
    /// and the runtime creates none.
    fn parameter(&self) -> TokenStream {
        if self.plan.runtime_path.uses.is_empty() {
            quote_spanned!(self.here=> (): ())
        } else {
            quote_spanned!(self.here=> __token: __timeout_p::CancelToken)
        }
    }
}

/// The conversion of the result into the return type, as arguments of the runtime.
struct Conversion {
    /// The type that the operation returns.
    result_type: TokenStream,
    /// Converts a result or an error into the return type.
    convert: TokenStream,
    /// Classifies a result as a success or an error.
    classify: TokenStream,
}
