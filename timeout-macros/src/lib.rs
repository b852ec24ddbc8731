//! The `#[timeout]` attribute of the `timeout-runtime` crate, which re-exports it. Depend on that
//! crate alone: the code that the attribute generates calls into it.

#![forbid(unsafe_code)]

mod args;
mod beside;
mod bindings;
mod door;
mod duration;
mod editor;
mod errors;
mod expand;
mod flow;
mod groups;
mod item;
mod made;
mod mentions;
mod options;
mod params;
mod plan;
mod shape;
mod site;
mod slot;
mod suggest;
#[cfg(test)]
mod tests;
mod token;
mod types;
mod unwrapped;
mod values;

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use crate::args::Args;
use crate::door::Door;
use crate::editor::Typed;
use crate::errors::Errors;
use crate::item::Item;
use crate::plan::Plan;
use crate::site::Site;

/// Limits how long one call of a function may take, and tells the operation when its time is up.
///
/// ```
/// use timeout_runtime::{TimeoutError, timeout};
///
/// #[timeout(name = "scan", ms = 200)]
/// fn scan(rows: Vec<u64>) -> Result<usize, TimeoutError> {
///     let mut hits = 0;
///     for row in rows {
///         cancel_token.check()?;
///         hits += usize::from(row % 7 == 0);
///     }
///     Ok(hits)
/// }
///
/// #[timeout(name = "greet", secs = 1)]
/// async fn greet(name: &str) -> Result<String, TimeoutError> {
///     Ok(format!("hello, {name}"))
/// }
/// ```
///
/// The signature stays as it is written. Callers get the operation's answer, or what the return
/// type makes of a `TimeoutError`.
///
/// # Arguments
///
/// | argument | value | default | meaning |
/// |---|---|---|---|
/// | `name` | string, or constant `&'static str` | `module::function` | identifies the function in events and errors |
/// | `ms`, `secs` | integer, or expression of type `u64` | | the limit of one call, in milliseconds or seconds |
/// | `limit` | string such as `"1m 30s"`, or expression of type `Duration` | | the limit of one call |
/// | `cancel` | `true`, `false` | `true` | whether the token fires at the limit; `false` lets the operation run on, abandoned |
/// | `grace` | as `limit` | none | how long past the signal an answer still counts; callers wait that much longer |
/// | `run` | `"worker"`, `"inline"`, `"task"` | see below | where the operation runs |
/// | `token` | identifier, or string that holds one | `cancel_token` | the name under which the body finds its token |
/// | `upstream` | token, or `[a, b]` | none | further tokens that stop this call: `CancelToken`, `Option` of one, slices of them; taken by reference |
/// | `deadline` | expression of type `Deadline` or `Instant` | none | a deadline besides the limit, such as that of a whole request; the earlier of the two holds |
/// | `inherit` | `true`, `false` | `true` | whether the deadline and the token of the call around this one bind it |
/// | `fallback` | function of `TimeoutError`, or string that holds its path | | gives callers their answer when there is none; makes any return type possible |
/// | `on_late` | function of the return type, or string that holds its path | | gets an answer that callers no longer get, to give back what is in it |
/// | `max_abandoned` | integer, or expression of type `usize` | half of the workers | refuse to start while so many operations of this function run abandoned |
/// | `crate` | path, or string that holds one | `::timeout_runtime` | where the runtime is, if it is renamed or re-exported |
///
/// One of `ms`, `secs` and `limit` sets the limit; it may be left out where `deadline` is given. A
/// literal limit of zero does not compile; an expression that comes out as zero means that the call
/// has expired when it begins. Strings are read at compile time: whole numbers, each with one of
/// the units `ns`, `us`, `ms`, `s`, `m`, `h` and `d`.
///
/// Expressions may use `self` and the arguments that are plain names. Each is evaluated once per
/// call, in the order in which they are written, before the arguments move; what it borrows or
/// locks is free again right after.
///
/// # Where the operation runs
///
/// | function | `run` | how | may borrow |
/// |---|---|---|---|
/// | `fn` | `"worker"` (default) | on a pooled thread, while the caller waits | no |
/// | `fn` | `"inline"` | on the caller's thread; it has to watch its token | yes |
/// | `async fn` | `"inline"` (default) | polled in place, and dropped at the limit | yes |
/// | `async fn` | `"task"` (default with `cancel = false`) | as a Tokio task | no |
/// | `async fn` | `"worker"` | polled on a pooled thread; its future need not be `Send` | no |
/// | `fn` that returns a future | `"inline"` (default) | polled in place, and dropped at the limit | yes |
///
/// Where it may not borrow, its arguments and its answer must be `Send + 'static`: take `String`
/// for `&str`, `Arc<T>` for `&T`, `self: Arc<Self>` for `&self`. `cancel = false` goes with neither
/// `run = "inline"` nor `grace`.
///
/// A lifetime that a type hides, as in `Rows` for `Rows<'_>`, shows to the compiler alone. Its
/// error then is E0521, that the argument must outlive `'static`: take an owned value, or set `run
/// = "inline"`.
///
/// The clock of a `fn` starts when it is called, that of an `async fn` when its future is first
/// polled.
///
/// A `fn` returns a future if its return type is spelled `impl Future<Output = R> + …` or
/// `Pin<Box<dyn Future<Output = R> + …>>`, which is what `#[async_trait]` makes of methods: put
/// `#[timeout]` on those. A boxed future behind a type alias, or inside a `Result` or an `Option`,
/// is refused: the limit would end when the future has been made. Its body and the expressions of
/// the attribute run at the call, outside the limit. Its token is there from then on, and fires at
/// the latest when the future is dropped; the limit, the tokens and the calls above begin to count
/// when the future is first polled.
///
/// # The token
///
/// A body that names `cancel_token`, in code, in the arguments of a macro or in a format string
/// such as `"{cancel_token:?}"`, gets a `CancelToken` of that name. A `let` of the same name wins
/// over it.
///
/// A parameter of that name is the caller's token, a `CancelToken` or a `&CancelToken`. In the
/// body, the name then stands for a token that fires with the caller's and at the end of this call,
/// whichever comes first.
///
/// ```
/// use timeout_runtime::{CancelToken, TimeoutError, timeout};
///
/// #[timeout(ms = 200, token = stop)]
/// fn wait_for(stop: &CancelToken, done: fn() -> bool) -> Result<(), TimeoutError> {
///     while !done() {
///         stop.check()?;
///     }
///     Ok(())
/// }
/// ```
///
/// # Return types
///
/// The return type implements `FromTimeout`: `Result<T, E>` with `E: From<TimeoutError> + Debug`,
/// `Option<T>`, or a type of your own. Any other type takes a `fallback`:
///
/// ```
/// use timeout_runtime::timeout;
///
/// #[timeout(ms = 50, fallback = |_| 0)]
/// fn count(rows: Vec<u64>) -> usize {
///     rows.len()
/// }
/// ```
///
/// # Answers that come too late
///
/// A success that a poll of an inline `async fn` returns is never too late: it is the outcome, also
/// after the deadline.
///
/// An answer that does not count, or that nobody waits for any more, is dropped. With `on_late` it
/// goes to that function instead, whole, be it an `Ok` or an `Err`, so that a resource in it can be
/// given back:
///
/// ```
/// use std::sync::Mutex;
/// use timeout_runtime::{TimeoutError, timeout};
///
/// struct Connection;
/// static POOL: Mutex<Vec<Connection>> = Mutex::new(Vec::new());
///
/// fn give_back(late: Result<Connection, TimeoutError>) {
///     if let Ok(connection) = late {
///         POOL.lock().unwrap().push(connection);
///     }
/// }
///
/// #[timeout(secs = 5, on_late = give_back)]
/// fn connect() -> Result<Connection, TimeoutError> {
///     let connection = POOL.lock().unwrap().pop();
///     // What takes long goes here.
///     Ok(connection.unwrap_or(Connection))
/// }
///
/// connect()?;
/// # Ok::<(), TimeoutError>(())
/// ```
///
/// It is called once for each such answer, where that would be dropped: on the worker, in the task
/// or on the calling thread, wherever the operation ran; or where a future is dropped whose
/// operation had answered already. No call is around it, and on a worker no Tokio runtime. It is
/// called before the late event, and after the verdict event where the call had returned by then;
/// elsewhere it may come before that, since neither side of a call waits for the other. A panic in
/// it changes nothing. A panic of the operation is no answer. Where the operation runs elsewhere,
/// the function must be `Send + 'static` too.
///
/// # Functions
///
/// Free and associated functions, methods with any receiver and methods of trait implementations,
/// sync, `async` or returning a future, generic or not, with any patterns and attributes on their
/// arguments. Where an argument is a pattern, rustdoc shows a generated name. Arguments drop when
/// the operation ends, in the order of a plain function.
///
/// Not `const fn`, `extern fn`, variadic functions, methods without a body, functions that never
/// return, and `unsafe fn` unless it runs inline. `#[track_caller]` has no effect on the body.
///
/// Of two attributes that wrap a function the lower one wraps the upper one. So
/// `#[tracing::instrument]` below has its span around the whole call and records the `TimeoutError`
/// of a call without a result; above, its span is around the operation. Where the attributes below
/// may read the names in a pattern, the pattern stays in the signature, and parts that it leaves
/// out stay with the caller. Below `#[rstest]`, which has a `timeout` of its own, write
/// `#[timeout_runtime::timeout(…)]`, behind the cases; there it wraps the test that is made of each
/// case, and the body finds its token with `CancelToken::current()` only.
///
/// Above or below `#[test_case(…)]` of `ntest` the limit is that of each case. Below it, write
/// every value as a literal, as in `fallback = "panic_on_timeout"`, and the attribute without a
/// path: that macro panics on anything else.
///
/// # What it writes
///
/// A sync function, before and after:
///
/// ```text
#[doc = include_str!("tests/expansion/sync_worker.rs")]
/// ```
///
/// An `async fn`, before and after:
///
/// ```text
#[doc = include_str!("tests/expansion/async_inline.rs")]
/// ```
///
/// # Errors
///
/// All mistakes are reported in one compilation, each where it is.
#[proc_macro_attribute]
pub fn timeout(
    args: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    expand(args.into(), item.into()).into()
}

fn expand(args: TokenStream, typed: TokenStream) -> TokenStream {
    let Some(before) = editor::without_cursor(&args) else {
        return expansion(args, typed, None, true).0;
    };
    let (with_cursor, errors) = parse(args.clone());
    drop(errors.into_tokens());
    let word = with_cursor.typed.into_iter().find(Typed::is_at_cursor);
    if let Some(Typed { word, .. }) = word {
        return expansion(before, typed, Some(word), true).0;
    }
    let (_, is_right) = expansion(before, typed.clone(), None, true);
    expansion(args, typed, None, is_right).0
}

/// The expansion of `typed`, and whether there is no mistake. The option word `completed` is
/// offered for completion. Without `may_wrap`, the expansion looks as after a mistake.
fn expansion(
    args: TokenStream,
    typed: TokenStream,
    completed: Option<Ident>,
    may_wrap: bool,
) -> (TokenStream, bool) {
    let begin = args.clone().into_iter().next();
    let (mut args, mut errors) = parse(args);
    let expansion = if let Some(item) = Item::parse(&typed, &mut errors) {
        let site = Site::of(begin, beside::has_macro(&item.attrs));
        let door = Door::new(&mut args, &item, completed);
        let plan = Plan::new(args, &item, &door, &site, &mut errors);
        plan.filter(|_| may_wrap).map_or_else(
            || unwrapped::as_typed(&item, &door),
            |plan| expand::wrapped(&plan),
        )
    } else {
        typed
    };
    let is_right = errors.is_empty();
    let errors = errors.into_tokens();
    (quote!(#expansion #errors), is_right)
}

fn parse(args: TokenStream) -> (Args, Errors) {
    let mut errors = Errors::default();
    let args = Args::parse(args, &mut errors);
    (args, errors)
}
