//! Deadlines over the wire: what is left of a deadline goes to the next service in a header of the request.

mod header;

pub use header::{DeadlineHeader, HeaderError, HeaderMistake};
