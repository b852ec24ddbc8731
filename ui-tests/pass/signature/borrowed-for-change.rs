use timeout_runtime::{TimeoutError, timeout};

#[timeout(secs = 60, run = "inline")]
fn scan(rows: &mut Vec<u8>) -> Result<(), TimeoutError> {
    rows.clear();
    Ok(())
}

#[timeout(secs = 60, run = "inline")]
fn trim(text: &str) -> Result<&str, TimeoutError> {
    Ok(text.trim())
}

#[timeout(secs = 60, cancel = false)]
fn without_borrow(mut rows: Vec<u8>) -> Result<Vec<u8>, TimeoutError> {
    rows.clear();
    Ok(rows)
}

fn main() {
    let mut rows = vec![1];
    scan(&mut rows).unwrap();
    assert!(rows.is_empty());
    assert_eq!(trim(" a ").unwrap(), "a");
    assert_eq!(without_borrow(vec![1]).unwrap(), []);
}
