//! [`FromTimeout`]: the trait of return types that can hold a [`TimeoutError`].

use std::fmt;

use super::TimeoutError;
use crate::one_line::OneLine;

/// What an operation has returned, as its call sees it.
///
/// ```
/// use std::io;
/// use timeout_runtime::{FromTimeout, Returned};
///
/// assert!(matches!(Some(7).returned(), Returned::Value));
/// assert!(matches!(None::<u32>.returned(), Returned::Nothing));
///
/// let failed: io::Result<u32> = Err(io::ErrorKind::NotFound.into());
/// assert!(matches!(failed.returned(), Returned::Error(_)));
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Returned<'a> {
    /// A value: a success if it is in time.
    Value,
    /// An error: a failure if it is returned before the deadline and before a cancellation.
    Error(&'a dyn fmt::Debug),
    /// No value, such as `None`: a success before the deadline and the cancellation, treated like
    /// an error afterwards.
    Nothing,
}

impl fmt::Debug for Returned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value => f.write_str("Value"),
            Self::Error(error) => f.debug_tuple("Error").field(&OneLine(error)).finish(),
            Self::Nothing => f.write_str("Nothing"),
        }
    }
}

/// A return type that can be created from a [`TimeoutError`], and that tells values from errors.
///
/// Implemented for `Result<T, E>` where `E: From<TimeoutError> + Debug`, and for `Option<T>`, whose
/// `None` stands for every call without a result. Implement it for your own type to return it from
/// an annotated function:
///
/// ```
/// use timeout_runtime::{Returned, FromTimeout, TimeoutError, timeout};
///
/// #[derive(Debug)]
/// enum Reply {
///     Found(u32),
///     Unavailable(String),
/// }
///
/// impl FromTimeout for Reply {
///     fn from_timeout(error: TimeoutError) -> Self {
///         Reply::Unavailable(error.to_string())
///     }
///
///     fn returned(&self) -> Returned<'_> {
///         match self {
///             Reply::Found(_) => Returned::Value,
///             Reply::Unavailable(why) => Returned::Error(why),
///         }
///     }
/// }
///
/// #[timeout(name = "find", secs = 5)]
/// fn find(id: u32) -> Reply {
///     Reply::Found(id)
/// }
///
/// assert!(matches!(find(7), Reply::Found(7)));
/// ```
#[diagnostic::on_unimplemented(
    message = "a function with a timeout cannot return `{Self}`",
    label = "this type cannot say that time ran out",
    note = "if it is a future behind an alias, write it out, as in `Pin<Box<dyn Future<Output = ..> + Send>>`, so that the limit covers its await",
    note = "otherwise, return `Option<T>`, or `Result<T, E>` where `E` has both `From<TimeoutError>` and `Debug`, as `Box<dyn Error + Send + Sync>` has; \
            or give `fallback = ..`"
)]
pub trait FromTimeout: Sized {
    /// The return value of a call without a result.
    fn from_timeout(error: TimeoutError) -> Self;

    /// Tells whether this is a value or an error. Called at most once, on the thread where the
    /// operation ended, outside any call. Not called if the value is in time and there are no
    /// listeners.
    fn returned(&self) -> Returned<'_>;
}

impl<T, E: From<TimeoutError> + fmt::Debug> FromTimeout for Result<T, E> {
    fn from_timeout(error: TimeoutError) -> Self {
        Err(E::from(error))
    }

    fn returned(&self) -> Returned<'_> {
        of_result(self)
    }
}

impl<T> FromTimeout for Option<T> {
    fn from_timeout(_: TimeoutError) -> Self {
        None
    }

    fn returned(&self) -> Returned<'_> {
        match self {
            Some(_) => Returned::Value,
            None => Returned::Nothing,
        }
    }
}

pub(crate) fn of_result<T, E: fmt::Debug>(result: &Result<T, E>) -> Returned<'_> {
    match result {
        Ok(_) => Returned::Value,
        Err(error) => Returned::Error(error),
    }
}

/// A `fallback` for tests: panics on the caller's thread with the text of the error.
///
/// ```should_panic
/// use timeout_runtime::{panic_on_timeout, timeout};
///
/// #[timeout(ms = 20, fallback = panic_on_timeout)]
/// fn never_ends() {
///     while !cancel_token.is_cancelled() {
///         std::thread::yield_now();
///     }
/// }
///
/// never_ends();
/// ```
///
/// # Panics
///
/// Always.
#[track_caller]
#[allow(clippy::must_use_candidate)] // It never returns.
pub fn panic_on_timeout<T>(error: TimeoutError) -> T {
    // Takes the error by value, so that `fallback = panic_on_timeout` compiles.
    let text = error.to_string();
    drop(error);
    panic!("{text}")
}
