//! A thread-local value that a propagator restores on workers and in tasks.

#![allow(dead_code, unreachable_pub)] // Each test file uses its part.

use std::cell::Cell;

use timeout_runtime::add_propagator;

thread_local! {
    pub static TENANT: Cell<u32> = const { Cell::new(0) };
}

/// Restores the previous tenant when dropped.
pub struct Leave(u32);

impl Drop for Leave {
    fn drop(&mut self) {
        TENANT.set(self.0);
    }
}

/// Sets the tenant of this thread.
pub fn enter(tenant: u32) -> Leave {
    Leave(TENANT.replace(tenant))
}

/// Propagates the tenant, in the whole process.
pub fn propagate_tenant() {
    let tenant = add_propagator(|| {
        let tenant = TENANT.get();
        move || enter(tenant)
    });
    tenant.forget();
}
