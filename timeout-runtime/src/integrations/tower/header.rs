//! [`DeadlineHeader`]: how long is left, as a header of a request tells it.

use std::time::Duration;

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

/// The units of gRPC in nanoseconds, finest first.
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

/// The digits that gRPC allows.
const DIGITS: u32 = 8;

/// The longest duration, in nanoseconds: 400 years. A longer one might be beyond the range of a [`Deadline`](crate::Deadline), and so be
/// taken for never.
const LONGEST: u64 = 400 * 366 * 86_400 * 1_000_000_000;

/// A header that tells how long the caller of a request still waits.
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
    /// `grpc-timeout`: one to eight digits and one unit of `H`, `M`, `S`, `m`, `u`, `n`, as in `500m` for half a second.
    #[must_use]
    pub fn grpc() -> Self {
        Self {
            name: HeaderName::from_static("grpc-timeout"),
            format: Format::Grpc,
        }
    }

    /// The header `name`, in whole milliseconds.
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

    /// `x-envoy-expected-rq-timeout-ms`, in which Envoy tells a service in how many milliseconds it expects the answer.
    #[must_use]
    pub fn envoy() -> Self {
        Self::millis(HeaderName::from_static("x-envoy-expected-rq-timeout-ms"))
    }

    /// The name of the header.
    #[must_use]
    pub fn name(&self) -> &HeaderName {
        &self.name
    }

    /// What the header in `headers` tells; `None` where there is no such header. Zero is zero: time has run out.
    ///
    /// # Errors
    ///
    /// If the header is there more than once, is not in its format, or tells more than 400 years, which no clock here could count.
    pub fn read(&self, headers: &HeaderMap) -> Result<Option<Duration>, HeaderError> {
        let mut values = headers.get_all(&self.name).iter();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        let told = if values.next().is_some() {
            Err(HeaderMistake::Repeated)
        } else {
            self.format.parse(value.as_bytes())
        };
        told.map(Some).map_err(|mistake| HeaderError {
            header: self.name.clone(),
            mistake,
        })
    }

    /// The value that tells `left`, rounded up: to the finest unit of gRPC in which it has eight digits, or to whole milliseconds. So it is
    /// never less than `left`, and more by less than one unit. Passed on from service to service in one header it does not grow; in several
    /// ones not beyond what was told first, rounded up to the coarsest unit on the way. What is longer than 400 years is told as that.
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
    // The longest duration fits in hours.
    let finest = UNITS.into_iter().find(|(_, unit)| fits(*unit));
    let (letter, unit) = finest.unwrap_or(HOURS);
    let value = format!("{}{letter}", nanos.div_ceil(unit));
    HeaderValue::try_from(value).expect("digits and a letter may stand in a header")
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

/// A header that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{header}` {}", .mistake.text())]
pub struct HeaderError {
    header: HeaderName,
    mistake: HeaderMistake,
}

/// What is wrong with a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HeaderMistake {
    /// It is there more than once.
    Repeated,
    /// Its number is none, or has a sign, a space or anything else in it that is not a digit, or more digits than gRPC allows.
    Digits,
    /// It ends with no unit of gRPC.
    Unit,
    /// It tells more than 400 years.
    TooLong,
}

impl HeaderError {
    /// The name of the header.
    #[must_use]
    pub fn header(&self) -> &HeaderName {
        &self.header
    }

    /// What is wrong with it.
    #[must_use]
    pub fn mistake(&self) -> HeaderMistake {
        self.mistake
    }
}

impl HeaderMistake {
    fn text(self) -> &'static str {
        match self {
            Self::Repeated => "is given more than once",
            Self::Digits => "takes digits only, in gRPC one to eight",
            Self::Unit => "takes a unit at its end, as in `500m`",
            Self::TooLong => "is longer than 400 years",
        }
    }
}
