use timeout_runtime::timeout;

fn main() {
    #[timeout(ms = 50)]
    let scan = |rows: Vec<u8>| rows.len();
    scan(vec![]);
}
