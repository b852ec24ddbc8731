//! Calls in a program that is built with `panic = "abort"`.

use crate::program;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::LazyLock;

/// Builds the program with `panic = "abort"` in its own target directory.
static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("abort");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let output = Command::new(cargo)
        .args(["build", "--offline", "--locked"])
        .args(["--package", "timeout-tests", "--bin", "aborts"])
        .args(["--config", "profile.dev.panic = \"abort\""])
        .arg("--target-dir")
        .arg(&target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("CARGO_BUILD_TARGET")
        .output()
        .expect("Cargo runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let name = format!("aborts{}", env::consts::EXE_SUFFIX);
    target.join("debug").join(name)
});

fn run(place: &str) -> (ExitStatus, String) {
    let mut command = Command::new(&*PROGRAM);
    program::run(command.arg(place).stdout(Stdio::null()))
}

/// No test used to check calls without unwinding.
#[test]
fn calls_end_as_documented_without_unwinding() {
    let (status, said) = run("ends");
    assert!(status.success(), "{status}: {said}");
}

/// A panic of an abandoned operation, or of a listener, ends the process too.
#[test]
fn a_panic_aborts_wherever_it_happens() {
    for place in ["worker", "inline", "polled", "abandoned", "listener"] {
        let (status, said) = run(place);
        assert!(!status.success(), "{place}: {said}");
        assert!(said.contains("a bug of the "), "{place}: {status}, {said}");
        #[cfg(unix)]
        assert!(
            std::os::unix::process::ExitStatusExt::signal(&status).is_some(),
            "{place}: {status}"
        );
    }
}
