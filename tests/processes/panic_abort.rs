//! Calls in a program that is built with `panic = "abort"`.

use crate::{built, program};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::LazyLock;

/// Builds the program with `panic = "abort"`. Its dependencies are compiled with unwinding, as the
/// standard library is; `.ci/run` compiles them without it too.
static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/aborts.rs");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = folder.join(format!("aborts{}", env::consts::EXE_SUFFIX));
    let runtime = built::runtime();
    let tokio = built::used_by(&runtime.1, "tokio");
    let mut command = Command::new(built::tool("rustc"));
    command.args(["--edition", "2024", "-C", "panic=abort"]);
    built::use_libraries(&mut command, &[runtime, tokio]);
    command.arg("-o").arg(&program).arg(SOURCE);
    let output = command.output().expect("the compiler runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    program
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
