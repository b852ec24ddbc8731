use timeout_runtime::timeout;

#[timeout(ms = 50, fallback = Vec::new())]
async fn scan(rows: Vec<u8>) -> Vec<u8> {
    rows
}

fn main() {}
