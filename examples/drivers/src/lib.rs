//! Recipes that stop real drivers when their call is cancelled: one file per driver, each with
//! functions as a program would write them.
//!
//! The tests run them against real servers, and the program `stop_times` measures how soon the work
//! ends. The chapter "Driver by driver" of the guide shows the same functions.

pub mod channel;
pub mod child;
pub mod error;
pub mod postgres;
pub mod redis;
pub mod reqwest;
pub mod servers;
pub mod socket;
pub mod sqlite;
pub mod tokio_postgres;
pub mod uninterruptible;
pub mod ureq;

pub use error::Error;
