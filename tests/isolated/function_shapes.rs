//! A function of any shape does with the attribute what it does without: the same value, and the same drops in the same order. And
//! where it hangs, it times out.

#[macro_use]
#[path = "../shapes/mod.rs"]
mod shapes;
#[path = "../support/mod.rs"]
mod support;

#[path = "../shapes/edition_2024.rs"]
mod edition;
