//! The word that was probably meant.

use std::fmt::Display;

/// The part of a message that names what was probably meant.
pub(crate) fn hint(meant: Option<impl Display>) -> String {
    meant
        .map(|meant| format!("; did you mean `{meant}`?"))
        .unwrap_or_default()
}

/// The end of a message about an unknown word: what was probably meant, and then all that there is.
pub(crate) fn expected(meant: Option<impl Display>, words: impl Display) -> String {
    let meant = meant.map(|meant| format!("did you mean `{meant}`? "));
    format!("{}expected one of {words}", meant.unwrap_or_default())
}

/// The candidate closest to `word`, if it is within one slip for every three letters. Capital
/// letters are no slips.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.to_lowercase();
    let slips = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(&word, candidate), candidate))
        .filter(|(distance, _)| *distance <= slips)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters have to be added, dropped or replaced to turn `from` into `to` (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.chars().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.chars().count()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let words = ["name", "ms", "secs", "fallback"];
        for (word, expected) in [
            ("nam", Some("name")),
            ("naem", None),
            ("m", Some("ms")),
            ("sec", Some("secs")),
            ("falback", Some("fallback")),
            ("falllbak", Some("fallback")),
            ("SECS", Some("secs")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, words), expected, "{word}");
        }
    }
}
