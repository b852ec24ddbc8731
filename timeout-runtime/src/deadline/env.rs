//! Deadlines in environment variables, for child processes.
//!
//! What travels is how long is left, and when that ends by the wall clock; the lesser of the two holds. The first alone would start anew at
//! each reading, and be late by what lies between; the second alone would be at the mercy of a clock that is set back.

use std::env::{self, VarError};
use std::error::Error;
use std::ffi::OsStr;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::Deadline;
use crate::one_line::OneLine;

const NEVER: &str = "never";

/// In nanoseconds, which are enough for more than five centuries.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Since 1970.
fn wall() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// The text of what is left at `wall`.
fn write(left: Duration, wall: Duration) -> String {
    format!("{}ns@{}", nanos(left), nanos(wall.saturating_add(left)))
}

/// What is left at `wall`; `None` where `text` is none that `write` has made.
fn read(text: &str, wall: Duration) -> Option<Duration> {
    let (left, end) = text.split_once("ns@")?;
    let whole = |digits: &str| {
        let is_plain = digits.bytes().all(|digit| digit.is_ascii_digit());
        is_plain.then(|| digits.parse().ok()).flatten()
    };
    let end = Duration::from_nanos(whole(end)?);
    Some(Duration::from_nanos(whole(left)?).min(end.saturating_sub(wall)))
}

impl Deadline {
    /// What carries it to a child process, in an environment variable of any name; the child reads that with [`from_env`](Self::from_env).
    ///
    /// ```
    /// use std::process::Command;
    /// use std::time::Duration;
    /// use timeout_runtime::Deadline;
    ///
    /// let deadline = Deadline::after(Duration::from_secs(5));
    /// let mut command = Command::new("convert");
    /// command.env("CONVERT_DEADLINE", deadline.to_env());
    /// ```
    #[must_use]
    pub fn to_env(&self) -> String {
        // In this order: what passes between the two makes the second later, and then the first holds.
        match self.remaining() {
            None => NEVER.to_owned(),
            Some(left) => write(left, wall()),
        }
    }

    /// The deadline in the environment variable `name`, as written by [`to_env`](Self::to_env); `None` if there is no such variable.
    ///
    /// It is never later than it was for the sender by more than the time from his [`to_env`](Self::to_env) to this, and only where the wall clock was set back in between; it comes no
    /// later if it is read again, or is passed on by a process that does not know of it. If the wall clock was set forward, it comes earlier.
    ///
    /// # Errors
    ///
    /// If the variable holds anything else.
    ///
    /// ```
    /// use timeout_runtime::{Deadline, InvalidDeadline};
    ///
    /// let deadline = Deadline::from_env("CONVERT_DEADLINE")?.unwrap_or(Deadline::never());
    /// # Ok::<(), InvalidDeadline>(())
    /// ```
    pub fn from_env(name: impl AsRef<OsStr>) -> Result<Option<Self>, InvalidDeadline> {
        let name = name.as_ref();
        let invalid = |value: String| InvalidDeadline {
            variable: name.to_string_lossy().into_owned(),
            value,
        };
        let text = match env::var(name) {
            Ok(text) => text,
            Err(VarError::NotPresent) => return Ok(None),
            Err(VarError::NotUnicode(value)) => {
                return Err(invalid(value.to_string_lossy().into_owned()));
            }
        };
        match Self::of_text(&text) {
            Some(deadline) => Ok(Some(deadline)),
            None => Err(invalid(text)),
        }
    }

    fn of_text(text: &str) -> Option<Self> {
        if text == NEVER {
            return Some(Self::never());
        }
        // No number means that there is no limit.
        Some(Self::after(read(text, wall())?)).filter(|deadline| *deadline != Self::never())
    }
}

/// An environment variable that holds no deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidDeadline {
    variable: String,
    value: String,
}

impl InvalidDeadline {
    /// The name of the variable.
    #[must_use]
    pub fn variable(&self) -> &str {
        &self.variable
    }

    /// What it holds.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }
}

impl fmt::Display for InvalidDeadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { variable, value } = self;
        let variable = OneLine(variable);
        write!(
            f,
            "the variable `{variable}` holds no deadline, but {value:?}"
        )
    }
}

impl Error for InvalidDeadline {}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: Duration = Duration::new(1_700_000_000, 123_456_789);
    const LEFT: Duration = Duration::from_millis(250);

    #[test]
    fn what_is_left_travels_to_the_nanosecond() {
        let text = write(LEFT, SENT);
        assert_eq!(text, "250000000ns@1700000000373456789");
        assert_eq!(read(&text, SENT), Some(LEFT));
        let odd = Duration::from_nanos(1);
        assert_eq!(read(&write(odd, SENT), SENT), Some(odd));
    }

    #[test]
    fn what_has_passed_meanwhile_is_taken_off_however_often_it_is_read() {
        let text = write(LEFT, SENT);
        for passed in [1, 100, 249] {
            let passed = Duration::from_millis(passed);
            assert_eq!(read(&text, SENT + passed), LEFT.checked_sub(passed));
        }
        for passed in [250, 251, 1_000_000] {
            let passed = Duration::from_millis(passed);
            assert_eq!(read(&text, SENT + passed), Some(Duration::ZERO));
        }
    }

    #[test]
    fn a_wall_clock_that_is_set_back_gives_no_more_than_was_left() {
        let text = write(LEFT, SENT);
        let year = Duration::from_secs(31_536_000);
        assert_eq!(read(&text, SENT.saturating_sub(year)), Some(LEFT));
        assert_eq!(read(&text, Duration::ZERO), Some(LEFT));
    }

    #[test]
    fn the_text_of_a_deadline_is_that_deadline() {
        assert_eq!(Deadline::never().to_env(), "never");
        assert_eq!(Deadline::of_text("never"), Some(Deadline::never()));
        let sent = Deadline::after(Duration::from_secs(3600));
        let read = Deadline::of_text(&sent.to_env()).expect("it is one");
        assert!(read != Deadline::never() && read.remaining() > Some(Duration::from_secs(3000)));
        let past = Deadline::of_text(&Deadline::after(Duration::ZERO).to_env());
        assert!(past.is_some_and(|past| past.has_passed()));
        let far = Deadline::after(Duration::from_secs(300 * 31_536_000));
        assert_ne!(Deadline::of_text(&far.to_env()), Some(Deadline::never()));
    }

    #[test]
    fn what_is_no_deadline_is_not_taken_for_one() {
        for text in [
            "",
            " ",
            "Never",
            "never ",
            "5",
            "5ns",
            "ns@",
            "5ns@",
            "ns@5",
            "+5ns@5",
            "-5ns@5",
            "5ns@5ns@5",
            "5 ns@5",
            "5ms@5",
            "1.5ns@5",
            "0x5ns@5",
            "18446744073709551616ns@5",
            "5ns@18446744073709551616",
            "18446744073709551615ns@18446744073709551615\0",
        ] {
            assert_eq!(Deadline::of_text(text), None, "{text:?}");
        }
    }
}
