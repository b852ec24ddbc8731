//! Large operations and results, which move in a box.
//!
//! An operation and its result pass through many functions on their way between two threads, and
//! each of these may copy what it passes on. In a box, a large value costs an allocation in place
//! of those copies, and next to no stack.

/// In bytes. Below this size, an allocation costs more than the copies.
const LARGE: usize = 2048;

/// Whether values of this type move in a box.
pub(super) const fn is_large<T>() -> bool {
    size_of::<T>() > LARGE
}
