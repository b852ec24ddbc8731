use std::time::Duration;

use timeout_runtime::{CancelToken, Deadline, TimeoutError, timeout};

const NAME: &str = "scan";

struct Table {
    limit: Duration,
    shutdown: Option<CancelToken>,
    until: Deadline,
}

impl Table {
    #[timeout(
        name = NAME,
        limit = self.limit,
        cancel = true,
        grace = "250ms",
        run = "inline",
        token = stop,
        upstream = [self.shutdown, &tokens[..], CancelToken::new()],
        deadline = self.until,
        inherit = false,
        fallback = |error: TimeoutError| error.to_string().len(),
        on_late = |late| assert_ne!(late, 7),
        max_abandoned = most,
        crate = timeout_runtime,
    )]
    fn scan(&self, tokens: &[CancelToken], most: usize) -> usize {
        assert!(stop.deadline().remaining().is_some());
        7
    }
}

fn main() {
    let table = Table {
        limit: Duration::from_secs(60),
        shutdown: Some(CancelToken::new()),
        until: Deadline::after(Duration::from_secs(60)),
    };
    assert_eq!(table.scan(&[CancelToken::new()], 5), 7);
}
