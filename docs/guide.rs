//! The chapters of the guide as documentation, so that Cargo compiles and runs their code.
//!
//! To read the guide, run `mdbook serve docs`, or open the files in `docs/src`.

#[doc = include_str!("src/introduction.md")]
pub mod introduction {}

#[doc = include_str!("src/tutorial.md")]
pub mod tutorial {}

#[doc = include_str!("src/choosing-a-limit.md")]
pub mod choosing_a_limit {}

#[doc = include_str!("src/stages.md")]
pub mod stages {}

#[doc = include_str!("src/deadlines.md")]
pub mod deadlines {}

#[doc = include_str!("src/axum.md")]
pub mod axum {}

#[doc = include_str!("src/retries.md")]
pub mod retries {}

#[doc = include_str!("src/cleanup.md")]
pub mod cleanup {}

#[doc = include_str!("src/shutdown.md")]
pub mod shutdown {}

#[allow(clippy::doc_markdown)] // Names of databases.
#[doc = include_str!("src/blocking-io.md")]
pub mod blocking_io {}

#[allow(clippy::doc_markdown)] // Names of databases.
#[doc = include_str!("src/drivers.md")]
pub mod drivers {}

#[doc = include_str!("src/workers.md")]
pub mod workers {}

#[doc = include_str!("src/testing.md")]
pub mod testing {}

#[doc = include_str!("src/limitations.md")]
pub mod limitations {}

#[doc = include_str!("src/from-tokio-timeout.md")]
pub mod from_tokio_timeout {}

#[doc = include_str!("src/from-test-timeouts.md")]
pub mod from_test_timeouts {}

#[doc = include_str!("src/from-tokio-util.md")]
pub mod from_tokio_util {}

#[doc = include_str!("src/names-elsewhere.md")]
pub mod names_elsewhere {}
