use timeout_runtime::timeout;

#[timeout(ms = 50)]
fn scan() {}

fn main() {}
