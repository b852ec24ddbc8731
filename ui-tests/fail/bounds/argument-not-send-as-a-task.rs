use std::rc::Rc;

use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50, run = "task")]
async fn scan(rows: Rc<u8>) -> Result<u8, TimeoutError> {
    Ok(*rows)
}

fn main() {}
