//! Finds the word that was probably meant, for error messages.

use std::fmt::Display;

/// The part of a message that names the probable intention.
pub(crate) fn hint(meant: Option<impl Display>) -> String {
    meant
        .map(|meant| format!("; did you mean `{meant}`?"))
        .unwrap_or_default()
}

/// The end of a message about an unknown word: the probable intention, then all valid words.
pub(crate) fn expected(meant: Option<impl Display>, words: impl Display) -> String {
    let meant = meant.map(|meant| format!("did you mean `{meant}`? "));
    format!("{}expected one of {words}", meant.unwrap_or_default())
}

/// The candidate closest to `word`, with at most one edit for every three letters. Case does not
/// count.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.to_lowercase();
    let max_edits = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(&word, candidate), candidate))
        .filter(|(distance, _)| *distance <= max_edits)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The number of letters to add, drop or replace to turn `from` into `to` (Levenshtein distance).
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
    fn a_misspelt_word_is_recognised_and_an_unrelated_word_is_not() {
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
