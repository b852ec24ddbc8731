use timeout_runtime::{TimeoutError, timeout};

trait Scan {
    #[timeout(ms = 50)]
    fn scan(self, rows: Vec<u8>) -> Result<usize, TimeoutError>;
}

fn main() {}
