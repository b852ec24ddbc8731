//! Detects gRPC requests and responses by their content type, and sets `grpc-status` on a response
//! that the server layer refuses or ends early.

use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use super::refusal::Refusal;

const KIND: &str = "application/grpc";
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// Sets the headers of a gRPC response that holds only the status of the refusal.
pub(super) fn set_status_only(headers: &mut HeaderMap, refusal: &Refusal) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(KIND));
    ensure_status(headers, refusal);
}

/// Returns the rest of a content type that begins with `application/grpc`.
fn variant(headers: &HeaderMap) -> Option<&[u8]> {
    let kind = headers.get(CONTENT_TYPE)?.as_bytes();
    let (kind, variant) = kind.split_at_checked(KIND.len())?;
    kind.eq_ignore_ascii_case(KIND.as_bytes())
        .then_some(variant)
}

/// Whether these are headers of gRPC or gRPC-Web.
pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    variant(headers).is_some()
}

/// Whether the client of this response reads a status from its trailers.
///
/// A gRPC-Web client does not: its trailers are part of the body.
pub(super) fn has_trailers(headers: &HeaderMap) -> bool {
    variant(headers).is_some_and(|variant| matches!(variant, [] | [b'+' | b';' | b' ' | b'\t', ..]))
}

/// Returns the trailers that end a response early, with the gRPC headers of `head`.
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

/// Sets the status of the refusal, unless `headers` hold exactly one valid error status.
///
/// Without a status, or with status `0`, a client takes the received part for the whole response.
pub(super) fn ensure_status(headers: &mut HeaderMap, refusal: &Refusal) {
    let mut present = headers.get_all(STATUS).iter();
    let is_error = present.next().is_some_and(is_error) && present.next().is_none();
    if is_error {
        return;
    }
    let status = match refusal {
        Refusal::Expired => "4",
        Refusal::Cancelled => "14",
        Refusal::Malformed(_) => "13",
    };
    headers.insert(STATUS, HeaderValue::from_static(status));
    // The message can contain a header name with a percent sign, which starts an escape here.
    let message = refusal.to_string().replace('%', "%25");
    if let Ok(message) = HeaderValue::try_from(message) {
        headers.entry(MESSAGE).or_insert(message);
    }
}

/// Whether this is a gRPC status code other than `OK`.
fn is_error(status: &HeaderValue) -> bool {
    (1..=16).any(|code: u8| *status == *code.to_string())
}
