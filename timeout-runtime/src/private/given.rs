//! Checks the types of the attribute's option values, such as `ms` and `fallback`, and of a token
//! that the caller passes. Adds deadlines and upstream tokens to the `CallOptions`.
//!
//! Generated code calls the functions of these traits, as `arguments` explains.

use std::marker::PhantomData;
use std::ops::Deref;
use std::time::Duration;

use crate::call::checked::Checked;
use crate::call::options::CallOptions;
use crate::outcome::TimeoutError;
use crate::time::Deadline;
use crate::token::CancelToken;

/// Declares the trait of the type that an option takes. It checks values of a known type, such as
/// variables.
macro_rules! takes {
    ($name:ident, $type:ty, $message:literal, $label:literal) => {
        #[doc = $message]
        #[diagnostic::on_unimplemented(message = $message, label = $label)]
        pub trait $name {
            /// Returns the value.
            fn given(self) -> $type;
        }

        #[diagnostic::do_not_recommend]
        impl $name for $type {
            #[inline]
            fn given(self) -> $type {
                self
            }
        }
    };
}

takes!(
    Ms,
    u64,
    "`ms` takes a `u64`, but `{Self}` is not one",
    "this must be a `u64`; for a `Duration`, write `limit = ..`"
);
takes!(
    Secs,
    u64,
    "`secs` takes a `u64`, but `{Self}` is not one",
    "this must be a `u64`; for a `Duration`, write `limit = ..`"
);
takes!(
    Limit,
    Duration,
    "`limit` takes a `Duration`, but `{Self}` is not one",
    "this must be a `Duration`; for a number, write `ms = ..` or `secs = ..`"
);
takes!(
    Grace,
    Duration,
    "`grace` takes a `Duration`, but `{Self}` is not one",
    "this must be a `Duration`, as in `Duration::from_millis(..)`"
);
takes!(
    MaxAbandoned,
    usize,
    "`max_abandoned` takes a `usize`, but `{Self}` is not one",
    "this must be a `usize`"
);

/// A value of the `deadline` option.
#[diagnostic::on_unimplemented(
    message = "`deadline` takes a deadline, but `{Self}` is not one",
    label = "this must be a `Deadline` or an `Instant`; for a duration, write `limit = ..`"
)]
pub trait SharedDeadline {
    /// Adds the deadline to the options.
    fn set(self, options: CallOptions) -> CallOptions;
}

#[diagnostic::do_not_recommend]
impl<T: Into<Deadline>> SharedDeadline for T {
    fn set(self, options: CallOptions) -> CallOptions {
        options.deadline(self.into())
    }
}

/// A value of the `upstream` option: tokens that cancel the call.
#[diagnostic::on_unimplemented(
    message = "`upstream` takes tokens, but `{Self}` is not one",
    label = "this must be a `CancelToken`, an `Option` of one, or a slice of them"
)]
pub trait Upstream {
    /// Adds the tokens to the options.
    fn link(&self, options: CallOptions) -> CallOptions;
}

#[diagnostic::do_not_recommend]
impl Upstream for CancelToken {
    fn link(&self, options: CallOptions) -> CallOptions {
        options.link(self)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Upstream> Upstream for Option<T> {
    fn link(&self, options: CallOptions) -> CallOptions {
        match self {
            Some(token) => token.link(options),
            None => options,
        }
    }
}

#[diagnostic::do_not_recommend]
impl<T: Upstream> Upstream for [T] {
    fn link(&self, options: CallOptions) -> CallOptions {
        self.iter()
            .fold(options, |options, token| token.link(options))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Upstream, const N: usize> Upstream for [T; N] {
    fn link(&self, options: CallOptions) -> CallOptions {
        self.as_slice().link(options)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Upstream> Upstream for Vec<T> {
    fn link(&self, options: CallOptions) -> CallOptions {
        self.as_slice().link(options)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Upstream + ?Sized> Upstream for &T {
    fn link(&self, options: CallOptions) -> CallOptions {
        T::link(self, options)
    }
}

/// A parameter that has the token's name. It becomes an upstream token of the call.
#[diagnostic::on_unimplemented(
    message = "a parameter with the token's name must be a `CancelToken` or a `&CancelToken`",
    label = "this parameter hides the token; rename it, or set `token = ..` to another name"
)]
pub trait CallerToken {
    /// Adds the caller's token to the options.
    fn link(&self, options: CallOptions) -> CallOptions;
}

#[diagnostic::do_not_recommend]
impl CallerToken for CancelToken {
    fn link(&self, options: CallOptions) -> CallOptions {
        options.link(self)
    }
}

#[diagnostic::do_not_recommend]
impl CallerToken for &CancelToken {
    fn link(&self, options: CallOptions) -> CallOptions {
        options.link(self)
    }
}

/// How the caller passes its token, which decides how the body gets the token of the call.
/// [`CallerToken`] reports a parameter of another type. Then [`OtherType`] keeps that type in the
/// body, so that its use is not a second error.
#[derive(Debug)]
pub struct Caller<'a, T>(PhantomData<&'a T>, OtherType<T>);

/// The type of a parameter that is not a token.
#[derive(Debug)]
pub struct OtherType<T>(PhantomData<fn() -> T>);

impl<'a, T> Caller<'a, T> {
    /// For the parameter of the caller.
    #[must_use]
    pub fn new(_: &'a T) -> Self {
        Self(PhantomData, OtherType(PhantomData))
    }
}

impl Caller<'_, CancelToken> {
    /// The body gets the token by value.
    #[must_use]
    pub fn form(&self) -> ByValue {
        ByValue
    }
}

impl Caller<'_, &CancelToken> {
    /// The body gets the token by reference.
    #[must_use]
    pub fn form(&self) -> ByReference {
        ByReference
    }
}

impl<T> Deref for Caller<'_, T> {
    type Target = OtherType<T>;

    fn deref(&self) -> &OtherType<T> {
        &self.1
    }
}

impl<T> OtherType<T> {
    /// The body gets a value of the other type.
    #[must_use]
    pub fn form(&self) -> Self {
        Self(PhantomData)
    }

    /// Never called.
    #[must_use]
    pub fn bind(self, _: &CancelToken) -> T {
        unreachable!("the bound of the parameter fails at compile time")
    }
}

/// The body owns the token of the call.
#[derive(Clone, Copy, Debug)]
pub struct ByValue;

impl ByValue {
    /// The token as the body gets it.
    #[must_use]
    pub fn bind(self, token: &CancelToken) -> CancelToken {
        token.clone()
    }
}

/// The body borrows the token of the call.
#[derive(Clone, Copy, Debug)]
pub struct ByReference;

impl ByReference {
    /// The token as the body gets it.
    #[must_use]
    pub fn bind(self, token: &CancelToken) -> &CancelToken {
        token
    }
}

/// A function that converts the error if there is no result.
#[diagnostic::on_unimplemented(
    message = "`fallback` takes a function of `TimeoutError` that returns `{R}`, but `{Self}` is not one",
    label = "this must be a function, as in `|_| ..`"
)]
pub trait Fallback<R>: Sized {
    /// The function.
    fn checked(self) -> Checked<Self, fn(TimeoutError) -> R> {
        Checked::new(self)
    }
}

#[diagnostic::do_not_recommend]
impl<R, B: FnOnce(TimeoutError) -> R> Fallback<R> for B {}

/// As [`Fallback`], for closures, whose arguments get their types from this bound.
#[diagnostic::on_unimplemented(
    message = "`fallback` takes a function of `TimeoutError` that returns `{R}`, but `{Self}` is not one",
    label = "this must be a function, as in `|_| ..`"
)]
pub trait FallbackClosure<R>: FnOnce(TimeoutError) -> R {}

#[diagnostic::do_not_recommend]
impl<R, B: FnOnce(TimeoutError) -> R> FallbackClosure<R> for B {}

/// Gives a closure its expected type.
pub fn fallback<R, B: FallbackClosure<R>>(
    _never_run: fn() -> R,
    function: B,
) -> Checked<B, fn(TimeoutError) -> R> {
    Checked::new(function)
}

impl<R, B: FnOnce(TimeoutError) -> R> Checked<B, fn(TimeoutError) -> R> {
    /// The function.
    pub fn function(self) -> B {
        self.into_function()
    }
}
