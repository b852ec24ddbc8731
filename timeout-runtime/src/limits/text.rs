//! Limits as text, such as `inventory=80ms, price=1m 30s, report=none`.

use std::time::Duration;

use crate::one_line::OneLine;

use super::Limits;

/// The word for no limit.
const NONE: &str = "none";

/// Each unit with its length in nanoseconds, as in the attribute.
const UNITS: [(&str, u128); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", NANOS_PER_SECOND),
    ("m", 60 * NANOS_PER_SECOND),
    ("h", 3_600 * NANOS_PER_SECOND),
    ("d", 86_400 * NANOS_PER_SECOND),
];

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// The error for limits of which one is wrong. `Display` prints what is wrong with which one. No
/// limit was changed.
///
/// ```
/// use timeout_runtime::limits;
///
/// let error = limits::load("price=90").unwrap_err();
/// let expected = "the limit `price=90` is not a name and a duration, as in `price=1m 30s`; \
///                 no limit was changed";
/// assert_eq!(error.to_string(), expected);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}{place}; no limit was changed")]
pub struct InvalidLimits {
    problem: Problem,
    place: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Problem {
    #[error("the limit of `{}` is zero", OneLine(.0))]
    Zero(String),
    #[error(
        "the limit `{}` is not a name and a duration, as in `price=1m 30s`",
        OneLine(.0)
    )]
    Malformed(String),
    #[error("`{}` has two limits", OneLine(.0))]
    Twice(String),
}

impl Problem {
    fn error(self) -> InvalidLimits {
        InvalidLimits {
            problem: self,
            place: "",
        }
    }
}

impl InvalidLimits {
    /// The same error in the environment variable.
    pub(super) fn in_variable(self) -> Self {
        Self {
            place: " in the variable `TIMEOUT_LIMITS`",
            ..self
        }
    }
}

/// Checks one limit.
pub(super) fn check(name: &str, limit: Duration) -> Result<(), InvalidLimits> {
    if limit.is_zero() {
        return Err(Problem::Zero(name.to_owned()).error());
    }
    Ok(())
}

/// Parses limits. Empty parts are ignored.
pub(super) fn parse(text: &str) -> Result<Limits, InvalidLimits> {
    let mut limits = Limits::new();
    for part in text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        // A name may contain `=`; a duration does not.
        let parsed = part.rsplit_once('=').and_then(|(name, limit)| {
            let name = Some(name.trim()).filter(|name| !name.is_empty())?;
            Some((name, duration(limit.trim())?))
        });
        let (name, limit) = parsed.ok_or_else(|| Problem::Malformed(part.to_owned()).error())?;
        check(name, limit)?;
        if limits.insert(name.to_owned(), limit).is_some() {
            return Err(Problem::Twice(name.to_owned()).error());
        }
    }
    Ok(limits)
}

/// Parses a duration as the attribute does: whole numbers with units, added up.
fn duration(text: &str) -> Option<Duration> {
    if text == NONE {
        return Some(Duration::MAX);
    }
    if text.is_empty() {
        return None;
    }
    let mut rest = text;
    let mut nanos = 0_u128;
    while !rest.is_empty() {
        let (number, after) = split_where(rest, |c| !c.is_ascii_digit());
        let (unit, after) = split_where(after.trim_start(), |c| {
            c.is_ascii_digit() || c.is_whitespace()
        });
        let (_, length) = UNITS.iter().find(|(word, _)| *word == unit)?;
        let part = number.parse::<u128>().ok()?.checked_mul(*length)?;
        nanos = nanos.checked_add(part)?;
        rest = after.trim_start();
    }
    let seconds = u64::try_from(nanos / NANOS_PER_SECOND).ok()?;
    let nanos = u32::try_from(nanos % NANOS_PER_SECOND).ok()?;
    Some(Duration::new(seconds, nanos))
}

fn split_where(text: &str, is_end: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(is_end).unwrap_or(text.len()))
}

#[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn limits_are_names_with_durations_between_commas() {
        let limits = parse(" inventory=80ms,, price = 1m 30s ,a=b=2 h, report=none,").unwrap();
        let expected = [
            ("a=b", Duration::from_secs(7200)),
            ("inventory", Duration::from_millis(80)),
            ("price", Duration::from_secs(90)),
            ("report", Duration::MAX),
        ];
        let limits: Vec<_> = limits
            .iter()
            .map(|(name, limit)| (&**name, *limit))
            .collect();
        assert_eq!(limits, expected);
        assert_eq!(parse(""), Ok(Limits::new()));
    }

    #[test]
    fn the_first_wrong_part_is_named() {
        for wrong in [
            "price",
            "price=",
            "=2s",
            "price=soon",
            "price=90",
            "price=-1s",
            "price=1.5s",
            "price=5 sec",
            "price=18446744073709551616s",
            "price=1s 1",
            "price=s",
            "price=99999999999999999999999999999999999999999s",
        ] {
            let error = parse(&format!("inventory=80ms, {wrong}, later")).unwrap_err();
            assert_eq!(
                error,
                Problem::Malformed(wrong.to_owned()).error(),
                "{wrong}"
            );
        }
        assert_eq!(
            parse("price=1s, price=0ms")
                .unwrap_err()
                .in_variable()
                .to_string(),
            "the limit of `price` is zero in the variable `TIMEOUT_LIMITS`; no limit was changed"
        );
        assert_eq!(
            parse("price=1s, price=2s").unwrap_err().to_string(),
            "`price` has two limits; no limit was changed"
        );
    }
}
