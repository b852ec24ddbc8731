//! Every ending names its true cause: a call's own limit, a deadline shared by all calls of a request, a caller that leaves.
//!
//! ```text
//! cargo run -p timeout-examples --example call_status
//! ```

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use timeout_runtime::{CallStatus, CancelToken, Deadline, TimeoutError, timeout};
use tokio::time::sleep;

/// How far a service has got with what it was asked for.
#[derive(Clone, Copy)]
enum Work {
    NotStarted,
    Stopped,
    Completed,
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotStarted => "not started",
            Self::Stopped => "stopped by cancellation",
            Self::Completed => "completed",
        })
    }
}

/// A service that takes a while to answer, and watches its token meanwhile.
struct Service {
    name: &'static str,
    takes: Duration,
    work: Cell<Work>,
}

impl Service {
    fn new(name: &'static str, takes_ms: u64) -> Self {
        Self {
            name,
            takes: Duration::from_millis(takes_ms),
            work: Cell::new(Work::NotStarted),
        }
    }

    /// One call of a request that is over at `request_ends`, by a caller who may leave.
    #[timeout(
        name = "service",
        ms = ms,
        deadline = request_ends,
        upstream = caller,
    )]
    async fn call(
        &self,
        ms: u64,
        request_ends: Deadline,
        caller: &CancelToken,
    ) -> Result<(), TimeoutError> {
        match cancel_token.run_until_cancelled(sleep(self.takes)).await {
            Some(()) => self.work.set(Work::Completed),
            None => self.work.set(Work::Stopped),
        }
        cancel_token.check()
    }

    /// Calls the service, and prints how that ended.
    async fn report(&self, ms: u64, request_ends: Deadline, caller: &CancelToken) {
        let answer = self.call(ms, request_ends, caller).await;
        let status = answer.map_or_else(|error| error.status(), |()| CallStatus::Ok);
        println!("{}: {status}, work: {}", self.name, self.work.get());
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let stays = CancelToken::new();

    // The call's own limit.
    let stock = Service::new("stock", 60_000);
    stock.report(50, Deadline::never(), &stays).await;

    // The caller leaves.
    let leaves = CancelToken::new();
    let stock = Service::new("stock", 60_000);
    tokio::join!(stock.report(60_000, Deadline::never(), &leaves), async {
        sleep(Duration::from_millis(50)).await;
        leaves.cancel();
    });

    // One deadline for the whole request: what the first call leaves is all that the others have.
    let request_ends = Deadline::after(Duration::from_secs(2));
    let services = [("price", 30), ("stock", 60_000), ("ship", 100)];
    for (name, takes_ms) in services {
        let service = Service::new(name, takes_ms);
        service.report(60_000, request_ends, &stays).await;
    }
}
