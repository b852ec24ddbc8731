//! The options of `#[timeout]` as documented constants. Editors show them for the option words in
//! the attribute.
//!
//! The documentation of the attribute lists the same options with their defaults. `crate`, the path
//! of the runtime, is missing here because a constant cannot have that name.

#![allow(non_upper_case_globals)]

#[doc(hidden)]
pub use crate::__timeout_runtime as private;

/// Identifies the function in events and errors: a string, or a constant `&'static str`.
///
/// `name = "scan"`
pub const name: () = ();

/// The limit of one call in milliseconds: an integer, or an expression of type `u64`.
///
/// `ms = 50`
pub const ms: () = ();

/// The limit of one call in seconds: an integer, or an expression of type `u64`.
///
/// `secs = 5`
pub const secs: () = ();

/// The limit of one call: a string with units, or an expression of type `Duration`. As the first
/// argument it needs no name, as in `#[timeout("1m 30s")]`.
///
/// `limit = "1m 30s"`
pub const limit: () = ();

/// Whether the token is cancelled at the limit. With `false`, the operation keeps running,
/// abandoned.
///
/// `cancel = false`
pub const cancel: () = ();

/// How long after the cancellation a result still counts: a string with units, or an expression of
/// type `Duration`.
///
/// `grace = "250ms"`
pub const grace: () = ();

/// Where the operation runs: `"worker"`, `"inline"` or `"task"`.
///
/// `run = "inline"`
pub const run: () = ();

/// The name of the token in the body. The default is `cancel_token`.
///
/// `token = stop`
pub const token: () = ();

/// Further tokens that cancel this call, taken by reference: a `CancelToken`, an `Option` of one, a
/// slice, or several in brackets.
///
/// `upstream = [shutdown, request]`
pub const upstream: () = ();

/// A deadline in addition to the limit, of type `Deadline` or `Instant`. The earlier one applies.
///
/// `deadline = request.deadline`
pub const deadline: () = ();

/// Whether the call inherits the deadline and the token of the enclosing call.
///
/// `inherit = false`
pub const inherit: () = ();

/// A function that converts a `TimeoutError` into the caller's value when there is no result. It
/// allows any return type.
///
/// `fallback = |_| 0`
pub const fallback: () = ();

/// A function of the return type that receives a late result, which no caller gets.
///
/// `on_late = give_back`
pub const on_late: () = ();

/// Refuses to start while this many operations of this function are abandoned: an integer, or an
/// expression of type `usize`.
///
/// `max_abandoned = 8`
pub const max_abandoned: () = ();

/// The type of the array in which an expansion mentions these constants.
#[doc(hidden)]
pub type Words<const N: usize> = [(); N];

/// Expands to its tokens, for code that only an editor expands.
#[doc(hidden)]
#[macro_export]
macro_rules! __timeout_typed {
    ($($tokens:tt)*) => { $($tokens)* };
}

#[doc(hidden)]
pub use crate::__timeout_typed as typed;
