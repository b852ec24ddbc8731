//! The registered functions (listeners, propagators) that this thread runs on behalf of. They are
//! not called for calls that they make themselves.

use std::cell::RefCell;
use std::mem::ManuallyDrop;

use crate::sync::const_thread_local;

/// The ids of registered functions, outermost first.
struct Muted {
    /// Usually the only one: the outermost function costs no allocation.
    first: Option<u64>,
    others: Vec<u64>,
}

const_thread_local! {
    // Thread-local destructors may make calls, so this has no destructor itself. Instead it frees
    // its memory when it becomes empty.
    static MUTED: ManuallyDrop<RefCell<Muted>> = ManuallyDrop::new(RefCell::new(Muted::NONE));
}

impl Muted {
    const NONE: Self = Self {
        first: None,
        others: Vec::new(),
    };

    fn ids(&self) -> impl Iterator<Item = u64> {
        self.first.into_iter().chain(self.others.iter().copied())
    }

    fn push(&mut self, id: u64) {
        match self.first {
            None => self.first = Some(id),
            Some(_) => self.others.push(id),
        }
    }

    fn truncate(&mut self, len: usize) {
        match len {
            0 => *self = Self::NONE,
            1 => self.others = Vec::new(),
            len => self.others.truncate(len - 1),
        }
    }
}

fn with<T>(f: impl FnOnce(&mut Muted) -> T) -> T {
    MUTED.with(|muted| f(&mut muted.borrow_mut()))
}

/// The functions muted on this thread, for another thread that works on its behalf.
pub(crate) fn all() -> Vec<u64> {
    with(|muted| muted.ids().collect())
}

/// Whether this code runs on behalf of the function `id`.
pub(crate) fn contains(id: u64) -> bool {
    with(|muted| muted.ids().any(|muted| muted == id))
}

/// Runs `f` with `ids` muted in addition.
pub(crate) fn mute<T>(ids: &[u64], f: impl FnOnce() -> T) -> T {
    struct Unmute(usize);

    impl Drop for Unmute {
        fn drop(&mut self) {
            with(|muted| muted.truncate(self.0));
        }
    }

    if ids.is_empty() {
        return f();
    }
    let before = with(|muted| {
        let before = muted.ids().count();
        for &id in ids {
            muted.push(id);
        }
        before
    });
    let _unmute = Unmute(before);
    f()
}

#[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn muted_functions_are_unmuted_in_reverse_order() {
        mute(&[1], || {
            mute(&[2, 3], || assert_eq!(all(), [1, 2, 3]));
            assert_eq!(all(), [1]);
            assert!(contains(1) && !contains(2));
        });
        assert_eq!(all(), []);
    }

    /// A thread kept the memory of its list until it ended.
    #[test]
    fn memory_is_freed_once_no_function_is_muted() {
        let capacity = || with(|muted| muted.others.capacity());
        mute(&[1, 2, 3], || assert!(capacity() > 0));
        assert_eq!(capacity(), 0);
    }
}
