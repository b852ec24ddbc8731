//! [`Kind`]: what a participant is, for the report of a clock that cannot move.

use std::fmt;
use std::panic::Location;

/// What a participant is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Code of a test, inside this method of the clock. Time moves by itself only while such a
    /// participant exists.
    Test(&'static str, &'static Location<'static>),
    /// Code inside a context.
    Context(&'static Location<'static>),
    /// The operation of a call.
    Operation(&'static str),
    /// A callback, or other code on a background thread.
    Background,
    /// The thread that watches clocks.
    Watcher,
}

impl Kind {
    pub(super) fn is_test(self) -> bool {
        matches!(self, Self::Test(..))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Test(method, place) => write!(f, "`TestClock::{method}` at {place}"),
            Self::Context(place) => write!(f, "a context that was entered at {place}"),
            Self::Operation(name) => write!(f, "operation `{name}`"),
            Self::Background => f.write_str("a callback"),
            Self::Watcher => f.write_str("the watcher"),
        }
    }
}
