//! Annotated functions can call each other twenty levels deep within the compiler's default limits.

use crate::support;
use support::{block_on, runtime};
use timeout_runtime::{TimeoutError, timeout};
use tokio::task::yield_now;

#[timeout(name = "future_depth::leaf", secs = 60)]
async fn leaf() -> Result<u32, TimeoutError> {
    yield_now().await;
    Ok(0)
}

/// Each function calls the one named after it. The compiler sees the innermost one first.
macro_rules! layers {
    ($outer:ident $inner:ident $($more:ident)*) => {
        layers!($inner $($more)*);
        #[timeout(name = "future_depth::layer", secs = 60)]
        async fn $outer() -> Result<u32, TimeoutError> {
            Ok($inner().await? + 1)
        }
    };
    ($last:ident) => {};
}

layers!(a19 a18 a17 a16 a15 a14 a13 a12 a11 a10 a9 a8 a7 a6 a5 a4 a3 a2 a1 leaf);

/// Nested futures used to exceed the compiler's limits in the layout and in the proof of `Send`.
#[test]
fn twenty_nested_futures_compile_and_can_be_spawned() {
    assert_eq!(block_on(a19()).unwrap(), 19);
    let runtime = runtime();
    let task = runtime.spawn(a19());
    assert_eq!(runtime.block_on(task).unwrap().unwrap(), 19);
}
