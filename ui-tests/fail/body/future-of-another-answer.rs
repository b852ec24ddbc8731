use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50)]
fn scan(rows: Vec<u8>) -> impl Future<Output = Result<u32, TimeoutError>> {
    async move {
        let answer: Result<usize, TimeoutError> = Ok(rows.len());
        answer
    }
}

fn main() {}
