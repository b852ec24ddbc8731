use std::rc::Rc;

use timeout_runtime::{TimeoutError, timeout};

struct Table(Vec<u8>);

impl Table {
    #[timeout(ms = 50)]
    fn scan(self: Rc<Self>) -> Result<usize, TimeoutError> {
        Ok(self.0.len())
    }
}

fn main() {}
