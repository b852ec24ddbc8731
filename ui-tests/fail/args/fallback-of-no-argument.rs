use timeout_runtime::timeout;

#[timeout(ms = 50, fallback = Default::default)]
fn scan(rows: Vec<u8>) -> usize {
    rows.len()
}

fn main() {}
