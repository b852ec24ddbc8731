//! Functions given to options (`fallback`, `on_late`) after their bound was checked.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

/// A function given to an option, if it has the shape `S`.
///
/// If it does not, its bound has already reported that. [`Checked::function`] then resolves to the
/// method of [`NotAFunction`], so that the call in generated code is not a second error.
pub struct Checked<F, S> {
    function: F,
    not_a_function: NotAFunction<S>,
}

/// Provides `function` if [`Checked`] does not.
pub struct NotAFunction<S>(PhantomData<S>);

impl<F, S> Checked<F, S> {
    pub(crate) fn new(function: F) -> Self {
        Self {
            function,
            not_a_function: NotAFunction(PhantomData),
        }
    }

    pub(crate) fn into_function(self) -> F {
        self.function
    }
}

impl<F, S> Deref for Checked<F, S> {
    type Target = NotAFunction<S>;

    fn deref(&self) -> &NotAFunction<S> {
        &self.not_a_function
    }
}

impl<S> NotAFunction<S> {
    /// A function of any argument. It is never called.
    #[must_use]
    pub fn function<A, R>(&self) -> fn(A) -> R {
        |_| unreachable!("the bound of the option fails at compile time")
    }
}

impl<F, S> fmt::Debug for Checked<F, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checked").finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for NotAFunction<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotAFunction").finish_non_exhaustive()
    }
}
