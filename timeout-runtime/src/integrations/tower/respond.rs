//! [`Respond`]: creates the response of a server layer in place of its service.

use http::{Response, StatusCode};

use super::grpc;
use super::header::DeadlineHeader;
use super::refusal::Refusal;

/// Creates the response for a [`Refusal`].
///
/// Users implement it with closures only, so the trait is not exported.
pub trait Respond<B> {
    /// Creates the response.
    fn respond(&self, refusal: Refusal) -> Response<B>;
}

impl<F, B> Respond<B> for F
where
    F: Fn(Refusal) -> Response<B>,
{
    fn respond(&self, refusal: Refusal) -> Response<B> {
        self(refusal)
    }
}

/// The default: a status with an empty body.
#[derive(Clone, Copy, Debug)]
pub struct DefaultResponse {
    is_grpc: bool,
}

impl DefaultResponse {
    /// Returns the default for clients that send `header`.
    pub(super) fn new(header: &DeadlineHeader) -> Self {
        Self {
            is_grpc: *header == DeadlineHeader::Grpc,
        }
    }
}

impl<B: Default> Respond<B> for DefaultResponse {
    fn respond(&self, refusal: Refusal) -> Response<B> {
        let mut response = Response::new(B::default());
        if self.is_grpc {
            grpc::set_status_only(response.headers_mut(), &refusal);
        } else {
            *response.status_mut() = match refusal {
                Refusal::Expired => StatusCode::GATEWAY_TIMEOUT,
                Refusal::Cancelled => StatusCode::SERVICE_UNAVAILABLE,
                Refusal::Malformed(_) => StatusCode::BAD_REQUEST,
            };
        }
        response
    }
}
