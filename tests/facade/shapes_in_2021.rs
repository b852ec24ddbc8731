//! The functions of every shape, in a crate of the edition before.

#[path = "../shapes/mod.rs"]
mod shapes;
#[path = "../support/mod.rs"]
mod support;

/// The shapes that no other edition has: none.
mod edition {
    pub(crate) const SHAPES: &[crate::shapes::Shape] = &[];
}
