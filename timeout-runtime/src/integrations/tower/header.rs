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

static GRPC: HeaderName = HeaderName::from_static("grpc-timeout");
static ENVOY: HeaderName = HeaderName::from_static("x-envoy-expected-rq-timeout-ms");

/// A header that holds the time for which the caller of a request still waits.
///
/// ```
/// use std::time::Duration;
/// use http::{HeaderMap, HeaderName};
/// use timeout_runtime::integrations::tower::{DeadlineHeader, HeaderError};
///
/// let header = DeadlineHeader::Grpc;
/// let mut headers = HeaderMap::new();
/// assert_eq!(header.read(&headers), Ok(None));
///
/// header.write(&mut headers, Duration::from_millis(1500));
/// assert_eq!(headers["grpc-timeout"], "1500000u");
/// assert_eq!(header.read(&headers), Ok(Some(Duration::from_millis(1500))));
///
/// headers.insert("grpc-timeout", "1500".parse()?);
/// assert!(matches!(header.read(&headers), Err(HeaderError::Unit(_))));
///
/// let header = DeadlineHeader::Millis(HeaderName::from_static("x-time-left"));
/// header.write(&mut headers, Duration::from_micros(1001));
/// assert_eq!(headers["x-time-left"], "2");
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeadlineHeader {
    /// The header `grpc-timeout`.
    ///
    /// Its value is one to eight digits and a unit: `H`, `M`, `S`, `m`, `u` or `n`. For example,
    /// `500m` is half a second.
    Grpc,
    /// Envoy's header `x-envoy-expected-rq-timeout-ms`.
    ///
    /// Envoy sends in it the number of milliseconds in which it expects the response.
    Envoy,
    /// A header of this name, whose value is in whole milliseconds.
    Millis(HeaderName),
}

impl DeadlineHeader {
    fn name(&self) -> &HeaderName {
        match self {
            Self::Grpc => &GRPC,
            Self::Envoy => &ENVOY,
            Self::Millis(name) => name,
        }
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
        let mut values = headers.get_all(self.name()).iter();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        let parsed = if values.next().is_some() {
            Err(HeaderError::Repeated as Mistake)
        } else {
            self.parse(value.as_bytes())
        };
        parsed
            .map(Some)
            .map_err(|mistake| mistake(self.name().clone()))
    }

    /// Sets the header in `headers` to the remaining time `left`, in place of its present values.
    ///
    /// The value is rounded up by less than one unit: to whole milliseconds, or in gRPC to the
    /// finest unit in which it has at most eight digits. A duration of more than 400 years is
    /// written as 400 years.
    ///
    /// Rounding does not accumulate from service to service. With the same header, the time never
    /// grows. With different headers, it never exceeds the first value, rounded up to the coarsest
    /// unit in use.
    pub fn write(&self, headers: &mut HeaderMap, left: Duration) {
        let nanos = u64::try_from(left.as_nanos()).map_or(LONGEST, |nanos| nanos.min(LONGEST));
        let value = match self {
            Self::Grpc => grpc(nanos),
            Self::Envoy | Self::Millis(_) => HeaderValue::from(nanos.div_ceil(MILLISECOND)),
        };
        headers.insert(self.name(), value);
    }

    fn parse(&self, value: &[u8]) -> Result<Duration, Mistake> {
        let (digits, unit) = match self {
            Self::Envoy | Self::Millis(_) => (value, MILLISECOND),
            Self::Grpc => {
                let (letter, digits) = value.split_last().ok_or(HeaderError::Unit as Mistake)?;
                let named = |(name, _): &(char, u64)| *name == char::from(*letter);
                let unit = UNITS.into_iter().find(named);
                let (_, unit) = unit.ok_or(HeaderError::Unit as Mistake)?;
                if digits.len() > DIGITS as usize {
                    return Err(HeaderError::Digits);
                }
                (digits, unit)
            }
        };
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(HeaderError::Digits);
        }
        digits
            .iter()
            .try_fold(0_u64, |number, digit| {
                number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
            })
            .and_then(|number| number.checked_mul(unit))
            .filter(|nanos| *nanos <= LONGEST)
            .map(Duration::from_nanos)
            .ok_or(HeaderError::TooLong)
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

/// A variant of [`HeaderError`], without the name of the header.
type Mistake = fn(HeaderName) -> HeaderError;

/// The error for a header that is not valid. Each variant holds the name of the header.
///
/// ```
/// use http::{HeaderMap, HeaderValue};
/// use timeout_runtime::integrations::tower::{DeadlineHeader, HeaderError};
///
/// let mut headers = HeaderMap::new();
/// headers.insert("grpc-timeout", HeaderValue::from_static("-5m"));
/// let error = DeadlineHeader::Grpc.read(&headers).unwrap_err();
/// assert!(matches!(&error, HeaderError::Digits(name) if name == "grpc-timeout"));
/// assert_eq!(error.to_string(), "`grpc-timeout` must consist of digits only, at most eight in gRPC");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The header is present more than once.
    #[error("`{0}` is given more than once")]
    Repeated(HeaderName),
    /// The number is empty, contains a character that is not a digit, such as a sign or a space, or
    /// has more than eight digits in gRPC.
    #[error("`{0}` must consist of digits only, at most eight in gRPC")]
    Digits(HeaderName),
    /// The value does not end with a gRPC unit.
    #[error("`{0}` must end with a unit, as in `500m`")]
    Unit(HeaderName),
    /// The duration is longer than 400 years.
    #[error("`{0}` is longer than 400 years")]
    TooLong(HeaderName),
}
