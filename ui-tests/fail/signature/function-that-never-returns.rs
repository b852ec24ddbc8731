use timeout_runtime::timeout;

#[timeout(ms = 50)]
fn serve() -> ! {
    loop {}
}

fn main() {}
