//! Functions that options name, after their bound has been checked.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

/// A function of the shape `S`, if it is one. [`Checked::function`] of a value that is none gives a function that is never called: its
/// bound has reported the mistake, and the call that generated code writes is no second one.
pub struct Checked<F, S> {
    function: F,
    otherwise: Otherwise<S>,
}

/// Has the method `function` where [`Checked`] has none.
pub struct Otherwise<S>(PhantomData<S>);

impl<F, S> Checked<F, S> {
    pub(crate) fn new(function: F) -> Self {
        Self {
            function,
            otherwise: Otherwise(PhantomData),
        }
    }

    pub(crate) fn into_function(self) -> F {
        self.function
    }
}

impl<F, S> Deref for Checked<F, S> {
    type Target = Otherwise<S>;

    fn deref(&self) -> &Otherwise<S> {
        &self.otherwise
    }
}

impl<S> Otherwise<S> {
    /// A function of any argument.
    #[must_use]
    pub fn function<A, R>(&self) -> fn(A) -> R {
        |_| unreachable!("the compiler has refused this")
    }
}

impl<F, S> fmt::Debug for Checked<F, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checked").finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for Otherwise<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Otherwise").finish_non_exhaustive()
    }
}
