//! [`OneLine`]: escapes user-provided text for one line of output.

#[cfg(any(feature = "metrics", feature = "tracing"))]
use std::borrow::Cow;
use std::fmt::{self, Write};

/// Not escaped, unlike in literals of the standard library: a message stays readable.
const KEPT: [char; 3] = ['"', '\'', '\\'];

/// Prints user-provided text, such as a call's name or a panic message, on one line.
///
/// Escapes line breaks, control characters, and invisible or bidirectional format characters.
/// Escaped text cannot look like another event, control a terminal or reorder the rest of the line.
pub(crate) struct OneLine<T>(pub(crate) T);

impl<T: fmt::Display> fmt::Display for OneLine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

impl<T: fmt::Debug> fmt::Debug for OneLine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{:?}", self.0)
    }
}

impl OneLine<&'static str> {
    /// Returns the escaped text. Allocates only if the text is not plain ASCII.
    #[cfg(any(feature = "metrics", feature = "tracing"))]
    pub(crate) fn into_text(self) -> Cow<'static, str> {
        if self.0.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            Cow::Borrowed(self.0)
        } else {
            Cow::Owned(self.to_string())
        }
    }
}

struct Escaping<'a, 'f>(&'a mut fmt::Formatter<'f>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.split_inclusive(KEPT).try_for_each(|piece| {
            let escaped = piece.strip_suffix(KEPT).unwrap_or(piece);
            let kept = &piece[escaped.len()..];
            write!(self.0, "{}{kept}", escaped.escape_debug())
        })
    }
}

#[cfg(test)]
mod tests;
