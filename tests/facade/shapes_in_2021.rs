//! Compiles the functions of every shape in edition 2021.

#[path = "../shapes/mod.rs"]
mod shapes;
#[path = "../support/mod.rs"]
mod support;

/// No shape is specific to this edition.
mod edition {
    pub(crate) const SHAPES: &[crate::shapes::Shape] = &[];
}
