use timeout_runtime::{TimeoutError, timeout};

struct Fail;

impl From<TimeoutError> for Fail {
    fn from(_: TimeoutError) -> Self {
        Fail
    }
}

#[timeout(ms = 50)]
fn scan(rows: Vec<u8>) -> Result<usize, Fail> {
    rows.first().map(|_| rows.len()).ok_or(Fail)
}

fn main() {}
