//! Tests the output and the exit codes of the examples.
//!
//! `cargo test -p timeout-examples` builds the examples first. With `--test examples` it does not.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use running::{Printed, assert_event, example, run, run_plain};

#[path = "checks/running.rs"]
mod running;

/// Creates an empty directory for one test.
fn directory(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if dir.exists() {
        fs::remove_dir_all(&dir).expect("the directory can be removed");
    }
    fs::create_dir_all(&dir).expect("a directory can be created");
    dir
}

fn write(path: PathBuf, content: impl AsRef<[u8]>) {
    let dir = path.parent().expect("a file is in a directory");
    fs::create_dir_all(dir).expect("a directory can be created");
    fs::write(path, content).expect("a file can be written");
}

/// Creates a small tree with every kind of file.
fn small_tree(name: &str) -> PathBuf {
    let dir = directory(name);
    write(
        dir.join("a.rs"),
        "fn first() {}\nlet x = 1;\n\tfn second() {}",
    );
    write(dir.join("b").join("c.rs"), "\n\nfn third() {}\n");
    write(dir.join("d.txt"), b"caf\xe9 fn fourth\x1b[2J\n");
    write(dir.join("e.bin"), b"\0fn fifth() {}\n");
    write(dir.join("f.txt"), "nothing\n");
    dir
}

const SMALL_TREE: &str = "\
    ./a.rs:1: fn first() {}\n\
    ./a.rs:3: fn second() {}\n\
    ./b/c.rs:3: fn third() {}\n\
    ./d.txt:1: caf\u{fffd} fn fourth\u{fffd}[2J\n";

fn scan(dir: &Path, args: &[&str]) -> Command {
    let mut command = example("scan", dir);
    command.args(args);
    command
}

#[test]
fn inventory_times_out_and_stops() {
    let Printed { stdout, code, .. } = run_plain("inventory");
    assert_eq!(stdout, "timed out\noperation: stopped by cancellation\n");
    assert_eq!(code, Some(0));
}

#[test]
fn every_call_status_names_its_cause() {
    let Printed { stdout, code, .. } = run_plain("call_status");
    assert_eq!(
        stdout,
        "stock: TimedOut, operation: stopped by cancellation\n\
         stock: UpstreamCancelled, operation: stopped by cancellation\n\
         price: Ok, operation: completed\n\
         stock: DeadlineExceeded, operation: stopped by cancellation\n\
         ship: NotStarted, operation: not started\n"
    );
    assert_eq!(code, Some(0));
}

#[test]
fn abandoned_operation_is_reported_late() {
    let Printed { stdout, code, .. } = run_plain("abandoned");
    assert_eq!(
        stdout,
        "the caller stopped waiting, operation: running\n\
         the operation returned 7 later, operation: completed\n"
    );
    assert_eq!(code, Some(0));
}

#[test]
fn blocking_io_is_interrupted() {
    let Printed { stdout, code, .. } = run_plain("blocking_io");
    assert_eq!(
        stdout,
        "first server: hello\nsecond server: timed out\nreads still blocked: 0\n"
    );
    assert_eq!(code, Some(0));
}

#[test]
fn retry_retries_after_an_attempt_limit_but_not_after_the_total_limit() {
    let Printed { stdout, code, .. } = run_plain("retry");
    assert_eq!(
        stdout,
        "one slow response:\n  attempt 1\n  attempt timed out\n  attempt 2\n  \
         result: 7 pieces\n  attempts after the call: 0\n\
         slow responses only:\n  attempt 1\n  attempt timed out\n  attempt 2\n  attempt timed out\n  \
         attempt 3\n  attempt timed out\n  no result: attempt timed out\n  \
         attempts after the call: 0\n\
         too little time for a pause:\n  attempt 1\n  attempt timed out\n  \
         no result: order timed out\n  attempts after the call: 0\n\
         too little time for an attempt:\n  attempt 1\n  attempt exceeded the enclosing deadline\n  \
         no result: order timed out\n  attempts after the call: 0\n"
    );
    assert_eq!(code, Some(0));
}

#[test]
fn every_check_finds_the_order_that_leaves_an_article_reserved() {
    let Printed {
        stdout,
        stderr,
        code,
    } = run(example("every_check", Path::new(".")));
    assert_eq!(
        stdout,
        "order leaves an article reserved\n\
         safe_order cleans up at each of its 3 points\n\
         async_order leaves an article reserved\n\
         safe_async_order cleans up at each of its 1 points\n"
    );
    let lines: Vec<_> = stderr.lines().collect();
    let [first, repeat, second, _] = lines[..] else {
        panic!("four lines are printed: {stderr}");
    };
    let point = "the test fails if it is cancelled at point 2: `order` checks its token at ";
    assert!(first.starts_with(point), "{first}");
    assert_eq!(repeat, "`cancel_at_check(2, ..)` repeats this run alone");
    let point = "the test fails if it is cancelled at point 1: `async_order` is pending";
    assert_eq!(second, point);
    assert_eq!(code, Some(0));
}

#[test]
fn fan_out_cancels_its_tasks_and_waits_for_them() {
    let Printed { stdout, code, .. } = run_plain("fan_out");
    let mut lines: Vec<_> = stdout.lines().collect();
    // The tasks end in any order, but before the call.
    assert_eq!(lines.pop(), Some("search: timed out"));
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "index: timed out",
            "shard 1: exceeded the enclosing deadline",
            "shard 2: exceeded the enclosing deadline",
            "shard 3: exceeded the enclosing deadline",
        ]
    );
    assert_eq!(code, Some(0));
}

#[test]
fn listener_prints_every_kind_of_event() {
    let Printed { stdout, code, .. } = run_plain("listener");
    let expected = [
        ("`price` #1 succeeded after ", " (limit 20s) on timeout-"),
        (
            "`price` #2 failed after ",
            ": \"sold out\" (limit 20s) on timeout-",
        ),
        ("`stock` #3 timed out after ", " (limit 50ms)"),
        ("`stock` #3 abandoned, stopped after ", " (limit 50ms)"),
        (
            "`payment` #5 ran past its caller's deadline after ",
            " (limit 20s)",
        ),
        ("`payment` #5 abandoned, stopped after ", " (limit 20s)"),
        ("`order` #4 timed out after ", " (limit 50ms)"),
        ("`order` #4 abandoned, stopped after ", " (limit 50ms)"),
        ("`shipping` #6 was cancelled after ", " (limit 20s)"),
        (
            "`shipping` #6 abandoned, failed after ",
            ": \"recalled\" (limit 20s)",
        ),
        (
            "`shipping` #7 was not started: its caller was cancelled",
            " (limit 20s)",
        ),
        ("`offer` #8 was dropped after ", " (limit 20s)"),
        ("`audit` #9 timed out after ", " (limit 1s) on timeout-"),
        (
            "`audit` #9 abandoned, succeeded after ",
            " (limit 1s) on timeout-",
        ),
        ("`audit` #10 timed out after ", " (limit 1s) on timeout-"),
        (
            "`audit` #10 abandoned, failed after ",
            ": \"sold out\" (limit 1s) on timeout-",
        ),
    ];
    let mut lines = stdout.lines();
    for (start, end) in expected {
        assert_event(lines.next(), start, end);
    }
    assert_eq!(lines.next(), None);
    assert_eq!(code, Some(0));
}

#[test]
fn scan_finishes_and_prints_its_event_last() {
    let dir = small_tree("finishes");
    let printed = run(scan(&dir, &[".", r"fn \w+", "--ms", "30000"]));
    assert_eq!(printed.stdout.replace('\\', "/"), SMALL_TREE);
    let mut lines = printed.stderr.lines();
    assert_eq!(
        lines.next(),
        Some("finished: 4 matches in 4 files (1 binary skipped, 0 unreadable)")
    );
    assert_event(
        lines.next(),
        "`scan` #1 succeeded after ",
        " (limit 30s) on timeout-",
    );
    assert_eq!(lines.next(), None);
    assert_eq!(printed.code, Some(0));
}

#[test]
fn scan_has_defaults() {
    let dir = small_tree("defaults");
    let printed = run(scan(&dir, &[]));
    assert_eq!(printed.stdout.replace('\\', "/"), SMALL_TREE);
    assert!(printed.stderr.contains("(limit 2s)"), "{}", printed.stderr);
    assert_eq!(printed.code, Some(0));
}

#[test]
fn scan_takes_a_single_file() {
    let dir = small_tree("single");
    let printed = run(scan(&dir, &["f.txt", "no.*g"]));
    assert_eq!(printed.stdout, "f.txt:1: nothing\n");
    assert_eq!(printed.code, Some(0));
}

/// Creates a tree of 8 GiB that needs little disk space: most files are hard links.
fn large_tree(name: &str) -> PathBuf {
    let dir = directory(name);
    let mut text = String::from("fn needle() {}\n");
    while text.len() < 1 << 20 {
        text.push_str("a line of hay, in which there is nothing to be found\n");
    }
    for group in 0..16 {
        let first = dir.join(format!("{group:02}")).join("000");
        write(first.clone(), &text);
        for file in 1..512 {
            let link = first.with_file_name(format!("{file:03}"));
            fs::hard_link(&first, link).expect("a file can be linked");
        }
    }
    dir
}

#[test]
fn scan_times_out_and_prints_the_matches_so_far() {
    let dir = large_tree("large");
    let start = Instant::now();
    let printed = run(scan(&dir, &[".", r"fn \w+", "--ms", "1000"]));
    let took = start.elapsed();
    fs::remove_dir_all(dir).expect("the directory can be removed");

    assert!(took >= Duration::from_secs(1), "{took:?}");
    assert!(took < Duration::from_secs(60), "{took:?}");
    let found = printed.stdout.lines().count();
    assert!(found > 0, "nothing was found");
    assert!(
        printed
            .stdout
            .lines()
            .all(|line| line.ends_with(":1: fn needle() {}"))
    );
    let mut lines = printed.stderr.lines();
    let start = format!("timed out, found so far: {found} matches in ");
    assert_event(
        lines.next(),
        &start,
        " files (0 binary skipped, 0 unreadable)",
    );
    assert_event(
        lines.next(),
        "`scan` #1 timed out after ",
        " (limit 1s) on timeout-",
    );
    assert_eq!(printed.code, Some(1));
}

#[test]
fn scan_with_a_limit_of_zero_is_not_started() {
    let dir = small_tree("zero");
    let printed = run(scan(&dir, &["--ms", "0"]));
    assert_eq!(printed.stdout, "");
    assert_eq!(
        printed.stderr,
        "not started: 0 matches in 0 files (0 binary skipped, 0 unreadable)\n\
         `scan` #1 was not started: its limit had passed (limit 0ns)\n"
    );
    assert_eq!(printed.code, Some(1));
}

#[test]
fn scan_explains_wrong_arguments() {
    let dir = small_tree("wrong");
    for (args, error) in [
        (&["nowhere"][..], "scan: nowhere: "),
        (&[".", "("], "scan: regex parse error:"),
        (
            &["--ms", "soon"],
            "scan: --ms: cannot parse argument \"soon\"",
        ),
        (&["--ms", "-1"], "scan: --ms: cannot parse argument \"-1\""),
        (&["--ms"], "scan: missing argument for option '--ms'"),
        (&["--fast"], "scan: invalid option '--fast'"),
        (&[".", "fn", "more"], "scan: unexpected argument \"more\""),
    ] {
        let printed = run(scan(&dir, args));
        assert_eq!(printed.stdout, "", "{args:?}");
        assert!(
            printed.stderr.starts_with(error),
            "{args:?}: {}",
            printed.stderr
        );
        assert_eq!(printed.code, Some(2), "{args:?}");
    }
}

#[test]
fn scan_prints_its_usage() {
    let printed = run(scan(Path::new("."), &["--help"]));
    assert!(
        printed
            .stdout
            .starts_with("usage: scan [PATH] [PATTERN] [--ms N]\n")
    );
    assert_eq!(printed.stderr, "");
    assert_eq!(printed.code, Some(0));
}

#[test]
fn scan_ignores_a_closed_pipe() {
    let dir = small_tree("pipe");
    let mut command = scan(&dir, &[]);
    let (reader, writer) = io::pipe().expect("a pipe can be created");
    command.stdout(writer);
    drop(reader);
    let printed = run(command);
    assert!(
        printed.stderr.starts_with("finished: 4 matches"),
        "{}",
        printed.stderr
    );
    assert_eq!(printed.code, Some(0));
}

#[test]
#[cfg(target_os = "linux")]
fn scan_counts_unreadable_files() {
    // The first page of a process is unreadable, also for root.
    let printed = run(scan(Path::new("."), &["/proc/self/mem"]));
    assert!(
        printed
            .stderr
            .starts_with("finished: 0 matches in 0 files (0 binary skipped, 1 unreadable)\n"),
        "{}",
        printed.stderr
    );
    assert_eq!(printed.code, Some(0));
}

#[test]
#[cfg(target_os = "linux")]
fn scan_reports_a_full_disk() {
    let dir = small_tree("full");
    let mut command = scan(&dir, &[]);
    command.stdout(fs::File::create("/dev/full").expect("`/dev/full` can be opened"));
    let printed = run(command);
    assert!(
        printed.stderr.starts_with("scan: No space left on device"),
        "{}",
        printed.stderr
    );
    assert_eq!(printed.code, Some(2));
}
