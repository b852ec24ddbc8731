//! Compares the parser of durations with a second implementation, on random text.

use std::time::Duration;

use super::chance::Chance;
use super::for_seeds;
use crate::duration;

const UNITS: [(&str, u128); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Digit,
    Space,
    Other,
}

fn class(letter: char) -> Class {
    match letter {
        '0'..='9' => Class::Digit,
        letter if letter.is_whitespace() => Class::Space,
        _ => Class::Other,
    }
}

/// Splits `text` where the class of its characters changes, drops the spaces, and reads the parts
/// in pairs.
fn reference(text: &str) -> Option<Duration> {
    let letters: Vec<char> = text.chars().collect();
    let runs: Vec<String> = letters
        .chunk_by(|a, b| class(*a) == class(*b))
        .filter(|run| class(run[0]) != Class::Space)
        .map(|run| run.iter().collect())
        .collect();
    let nanos = |pair: &[String]| -> Option<u128> {
        let [count, unit] = pair else { return None };
        let (_, length) = UNITS.into_iter().find(|(word, _)| word == unit)?;
        count.parse::<u128>().ok()?.checked_mul(length)
    };
    let parts: Option<Vec<u128>> = runs.chunks(2).map(nanos).collect();
    let sum = |sum: u128, part: &u128| sum.checked_add(*part);
    let total = parts
        .filter(|parts| !parts.is_empty())?
        .iter()
        .try_fold(0, sum)?;
    let seconds = Duration::from_secs(u64::try_from(total / 1_000_000_000).ok()?);
    Some(seconds + Duration::from_nanos(u64::try_from(total % 1_000_000_000).ok()?))
}

fn print(duration: Duration) -> String {
    let mut rest = duration.as_nanos();
    let mut text = String::new();
    for (unit, length) in UNITS {
        if rest >= length {
            text.extend([&(rest / length).to_string(), unit, " "]);
            rest %= length;
        }
    }
    if text.is_empty() {
        "0s".to_owned()
    } else {
        text
    }
}

fn by_chance(chance: &mut Chance) -> String {
    const PIECES: [&str; 28] = [
        "1",
        "0",
        "30",
        "007",
        "999999999",
        "18446744073709551615",
        "18446744073709551616",
        "340282366920938463463374607431768211455",
        "340282366920938463463374607431768211456",
        "213503982334601",
        "ns",
        "us",
        "ms",
        "s",
        "m",
        "h",
        "d",
        "sec",
        "\u{b5}s",
        "M",
        "-",
        ".",
        ",",
        "_",
        "\u{663}",
        "\u{3000}",
        "\0",
        "e9",
    ];
    let mut text = String::new();
    for _ in 0..chance.below(5) {
        if chance.one_in(4) {
            text.push_str(chance.pick(&PIECES));
        } else {
            text.push_str(chance.pick(&PIECES[..10]));
            text.push_str(chance.pick(&["", " ", "\t\n"]));
            text.push_str(chance.pick(&PIECES[10..17]));
        }
        text.push_str(chance.pick(&["", " ", "  "]));
    }
    text
}

#[test]
fn the_parser_agrees_with_the_reference() {
    let mut read = 0;
    for_seeds(20_000, |seed| {
        let text = by_chance(&mut Chance::new(seed));
        let found = duration::parse(&text).ok();
        assert_eq!(
            found,
            reference(&text),
            "{text:?}, TIMEOUT_FUZZ_SEED={seed}"
        );
        let Some(found) = found else { return };
        read += 1;
        let printed = print(found);
        assert_eq!(
            duration::parse(&printed),
            Ok(found),
            "{printed:?} of {text:?}, TIMEOUT_FUZZ_SEED={seed}"
        );
    });
    println!("{read} of them are durations");
}
