use std::rc::Rc;

use timeout_runtime::{Returned, FromTimeout, TimeoutError, timeout};

struct Reply(Rc<u8>);

impl FromTimeout for Reply {
    fn from_timeout(_: TimeoutError) -> Self {
        Reply(Rc::new(0))
    }

    fn returned(&self) -> Returned<'_> {
        Returned::Value
    }
}

#[timeout(ms = 50)]
fn scan(rows: u8) -> Reply {
    Reply(Rc::new(rows))
}

fn main() {}
