use timeout_runtime::timeout;

#[timeout(ms = 50, on_late = 0)]
fn scan(rows: Vec<u8>) -> Option<usize> {
    Some(rows.len())
}

fn main() {}
