//! [`Probe`]: counts the places where an operation can be cancelled, and chooses one of them.
//!
//! A thread knows the probe on whose behalf it runs, as it knows its call.

use std::cell::RefCell;
use std::mem::{self, ManuallyDrop};
use std::panic::Location;
use std::sync::{Arc, Mutex};

use crate::sync::{const_thread_local, lock};

/// A place where an operation can be cancelled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    /// The name of the call that is cancelled there.
    pub(crate) call: &'static str,
    /// Where the operation checks its token or waits. `None`: where it is pending.
    pub(crate) place: Option<&'static Location<'static>>,
}

/// Counts the points of one run of a test.
#[derive(Debug)]
pub(crate) struct Probe {
    /// The number of the point at which the operation is cancelled, counted from 1.
    target: usize,
    /// The address of the token around the test. It is not cancelled.
    around: usize,
    points: Mutex<Vec<Point>>,
}

impl Probe {
    pub(crate) fn new(target: usize, around: usize) -> Arc<Self> {
        Arc::new(Self {
            target,
            around,
            points: Mutex::new(Vec::new()),
        })
    }

    pub(crate) fn target(&self) -> usize {
        self.target
    }

    pub(crate) fn around(&self) -> usize {
        self.around
    }

    /// The operation has reached a point. Returns whether it is cancelled there.
    pub(crate) fn reach(&self, point: Point) -> bool {
        let mut points = lock(&self.points);
        // The rest of the run is the end of a cancelled operation.
        if points.len() >= self.target {
            return false;
        }
        points.push(point);
        points.len() == self.target
    }

    /// The points that were reached, up to the one at which the operation was cancelled.
    pub(crate) fn points(&self) -> Vec<Point> {
        lock(&self.points).clone()
    }
}

const_thread_local! {
    // Without a destructor, an access needs no check whether the value still exists. At the end of
    // a thread it is `None`.
    static CURRENT: ManuallyDrop<RefCell<Option<Arc<Probe>>>> =
        ManuallyDrop::new(RefCell::new(None));
}

/// The probe of a thread, for other threads and tasks that run on its behalf. Perhaps none.
#[derive(Clone, Debug)]
pub(crate) struct ProbeHandle(Option<Arc<Probe>>);

impl ProbeHandle {
    pub(crate) fn of(probe: &Arc<Probe>) -> Self {
        Self(Some(Arc::clone(probe)))
    }

    /// The probe of this thread.
    pub(crate) fn here() -> Self {
        Self(current())
    }

    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Makes this thread run on behalf of the probe, if there is one, until the guard is dropped.
    pub(crate) fn enter(&self) -> Option<Entered> {
        let probe = self.0.clone()?;
        Some(Entered(replace(Some(probe))))
    }
}

fn replace(probe: Option<Arc<Probe>>) -> Option<Arc<Probe>> {
    CURRENT.with(|current| mem::replace(&mut *current.borrow_mut(), probe))
}

/// The probe of this thread.
pub(crate) fn current() -> Option<Arc<Probe>> {
    CURRENT.with(|current| current.borrow().clone())
}

/// Whether this thread runs on behalf of a probe.
#[inline]
pub(crate) fn is_active() -> bool {
    CURRENT.with(|current| current.borrow().is_some())
}

/// Restores the probe before when dropped.
#[must_use]
pub(crate) struct Entered(Option<Arc<Probe>>);

impl Drop for Entered {
    fn drop(&mut self) {
        let before = self.0.take();
        drop(replace(before));
    }
}
