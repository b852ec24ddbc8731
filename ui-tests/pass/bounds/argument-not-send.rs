use std::rc::Rc;

use timeout_runtime::{TimeoutError, timeout};

#[timeout(secs = 60, run = "inline")]
fn scan<T: Into<u8>>(
    rows: Rc<u8>,
    (from, _): (*const u8, Rc<u8>),
    of: T,
) -> Result<Rc<u8>, TimeoutError> {
    assert!(from.is_null());
    Ok(Rc::new(*rows + of.into()))
}

fn main() {
    let rows = Rc::new(3);
    let of = std::num::NonZeroU8::MIN;
    assert_eq!(
        *scan(rows.clone(), (std::ptr::null(), rows), of).unwrap(),
        4
    );
}
