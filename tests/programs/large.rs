//! A program whose calls take and return a large array by value, on workers with the default stack
//! size: `large WAY`.

#![allow(clippy::large_stack_arrays, clippy::large_types_passed_by_value)] // Large values are what is tested.

use std::hint::black_box;
use std::process::ExitCode;
use std::thread;

use timeout_runtime::{TimeoutError, timeout};
use tokio::runtime::Builder;

/// Unoptimized code makes more copies of a value.
const BYTES: usize = if cfg!(debug_assertions) { 256 } else { 640 } << 10;
const ASYNC_BYTES: usize = BYTES / 2;

#[timeout(secs = 60)]
fn sync(mut array: [u8; BYTES]) -> Result<[u8; BYTES], TimeoutError> {
    array[BYTES / 2] += 1;
    Ok(black_box(array))
}

#[timeout(secs = 60)]
fn takes(array: [u8; BYTES]) -> Result<u8, TimeoutError> {
    Ok(black_box(&array)[BYTES / 2] + 1)
}

#[timeout(secs = 60)]
fn returns(value: u8) -> Result<[u8; BYTES], TimeoutError> {
    Ok(black_box([value + 1; BYTES]))
}

#[timeout(secs = 60, fallback = |_| [0; BYTES])]
fn falls_back(mut array: [u8; BYTES]) -> [u8; BYTES] {
    array[BYTES / 2] += 1;
    black_box(array)
}

#[timeout(secs = 60, run = "worker")]
async fn polled(mut array: [u8; ASYNC_BYTES]) -> Result<[u8; ASYNC_BYTES], TimeoutError> {
    tokio::task::yield_now().await;
    array[ASYNC_BYTES / 2] += 1;
    Ok(black_box(array))
}

fn call(way: &str) -> Result<u8, TimeoutError> {
    let array = || black_box([6; BYTES]);
    Ok(match way {
        "sync" => sync(array())?[BYTES / 2],
        "takes" => takes(array())?,
        "returns" => returns(6)?[BYTES / 2],
        "falls_back" => falls_back(array())[BYTES / 2],
        "polled" => {
            let runtime = Builder::new_current_thread().build().expect("a runtime");
            runtime.block_on(polled([6; ASYNC_BYTES]))?[ASYNC_BYTES / 2]
        }
        way => panic!("unknown way `{way}`"),
    })
}

fn main() -> ExitCode {
    let way = std::env::args().nth(1).expect("a way to call");
    // The caller's own copies need a larger stack.
    let caller = thread::Builder::new().stack_size(256 << 20);
    let caller = caller.spawn(move || call(&way)).expect("a thread");
    match caller.join() {
        Ok(Ok(7)) => ExitCode::SUCCESS,
        _ => ExitCode::from(70),
    }
}
