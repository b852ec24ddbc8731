//! A function of any shape behaves with the attribute as without: the same value, and the same
//! drops in the same order. If it never ends, it times out.

#[macro_use]
#[path = "../shapes/mod.rs"]
mod shapes;
#[path = "../support/mod.rs"]
mod support;

#[path = "../shapes/edition_2024.rs"]
mod edition;
