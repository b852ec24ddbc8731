use timeout_runtime::timeout;

#[timeout(ms = 50)]
fn scan(rows: Vec<u8>) {
    drop(rows);
}

fn main() {}
