use std::time::Duration;

use timeout_runtime::{InvalidLimit, Timeout, TimeoutError};

fn main() -> Result<(), InvalidLimit> {
    let count = Timeout::new("count", Duration::from_millis(50))?;
    let _ = count.as_task().call(|_| Ok::<_, TimeoutError>(3));
    Ok(())
}
