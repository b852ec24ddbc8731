//! HTTP by `ureq`, a blocking client.

use std::io;
use std::time::{Duration, Instant};

use timeout_runtime::timeout;
use ureq::config::Config;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, NextTimeout, TcpConnector, Transport,
};
use ureq::{Agent, Error as UreqError};

use crate::Error;

/// The time between two checks of the token.
const STEP: Duration = Duration::from_millis(10);

/// Fetches a page. The client stops at the deadline, but not at a cancellation before it.
///
/// # Errors
///
/// Fails at the limit, or if the client reports an error.
#[timeout(name = "ureq", limit = limit)]
pub fn fetch(agent: Agent, url: String, limit: Duration) -> Result<String, Error> {
    cancel_token.check()?;
    let request = agent.get(&url).config();
    let request = request.timeout_global(cancel_token.remaining()).build();
    Ok(request.call()?.body_mut().read_to_string()?)
}

/// An agent whose requests end when the token of their call is cancelled.
#[must_use]
pub fn checking_agent() -> Agent {
    let connector = ().chain(TcpConnector::default()).chain(CheckToken);
    Agent::with_parts(Config::default(), connector, DefaultResolver::default())
}

/// Makes the connections of another connector check the token of the current call.
#[derive(Debug)]
struct CheckToken;

impl<T: Transport> Connector<T> for CheckToken {
    type Out = Checked<T>;

    fn connect(
        &self,
        _: &ConnectionDetails<'_>,
        connection: Option<T>,
    ) -> Result<Option<Checked<T>>, UreqError> {
        Ok(connection.map(Checked))
    }
}

#[derive(Debug)]
struct Checked<T>(T);

impl<T: Transport> Transport for Checked<T> {
    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, UreqError> {
        let start = Instant::now();
        loop {
            timeout_runtime::check().map_err(io::Error::from)?;
            let left = timeout.after.saturating_sub(start.elapsed());
            let after = left.min(STEP).into();
            match self.0.await_input(NextTimeout { after, ..timeout }) {
                Err(UreqError::Timeout(_)) if left > STEP => {}
                result => return result,
            }
        }
    }

    fn buffers(&mut self) -> &mut dyn Buffers {
        self.0.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), UreqError> {
        self.0.transmit_output(amount, timeout)
    }

    fn is_open(&mut self) -> bool {
        self.0.is_open()
    }

    fn is_tls(&self) -> bool {
        self.0.is_tls()
    }
}
