use timeout_runtime::{TimeoutError, timeout};

macro_rules! scan {
    ($function:ident, $name:literal, $ms:literal, $run:expr, $cancel:tt, $runtime:path) => {
        #[timeout(name = $name, ms = $ms, run = $run, cancel = $cancel, crate = $runtime)]
        fn $function(rows: Vec<u8>) -> Result<usize, TimeoutError> {
            Ok(rows.len())
        }
    };
}

scan!(scan, "scan", 60_000, "worker", false, timeout_runtime);

fn main() {
    assert_eq!(scan(vec![1, 2]).unwrap(), 2);
}
