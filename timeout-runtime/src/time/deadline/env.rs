//! Passes deadlines to child processes in environment variables.
//!
//! The text holds the remaining time and the end on the wall clock. The reader uses the one that
//! gives less time. The remaining time alone would start anew at each reading. The end alone would
//! give more time after the wall clock is set back.

use std::env::{self, VarError};
use std::ffi::OsStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::Deadline;
use crate::one_line::OneLine;

const NEVER: &str = "never";

/// Nanoseconds, saturating after more than five centuries.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Time since the Unix epoch.
fn wall() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// Formats a remaining time, measured at wall-clock time `wall`.
fn write(left: Duration, wall: Duration) -> String {
    format!("{}ns@{}", nanos(left), nanos(wall.saturating_add(left)))
}

/// Returns the remaining time at `wall`, or `None` if `text` is not in the format of `write`.
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
    /// Returns the deadline as text for an environment variable of a child process.
    ///
    /// The variable can have any name. The child reads it with [`from_env`](Self::from_env).
    ///
    /// ```
    /// use std::process::Command;
    /// use std::time::Duration;
    /// use timeout_runtime::Deadline;
    ///
    /// let deadline = Deadline::after(Duration::from_secs(5));
    /// let mut command = Command::new("convert");
    /// command.env("CONVERT_DEADLINE", deadline.to_env());
    /// assert_eq!(command.get_envs().count(), 1);
    /// assert_eq!(Deadline::never().to_env(), "never");
    /// ```
    #[must_use]
    pub fn to_env(&self) -> String {
        // Reads the remaining time first. A delay between the two readings makes the end later, and
        // then the remaining time applies.
        match self.remaining() {
            None => NEVER.to_owned(),
            Some(left) => write(left, wall()),
        }
    }

    /// Reads the deadline from the environment variable `name`, as written by
    /// [`to_env`](Self::to_env). Returns `None` if the variable is not set.
    ///
    /// If the wall clock was set back after [`to_env`](Self::to_env), the deadline is later than
    /// the sender's, by at most the time between `to_env` and this call. If the wall clock was set
    /// forward, it is earlier. Reading the variable again does not extend the deadline, nor does a
    /// process in between that passes the variable on unchanged.
    ///
    /// # Errors
    ///
    /// Returns [`InvalidDeadline`] if the variable holds any other text.
    ///
    /// ```
    /// use timeout_runtime::{Deadline, InvalidDeadline};
    ///
    /// let deadline = Deadline::from_env("CONVERT_DEADLINE")?.unwrap_or(Deadline::never());
    /// assert_eq!(deadline, Deadline::never()); // the variable is not set
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
        // Only the word means never: a number beyond the clock's range is an error.
        Some(Self::after(read(text, wall())?)).filter(|deadline| *deadline != Self::never())
    }
}

/// The error for an environment variable that does not hold a deadline. `Display` prints the name
/// of the variable and its text.
///
/// ```
/// use timeout_runtime::Deadline;
///
/// let error = Deadline::from_env("PATH").unwrap_err();
/// assert!(error.to_string().starts_with("the variable `PATH` does not hold a deadline"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the variable `{}` does not hold a deadline: {value:?}", OneLine(.variable))]
pub struct InvalidDeadline {
    variable: String,
    value: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: Duration = Duration::new(1_700_000_000, 123_456_789);
    const LEFT: Duration = Duration::from_millis(250);

    #[test]
    fn the_remaining_time_is_exact_to_the_nanosecond() {
        let text = write(LEFT, SENT);
        assert_eq!(text, "250000000ns@1700000000373456789");
        assert_eq!(read(&text, SENT), Some(LEFT));
        let odd = Duration::from_nanos(1);
        assert_eq!(read(&write(odd, SENT), SENT), Some(odd));
    }

    #[test]
    fn each_reading_subtracts_the_time_since_sending() {
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
    fn setting_the_wall_clock_back_gives_no_extra_time() {
        let text = write(LEFT, SENT);
        let year = Duration::from_secs(31_536_000);
        assert_eq!(read(&text, SENT.saturating_sub(year)), Some(LEFT));
        assert_eq!(read(&text, Duration::ZERO), Some(LEFT));
    }

    #[test]
    fn a_deadline_survives_writing_and_reading() {
        assert_eq!(Deadline::never().to_env(), "never");
        assert_eq!(Deadline::of_text("never"), Some(Deadline::never()));
        let sent = Deadline::after(Duration::from_secs(3600));
        let read = Deadline::of_text(&sent.to_env()).expect("the text is valid");
        assert!(read != Deadline::never() && read.remaining() > Some(Duration::from_secs(3000)));
        let past = Deadline::of_text(&Deadline::after(Duration::ZERO).to_env());
        assert!(past.is_some_and(|past| past.has_passed()));
        let far = Deadline::after(Duration::from_secs(300 * 31_536_000));
        assert_ne!(Deadline::of_text(&far.to_env()), Some(Deadline::never()));
    }

    #[test]
    fn any_other_text_is_rejected() {
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
