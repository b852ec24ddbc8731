use std::pin::pin;
use std::task::{Context, Poll, Waker};

use timeout_runtime::{TimeoutError, timeout};

/// # Safety
///
/// `row` is valid for reads.
#[timeout(secs = 60, run = "inline")]
unsafe fn read(row: *const u8) -> Result<u8, TimeoutError> {
    Ok(unsafe { *row })
}

/// # Safety
///
/// `row` is valid for reads until the future is dropped.
#[timeout(secs = 60)]
async unsafe fn read_async(row: *const u8) -> Result<u8, TimeoutError> {
    Ok(unsafe { *row })
}

fn main() {
    let row = 7;
    assert_eq!(unsafe { read(&raw const row) }.unwrap(), 7);
    let read = pin!(unsafe { read_async(&raw const row) });
    let read = read.poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(read, Poll::Ready(Ok(7))));
}
