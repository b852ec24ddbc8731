use timeout_runtime::{TimeoutError, timeout};

struct Table(Vec<u8>);

impl Table {
    #[timeout(ms = 50)]
    fn clear(&mut self) -> Result<(), TimeoutError> {
        self.0.clear();
        Ok(())
    }
}

fn main() {}
