//! What the expansion does, checked: every rule that takes more than one value to judge.

use proc_macro2::{Span, TokenStream};
use syn::{Safety, Signature, Type};

use crate::args::Args;
use crate::beside;
use crate::door::Door;
use crate::errors::Errors;
use crate::item::Item;
use crate::made::{Block, Made};
use crate::mentions;
use crate::params::Param;
use crate::shape::Shape;
use crate::site::Site;
use crate::slot::{Given, Slot};
use crate::types;
use crate::values::{Place, Time};

/// An annotated function and what is to become of it.
pub(crate) struct Plan<'a> {
    pub(crate) item: &'a Item,
    pub(crate) door: &'a Door,
    pub(crate) params: Vec<Param>,
    pub(crate) shape: Shape<'a>,
    /// The future that is the whole body of a function that returns one.
    pub(crate) made: Option<Block>,
    pub(crate) run: Run,
    /// `None` stands for the path of the function.
    pub(crate) name: Option<TokenStream>,
    /// At least one of the limit and the deadline is given.
    pub(crate) limit: Option<Given<Limit>>,
    pub(crate) deadline: Option<Given<TokenStream>>,
    pub(crate) upstream: Option<Given<Vec<TokenStream>>>,
    /// Whether the call takes part in the deadline and token of the one around it.
    pub(crate) inherits: bool,
    pub(crate) max_abandoned: Option<Given<TokenStream>>,
    pub(crate) fallback: Option<Given<TokenStream>>,
    pub(crate) on_late: Option<Given<TokenStream>>,
    /// The expressions of the options, which use the arguments that they name.
    pub(crate) expressions: [TokenStream; 9],
}

/// Where the operation runs, and what the end of its limit means to it.
pub(crate) enum Run {
    SyncWorker(Signal),
    SyncInline(Grace),
    AsyncInline(Grace),
    AsyncTask(Signal),
    AsyncWorker(Signal),
    /// A future that the function has made, polled in place.
    MadeInline(Grace),
}

/// Whether the operation hears that its limit has passed.
pub(crate) enum Signal {
    Fire(Grace),
    Never,
}

/// How long past the signal an answer still counts.
pub(crate) type Grace = Option<Given<Time>>;

/// How long one call may take.
pub(crate) enum Limit {
    Ms(TokenStream),
    Secs(TokenStream),
    Time(Time),
}

impl Run {
    /// Whether the operation moves away from its caller, and must own all it works on.
    pub(crate) fn moves_away(&self) -> bool {
        !matches!(
            self,
            Self::SyncInline(_) | Self::AsyncInline(_) | Self::MadeInline(_)
        )
    }

    /// Whether the operation runs on past its limit without hearing of it.
    pub(crate) fn keeps_running(&self) -> bool {
        matches!(
            self,
            Self::SyncWorker(Signal::Never)
                | Self::AsyncTask(Signal::Never)
                | Self::AsyncWorker(Signal::Never)
        )
    }

    /// How long past the signal an answer still counts, if any grace is given.
    pub(crate) fn grace(&self) -> Option<&Given<Time>> {
        match self {
            Self::SyncInline(grace) | Self::AsyncInline(grace) | Self::MadeInline(grace) => {
                grace.as_ref()
            }
            Self::SyncWorker(signal) | Self::AsyncTask(signal) | Self::AsyncWorker(signal) => {
                match signal {
                    Signal::Fire(grace) => grace.as_ref(),
                    Signal::Never => None,
                }
            }
        }
    }
}

impl<'a> Plan<'a> {
    /// Checks everything; `None` if there is any mistake, be it found here or before.
    pub(crate) fn new(
        args: Args,
        item: &'a Item,
        door: &'a Door,
        site: &Site,
        errors: &mut Errors,
    ) -> Option<Self> {
        let sig = &item.sig;
        let params = Param::all(sig, &door.token, site);
        let shape = Shape::of(sig);
        let made = match shape {
            Shape::Future(_) => Made::of(item.body.inside()),
            Shape::Sync(_) | Shape::Async(_) => Made::Unknown,
        };
        check_instrument(item, &params, &made, errors);
        check_signature(sig, shape, errors);
        let expressions = args.expressions();
        check_parts(&params, &expressions, errors);
        check_bounded(&args, errors);
        check_answers(sig, shape, &args, errors);
        let is_clear = is_place_clear(&args);
        let run = run(&args.run, &args.cancel, args.grace, shape, errors);
        if let Some(run) = run.as_ref().filter(|run| run.moves_away() && is_clear) {
            check_unsafe(sig, errors);
            check_error(shape, errors);
            check_borrows(&params, shape, run, errors);
        }
        let limit = limit(args.ms, args.secs, args.limit, errors);
        let plan = Self {
            item,
            door,
            params,
            shape,
            made: match made {
                Made::Alone(block) => Some(block),
                Made::Behind | Made::Unknown => None,
            },
            run: run?,
            name: args.name.take().map(|name| name.value),
            limit,
            deadline: args.deadline.take(),
            upstream: args.upstream.take(),
            inherits: args.inherit.given().is_none_or(|inherit| inherit.value),
            max_abandoned: args.max_abandoned.take(),
            fallback: args.fallback.take(),
            on_late: args.on_late.take(),
            expressions,
        };
        errors.is_empty().then_some(plan)
    }
}

/// The functions that cannot be wrapped, wherever they run.
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
        .answer()
        .filter(|ty| matches!(types::visible(ty), Type::Never(_)))
    {
        errors.add(
            never,
            "a function that never returns cannot be timed out; return `Result<Infallible, TimeoutError>`",
        );
    }
}

/// The limit of a function ends when it returns. A future that it returns together with something
/// else would be polled after that.
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

/// A macro that is left below gets what this one has written. `#[instrument]` looks for the future
/// at the end of the body, and for the names in the signature; above, it gets both as typed.
fn check_instrument(item: &Item, params: &[Param], made: &Made, errors: &mut Errors) {
    let Some(instrument) = beside::instrument(&item.attrs) else {
        return;
    };
    if let Made::Behind = made {
        errors.add(
            instrument,
            "`#[instrument]` below `#[timeout]` would miss this future, which is made behind other statements; put it above",
        );
    } else if let (Made::Unknown, Some(pat)) = (made, params.iter().find_map(Param::hidden)) {
        errors.add(
            pat,
            "`#[instrument]` below `#[timeout]` cannot see the parts of this pattern; put it above",
        );
    }
}

/// Whether the operation runs where the attribute seems to say. What was not understood may have
/// been meant to say something else.
fn is_place_clear(args: &Args) -> bool {
    match &args.run {
        Slot::Given(_) => true,
        Slot::Refused => false,
        Slot::Absent => !args.garbled,
    }
}

/// Where the operation runs and how it ends, as far as it is told; `None` where that does not go
/// together.
fn run(
    run: &Slot<Place>,
    cancel: &Slot<bool>,
    grace: Slot<Time>,
    shape: Shape<'_>,
    errors: &mut Errors,
) -> Option<Run> {
    let cancels = cancel.given().is_none_or(|cancel| cancel.value);
    let place = match (run.given(), shape) {
        (Some(run), _) => run.value,
        (None, Shape::Sync(_)) => Place::Worker,
        (None, Shape::Async(_)) if !cancels => Place::Task,
        (None, Shape::Async(_) | Shape::Future(_)) => Place::Inline,
    };
    let grace = grace.take();
    if let (false, Some(grace)) = (cancels, &grace) {
        errors.add(
            &grace.word,
            "`grace` follows the signal that `cancel = false` holds back; drop one of them",
        );
    }
    let signal = if cancels {
        Signal::Fire(grace)
    } else {
        Signal::Never
    };
    let run = match (place, shape, signal) {
        (Place::Worker, Shape::Sync(_), signal) => Ok(Run::SyncWorker(signal)),
        (Place::Worker, Shape::Async(_), signal) => Ok(Run::AsyncWorker(signal)),
        (Place::Task, Shape::Async(_), signal) => Ok(Run::AsyncTask(signal)),
        (Place::Inline, Shape::Sync(_), Signal::Fire(grace)) => Ok(Run::SyncInline(grace)),
        (Place::Inline, Shape::Async(_), Signal::Fire(grace)) => Ok(Run::AsyncInline(grace)),
        (Place::Inline, Shape::Future(_), Signal::Fire(grace)) => Ok(Run::MadeInline(grace)),
        (Place::Task, Shape::Sync(_), _) => Err((
            run.typed(),
            "`run = \"task\"` takes an `async fn`; use `\"worker\"` or `\"inline\"`",
        )),
        (Place::Worker | Place::Task, Shape::Future(_), _) => Err((
            run.typed(),
            "a returned future runs inline, where its function has made it; write an `async fn` to run it elsewhere",
        )),
        (Place::Inline, Shape::Future(_), Signal::Never) => Err((
            cancel.typed(),
            "`cancel = false` lets the operation outlive its call, a returned future does not; write an `async fn`",
        )),
        (Place::Inline, _, Signal::Never) => Err((
            cancel.typed(),
            "`cancel = false` lets the operation outlive its call, `run = \"inline\"` does not; drop one of them",
        )),
    };
    run.map_err(|(at, message)| errors.add(at, message)).ok()
}

/// A call that could take for ever needs no attribute.
fn check_bounded(args: &Args, errors: &mut Errors) {
    let unbounded = args.has_no_limit() && args.deadline.is_absent();
    if unbounded && !args.garbled {
        errors.push(syn::Error::new(
            Span::call_site(),
            "one of `ms`, `secs`, `limit`, `deadline` is missing",
        ));
    }
}

/// A function that returns nothing cannot say that its time ran out. An option that was not
/// understood may have been `fallback`.
fn check_answers(sig: &Signature, shape: Shape<'_>, args: &Args, errors: &mut Errors) {
    if args.garbled || !args.fallback.is_absent() {
        return;
    }
    let message = "a function that returns nothing cannot say that its time ran out; return `Result<(), TimeoutError>`, or set `fallback`: \
                   in a test, `fallback = panic_on_timeout`";
    match shape.answer() {
        None => errors.add(&sig.ident, message),
        Some(ty) if types::is_unit(ty) => errors.add(ty, message),
        Some(_) => {}
    }
}

/// The one option that sets the limit.
fn limit(
    ms: Slot<TokenStream>,
    secs: Slot<TokenStream>,
    time: Slot<Time>,
    errors: &mut Errors,
) -> Option<Given<Limit>> {
    let given = [
        ms.take().map(|ms| ms.map(Limit::Ms)),
        secs.take().map(|secs| secs.map(Limit::Secs)),
        time.take().map(|time| time.map(Limit::Time)),
    ];
    let mut given: Vec<_> = given.into_iter().flatten().collect();
    given.sort_by_key(|option| option.place);
    let mut given = given.into_iter();
    let first = given.next()?;
    for second in given {
        let (first, second) = (&first.word, &second.word);
        errors.add(
            second,
            format_args!("`{first}` and `{second}` both set the limit; drop one of them"),
        );
    }
    Some(first)
}

/// The contract of an `unsafe fn` ends with the call, which an operation elsewhere can outlive.
fn check_unsafe(sig: &Signature, errors: &mut Errors) {
    if let Safety::Unsafe(token) = &sig.safety {
        errors.add(
            token,
            "an `unsafe fn` can only run inline; set `run = \"inline\"`",
        );
    }
}

/// An error that comes back from another thread is `Send`. The compiler would not say which bounds
/// are missing, and for async functions say so twice.
fn check_error(shape: Shape<'_>, errors: &mut Errors) {
    if let Some(error) = shape.answer().and_then(types::first_unsent_error) {
        errors.add(
            error,
            "an error that comes back from another thread must be `Send`; write `dyn Error + Send + Sync`, or set `run = \"inline\"`",
        );
    }
}

/// Options are evaluated before the patterns take arguments apart: the first mention in each is a
/// mistake. Where an argument has the name of a part as well, a macro has told them apart, and so
/// does rustc.
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

/// An operation elsewhere owns all it works on. Parameters with conditions may not be there, and
/// are left to rustc.
fn check_borrows(params: &[Param], shape: Shape<'_>, run: &Run, errors: &mut Errors) {
    let (place, signal) = match run {
        Run::SyncWorker(signal) | Run::AsyncWorker(signal) => ("on a worker", signal),
        Run::AsyncTask(signal) => ("as a task", signal),
        Run::SyncInline(_) | Run::AsyncInline(_) | Run::MadeInline(_) => return,
    };
    let can_run_inline = matches!(signal, Signal::Fire(_));
    let lends = shape.answer().and_then(types::first_borrow).is_some();
    for param in params.iter().filter(|param| param.conditions.is_empty()) {
        let Some(borrow) = param.first_borrow() else {
            continue;
        };
        // Callers wait for a change to what is theirs, or for a part of it: to take an owned value
        // alone would not do.
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
