use std::rc::Rc;

use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50)]
fn scan(rows: Rc<u8>, from: usize) -> Result<usize, TimeoutError> {
    Ok(from + usize::from(*rows))
}

fn main() {}
