use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50)]
async fn scan(rows: Vec<u8>) -> Result<u32, TimeoutError> {
    let answer: Result<usize, TimeoutError> = Ok(rows.len());
    answer
}

fn main() {}
