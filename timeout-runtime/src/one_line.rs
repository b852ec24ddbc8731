//! [`OneLine`]: text that users wrote, inside a text of ours.

#[cfg(any(feature = "metrics", feature = "tracing"))]
use std::borrow::Cow;
use std::fmt::{self, Write};

/// The standard library escapes these for literals. In a message they stay readable as they are.
const KEPT: [char; 3] = ['"', '\'', '\\'];

/// Foreign text, such as a call's name or the message of an `assert_eq!`, printed on one line.
///
/// Line breaks, control characters and invisible or bidirectional format characters are escaped.
/// Such text cannot look like a further event, drive a terminal or reorder the rest of the line.
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
    /// The same text as a value. Allocates only if something may need an escape.
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
