//! [`Meter`]: measures the processor time and the allocations of the whole process.

use std::alloc::System;
use std::time::Duration;

use alloc_tracker::{Allocator, ProcessSpan, Session};
use cpu_time::ProcessTime;

/// Counts per thread, so that counting causes no contention.
#[global_allocator]
static ALLOCATOR: Allocator<System> = Allocator::system();

/// Measures from [`start`](Self::start) to [`stop`](Self::stop).
pub(crate) struct Meter {
    session: Session,
    allocated: ProcessSpan,
    cpu: ProcessTime,
}

/// The cost of a batch over all threads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) cpu: Duration,
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
}

impl Meter {
    pub(crate) fn start() -> Self {
        let session = Session::new();
        let allocated = session.operation("batch").measure_process();
        // Started last, because summing up the allocations of all threads takes time.
        let cpu = ProcessTime::now();
        Self {
            session,
            allocated,
            cpu,
        }
    }

    pub(crate) fn stop(self) -> Cost {
        let cpu = self.cpu.elapsed();
        drop(self.allocated);
        let report = self.session.to_report();
        let mut cost = Cost {
            cpu,
            ..Cost::default()
        };
        for (_, batch) in report.operations() {
            cost.allocations += batch.total_allocations_count();
            cost.bytes += batch.total_bytes_allocated();
        }
        cost
    }
}
