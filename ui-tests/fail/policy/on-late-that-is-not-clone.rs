use std::sync::Mutex;
use std::time::Duration;

use timeout_runtime::{InvalidLimit, Timeout, TimeoutError};

fn main() -> Result<(), InvalidLimit> {
    let count = Timeout::new("count", Duration::from_millis(50))?;
    let late = Mutex::new(Vec::new());
    let count = count.on_late(move |result| late.lock().unwrap().push(result));
    let _ = count.call(|_| Ok::<_, TimeoutError>(3));
    Ok(())
}
