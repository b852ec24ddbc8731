use timeout_runtime::{CancelToken, TimeoutError, timeout};

#[timeout(secs = 60, token = stop)]
fn scan(cancel_token: u64) -> Result<u64, TimeoutError> {
    stop.check()?;
    Ok(cancel_token)
}

#[timeout(secs = 60)]
fn below(cancel_token: &CancelToken, rows: Vec<u8>) -> Result<usize, TimeoutError> {
    let again: &CancelToken = cancel_token;
    again.check()?;
    Ok(rows.len())
}

fn main() {
    assert_eq!(scan(7).unwrap(), 7);
    assert_eq!(below(&CancelToken::new(), vec![1]).unwrap(), 1);
}
