//! Checks every rule that involves more than one value, and plans the expansion.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::{Safety, Signature, Type};

use crate::args::Args;
use crate::beside;
use crate::errors::Errors;
use crate::item::Item;
use crate::mentions;
use crate::params::Param;
use crate::returned_future::{Block, ReturnedFuture};
use crate::run::{Cancellation, Run};
use crate::runtime_path::RuntimePath;
use crate::shape::Shape;
use crate::site::Site;
use crate::slot::{Given, Slot};
use crate::test_function::TestFunction;
use crate::types;
use crate::values::Time;

/// An annotated function with all decisions about its expansion.
pub(crate) struct Plan<'a> {
    pub(crate) item: &'a Item,
    pub(crate) runtime_path: &'a RuntimePath,
    pub(crate) params: Vec<Param>,
    pub(crate) shape: Shape<'a>,
    /// The future that is the whole body of a function that returns one.
    pub(crate) future_block: Option<Block>,
    pub(crate) run: Run,
    /// `None` means the path of the function.
    pub(crate) name: Option<TokenStream>,
    /// At least one of the limit and the deadline is given.
    pub(crate) limit: Option<Given<Limit>>,
    pub(crate) deadline: Option<Given<TokenStream>>,
    pub(crate) upstream: Option<Given<Vec<TokenStream>>>,
    /// Whether the call inherits the deadline and the token of the enclosing call.
    pub(crate) inherits: bool,
    pub(crate) max_abandoned: Option<Given<TokenStream>>,
    pub(crate) fallback: Option<Fallback>,
    pub(crate) on_late: Option<Given<TokenStream>>,
    /// The expressions of the options, which mention arguments.
    pub(crate) expressions: [TokenStream; 10],
}

/// What a call without a result does, in place of the conversion of the return type.
pub(crate) enum Fallback {
    /// Calls the function of the option.
    Function(Given<TokenStream>),
    /// Panics, in a test that returns nothing.
    Panic,
}

/// How long one call may take.
pub(crate) enum Limit {
    Ms(TokenStream),
    Secs(TokenStream),
    Time(Time),
}

impl<'a> Plan<'a> {
    /// Checks all rules. Returns `None` if there is any mistake, found here or before.
    pub(crate) fn new(
        mut args: Args,
        item: &'a Item,
        runtime_path: &'a RuntimePath,
        site: &Site,
        errors: &mut Errors,
    ) -> Option<Self> {
        let sig = &item.sig;
        let params = Param::all(sig, &runtime_path.token, site);
        let shape = Shape::of(sig);
        let returned_future = match shape {
            Shape::Future(_) => ReturnedFuture::of(item.body.inside()),
            Shape::Sync(_) | Shape::Async(_) => ReturnedFuture::Unknown,
        };
        check_instrument(item, &params, &returned_future, errors);
        check_signature(sig, shape, errors);
        let expressions = args.expressions();
        check_parts(&params, &expressions, errors);
        check_bounded(&args, errors);
        let fallback = fallback(
            std::mem::take(&mut args.fallback),
            item,
            shape,
            args.garbled,
            errors,
        );
        let is_clear = is_place_clear(&args);
        let run = Run::of(&args.run, &args.cancel, args.grace, shape, errors);
        if let Some(run) = run.as_ref().filter(|run| run.moves_away() && is_clear) {
            check_unsafe(sig, errors);
            check_error(shape, errors);
            check_borrows(&params, shape, run, errors);
        }
        let limit = limit(args.unnamed, args.ms, args.secs, args.limit, errors);
        let plan = Self {
            item,
            runtime_path,
            params,
            shape,
            future_block: match returned_future {
                ReturnedFuture::WholeBody(block) => Some(block),
                ReturnedFuture::AfterStatements | ReturnedFuture::Unknown => None,
            },
            run: run?,
            name: args.name.take().map(|name| name.value),
            limit,
            deadline: args.deadline.take(),
            upstream: args.upstream.take(),
            inherits: args.inherit.given().is_none_or(|inherit| inherit.value),
            max_abandoned: args.max_abandoned.take(),
            fallback,
            on_late: args.on_late.take(),
            expressions,
        };
        errors.is_empty().then_some(plan)
    }
}

/// Reports functions that cannot be wrapped, for any value of `run`.
fn check_signature(sig: &Signature, shape: Shape<'_>, errors: &mut Errors) {
    if let Some(constness) = &sig.constness {
        errors.add(constness, "a `const fn` cannot be timed out; drop `const`");
    }
    if let Some(abi) = &sig.abi {
        errors.add(
            abi,
            "an `extern fn` cannot be timed out; annotate a plain function that it calls",
        );
    }
    if let Some(variadic) = &sig.variadic {
        errors.add(
            variadic,
            "a variadic function cannot be timed out; take a slice",
        );
    }
    check_covered(shape, errors);
    if let Some(never) = shape
        .result_type()
        .filter(|ty| matches!(types::visible(ty), Type::Never(_)))
    {
        errors.add(
            never,
            "a function that never returns cannot be timed out; return `Result<Infallible, TimeoutError>`",
        );
    }
}

/// Reports a future inside another return type. The limit of a function ends when it returns, and
/// the future would be polled after that.
fn check_covered(shape: Shape<'_>, errors: &mut Errors) {
    let Shape::Sync(Some(ty)) = shape else {
        return;
    };
    if let Some(future) = types::returned_future(ty) {
        errors.add(
            future,
            "the limit would not cover the await of this future; write an `async fn`, or return `impl Future<Output = ..>` alone",
        );
    }
}

/// Reports an `#[instrument]` below `#[timeout]` that would miss something. A macro below gets the
/// expansion of this one. `#[instrument]` looks for the future at the end of the body, and for the
/// names in the signature. Above `#[timeout]`, it gets both as typed.
fn check_instrument(
    item: &Item,
    params: &[Param],
    returned_future: &ReturnedFuture,
    errors: &mut Errors,
) {
    let Some(instrument) = beside::instrument(&item.attrs) else {
        return;
    };
    if let ReturnedFuture::AfterStatements = returned_future {
        errors.add(
            instrument,
            "`#[instrument]` below `#[timeout]` would miss this future, which is made behind other statements; put it above",
        );
    } else if let (ReturnedFuture::Unknown, Some(pat)) =
        (returned_future, params.iter().find_map(Param::hidden))
    {
        errors.add(
            pat,
            "`#[instrument]` below `#[timeout]` cannot see the parts of this pattern; put it above",
        );
    }
}

/// Whether the place of the operation is certain. Text that was not understood may have been meant
/// to change that place.
fn is_place_clear(args: &Args) -> bool {
    match &args.run {
        Slot::Given(_) => true,
        Slot::Refused => false,
        Slot::Absent => !args.garbled,
    }
}

/// Reports a missing limit. Without one, a call could take for ever.
fn check_bounded(args: &Args, errors: &mut Errors) {
    let unbounded = args.has_no_limit() && args.deadline.is_absent();
    if unbounded && !args.garbled {
        errors.push(syn::Error::new(
            Span::call_site(),
            "one of `ms`, `secs`, `limit`, `deadline` is missing",
        ));
    }
}

/// What a call without a result does. Reports a function that returns nothing and is not a test,
/// because it cannot return an error. An option that was not understood may have been meant as
/// `fallback`.
fn fallback(
    given: Slot<TokenStream>,
    item: &Item,
    shape: Shape<'_>,
    is_garbled: bool,
    errors: &mut Errors,
) -> Option<Fallback> {
    if is_garbled || !given.is_absent() {
        return given.take().map(Fallback::Function);
    }
    let at = match shape.result_type() {
        None => item.sig.ident.to_token_stream(),
        Some(ty) if types::is_unit(ty) => ty.to_token_stream(),
        Some(_) => return None,
    };
    let message = "a function that returns nothing cannot say that its time ran out; return `Result<(), TimeoutError>`, \
                   or set `fallback`, as in `fallback = panic_on_timeout`";
    match TestFunction::of(item, shape) {
        TestFunction::Yes => {}
        TestFunction::InTestBuild => errors.add_outside_tests(at, message),
        TestFunction::No => errors.add(at, message),
    }
    Some(Fallback::Panic)
}

/// The argument that sets the limit. Reports further ones.
fn limit(
    unnamed: Slot<Time>,
    ms: Slot<TokenStream>,
    secs: Slot<TokenStream>,
    time: Slot<Time>,
    errors: &mut Errors,
) -> Option<Given<Limit>> {
    let unnamed = unnamed.take().map(|time| time.map(Limit::Time));
    let is_unnamed = unnamed.is_some();
    let named = [
        ms.take().map(|ms| ms.map(Limit::Ms)),
        secs.take().map(|secs| secs.map(Limit::Secs)),
        time.take().map(|time| time.map(Limit::Time)),
    ];
    let mut named: Vec<_> = named.into_iter().flatten().collect();
    named.sort_by_key(|option| option.place);
    let mut given = unnamed.into_iter().chain(named);
    let first = given.next()?;
    let name = if is_unnamed {
        "the first argument".to_owned()
    } else {
        format!("`{}`", first.word)
    };
    for second in given {
        let second = &second.word;
        errors.add(
            second,
            format_args!("{name} and `{second}` both set the limit; drop one of them"),
        );
    }
    Some(first)
}

/// Reports an `unsafe fn`. Its contract ends with the call, but an operation elsewhere can outlive
/// the call.
fn check_unsafe(sig: &Signature, errors: &mut Errors) {
    if let Safety::Unsafe(token) = &sig.safety {
        errors.add(
            token,
            "an `unsafe fn` can only run inline; set `run = \"inline\"`",
        );
    }
}

/// Reports an error type that cannot move between threads. The compiler would not name the missing
/// bounds, and would report async functions twice.
fn check_error(shape: Shape<'_>, errors: &mut Errors) {
    if let Some(error) = shape.result_type().and_then(types::first_unsent_error) {
        errors.add(
            error,
            "an error that comes back from another thread must be `Send`; write `dyn Error + Send + Sync`, or set `run = \"inline\"`",
        );
    }
}

/// Reports the first mention in each option of a part of a pattern. Options are evaluated before
/// patterns destructure the arguments. If an argument has the same name as a part, a macro
/// generated the two with different hygiene, and rustc distinguishes them.
fn check_parts(params: &[Param], options: &[TokenStream], errors: &mut Errors) {
    let named: Vec<_> = params.iter().filter_map(Param::name).collect();
    let unconditional = params.iter().filter(|param| param.conditions.is_empty());
    let mut parts: Vec<_> = unconditional.flat_map(Param::parts).collect();
    parts.retain(|part| !named.contains(&part));
    for option in options {
        let Some(part) = mentions::all(option, &parts).into_iter().next() else {
            continue;
        };
        let message = format!(
            "options cannot see `{part}`, which is part of a pattern; take the argument whole, and take it apart in the body"
        );
        errors.add(part, message);
    }
}

/// Reports borrowed arguments of an operation that runs elsewhere. A parameter with a condition may
/// be absent, so rustc checks it.
fn check_borrows(params: &[Param], shape: Shape<'_>, run: &Run, errors: &mut Errors) {
    let (place, cancellation) = match run {
        Run::SyncWorker(cancellation) | Run::AsyncWorker(cancellation) => {
            ("on a worker", cancellation)
        }
        Run::AsyncTask(cancellation) => ("as a task", cancellation),
        Run::SyncInline(_) | Run::AsyncInline(_) | Run::ReturnedFutureInline(_) => return,
    };
    let can_run_inline = matches!(cancellation, Cancellation::AtLimit(_));
    let lends = shape.result_type().and_then(types::first_borrow).is_some();
    for param in params.iter().filter(|param| param.conditions.is_empty()) {
        let Some(borrow) = param.first_borrow() else {
            continue;
        };
        // Callers expect a change to their own value, or a part of it in return. Taking an owned
        // value would not be enough.
        let mut remedy = if borrow.is_mut || lends {
            "take and return owned values".to_owned()
        } else {
            format!("take {}", param.owned_form())
        };
        if can_run_inline {
            remedy.push_str(", or set `run = \"inline\"`");
        }
        let message =
            format!("an operation that runs {place} cannot borrow from its caller; {remedy}");
        errors.add(borrow.typed, message);
    }
}
