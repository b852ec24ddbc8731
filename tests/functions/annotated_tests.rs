//! The attribute on tests: each test runs once, reports its failure, and fails at its limit.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};

use timeout_runtime::timeout;

/// The file in which the tests below record that they ran.
const NOTES: &str = "TIMEOUT_TEST_NOTES";

/// The tests under examination. They run like all tests, and again as child processes.
mod subject {
    use std::fs::OpenOptions;
    use std::time::Duration;

    use super::{NOTES, Write};
    use timeout_runtime::{CancelToken, TimeoutError, panic_on_timeout, timeout};

    fn note(name: &str) {
        if let Some(notes) = std::env::var_os(NOTES) {
            let mut notes = OpenOptions::new().append(true).open(notes).unwrap();
            notes.write_all(format!("{name}\n").as_bytes()).unwrap();
        }
    }

    fn give_up(_: TimeoutError) {
        note("a_fallback_of_its_own");
        panic!("given up");
    }

    #[test]
    #[timeout(name = "on_tests", secs = 60)]
    fn test_above() {
        note("test_above");
    }

    #[timeout(name = "on_tests", secs = 60, fallback = panic_on_timeout)]
    #[test]
    fn test_below() {
        note("test_below");
    }

    #[timeout("1m")]
    #[tokio::test]
    async fn tokio_without_a_name() {
        note("tokio_without_a_name");
        tokio::task::yield_now().await;
        cancel_token.check().unwrap();
    }

    #[test]
    #[should_panic(expected = "given up")]
    #[timeout(ms = 1, fallback = give_up)]
    fn a_fallback_of_its_own() {
        CancelToken::new().sleep(Duration::MAX).unwrap();
    }

    #[test]
    #[timeout(secs = 60)]
    fn with_a_result() -> Result<(), TimeoutError> {
        note("with_a_result");
        cancel_token.check()
    }

    #[test]
    #[should_panic(expected = "boom 402")]
    #[timeout(name = "on_tests", secs = 60)]
    fn panics_test_above() {
        note("panics_test_above");
        panic!("boom {}", 400 + std::hint::black_box(2));
    }

    #[timeout(name = "on_tests", secs = 60)]
    #[should_panic(expected = "boom 402")]
    #[test]
    fn panics_test_below() {
        note("panics_test_below");
        panic!("boom {}", 400 + std::hint::black_box(2));
    }

    #[should_panic(expected = "boom 402")]
    #[timeout(name = "on_tests", secs = 60)]
    #[test]
    fn panics_in_between() {
        note("panics_in_between");
        panic!("boom {}", 400 + std::hint::black_box(2));
    }

    #[tokio::test]
    #[timeout(name = "on_tests", secs = 60)]
    async fn tokio_above() {
        note("tokio_above");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    #[timeout(name = "on_tests", secs = 60)]
    #[tokio::test]
    async fn tokio_below() {
        note("tokio_below");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    #[timeout(secs = 60)]
    async fn tokio_with_a_result() -> Result<(), TimeoutError> {
        note("tokio_with_a_result");
        tokio::task::yield_now().await;
        cancel_token.check()
    }

    #[tokio::test]
    #[should_panic(expected = "boom 402")]
    #[timeout(name = "on_tests", secs = 60, fallback = panic_on_timeout)]
    async fn tokio_panics_above() {
        note("tokio_panics_above");
        tokio::task::yield_now().await;
        panic!("boom {}", 400 + std::hint::black_box(2));
    }

    #[timeout(name = "on_tests", secs = 60)]
    #[tokio::test]
    #[should_panic(expected = "boom 402")]
    async fn tokio_panics_below() {
        note("tokio_panics_below");
        tokio::task::yield_now().await;
        panic!("boom {}", 400 + std::hint::black_box(2));
    }

    #[ignore = "an ignored test must not run"]
    #[test]
    #[timeout(name = "on_tests", secs = 60)]
    fn ignored_above() {
        note("ignored_above");
    }

    #[test]
    #[timeout(name = "on_tests", secs = 60)]
    #[ignore = "an ignored test must not run"]
    fn ignored_below() {
        note("ignored_below");
    }

    #[tokio::test]
    #[ignore = "an ignored test must not run"]
    #[timeout(name = "on_tests", secs = 60)]
    async fn ignored_tokio() {
        note("ignored_tokio");
    }

    pub(super) const LINE: u32 = line!() + 5;
    #[test]
    #[ignore = "it fails, which another test expects"]
    #[timeout(name = "on_tests", secs = 60, fallback = panic_on_timeout)]
    fn fails() {
        panic!("boom {}", std::hint::black_box(7));
    }

    pub(super) const NEVER_ENDS: u32 = line!() + 4;
    #[test]
    #[ignore = "it fails, which another test expects"]
    #[timeout(name = "on_tests::stuck", secs = 2)]
    fn never_ends() {
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    pub(super) const TOKIO_NEVER_ENDS: u32 = line!() + 4;
    #[tokio::test]
    #[ignore = "it fails, which another test expects"]
    #[timeout(name = "on_tests::stuck", secs = 2)]
    async fn tokio_never_ends() {
        std::future::pending::<()>().await;
    }

    #[test]
    #[ignore = "it prints, which another test reads"]
    #[timeout(name = "on_tests", secs = 60)]
    fn prints() {
        println!("printed by an operation");
    }
}

/// This test program.
fn program() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env_remove("RUST_BACKTRACE").env_remove(NOTES);
    command
}

fn text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    String::from_utf8_lossy(out).into_owned() + &String::from_utf8_lossy(err)
}

/// Runs one of the ignored tests above. Returns whether it passed, and its output.
fn run_ignored(name: &str, edit: impl FnOnce(&mut Command) -> &mut Command) -> (bool, String) {
    let name = format!("annotated_tests::subject::{name}");
    let mut command = program();
    command.args(["--ignored", "--exact", &name]);
    let output = edit(&mut command).output().unwrap();
    (output.status.success(), text(&output))
}

/// Tests used to run twice, or not at all, depending on the order of their attributes.
#[test]
fn every_test_runs_once_and_ignored_ones_do_not() {
    let place = format!("timeout-on-tests-{}", std::process::id());
    let notes: PathBuf = std::env::temp_dir().join(place);
    fs::write(&notes, "").unwrap();
    let output = program()
        .arg("annotated_tests::subject::")
        .env(NOTES, &notes)
        .output()
        .unwrap();
    let said = text(&output);
    let ran = fs::read_to_string(&notes).unwrap();
    fs::remove_file(&notes).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("13 passed; 0 failed; 7 ignored"), "{said}");
    let mut ran: Vec<_> = ran.lines().collect();
    ran.sort_unstable();
    assert_eq!(
        ran,
        [
            "a_fallback_of_its_own",
            "panics_in_between",
            "panics_test_above",
            "panics_test_below",
            "test_above",
            "test_below",
            "tokio_above",
            "tokio_below",
            "tokio_panics_above",
            "tokio_panics_below",
            "tokio_with_a_result",
            "tokio_without_a_name",
            "with_a_result",
        ]
    );
}

#[test]
fn a_helper_of_a_test_needs_no_fallback() {
    struct Helper;

    impl Helper {
        #[timeout("1m")]
        fn is_associated() {}
    }

    #[timeout("1m")]
    fn is_nested() {}

    Helper::is_associated();
    is_nested();
}

/// A failure used to be reported as a timeout, or at a line within a library.
#[test]
fn a_failing_test_reports_its_message_and_line() {
    let (passed, said) = run_ignored("fails", |command| command);
    assert!(!passed);
    let place = format!("{}:{}", file!(), subject::LINE);
    assert!(said.contains("boom 7") && said.contains(&place), "{said}");
    assert!(!said.contains("timed out"), "{said}");
    assert_eq!(said.matches("panicked at").count(), 1, "{said}");
}

/// A test that never ends must not block the whole run.
#[test]
fn a_test_that_never_ends_fails_by_name_at_its_own_line() {
    for (name, line) in [
        ("never_ends", subject::NEVER_ENDS),
        ("tokio_never_ends", subject::TOKIO_NEVER_ENDS),
    ] {
        let (passed, said) = run_ignored(name, |command| command);
        assert!(!passed);
        let place = format!("panicked at {}:{line}:", file!());
        assert!(said.contains(&place), "{said}");
        assert!(said.contains("`on_tests::stuck` timed out"), "{said}");
        assert!(said.contains("1 failed"), "{said}");
    }
}

/// The output of passing tests used to be shown: it is captured for each thread, and inherited by
/// new threads only.
#[test]
fn output_is_captured_with_a_fresh_thread_for_each_call() {
    let (passed, said) = run_ignored("prints", |command| command.env("TIMEOUT_WORKER_REUSE", "0"));
    assert!(passed, "{said}");
    assert!(!said.contains("printed by an operation"), "{said}");
    let (passed, said) = run_ignored("prints", |command| command.arg("--show-output"));
    assert!(passed && said.contains("printed by an operation"), "{said}");
}
