use timeout_runtime::timeout;

#[timeout(ms = 50, fallback = || 0)]
fn scan(rows: Vec<u8>) -> usize {
    rows.len()
}

fn main() {}
