//! [`Refusal`]: why a server layer replaces the response of its service, or ends it early.

use super::header::HeaderError;

/// Why a [`ServerLayer`](super::ServerLayer) responds instead of its service, or ends the service's
/// response early.
///
/// ```
/// use http::StatusCode;
/// use timeout_runtime::integrations::tower::Refusal;
///
/// fn status(refusal: &Refusal) -> StatusCode {
///     match refusal {
///         Refusal::Malformed(_) => StatusCode::BAD_REQUEST,
///         _ => StatusCode::SERVICE_UNAVAILABLE,
///     }
/// }
///
/// assert_eq!(status(&Refusal::Expired), StatusCode::SERVICE_UNAVAILABLE);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The deadline passed before the service was called, or before its response was complete.
    #[error("the deadline of the request has passed")]
    Expired,
    /// The token of [`ServerLayer::upstream`](super::ServerLayer::upstream) was cancelled before the
    /// response was complete.
    #[error("the server has cancelled the request")]
    Cancelled,
    /// The header is not valid, and the layer does not ignore invalid headers.
    #[error(transparent)]
    Malformed(HeaderError),
}
