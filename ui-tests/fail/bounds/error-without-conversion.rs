use timeout_runtime::timeout;

#[derive(Debug)]
struct Fail;

#[timeout(ms = 50)]
fn scan(rows: Vec<u8>) -> Result<usize, Fail> {
    rows.first().map(|_| rows.len()).ok_or(Fail)
}

fn main() {}
