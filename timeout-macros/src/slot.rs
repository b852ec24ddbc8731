//! The value of one option, which can be set once.

use proc_macro2::{Ident, TokenStream};

/// The state of one option.
#[derive(Default)]
pub(crate) enum Slot<T> {
    #[default]
    Absent,
    /// The value was refused. Its error has been reported.
    Refused,
    Given(Given<T>),
}

/// The value of an option, with the tokens that errors point at.
pub(crate) struct Given<T> {
    pub(crate) value: T,
    pub(crate) word: Ident,
    /// The value as typed.
    pub(crate) typed: TokenStream,
    /// The place of the option among all options of the attribute.
    pub(crate) place: usize,
}

impl<T> Given<T> {
    pub(crate) fn map<U>(self, into: impl FnOnce(T) -> U) -> Given<U> {
        let Self {
            value,
            word,
            typed,
            place,
        } = self;
        Given {
            value: into(value),
            word,
            typed,
            place,
        }
    }
}

impl<T> Slot<T> {
    pub(crate) fn given(&self) -> Option<&Given<T>> {
        match self {
            Self::Given(given) => Some(given),
            Self::Absent | Self::Refused => None,
        }
    }

    pub(crate) fn take(self) -> Option<Given<T>> {
        match self {
            Self::Given(given) => Some(given),
            Self::Absent | Self::Refused => None,
        }
    }

    /// The value as typed, or nothing.
    pub(crate) fn typed(&self) -> TokenStream {
        self.given()
            .map(|given| given.typed.clone())
            .unwrap_or_default()
    }

    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}
