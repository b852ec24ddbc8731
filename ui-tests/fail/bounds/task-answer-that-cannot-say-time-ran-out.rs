use timeout_runtime::timeout;

#[timeout(ms = 50, run = "task")]
async fn scan(rows: Vec<u8>) -> usize {
    rows.len()
}

fn main() {}
