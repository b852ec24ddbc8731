//! The `#[timeout]` attribute of the `timeout-runtime` crate, which re-exports it. Depend only on
//! that crate: the generated code calls it.

#![forbid(unsafe_code)]

mod args;
mod beside;
mod bindings;
mod call;
mod duration;
mod editor;
mod errors;
mod expand;
mod flow;
mod groups;
mod item;
mod keys;
mod mentions;
mod options;
mod params;
mod plan;
mod returned_future;
mod run;
mod runtime_path;
mod shape;
mod site;
mod slot;
mod suggest;
mod test_function;
#[cfg(test)]
mod tests;
mod token;
mod types;
mod unnamed;
mod unwrapped;
mod values;

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use crate::args::Args;
use crate::editor::Typed;
use crate::errors::Errors;
use crate::item::Item;
use crate::plan::Plan;
use crate::runtime_path::RuntimePath;
use crate::site::Site;

/// Limits how long one call of a function may take, and cancels the operation's token at the limit.
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
/// #[timeout("1s")]
/// async fn greet(name: &str) -> Result<String, TimeoutError> {
///     Ok(format!("hello, {name}"))
/// }
/// ```
///
/// The signature does not change. A call returns the result of the operation, or a `TimeoutError`
/// converted into the return type.
///
/// # Arguments
///
/// | argument | value | default | meaning |
/// |---|---|---|---|
/// | `name` | string, or constant `&'static str` | `module::function` | identifies the function in events and errors |
/// | `ms`, `secs` | integer, or expression of type `u64` | | the limit of one call, in milliseconds or seconds |
/// | `limit` | string such as `"1m 30s"`, or expression of type `Duration` | | the limit of one call |
/// | `cancel` | `true`, `false` | `true` | whether the token is cancelled at the limit; with `false`, the operation keeps running, abandoned |
/// | `grace` | as `limit` | none | how long after the cancellation a result still counts; callers wait that much longer |
/// | `run` | `"worker"`, `"inline"`, `"task"` | see below | where the operation runs |
/// | `token` | identifier, or string that holds one | `cancel_token` | the name of the token in the body |
/// | `upstream` | token, or `[a, b]` | none | further tokens that cancel this call: `CancelToken`, `Option` of one, slices of them; taken by reference |
/// | `deadline` | expression of type `Deadline` or `Instant` | none | a deadline in addition to the limit, such as the deadline of a whole request; the earlier one applies |
/// | `inherit` | `true`, `false` | `true` | whether the call inherits the deadline and the token of the enclosing call |
/// | `fallback` | function of `TimeoutError`, or string that holds its path | | converts the error into the caller's value; allows any return type |
/// | `on_late` | function of the return type, or string that holds its path | | receives a late result, for example to release a resource in it |
/// | `max_abandoned` | integer, or expression of type `usize` | half of the workers | refuses to start while this many operations of this function are abandoned |
/// | `crate` | path, or string that holds one | `::timeout_runtime` | the path of the runtime, if it is renamed or re-exported |
///
/// A first argument without a name is the limit, as in `#[timeout("50ms", cancel = false)]`. It
/// takes what `limit` takes, for example a constant or `Duration::from_millis(5)`. A lower-case
/// word alone that resembles an option is taken for a misspelt option. For a variable of that name,
/// write `limit = timeout`.
///
/// One of these sets the limit: the first argument, `ms`, `secs` or `limit`. It may be omitted if
/// `deadline` is given. A literal limit of zero does not compile. If an expression evaluates to
/// zero, the call has expired when it starts. Durations in strings are parsed at compile time:
/// whole numbers, each with one of the units `ns`, `us`, `ms`, `s`, `m`, `h` and `d`.
///
/// Expressions may use `self` and the arguments that are plain names. Each expression is evaluated
/// once per call, in source order, before the arguments move. Borrows and locks that an expression
/// takes end right after its evaluation.
///
/// # Where the operation runs
///
/// | function | `run` | how | may borrow |
/// |---|---|---|---|
/// | `fn` | `"worker"` (default) | on a pooled thread, while the caller waits | no |
/// | `fn` | `"inline"` | on the caller's thread; the operation must check its token | yes |
/// | `async fn` | `"inline"` (default) | polled in place, and dropped at the limit | yes |
/// | `async fn` | `"task"` (default with `cancel = false`) | as a Tokio task | no |
/// | `async fn` | `"worker"` | polled on a pooled thread; its future need not be `Send` | no |
/// | `fn` that returns a future | `"inline"` (default) | polled in place, and dropped at the limit | yes |
///
/// An operation that may not borrow needs arguments and a result that are `Send + 'static`: take
/// `String` instead of `&str`, `Arc<T>` instead of `&T`, `self: Arc<Self>` instead of `&self`.
/// `cancel = false` cannot be combined with `run = "inline"` or with `grace`.
///
/// Only the compiler sees a lifetime that a type hides, as in `Rows` for `Rows<'_>`. It reports
/// error E0521: the argument must outlive `'static`. Take an owned value, or set `run = "inline"`.
///
/// The limit of a `fn` starts at the call. The limit of an `async fn` starts when its future is
/// first polled.
///
/// A `fn` counts as a function that returns a future if its return type is written as
/// `impl Future<Output = R> + …` or as `Pin<Box<dyn Future<Output = R> + …>>`. `#[async_trait]`
/// generates the second form for methods: put `#[timeout]` on those methods. A boxed future behind
/// a type alias, or inside a `Result` or an `Option`, is rejected, because the limit would end
/// before the future is polled.
///
/// The body of such a function and the expressions of the attribute run at the call, outside the
/// limit. The token exists from then on. It is cancelled when the future is dropped, or earlier.
/// The limit, the linked tokens and the enclosing calls take effect when the future is first
/// polled.
///
/// # The token
///
/// A body that mentions `cancel_token` gets a `CancelToken` with that name. Mentions count in code,
/// in the arguments of a macro and in a format string such as `"{cancel_token:?}"`. A `let` of the
/// same name shadows the token.
/// A parameter with that name is the caller's token, a `CancelToken` or a `&CancelToken`. In the
/// body, the name then refers to a token that is cancelled together with the caller's token or when
/// this call ends, whichever comes first.
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
/// `Option<T>`, or a type of your own. Any other type needs a `fallback`:
///
/// ```
/// use timeout_runtime::timeout;
///
/// #[timeout("50ms", fallback = |_| 0)]
/// fn count(rows: Vec<u64>) -> usize {
///     rows.len()
/// }
/// ```
///
/// A test that returns nothing needs no `fallback`. If its call has no result, the test panics at
/// its own line, with the text of the error:
///
/// ```
/// # mod tests {
/// use timeout_runtime::timeout;
///
/// #[timeout("1m")]
/// #[test]
/// fn it_ends() {
///     assert_eq!(6 * 7, 42);
/// }
/// # }
/// ```
///
/// A function is a test if the last segment of an attribute is `test`, as in `#[tokio::test]`, or
/// `rstest`, `test_case` or `wasm_bindgen_test`. The attribute may be above or below `#[timeout]`.
/// The compiler removes a `#[test]` above before it expands `#[timeout]`. In a test build, every
/// `fn` without arguments that returns nothing therefore counts as a test. In other builds, where
/// tests do not exist, such a function without `fallback` is an error.
///
/// # Late results
///
/// A success that a poll of an inline `async fn` returns is never late. It is the outcome, even
/// after the deadline.
///
/// A result that does not count, or that no caller waits for any more, is dropped. With `on_late`,
/// that function receives the whole result instead, `Ok` or `Err`, so that it can release a
/// resource in it:
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
///     // The slow part goes here.
///     Ok(connection.unwrap_or(Connection))
/// }
///
/// connect()?;
/// # Ok::<(), TimeoutError>(())
/// ```
///
/// The function runs once for each such result, at the point where the result would be dropped: on
/// the worker, in the task or on the calling thread, depending on `run`. If a future is dropped
/// after its operation has returned a result, the function runs there. It runs outside any call,
/// and on a worker outside any Tokio runtime.
///
/// The function runs before the late event. If the call has already returned, it runs after the
/// event of the outcome. Otherwise it may run before that event, because neither side of a call
/// waits for the other.
///
/// A panic in the function changes nothing. A panic of the operation is not a result. If the
/// operation runs on a worker or as a task, the function must be `Send + 'static`.
///
/// # Functions
///
/// The attribute works on free and associated functions, on methods with any receiver and on
/// methods of trait implementations. They may be sync, `async` or return a future, may be generic,
/// and may have any patterns and attributes on their arguments. For an argument that is a pattern,
/// rustdoc shows a generated name. Arguments are dropped when the operation ends, in the order of a
/// plain function.
///
/// It does not work on `const fn`, `extern fn`, variadic functions, methods without a body and
/// functions that never return. An `unsafe fn` must run inline. `#[track_caller]` has no effect on
/// the body.
///
/// Attributes expand from top to bottom. Of two attributes that wrap a function, the lower one is
/// therefore the outer wrapper:
///
/// - `#[tracing::instrument]` below `#[timeout]` has its span around the whole call, and records
///   the `TimeoutError` of a call without a result. Above `#[timeout]`, its span is around the
///   operation.
/// - If an attribute below may read the names in a pattern, the pattern stays in the signature. The
///   parts of the argument that the pattern does not bind then stay with the caller.
/// - `#[rstest]` has a `timeout` of its own. Below it, write `#[timeout_runtime::timeout(…)]`,
///   after the cases. The attribute then wraps the test that is generated for each case, and the
///   body gets its token only from `CancelToken::current()`.
/// - Above or below `#[test_case(…)]` of `ntest`, the limit applies to each case. Below it, write
///   every value as a literal, as in `on_late = "give_back"`, and the attribute without a path:
///   that macro panics on anything else.
///
/// # Expansion
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
/// All mistakes are reported in one compilation, each at its place in the source.
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
    let completed = with_cursor.typed.into_iter().find_map(Typed::at_cursor);
    if let Some(word) = completed {
        return expansion(before, typed, Some(word), true).0;
    }
    let (_, is_right) = expansion(before, typed.clone(), None, true);
    expansion(args, typed, None, is_right).0
}

/// Returns the expansion of `typed`, and whether it is free of mistakes. `completed` is the option
/// word that an editor completes. Without `may_wrap`, the expansion has the same form as after a
/// mistake.
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
        let runtime_path = RuntimePath::new(&mut args, &item, completed);
        let plan = Plan::new(args, &item, &runtime_path, &site, &mut errors);
        plan.filter(|_| may_wrap).map_or_else(
            || unwrapped::as_typed(&item, &runtime_path),
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
