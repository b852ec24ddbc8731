//! The values that options are given.
//!
//! Generated code calls these as functions of their traits, as `arguments` says.

use std::marker::PhantomData;
use std::ops::Deref;
use std::time::Duration;

use crate::call::ask::Ask;
use crate::call::checked::Checked;
use crate::deadline::Deadline;
use crate::error::TimeoutError;
use crate::token::CancelToken;

/// The type that an option takes, for values whose type is known without it, such as a variable.
macro_rules! takes {
    ($name:ident, $type:ty, $message:literal, $label:literal) => {
        #[doc = $message]
        #[diagnostic::on_unimplemented(message = $message, label = $label)]
        pub trait $name {
            /// The value itself.
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
    "`ms` takes a `u64`, and `{Self}` is none",
    "this must be a `u64`; for a `Duration`, write `limit = ..`"
);
takes!(
    Secs,
    u64,
    "`secs` takes a `u64`, and `{Self}` is none",
    "this must be a `u64`; for a `Duration`, write `limit = ..`"
);
takes!(
    Limit,
    Duration,
    "`limit` takes a `Duration`, and `{Self}` is none",
    "this must be a `Duration`; for a number, write `ms = ..` or `secs = ..`"
);
takes!(
    Grace,
    Duration,
    "`grace` takes a `Duration`, and `{Self}` is none",
    "this must be a `Duration`, as in `Duration::from_millis(..)`"
);
takes!(
    MaxAbandoned,
    usize,
    "`max_abandoned` takes a `usize`, and `{Self}` is none",
    "this must be a `usize`"
);

/// What a shared deadline can be.
#[diagnostic::on_unimplemented(
    message = "`deadline` takes a deadline, and `{Self}` is none",
    label = "this must be a `Deadline` or an `Instant`; for a duration, write `limit = ..`"
)]
pub trait Until {
    /// Adds a deadline besides the limit.
    fn until(self, ask: Ask) -> Ask;
}

#[diagnostic::do_not_recommend]
impl<T: Into<Deadline>> Until for T {
    fn until(self, ask: Ask) -> Ask {
        ask.until(self.into())
    }
}

/// Tokens that stop a call.
#[diagnostic::on_unimplemented(
    message = "`upstream` takes tokens, and `{Self}` is none",
    label = "this must be a `CancelToken`, an `Option` of one, or a slice of them"
)]
pub trait Upstream {
    /// Links the tokens.
    fn link(&self, ask: Ask) -> Ask;
}

#[diagnostic::do_not_recommend]
impl Upstream for CancelToken {
    fn link(&self, ask: Ask) -> Ask {
        ask.link(self)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Upstream> Upstream for Option<T> {
    fn link(&self, ask: Ask) -> Ask {
        match self {
            Some(token) => token.link(ask),
            None => ask,
        }
    }
}

#[diagnostic::do_not_recommend]
impl<T: Upstream> Upstream for [T] {
    fn link(&self, ask: Ask) -> Ask {
        self.iter().fold(ask, |ask, token| token.link(ask))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Upstream, const N: usize> Upstream for [T; N] {
    fn link(&self, ask: Ask) -> Ask {
        self.as_slice().link(ask)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Upstream> Upstream for Vec<T> {
    fn link(&self, ask: Ask) -> Ask {
        self.as_slice().link(ask)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Upstream + ?Sized> Upstream for &T {
    fn link(&self, ask: Ask) -> Ask {
        T::link(self, ask)
    }
}

/// The type of a parameter that bears the token's name.
#[diagnostic::on_unimplemented(
    message = "a parameter with the token's name must be a `CancelToken` or a `&CancelToken`",
    label = "this parameter hides the token; rename it, or set `token = ..` to another name"
)]
pub trait CallerToken {
    /// Links the caller's own token.
    fn link(&self, ask: Ask) -> Ask;
}

#[diagnostic::do_not_recommend]
impl CallerToken for CancelToken {
    fn link(&self, ask: Ask) -> Ask {
        ask.link(self)
    }
}

#[diagnostic::do_not_recommend]
impl CallerToken for &CancelToken {
    fn link(&self, ask: Ask) -> Ask {
        ask.link(self)
    }
}

/// How callers hand their token in, which decides how the body gets the call's own one. [`CallerToken`] reports a parameter of another
/// type, and then [`OtherType`] keeps that type in the body, so that its use is no second mistake.
#[derive(Debug)]
pub struct Caller<'a, T>(PhantomData<&'a T>, OtherType<T>);

/// The type of a parameter that is no token.
#[derive(Debug)]
pub struct OtherType<T>(PhantomData<fn() -> T>);

impl<'a, T> Caller<'a, T> {
    /// The parameter.
    #[must_use]
    pub fn new(_: &'a T) -> Self {
        Self(PhantomData, OtherType(PhantomData))
    }
}

impl Caller<'_, CancelToken> {
    /// By value.
    #[must_use]
    pub fn form(&self) -> ByValue {
        ByValue
    }
}

impl Caller<'_, &CancelToken> {
    /// By reference.
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
    /// The form itself.
    #[must_use]
    pub fn form(&self) -> Self {
        Self(PhantomData)
    }

    /// Never called.
    #[must_use]
    pub fn bind(self, _: &CancelToken) -> T {
        unreachable!("the compiler has refused this")
    }
}

/// The body owns the call's token.
#[derive(Clone, Copy, Debug)]
pub struct ByValue;

impl ByValue {
    /// The body's binding.
    #[must_use]
    pub fn bind(self, token: &CancelToken) -> CancelToken {
        token.clone()
    }
}

/// The body borrows the call's token.
#[derive(Clone, Copy, Debug)]
pub struct ByReference;

impl ByReference {
    /// The body's binding.
    #[must_use]
    pub fn bind(self, token: &CancelToken) -> &CancelToken {
        token
    }
}

/// A function that converts the error if there is no result.
#[diagnostic::on_unimplemented(
    message = "`fallback` takes a function of `TimeoutError` that returns `{R}`, and `{Self}` is none",
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

/// As [`Fallback`], with the type that a closure's arguments take.
#[diagnostic::on_unimplemented(
    message = "`fallback` takes a function of `TimeoutError` that returns `{R}`, and `{Self}` is none",
    label = "this must be a function, as in `|_| ..`"
)]
pub trait FallbackFn<R>: FnOnce(TimeoutError) -> R {}

#[diagnostic::do_not_recommend]
impl<R, B: FnOnce(TimeoutError) -> R> FallbackFn<R> for B {}

/// Gives a closure its expected type.
pub fn fallback<R, B: FallbackFn<R>>(
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
