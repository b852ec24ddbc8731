//! Decides which operations and results are large enough to move in a box.
//!
//! An operation and its result pass through many functions on their way between two threads, and
//! each function may copy them. Boxing a large value replaces those copies by one allocation, and
//! uses almost no stack.

/// In bytes. Up to this size, an allocation costs more than the copies.
const LARGE: usize = 2048;

/// Whether values of this type move in a box.
pub(super) const fn is_large<T>() -> bool {
    size_of::<T>() > LARGE
}
