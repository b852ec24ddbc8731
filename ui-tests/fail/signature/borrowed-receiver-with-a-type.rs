use std::pin::Pin;

use timeout_runtime::{TimeoutError, timeout};

struct Table(Vec<u8>);

impl Table {
    #[timeout(ms = 50)]
    fn scan(self: Pin<&mut Self>) -> Result<usize, TimeoutError> {
        Ok(self.0.len())
    }
}

fn main() {}
