use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use timeout_runtime::{TimeoutError, timeout};

struct Table(Vec<u8>);

impl Table {
    #[timeout(secs = 60)]
    fn scan(self: Arc<Self>) -> Result<usize, TimeoutError> {
        Ok(self.0.len())
    }

    #[timeout(secs = 60, run = "inline")]
    fn scan_in_place(&self) -> Result<usize, TimeoutError> {
        Ok(self.0.len())
    }

    #[timeout(secs = 60, run = "inline")]
    fn change(self: Pin<&mut Self>) -> Result<(), TimeoutError> {
        self.get_mut().0.push(1);
        Ok(())
    }

    #[timeout(secs = 60, run = "inline")]
    fn shared(self: &Rc<Self>) -> Result<usize, TimeoutError> {
        Ok(Rc::strong_count(self))
    }
}

fn main() {
    let mut table = Table(vec![1]);
    Pin::new(&mut table).change().unwrap();
    assert_eq!(table.scan_in_place().unwrap(), 2);
    assert_eq!(Rc::new(Table(vec![])).shared().unwrap(), 1);
    assert_eq!(Arc::new(table).scan().unwrap(), 2);
}
