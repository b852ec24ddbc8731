use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50, run = "task")]
fn scan(rows: Vec<u8>) -> impl Future<Output = Result<usize, TimeoutError>> {
    async move { Ok(rows.len()) }
}

fn main() {}
