use std::rc::Rc;

use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50)]
fn scan(rows: u8) -> Result<Rc<u8>, TimeoutError> {
    Ok(Rc::new(rows))
}

fn main() {}
