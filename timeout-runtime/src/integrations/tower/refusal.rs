//! [`Refusal`]: why a server layer replaces the response of its service, or ends it early.

use http::{Response, StatusCode};

use super::header::HeaderError;

/// Why a [`ServerLayer`](super::ServerLayer) responds instead of its service, or ends the service's
/// response early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The deadline passed before the service was called, or before its response was complete.
    #[error("the deadline of the request has passed")]
    Expired,
    /// The header is not valid, and the layer does not ignore invalid headers.
    #[error(transparent)]
    Malformed(HeaderError),
}

/// Returns a response with an empty body.
///
/// The status is 504 (Gateway Timeout) for [`Refusal::Expired`], and 400 (Bad Request) for
/// [`Refusal::Malformed`].
///
/// ```
/// use timeout_runtime::integrations::tower::{Refusal, http_status};
///
/// assert_eq!(http_status::<()>(Refusal::Expired).status(), 504);
/// ```
#[must_use]
#[allow(clippy::needless_pass_by_value)] // Has the signature that `ServerLayer::new` expects.
pub fn http_status<B: Default>(refusal: Refusal) -> Response<B> {
    let mut response = Response::new(B::default());
    *response.status_mut() = match refusal {
        Refusal::Expired => StatusCode::GATEWAY_TIMEOUT,
        Refusal::Malformed(_) => StatusCode::BAD_REQUEST,
    };
    response
}
