//! A value that is bound to the caller's thread, and goes along to workers and tasks.

#![allow(dead_code, unreachable_pub)] // Each test file uses its part.

use std::cell::Cell;

use timeout_runtime::add_propagator;

thread_local! {
    pub static TENANT: Cell<u32> = const { Cell::new(0) };
}

/// Puts back the tenant that was there before.
pub struct Leave(u32);

impl Drop for Leave {
    fn drop(&mut self) {
        TENANT.set(self.0);
    }
}

/// Makes this thread one of this tenant's.
pub fn enter(tenant: u32) -> Leave {
    Leave(TENANT.replace(tenant))
}

/// Has the tenant go along, in the whole process.
pub fn propagate_tenant() {
    let tenant = add_propagator(|| {
        let tenant = TENANT.get();
        move || enter(tenant)
    });
    tenant.forget();
}
