use std::rc::Rc;

use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50)]
fn scan((rows, from): (Rc<u8>, u8)) -> Result<u8, TimeoutError> {
    Ok(*rows + from)
}

fn main() {}
