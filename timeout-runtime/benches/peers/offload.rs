//! The peers: other ways to run an operation on another thread and wait for it with a limit.

use std::process;
use std::sync::{LazyLock, mpsc};
use std::thread;

use tokio::runtime::{Builder, Runtime};

use crate::operations::{FAR, Operation};

/// Has two workers, the number of cores of the machine on which the targets were set.
pub(crate) static TOKIO: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .expect("a runtime")
});

pub(crate) fn thread_per_call(operation: Operation, x: u64) -> u64 {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(operation(x)));
    in_time(receiver.recv_timeout(FAR))
}

pub(crate) fn tokio(operation: Operation, x: u64) -> u64 {
    let result = TOKIO.block_on(async {
        let operation = tokio::task::spawn_blocking(move || operation(x));
        tokio::time::timeout(FAR, operation).await
    });
    in_time(in_time(result))
}

pub(crate) fn rayon(operation: Operation, x: u64) -> u64 {
    let (sender, receiver) = crossbeam_channel::bounded(1);
    rayon::spawn(move || {
        // An error means that the caller has stopped waiting.
        let _ = sender.send(operation(x));
    });
    in_time(receiver.recv_timeout(FAR))
}

/// Returns the value of a call whose limit is too long to pass.
///
/// Exits the process on an error: a panic would leave other callers waiting for this one.
pub(crate) fn in_time<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| {
        eprintln!("a call did not return in time: {error}");
        process::exit(2)
    })
}
