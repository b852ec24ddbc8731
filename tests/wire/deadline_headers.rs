//! Deadline headers: the encoded time is never shorter than the remaining time and at most one unit
//! longer; a malformed header is an error and not a missing deadline.

use crate::wire::{name, written};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::{ProptestConfig, Strategy, any};
use proptest::{collection, prop_assert, prop_assert_eq, prop_assert_ne, proptest, sample};
use timeout_runtime::integrations::tower::{DeadlineHeader, HeaderError};

const UNITS: [(char, u128); 6] = [
    ('n', 1),
    ('u', 1_000),
    ('m', 1_000_000),
    ('S', 1_000_000_000),
    ('M', 60_000_000_000),
    ('H', 3_600_000_000_000),
];
const LONGEST: Duration = Duration::from_secs(400 * 366 * 86_400);

fn plain() -> DeadlineHeader {
    DeadlineHeader::Millis(HeaderName::from_static("x-time-left"))
}

fn both() -> [DeadlineHeader; 2] {
    [DeadlineHeader::Grpc, plain()]
}

fn read(header: &DeadlineHeader, value: &[u8]) -> Result<Duration, HeaderError> {
    let mut headers = HeaderMap::new();
    let value = HeaderValue::from_bytes(value).expect("valid header bytes");
    headers.insert(name(header), value);
    let encoded = header.read(&headers)?;
    Ok(encoded.expect("the header is present"))
}

/// Encodes `left` in `header` and returns the decoded time and its unit in nanoseconds.
fn encoded(header: &DeadlineHeader, left: Duration) -> (Duration, u128) {
    let (_, value) = written(header, left);
    let encoded = read(header, value.as_bytes()).expect("an encoded header can be decoded");
    let last = value.to_str().unwrap().chars().next_back().unwrap();
    let named = UNITS.iter().find(|(letter, _)| *letter == last);
    (encoded, named.map_or(1_000_000, |(_, unit)| *unit))
}

/// Durations of every order of magnitude.
fn duration() -> impl Strategy<Value = Duration> {
    let longest = (any::<u64>(), 0..1_000_000_000_u32);
    (longest, 0..95_u32).prop_map(|((secs, nanos), shift)| {
        let nanos = Duration::new(secs, nanos).as_nanos() >> shift;
        let secs = u64::try_from(nanos / 1_000_000_000).expect("fits into u64");
        let rest = u32::try_from(nanos % 1_000_000_000).expect("less than a second");
        Duration::new(secs, rest)
    })
}

/// A second, independent parser for `grpc-timeout`.
fn reading(value: &str) -> Option<u128> {
    let (letter, unit) = UNITS.into_iter().find(|(name, _)| value.ends_with(*name))?;
    let digits = value.strip_suffix(letter)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u128 = digits.parse().ok().filter(|_| is_number)?;
    let nanos = number * unit;
    (digits.len() <= 8 && nanos <= LONGEST.as_nanos()).then_some(nanos)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn every_number_and_unit_survives_decoding_and_encoding(
        number in 0_u32..100_000_000,
        shift in 0_u32..27,
        (letter, unit) in sample::select(UNITS.to_vec()),
    ) {
        let number = number >> shift;
        let header = DeadlineHeader::Grpc;
        let read = read(&header, format!("{number}{letter}").as_bytes());
        let nanos = u128::from(number) * unit;
        if nanos > LONGEST.as_nanos() {
            prop_assert_eq!(read, Err(HeaderError::TooLong(name(&header))));
        } else {
            let read = read.unwrap();
            prop_assert_eq!(read.as_nanos(), nanos);
            prop_assert_eq!(encoded(&header, read).0, read);
        }
    }

    // Fails if the time is rounded down.
    #[test]
    fn the_encoded_time_is_rounded_up_by_less_than_one_unit(left in duration()) {
        for header in both() {
            let (encoded, unit) = encoded(&header, left);
            if left > LONGEST {
                prop_assert_eq!(encoded, LONGEST);
            } else {
                prop_assert!(encoded >= left, "{:?} for {:?}", encoded, left);
                prop_assert!(encoded.as_nanos() - left.as_nanos() < unit, "{:?} for {:?}", encoded, left);
            }
        }
    }

    /// A finer unit would not fit into the header's digits.
    #[test]
    fn the_unit_is_the_finest_that_fits(left in duration()) {
        let left = left.min(LONGEST);
        let (_, value) = written(&DeadlineHeader::Grpc, left);
        prop_assert!(value.len() <= 9, "{:?}", value);
        let (_, unit) = encoded(&DeadlineHeader::Grpc, left);
        let finer = UNITS.into_iter().take_while(|(_, other)| *other < unit).last();
        prop_assert!(finer.is_none_or(|(_, finer)| left.as_nanos().div_ceil(finer) > 99_999_999));
    }

    #[test]
    fn the_remaining_time_does_not_grow_between_hops(first in duration(), taken in collection::vec(duration(), 3)) {
        for header in both() {
            let mut left = encoded(&header, first).0;
            for taken in &taken {
                let next = encoded(&header, left.saturating_sub(*taken)).0;
                prop_assert!(next <= left, "{:?} after {:?}", next, left);
                // The encoding does not shorten the remaining time either.
                prop_assert!(next >= left.saturating_sub(*taken), "{:?} after {:?}", next, left);
                left = next;
            }
        }
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(value in collection::vec(any::<u8>(), 0..24)) {
        let Ok(value) = HeaderValue::from_bytes(&value) else {
            return Ok(());
        };
        for header in both() {
            let mut headers = HeaderMap::new();
            headers.insert(name(&header), value.clone());
            prop_assert_ne!(header.read(&headers), Ok(None));
        }
    }

    #[test]
    fn header_like_text_is_decoded_correctly(value in "[-+ ]?[0-9 ._]{0,10}[HMSmunhsU ]{0,2}") {
        let read = read(&DeadlineHeader::Grpc, value.as_bytes());
        prop_assert_eq!(read.ok().map(|read| read.as_nanos()), reading(&value), "{:?}", value);
    }
}

type Mistake = fn(HeaderName) -> HeaderError;

// Fails if 9 digits, a sign or a time that is too long is accepted.
#[test]
fn a_malformed_grpc_timeout_is_refused() {
    let cases: [(_, Mistake); 19] = [
        ("", HeaderError::Unit),
        ("5", HeaderError::Unit),
        ("5s", HeaderError::Unit),
        ("5 ", HeaderError::Unit),
        ("5m ", HeaderError::Unit),
        ("5ms", HeaderError::Unit),
        ("5\u{b5}", HeaderError::Unit),
        ("S", HeaderError::Digits),
        ("-5S", HeaderError::Digits),
        ("+5S", HeaderError::Digits),
        (" 5S", HeaderError::Digits),
        ("5 S", HeaderError::Digits),
        ("0.5S", HeaderError::Digits),
        ("5S,5S", HeaderError::Digits),
        ("\u{665}S", HeaderError::Digits),
        ("000000005S", HeaderError::Digits),
        ("100000000n", HeaderError::Digits),
        ("99999999H", HeaderError::TooLong),
        ("3513601H", HeaderError::TooLong),
    ];
    for (value, mistake) in cases {
        let read = read(&DeadlineHeader::Grpc, value.as_bytes());
        assert_eq!(read, Err(mistake(name(&DeadlineHeader::Grpc))), "{value:?}");
    }
}

// Fails if a sign, or a time that is too long, is accepted.
#[test]
fn a_malformed_millisecond_header_is_refused() {
    let cases: [(_, Mistake); 12] = [
        ("", HeaderError::Digits),
        ("-5", HeaderError::Digits),
        ("+5", HeaderError::Digits),
        (" 5", HeaderError::Digits),
        ("5 ", HeaderError::Digits),
        ("5ms", HeaderError::Digits),
        ("1e3", HeaderError::Digits),
        ("\u{665}", HeaderError::Digits),
        ("12648960000001", HeaderError::TooLong),
        ("18446744073709551615", HeaderError::TooLong),
        ("18446744073709551616", HeaderError::TooLong),
        ("99999999999999999999999999999", HeaderError::TooLong),
    ];
    for (value, mistake) in cases {
        let read = read(&plain(), value.as_bytes());
        assert_eq!(read, Err(mistake(name(&plain()))), "{value:?}");
    }
}

#[test]
fn the_longest_and_the_shortest_value_are_decoded() {
    let grpc = DeadlineHeader::Grpc;
    let value = |header: &DeadlineHeader, left| written(header, left).1;
    assert_eq!(read(&grpc, b"3513600H"), Ok(LONGEST));
    assert_eq!(read(&plain(), b"12648960000000"), Ok(LONGEST));
    assert_eq!(read(&grpc, b"0H"), Ok(Duration::ZERO));
    assert_eq!(read(&plain(), b"0"), Ok(Duration::ZERO));
    assert_eq!(
        read(&plain(), b"000000000000000000000000000000007"),
        Ok(Duration::from_millis(7))
    );
    assert_eq!(value(&grpc, Duration::MAX), "3513600H");
    assert_eq!(value(&grpc, Duration::ZERO), "0n");
    assert_eq!(value(&grpc, Duration::from_nanos(99_999_999)), "99999999n");
    assert_eq!(value(&grpc, Duration::from_nanos(100_000_001)), "100001u");
    assert_eq!(value(&plain(), Duration::from_nanos(1)), "1");
}

#[test]
fn a_repeated_header_is_refused() {
    for (header, value) in both().into_iter().zip(["5S", "5000"]) {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_static(value);
        headers.append(name(&header), value.clone());
        headers.append(name(&header), value);
        let error = header.read(&headers).unwrap_err();
        assert_eq!(error, HeaderError::Repeated(name(&header)));
        assert_eq!(
            error.to_string(),
            format!("`{}` is given more than once", name(&header))
        );
    }
}

#[test]
fn a_written_header_replaces_all_present_values() {
    let mut headers = HeaderMap::new();
    for value in ["1S", "2S"] {
        headers.append("grpc-timeout", HeaderValue::from_static(value));
    }
    DeadlineHeader::Grpc.write(&mut headers, Duration::ZERO);
    assert_eq!(headers.len(), 1);
    assert_eq!(headers["grpc-timeout"], "0n");
}
