use timeout_runtime::timeout;

#[timeout(ms = 50)]
extern "C" fn scan(rows: u8) -> Option<u8> {
    Some(rows)
}

fn main() {}
