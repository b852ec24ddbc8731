//! A program whose call needs about four mebibytes of stack: `recurse [BYTES]`, where `BYTES` is
//! the stack size of workers.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;

use timeout_runtime::workers::Settings;
use timeout_runtime::{Timeout, TimeoutError};

const DEPTH: usize = 8 << 10;

/// Each frame takes more than half a kilobyte.
fn recurse(depth: usize) -> usize {
    let frame = black_box([depth; 64]);
    match depth {
        0 => 0,
        _ => recurse(depth - 1) + frame[depth % 64] + 1 - depth,
    }
}

fn main() -> ExitCode {
    if let Some(bytes) = std::env::args().nth(1) {
        let bytes = bytes.parse().expect("a number of bytes");
        Settings {
            stack_size: Some(bytes),
            ..Settings::current()
        }
        .apply();
    }
    let limit = Timeout::new("recurse", Duration::from_secs(60)).expect("a limit");
    let outcome = limit.outcome(|_| Ok::<_, TimeoutError>(recurse(DEPTH)));
    if outcome.success() == Some(DEPTH) {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(70)
    }
}
