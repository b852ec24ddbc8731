use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50)]
async fn scan(rows: &[u8], text: String) -> Result<&str, TimeoutError> {
    drop(rows);
    Ok(&text)
}

fn main() {}
