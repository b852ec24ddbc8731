//! Compiles files with the libraries that Cargo has built for the tests. A build by Cargo itself
//! would compile all dependencies again.

#![allow(dead_code, unreachable_pub)] // Each test file uses its part.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The compiler, or a tool beside it, of the toolchain that runs the tests.
pub fn tool(name: &str) -> OsString {
    std::env::var_os(name.to_uppercase()).unwrap_or_else(|| name.into())
}

/// Lets `command` find these libraries and their dependencies.
pub fn use_libraries<'a>(
    command: &'a mut Command,
    libraries: &[(&str, PathBuf)],
) -> &'a mut Command {
    for (name, library) in libraries {
        let external = format!("{name}={}", library.display());
        command.arg("--extern").arg(external);
    }
    let dependencies = format!("dependency={}", folder().display());
    command.arg("-L").arg(dependencies)
}

/// The runtime.
pub fn runtime() -> (&'static str, PathBuf) {
    ("timeout_runtime", newest(rlibs("timeout_runtime")))
}

/// The build of a library that `user` was compiled with. There may be others, with other features.
pub fn used_by<'a>(user: &Path, name: &'a str) -> (&'a str, PathBuf) {
    let user = fs::read(user).expect("the library can be read");
    // A library contains the end of the file name of each dependency.
    let is_used = |library: &PathBuf| {
        let stem = library.file_stem().and_then(|stem| stem.to_str());
        let (_, end) = stem.and_then(|stem| stem.rsplit_once('-')).expect("a hash");
        let end = format!("-{end}");
        user.windows(end.len()).any(|part| part == end.as_bytes())
    };
    (name, newest(rlibs(name).filter(is_used)))
}

/// A library of procedural macros. All builds of it are alike.
pub fn macros(name: &str) -> (&str, PathBuf) {
    (
        name,
        newest(files(format!("{DLL_PREFIX}{name}-"), DLL_SUFFIX)),
    )
}

fn rlibs(name: &str) -> impl Iterator<Item = PathBuf> + use<> {
    files(format!("lib{name}-"), ".rlib")
}

/// The folder of this program, which has the libraries too.
fn folder() -> PathBuf {
    let program = std::env::current_exe().expect("this program has a path");
    program.parent().expect("it is in a folder").to_owned()
}

fn files(prefix: String, suffix: &str) -> impl Iterator<Item = PathBuf> + use<'_> {
    let files = fs::read_dir(folder()).expect("it is a folder");
    let files = files.map(|file| file.expect("it can be read").path());
    files.filter(move |path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(&prefix) && name.ends_with(suffix))
    })
}

/// The library that was built last.
fn newest(libraries: impl Iterator<Item = PathBuf>) -> PathBuf {
    libraries
        .max_by_key(|path| fs::metadata(path).and_then(|file| file.modified()).ok())
        .expect("Cargo has built the library")
}
