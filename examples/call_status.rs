//! Shows the cause of each outcome: a call's own limit, a deadline shared by all calls of a
//! request, and a caller that cancels its token.
//!
//! ```text
//! cargo run -p timeout-examples --example call_status
//! ```

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use timeout_runtime::{CallStatus, CancelToken, Deadline, TimeoutError, timeout};
use tokio::time::sleep;

/// The progress of a service's operation.
#[derive(Clone, Copy)]
enum Progress {
    NotStarted,
    Stopped,
    Completed,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotStarted => "not started",
            Self::Stopped => "stopped by cancellation",
            Self::Completed => "completed",
        })
    }
}

/// A service that needs some time, and waits for the cancellation of its token meanwhile.
struct Service {
    name: &'static str,
    takes: Duration,
    progress: Cell<Progress>,
}

impl Service {
    fn new(name: &'static str, takes_ms: u64) -> Self {
        Self {
            name,
            takes: Duration::from_millis(takes_ms),
            progress: Cell::new(Progress::NotStarted),
        }
    }

    /// One call of a request with the deadline `request_ends`. Cancelling `caller` cancels the
    /// call.
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
            Some(()) => self.progress.set(Progress::Completed),
            None => self.progress.set(Progress::Stopped),
        }
        cancel_token.check()
    }

    /// Calls the service, and prints the outcome.
    async fn report(&self, ms: u64, request_ends: Deadline, caller: &CancelToken) {
        let result = self.call(ms, request_ends, caller).await;
        let status = result.map_or_else(|error| error.status(), |()| CallStatus::Ok);
        let progress = self.progress.get();
        println!("{}: {status}, operation: {progress}", self.name);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let stays = CancelToken::new();

    // The call's own limit.
    let stock = Service::new("stock", 60_000);
    stock.report(50, Deadline::never(), &stays).await;

    // The caller cancels its token.
    let leaves = CancelToken::new();
    let stock = Service::new("stock", 60_000);
    tokio::join!(stock.report(60_000, Deadline::never(), &leaves), async {
        sleep(Duration::from_millis(50)).await;
        leaves.cancel();
    });

    // One deadline for the whole request: the calls share the time.
    let request_ends = Deadline::after(Duration::from_secs(2));
    let services = [("price", 30), ("stock", 60_000), ("ship", 100)];
    for (name, takes_ms) in services {
        let service = Service::new(name, takes_ms);
        service.report(60_000, request_ends, &stays).await;
    }
}
