//! [`DeadlineHeader`]: reads and writes the remaining time of a request as a header, such as
//! `grpc-timeout`.

use std::time::Duration;

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

/// The units of gRPC in nanoseconds, in ascending order.
const UNITS: [(char, u64); 6] = [
    ('n', 1),
    ('u', 1_000),
    ('m', MILLISECOND),
    ('S', 1_000_000_000),
    ('M', 60_000_000_000),
    HOURS,
];
const HOURS: (char, u64) = ('H', 3_600_000_000_000);
const MILLISECOND: u64 = 1_000_000;

/// The maximum number of digits in gRPC.
const DIGITS: u32 = 8;

/// The longest duration, in nanoseconds: 400 years.
///
/// A longer one can exceed the range of a [`Deadline`](crate::Deadline), which is then never.
const LONGEST: u64 = 400 * 366 * 86_400 * 1_000_000_000;

/// A header that holds the time for which the caller of a request still waits.
///
/// ```
/// use std::time::Duration;
/// use http::HeaderMap;
/// use timeout_runtime::integrations::tower::{DeadlineHeader, HeaderMistake};
///
/// let header = DeadlineHeader::grpc();
/// let mut headers = HeaderMap::new();
/// assert_eq!(header.read(&headers), Ok(None));
///
/// headers.insert(header.name(), header.value(Duration::from_millis(1500)));
/// assert_eq!(headers["grpc-timeout"], "1500000u");
/// assert_eq!(header.read(&headers), Ok(Some(Duration::from_millis(1500))));
///
/// headers.insert(header.name(), "1500".parse()?);
/// let error = header.read(&headers).unwrap_err();
/// assert_eq!(error.mistake(), HeaderMistake::Unit);
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlineHeader {
    name: HeaderName,
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// Up to eight digits and a unit.
    Grpc,
    /// Whole milliseconds.
    Millis,
}

impl DeadlineHeader {
    /// Returns the header `grpc-timeout`.
    ///
    /// Its value is one to eight digits and a unit: `H`, `M`, `S`, `m`, `u` or `n`. For example,
    /// `500m` is half a second.
    #[must_use]
    pub fn grpc() -> Self {
        Self {
            name: HeaderName::from_static("grpc-timeout"),
            format: Format::Grpc,
        }
    }

    /// Returns a header called `name`, whose value is in whole milliseconds.
    ///
    /// ```
    /// use std::time::Duration;
    /// use http::HeaderName;
    /// use timeout_runtime::integrations::tower::DeadlineHeader;
    ///
    /// let header = DeadlineHeader::millis(HeaderName::from_static("x-time-left"));
    /// assert_eq!(header.value(Duration::from_micros(1001)), "2");
    /// ```
    #[must_use]
    pub const fn millis(name: HeaderName) -> Self {
        Self {
            name,
            format: Format::Millis,
        }
    }

    /// Returns Envoy's header `x-envoy-expected-rq-timeout-ms`.
    ///
    /// Envoy sends in it the number of milliseconds in which it expects the response.
    #[must_use]
    pub fn envoy() -> Self {
        Self::millis(HeaderName::from_static("x-envoy-expected-rq-timeout-ms"))
    }

    /// Returns the name of the header.
    #[must_use]
    pub fn name(&self) -> &HeaderName {
        &self.name
    }

    /// Reads the remaining time from `headers`. Returns `None` if the header is absent.
    ///
    /// Zero means that the deadline has passed.
    ///
    /// # Errors
    ///
    /// Returns an error if the header is present more than once, is not in its format, or is longer
    /// than 400 years, which exceeds the range of a [`Deadline`](crate::Deadline).
    pub fn read(&self, headers: &HeaderMap) -> Result<Option<Duration>, HeaderError> {
        let mut values = headers.get_all(&self.name).iter();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        let parsed = if values.next().is_some() {
            Err(HeaderMistake::Repeated)
        } else {
            self.format.parse(value.as_bytes())
        };
        parsed.map(Some).map_err(|mistake| HeaderError {
            header: self.name.clone(),
            mistake,
        })
    }

    /// Returns the header value for the remaining time `left`.
    ///
    /// The value is rounded up by less than one unit: to whole milliseconds, or in gRPC to the
    /// finest unit in which it has at most eight digits. A duration of more than 400 years is
    /// written as 400 years.
    ///
    /// Rounding does not accumulate from service to service. With the same header, the time never
    /// grows. With different headers, it never exceeds the first value, rounded up to the coarsest
    /// unit in use.
    #[must_use]
    pub fn value(&self, left: Duration) -> HeaderValue {
        let nanos = u64::try_from(left.as_nanos()).map_or(LONGEST, |nanos| nanos.min(LONGEST));
        match self.format {
            Format::Millis => HeaderValue::from(nanos.div_ceil(MILLISECOND)),
            Format::Grpc => grpc(nanos),
        }
    }
}

fn grpc(nanos: u64) -> HeaderValue {
    let fits = |unit: u64| nanos.div_ceil(unit) < 10_u64.pow(DIGITS);
    // `LONGEST` fits in hours, so the fallback is not used.
    let finest = UNITS.into_iter().find(|(_, unit)| fits(*unit));
    let (letter, unit) = finest.unwrap_or(HOURS);
    let value = format!("{}{letter}", nanos.div_ceil(unit));
    HeaderValue::try_from(value).expect("digits and a letter are a valid header value")
}

impl Format {
    fn parse(self, value: &[u8]) -> Result<Duration, HeaderMistake> {
        let (digits, unit) = match self {
            Self::Millis => (value, MILLISECOND),
            Self::Grpc => {
                let (letter, digits) = value.split_last().ok_or(HeaderMistake::Unit)?;
                let named = |(name, _): &(char, u64)| *name == char::from(*letter);
                let (_, unit) = UNITS.into_iter().find(named).ok_or(HeaderMistake::Unit)?;
                if digits.len() > DIGITS as usize {
                    return Err(HeaderMistake::Digits);
                }
                (digits, unit)
            }
        };
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(HeaderMistake::Digits);
        }
        digits
            .iter()
            .try_fold(0_u64, |number, digit| {
                number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
            })
            .and_then(|number| number.checked_mul(unit))
            .filter(|nanos| *nanos <= LONGEST)
            .map(Duration::from_nanos)
            .ok_or(HeaderMistake::TooLong)
    }
}

/// The error for a header that is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{header}` {}", .mistake.text())]
pub struct HeaderError {
    header: HeaderName,
    mistake: HeaderMistake,
}

/// The kind of a [`HeaderError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HeaderMistake {
    /// The header is present more than once.
    Repeated,
    /// The number is empty, contains a character that is not a digit, such as a sign or a space, or
    /// has more than eight digits in gRPC.
    Digits,
    /// The value does not end with a gRPC unit.
    Unit,
    /// The duration is longer than 400 years.
    TooLong,
}

impl HeaderError {
    /// Returns the name of the header.
    #[must_use]
    pub fn header(&self) -> &HeaderName {
        &self.header
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn mistake(&self) -> HeaderMistake {
        self.mistake
    }
}

impl HeaderMistake {
    fn text(self) -> &'static str {
        match self {
            Self::Repeated => "is given more than once",
            Self::Digits => "must consist of digits only, at most eight in gRPC",
            Self::Unit => "must end with a unit, as in `500m`",
            Self::TooLong => "is longer than 400 years",
        }
    }
}
