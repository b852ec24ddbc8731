use timeout_runtime::timeout;

#[timeout(ms = 50)]
fn scan(rows: Vec<u8>) -> impl Future<Output = usize> {
    async move { rows.len() }
}

fn main() {}
