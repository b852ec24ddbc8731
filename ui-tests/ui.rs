//! Compares the compiler's messages about mistakes in uses of `#[timeout]` and of `Timeout`. Each
//! folder holds a family of rules, and each file one mistake. A correct use has the same file name
//! if it shows the remedy; `pass.rs` has the list of these.
//!
//! To rewrite the messages for review, run the tests with `TRYBUILD=overwrite`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The compiler whose messages are recorded. Other versions word them differently.
const COMPILER: &str = "rustc 1.95.";

/// Files with several mistakes, and how many.
const SEVERAL: [(&str, usize); 1] = [("signature/several-mistakes", 5)];

/// The mistakes that the compiler explains with a bound of the runtime, in a closure and in a
/// future.
const BY_A_BOUND: [&str; 3] = [
    "args/on-late-of-another-type",
    "args/on-late-of-another-type-in-a-task",
    "bounds/future-not-send-as-a-task",
];

/// The mistake whose place is the attribute as a whole.
const LEFT_OUT: &str = "args/limit-left-out";

/// The list of the correct uses, which documentation tests compile and run.
const CORRECT: &str = include_str!("pass.rs");

#[test]
fn every_correct_use_is_compiled() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for source in sources(&root.join("pass")) {
        let name = source.strip_prefix(root).expect("the source is in `pass`");
        let name = name.display().to_string().replace('\\', "/");
        assert!(CORRECT.contains(&format!("{name:?}")), "{name}");
    }
}

#[test]
fn each_mistake_is_reported_at_its_place() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output();
    let version = version.expect("there is a compiler").stdout;
    if String::from_utf8_lossy(&version).starts_with(COMPILER) {
        trybuild::TestCases::new().compile_fail("fail/*/*.rs");
    } else {
        println!("skipped: the recorded messages are those of {COMPILER}x");
    }
}

/// The Rust files in the folders of `root`.
fn sources(root: &Path) -> Vec<PathBuf> {
    let entries = |path: PathBuf| -> Vec<PathBuf> {
        let entries = fs::read_dir(path).expect("the path is a folder");
        entries
            .map(|entry| entry.expect("the entry can be read").path())
            .collect()
    };
    let files = entries(root.to_owned()).into_iter().flat_map(entries);
    files
        .filter(|path| path.extension().is_some_and(|end| end == "rs"))
        .collect()
}

/// Each mistake by name, with its source and its message.
fn texts() -> Vec<(String, String, String)> {
    let read = |path: &Path| fs::read_to_string(path).expect("the file can be read");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fail");
    sources(&root)
        .into_iter()
        .map(|source| {
            let name = source.strip_prefix(&root).expect("the source is in `fail`");
            let name = name.with_extension("").display().to_string();
            let text = read(&source.with_extension("stderr"));
            (name, read(&source), text)
        })
        .collect()
}

#[test]
fn each_mistake_is_exactly_one_error() {
    for (name, _, text) in texts() {
        let errors = text.lines().filter(|line| line.starts_with("error"));
        let several = SEVERAL.iter().find(|(several, _)| *several == name);
        let expected = several.map_or(1, |(_, count)| *count);
        assert_eq!(errors.count(), expected, "{name}:\n{text}");
        assert!(!text.contains("\nwarning"), "{name}:\n{text}");
    }
}

#[test]
fn only_a_missing_option_is_reported_at_the_whole_attribute() {
    for (name, source, text) in texts() {
        let whole = text.lines().any(|line| {
            let place = line.trim_start().strip_prefix("--> fail/");
            let Some([_, row, column]) = place.and_then(|place| {
                let parts: Vec<_> = place.split(':').collect();
                <[&str; 3]>::try_from(parts).ok()
            }) else {
                return false;
            };
            let row: usize = row.parse().expect("the row is a number");
            let column: usize = column.parse().expect("the column is a number");
            let line = source.lines().nth(row - 1).unwrap_or_default();
            line[column - 1..].starts_with("#[timeout")
        });
        assert_eq!(whole, name == LEFT_OUT, "{name}:\n{text}");
    }
}

#[test]
fn no_message_shows_paths_of_the_machine_or_the_standard_library() {
    for (name, _, text) in texts() {
        for place in ["$RUST", "$CARGO", "/rustc/", "/home/", "/root/", "\\"] {
            assert!(!text.contains(place), "{name}:\n{text}");
        }
    }
}

/// Most errors came with a note that showed a bound in the source of the runtime, which does not
/// help users.
#[test]
fn no_message_shows_private_code_of_the_runtime() {
    for (name, _, text) in texts() {
        let is_shown = text.contains("/src/private") || text.contains("/src/call");
        assert_eq!(is_shown, BY_A_BOUND.contains(&&*name), "{name}:\n{text}");
    }
}
