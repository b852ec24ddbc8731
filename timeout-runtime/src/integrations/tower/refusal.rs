//! [`Refusal`]: why a server layer answers in the place of its service.

use http::{Response, StatusCode};

use super::header::HeaderError;

/// Why a [`ServerLayer`](super::ServerLayer) answers in the place of its service, or breaks off its answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The deadline has passed, before the service was called or before it had answered to the end.
    #[error("the deadline of the request has passed")]
    Expired,
    /// The header cannot be read, and the layer does not ignore that.
    #[error(transparent)]
    Malformed(HeaderError),
}

/// Answers with an empty body and the status 504, gateway timeout, where time has run out, and 400, bad request, for a malformed header.
///
/// ```
/// use timeout_runtime::integrations::tower::{Refusal, http_status};
///
/// assert_eq!(http_status::<()>(Refusal::Expired).status(), 504);
/// ```
#[must_use]
#[allow(clippy::needless_pass_by_value)] // As functions of users may want to have it.
pub fn http_status<B: Default>(refusal: Refusal) -> Response<B> {
    let mut answer = Response::new(B::default());
    *answer.status_mut() = match refusal {
        Refusal::Expired => StatusCode::GATEWAY_TIMEOUT,
        Refusal::Malformed(_) => StatusCode::BAD_REQUEST,
    };
    answer
}
