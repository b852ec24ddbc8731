//! Tests over several layers.

mod clock_steps;
mod layers;
