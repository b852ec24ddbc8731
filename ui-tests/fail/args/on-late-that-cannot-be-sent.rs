use timeout_runtime::timeout;

#[timeout(ms = 50, on_late = { let rc = std::rc::Rc::new(5); move |_| drop(rc) })]
fn scan(rows: Vec<u8>) -> Option<usize> {
    Some(rows.len())
}

fn main() {}
