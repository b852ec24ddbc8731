use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50)]
fn scan(rows: *const u8) -> Result<bool, TimeoutError> {
    Ok(rows.is_null())
}

fn main() {}
