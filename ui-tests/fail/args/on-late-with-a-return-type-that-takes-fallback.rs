use timeout_runtime::timeout;

#[timeout(ms = 50, on_late = drop)]
fn scan(rows: Vec<u8>) -> usize {
    rows.len()
}

fn main() {}
