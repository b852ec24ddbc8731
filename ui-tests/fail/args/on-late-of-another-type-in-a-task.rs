use timeout_runtime::timeout;

#[timeout(ms = 50, on_late = |late: Option<u8>| drop(late), run = "task")]
async fn scan(rows: Vec<u8>) -> Option<usize> {
    Some(rows.len())
}

fn main() {}
