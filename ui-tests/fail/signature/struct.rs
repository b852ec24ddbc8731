use timeout_runtime::timeout;

#[timeout(ms = 50)]
struct Scan;

fn main() {}
