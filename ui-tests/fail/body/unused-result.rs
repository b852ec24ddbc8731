#![deny(unused_must_use)]

use timeout_runtime::timeout;

#[timeout(ms = 50)]
#[must_use]
fn scan(rows: Vec<u8>) -> Option<usize> {
    Some(rows.len())
}

fn main() {
    scan(vec![]);
}
