//! Other ways to run an operation on another thread and to wait for it no longer than a limit.

use std::process;
use std::sync::{LazyLock, mpsc};
use std::thread;

use tokio::runtime::{Builder, Runtime};

use crate::operations::{FAR, Operation};

/// As many workers as the machine that the targets were set on has cores.
pub(crate) static TOKIO: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .expect("a runtime")
});

pub(crate) fn thread_per_call(operation: Operation, x: u64) -> u64 {
    let (answer, answered) = mpsc::channel();
    thread::spawn(move || answer.send(operation(x)));
    in_time(answered.recv_timeout(FAR))
}

pub(crate) fn tokio(operation: Operation, x: u64) -> u64 {
    let answered = TOKIO.block_on(async {
        let operation = tokio::task::spawn_blocking(move || operation(x));
        tokio::time::timeout(FAR, operation).await
    });
    in_time(in_time(answered))
}

pub(crate) fn rayon(operation: Operation, x: u64) -> u64 {
    let (answer, answered) = crossbeam_channel::bounded(1);
    rayon::spawn(move || {
        // The one who waits has gone when time was up.
        let _ = answer.send(operation(x));
    });
    in_time(answered.recv_timeout(FAR))
}

/// The answer of a call whose limit is too far away to be missed.
///
/// Ends the process otherwise: a panic would leave other callers waiting for this one.
pub(crate) fn in_time<T, E: std::fmt::Display>(answered: Result<T, E>) -> T {
    answered.unwrap_or_else(|error| {
        eprintln!("a call did not answer in time: {error}");
        process::exit(2)
    })
}
