use std::rc::Rc;
use std::time::Duration;

use timeout_runtime::{InvalidLimit, Timeout, TimeoutError};

fn main() -> Result<(), InvalidLimit> {
    let count = Timeout::new("count", Duration::from_millis(50))?;
    let rows = Rc::new([1, 2, 3]);
    let _ = count.call(move |_| Ok::<_, TimeoutError>(rows.len()));
    Ok(())
}
