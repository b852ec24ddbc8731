use timeout_runtime::timeout;

struct Scan;

#[timeout(ms = 50)]
impl Scan {}

fn main() {}
