use timeout_runtime::{TimeoutError, timeout};

struct Rows<'a>(&'a [u8]);

#[timeout(ms = 50)]
fn scan(rows: Rows) -> Result<usize, TimeoutError> {
    Ok(rows.0.len())
}

fn main() {}
