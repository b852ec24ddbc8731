//! [`Library`]: a crate on disk, and the times that it took to compile.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use crate::Functions;
use crate::variant::Variant;

/// The measured commands of Cargo.
pub(crate) const COMMANDS: [&str; 2] = ["check", "build"];

pub(crate) struct Library {
    pub(crate) variant: Variant,
    pub(crate) package: String,
    source: PathBuf,
    /// The times of each round, for each command.
    pub(crate) taken: [Vec<Duration>; 2],
}

impl Library {
    /// Writes a library of `modules` modules.
    pub(crate) fn write(
        root: &Path,
        functions: &Functions,
        variant: Variant,
        modules: usize,
    ) -> io::Result<Self> {
        let package = format!("{}-{}", functions.name, variant.name());
        let directory = root.join(&package);
        let (manifest, source) = (directory.join("Cargo.toml"), directory.join("lib.rs"));
        fs::create_dir_all(&directory)?;
        let head = format!(
            "[package]\nname = \"{package}\"\nedition = \"2024\"\n\n[lib]\npath = \"lib.rs\"\n\n[dependencies]\n"
        );
        fs::write(manifest, head + &variant.dependency() + "\n")?;
        fs::write(&source, variant.library(functions.module, modules))?;
        Ok(Self {
            variant,
            package,
            source,
            taken: Default::default(),
        })
    }

    /// Compiles the library again, and its dependencies if that has not happened before.
    pub(crate) fn compile(&self, root: &Path, command: &str) -> Duration {
        let source = fs::File::options().append(true).open(&self.source);
        let touched = source.and_then(|source| source.set_modified(SystemTime::now()));
        touched.expect("the source was written before");
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .args([command, "--quiet", "--offline", "--package", &self.package])
            .current_dir(root)
            .env("CARGO_TARGET_DIR", root.join("target"))
            .env("CARGO_INCREMENTAL", "0");
        let start = Instant::now();
        let status = cargo.status().expect("Cargo runs");
        let taken = start.elapsed();
        assert!(status.success(), "{} does not compile", self.package);
        taken
    }
}
