//! Parses durations in text, such as `"1m 30s"`: whole numbers, each with its unit, added up.

use std::time::Duration;

use crate::suggest::expected;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// Other words for each unit.
const OTHER_WORDS: [(&str, &[&str]); 7] = [
    (
        "ns",
        &[
            "nsec",
            "nsecs",
            "nano",
            "nanos",
            "nanosecond",
            "nanoseconds",
        ],
    ),
    (
        "us",
        &[
            "µs",
            "μs",
            "usec",
            "usecs",
            "micro",
            "micros",
            "microsecond",
            "microseconds",
        ],
    ),
    (
        "ms",
        &[
            "msec",
            "msecs",
            "milli",
            "millis",
            "millisecond",
            "milliseconds",
        ],
    ),
    ("s", &["sec", "secs", "second", "seconds"]),
    ("m", &["min", "mins", "minute", "minutes"]),
    ("h", &["hr", "hrs", "hour", "hours"]),
    ("d", &["day", "days"]),
];

/// Each unit with its length in nanoseconds.
const UNITS: [(&str, u128); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", NANOS_PER_SECOND),
    ("m", 60 * NANOS_PER_SECOND),
    ("h", 3_600 * NANOS_PER_SECOND),
    ("d", 86_400 * NANOS_PER_SECOND),
];

/// Parses `text`. Parts may come in any order, with or without whitespace inside and between them.
///
/// # Errors
///
/// If `text` is empty, holds anything but such parts, or adds up to more than a [`Duration`] can
/// hold.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err("this duration is empty; write one as in `1m 30s`".to_owned());
    }
    let mut nanos = 0_u128;
    while !rest.is_empty() {
        let (number, after) = take_while(rest, |c| c.is_ascii_digit());
        // A sign after the digits means a fraction, or digits grouped by thousands.
        let goes_on = after.starts_with(|c: char| !c.is_alphanumeric() && !c.is_whitespace());
        if number.is_empty() || goes_on {
            let (word, _) = take_while(rest, |c| !c.is_whitespace());
            return Err(format!(
                "`{word}` is not a whole number with a unit, as in `1s 500ms`"
            ));
        }
        let (unit, after) = take_while(after.trim_start(), |c| {
            !c.is_ascii_digit() && !c.is_whitespace()
        });
        let length = length_of(number, unit)?;
        nanos = number
            .parse::<u128>()
            .ok()
            .and_then(|count| count.checked_mul(length))
            .and_then(|part| nanos.checked_add(part))
            .ok_or_else(too_long)?;
        rest = after.trim_start();
    }
    let seconds = u64::try_from(nanos / NANOS_PER_SECOND).map_err(|_| too_long())?;
    let nanos = u32::try_from(nanos % NANOS_PER_SECOND).map_err(|_| too_long())?;
    Ok(Duration::new(seconds, nanos))
}

fn length_of(number: &str, unit: &str) -> Result<u128, String> {
    if let Some((_, length)) = UNITS.iter().find(|(word, _)| *word == unit) {
        return Ok(*length);
    }
    let units = UNITS.map(|(word, _)| format!("`{word}`")).join(", ");
    Err(match unit {
        "" => format!("`{number}` has no unit; expected one of {units}"),
        _ => format!("unknown unit `{unit}`; {}", expected(meant(unit), units)),
    })
}

/// The unit that was probably meant by `word`.
fn meant(word: &str) -> Option<&'static str> {
    let word = word
        .trim_end_matches(|c: char| !c.is_alphabetic())
        .to_lowercase();
    let meant = OTHER_WORDS
        .iter()
        .find(|(unit, words)| *unit == word || words.contains(&word.as_str()));
    meant.map(|(unit, _)| *unit)
}

fn too_long() -> String {
    "this is longer than a `Duration` can hold".to_owned()
}

fn take_while(text: &str, wanted: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !wanted(c)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::parse;
    use std::time::Duration;

    #[test]
    fn parts_add_up() {
        for (text, expected) in [
            ("250ms", Duration::from_millis(250)),
            ("1m 30s", Duration::from_secs(90)),
            ("1m30s", Duration::from_secs(90)),
            (" 2 h ", Duration::from_secs(7_200)),
            ("1d 1ns", Duration::new(86_400, 1)),
            ("7us", Duration::from_micros(7)),
            ("0s", Duration::ZERO),
            ("18446744073709551615s 999999999ns", Duration::MAX),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn text_that_is_not_a_duration_is_refused_with_a_reason() {
        let not_whole =
            |word| format!("`{word}` is not a whole number with a unit, as in `1s 500ms`");
        let units = "expected one of `ns`, `us`, `ms`, `s`, `m`, `h`, `d`";
        for (text, expected) in [
            (
                "",
                "this duration is empty; write one as in `1m 30s`".to_owned(),
            ),
            (
                " ",
                "this duration is empty; write one as in `1m 30s`".to_owned(),
            ),
            ("soon", not_whole("soon")),
            ("-5s", not_whole("-5s")),
            ("1m 1.5s", not_whole("1.5s")),
            ("0,5 s", not_whole("0,5")),
            ("1_000ms", not_whole("1_000ms")),
            ("90", format!("`90` has no unit; {units}")),
            ("1 1s", format!("`1` has no unit; {units}")),
            (
                "1m, 30s",
                format!("unknown unit `m,`; did you mean `m`? {units}"),
            ),
            (
                "5 sec",
                format!("unknown unit `sec`; did you mean `s`? {units}"),
            ),
            (
                "5 min",
                format!("unknown unit `min`; did you mean `m`? {units}"),
            ),
            (
                "5 Hours",
                format!("unknown unit `Hours`; did you mean `h`? {units}"),
            ),
            ("5S", format!("unknown unit `S`; did you mean `s`? {units}")),
            (
                "5µs",
                format!("unknown unit `µs`; did you mean `us`? {units}"),
            ),
            ("2w", format!("unknown unit `w`; {units}")),
            (
                "18446744073709551616s",
                "this is longer than a `Duration` can hold".to_owned(),
            ),
            (
                "99999999999999999999999999999999999999999s",
                "this is longer than a `Duration` can hold".to_owned(),
            ),
        ] {
            assert_eq!(parse(text), Err(expected), "{text}");
        }
    }
}
