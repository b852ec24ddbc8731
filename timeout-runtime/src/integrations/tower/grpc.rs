//! What gRPC clients read of an answer: its kind and its status.

use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::response::Response;

use super::refusal::Refusal;

const KIND: &str = "application/grpc";
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// Answers as gRPC does, with the status alone: `DEADLINE_EXCEEDED` (4) where time has run out, `INTERNAL` (13) for a malformed header.
///
/// ```
/// use timeout_runtime::integrations::tower::{Refusal, grpc_status};
///
/// let answer = grpc_status::<()>(Refusal::Expired);
/// assert_eq!(answer.headers()["grpc-status"], "4");
/// ```
#[must_use]
#[allow(clippy::needless_pass_by_value)] // As functions of users may want to have it.
pub fn grpc_status<B: Default>(refusal: Refusal) -> Response<B> {
    let mut answer = Response::new(B::default());
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(KIND));
    ensure_status(headers, &refusal);
    answer
}

/// What follows `application/grpc` in the content type, where that is how it begins.
fn variant(headers: &HeaderMap) -> Option<&[u8]> {
    let kind = headers.get(CONTENT_TYPE)?.as_bytes();
    let (kind, variant) = kind.split_at_checked(KIND.len())?;
    kind.eq_ignore_ascii_case(KIND.as_bytes())
        .then_some(variant)
}

/// Whether the client that sent these headers looks for a status of gRPC, wherever it finds it.
pub(super) fn wants_status(headers: &HeaderMap) -> bool {
    variant(headers).is_some()
}

/// Whether the client of this answer looks for a status in its trailers.
///
/// A client of gRPC-Web does not: its trailers are part of the body.
pub(super) fn ends_with_status(headers: &HeaderMap) -> bool {
    variant(headers).is_some_and(|variant| matches!(variant, [] | [b'+' | b';' | b' ' | b'\t', ..]))
}

/// The trailers that end an answer in the place of the rest, with what `refusal` says of them in its head.
pub(super) fn trailers(head: &HeaderMap, refusal: &Refusal) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    for (name, value) in head {
        if name.as_str().starts_with("grpc-") {
            trailers.append(name, value.clone());
        }
    }
    ensure_status(&mut trailers, refusal);
    trailers
}

/// Gives `headers` the status of this refusal, unless they have one that every client takes for an error.
///
/// Without a status, or with `0`, the client takes what it has for the whole answer.
pub(super) fn ensure_status(headers: &mut HeaderMap, refusal: &Refusal) {
    let mut given = headers.get_all(STATUS).iter();
    let is_error = given.next().is_some_and(is_error) && given.next().is_none();
    if is_error {
        return;
    }
    let status = match refusal {
        Refusal::Expired => "4",
        Refusal::Malformed(_) => "13",
    };
    headers.insert(STATUS, HeaderValue::from_static(status));
    // The name of a header may hold a percent sign, which begins an escape here.
    let message = refusal.to_string().replace('%', "%25");
    if let Ok(message) = HeaderValue::try_from(message) {
        headers.entry(MESSAGE).or_insert(message);
    }
}

/// Whether this is one of the codes of gRPC but `OK`.
fn is_error(status: &HeaderValue) -> bool {
    (1..=16).any(|code: u8| *status == *code.to_string())
}
