//! The future of an inline call holds its operation once.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;

use timeout_runtime::{Timeout, TimeoutError, timeout};
use tokio::task::yield_now;

/// The most that one call may add to the future of its operation, in bytes.
const LAYER: usize = 512;
const ARRAY: usize = 4096;

async fn plain_leaf() -> Result<usize, TimeoutError> {
    let array = [1_u8; ARRAY];
    yield_now().await;
    Ok(array.iter().map(|&byte| usize::from(byte)).sum())
}

#[timeout(name = "future_size::leaf", secs = 60)]
async fn leaf() -> Result<usize, TimeoutError> {
    plain_leaf().await
}

/// Annotated functions, each calling the next one, and an array with the sizes of their futures.
macro_rules! layers {
    ($outer:ident $inner:ident $($more:ident)*) => {
        #[timeout(name = "future_size::layer", secs = 60)]
        async fn $outer() -> Result<usize, TimeoutError> {
            $inner().await
        }
        layers!($inner $($more)*);
    };
    ($last:ident) => {};
}

layers!(a8 a7 a6 a5 a4 a3 a2 a1 leaf);

/// A call that holds its operation twice doubles the size with each level.
#[test]
fn each_level_adds_the_same_small_size() {
    let sizes = [
        size_of_val(&plain_leaf()),
        size_of_val(&leaf()),
        size_of_val(&a1()),
        size_of_val(&a2()),
        size_of_val(&a3()),
        size_of_val(&a4()),
        size_of_val(&a5()),
        size_of_val(&a6()),
        size_of_val(&a7()),
        size_of_val(&a8()),
    ];
    assert!(sizes[0] >= ARRAY);
    for pair in sizes.windows(2) {
        assert!(pair[1] <= pair[0] + LAYER, "{sizes:?}");
    }
}

/// Arguments used to be held three times: by the function, the call and the operation.
#[test]
fn an_argument_is_held_once_by_the_call() {
    #[timeout(secs = 60)]
    #[allow(clippy::large_types_passed_by_value)] // The size is measured.
    async fn takes(array: [u8; ARRAY]) -> Result<usize, TimeoutError> {
        yield_now().await;
        Ok(usize::from(array[0]))
    }

    #[allow(clippy::large_types_passed_by_value)]
    async fn takes_plain(array: [u8; ARRAY]) -> Result<usize, TimeoutError> {
        yield_now().await;
        Ok(usize::from(array[0]))
    }

    let (wrapped, plain) = (
        size_of_val(&takes([0; ARRAY])),
        size_of_val(&takes_plain([0; ARRAY])),
    );
    assert!(wrapped <= plain + ARRAY + LAYER, "{wrapped}, not {plain}");
}

/// The same without the attribute.
#[test]
fn a_policy_adds_no_more_than_the_attribute() {
    let timeout = Timeout::new("future_size::policy", std::time::Duration::from_secs(60)).unwrap();
    let once = timeout.call_async(|_| plain_leaf());
    let twice = timeout.call_async(|_| timeout.call_async(|_| plain_leaf()));
    let sizes = [
        size_of_val(&plain_leaf()),
        size_of_val(&once),
        size_of_val(&twice),
    ];
    for pair in sizes.windows(2) {
        assert!(pair[1] <= pair[0] + LAYER, "{sizes:?}");
    }
}

/// Polls a future that is pending only because it yields.
fn run<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

/// Nested calls used to overflow a small stack, since each level copied the levels below it.
#[test]
fn eight_nested_calls_run_on_a_small_stack() {
    let result = thread::Builder::new()
        .stack_size(256 << 10)
        .spawn(|| run(a8()))
        .unwrap()
        .join()
        .unwrap();
    assert_eq!(result.unwrap(), ARRAY);
}

#[timeout(name = "future_size::recursive", secs = 60)]
async fn countdown(from: u32) -> Result<u32, TimeoutError> {
    yield_now().await;
    match from {
        0 => Ok(0),
        _ => Ok(Box::pin(countdown(from - 1)).await? + 1),
    }
}

/// The attribute used to prevent recursive functions from compiling, or from being spawned.
#[test]
fn a_recursive_function_compiles_and_stays_send() {
    fn sent<T: Send>(value: T) -> T {
        value
    }

    assert_eq!(run(sent(countdown(20))).unwrap(), 20);
    drop(sent(a8()));
}
