use timeout_runtime::{TimeoutError, timeout};

#[derive(Debug)]
struct Fail;

impl From<TimeoutError> for Fail {
    fn from(_: TimeoutError) -> Self {
        Fail
    }
}

type Result<T> = std::result::Result<T, Fail>;
type Answer = Result<u8>;

#[timeout(secs = 60)]
fn scan(rows: Vec<u8>) -> Result<u8> {
    rows.first().copied().ok_or(Fail)
}

#[timeout(secs = 60)]
async fn scan_async(rows: Vec<u8>) -> Answer {
    rows.first().copied().ok_or(Fail)
}

fn main() {
    assert_eq!(scan(vec![7]).unwrap(), 7);
    drop(scan_async(vec![]));
}
