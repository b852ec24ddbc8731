//! Lints find in annotated functions what they find in plain ones, and nothing else: every lint and
//! group of rustc and clippy, as a warning in each edition, and forbidden.
//!
//! The functions are in `lints/functions.rs`. The compiler reads them as they are, and again
//! without the attributes. What it reports is compared by lint and line. An `allow` in an expansion
//! would be an error where its lint is forbidden. It would be in the expansion for every edition.

use crate::built;
use crate::concurrent::run_concurrently;
use std::collections::BTreeSet;
use std::env::consts::EXE_EXTENSION;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;

const FUNCTIONS: &str = include_str!("../lints/functions.rs");

/// Ways to compile the functions: the edition, and the kind of the result. Only a test build has
/// the functions that are tests.
const MODES: [(&str, &str); 4] = [
    ("2018", "--crate-type=lib"),
    ("2021", "--crate-type=lib"),
    ("2024", "--crate-type=lib"),
    ALL_OF,
];

/// The mode in which all functions are compiled.
const ALL_OF: (&str, &str) = ("2024", "--test");

/// The prefix of a line that is used without the attribute only, such as one that binds the token.
const PLAIN: &str = "//plain ";

/// Demands a `return` before the last expression, which another lint forbids. It checks closures in
/// options too.
const CONTRADICTS: &str = "clippy::implicit_return";

/// Mistakes of the user, which are reported in annotated functions as in plain ones.
const KEPT: [&str; 12] = [
    "clippy::indexing_slicing",
    "clippy::panic",
    "clippy::shadow_reuse",
    "clippy::shadow_same",
    "clippy::shadow_unrelated",
    "clippy::unwrap_used",
    "dead_code",
    "unreachable_code",
    "unused_assignments",
    "unused_must_use",
    "unused_mut",
    "unused_variables",
];

/// A lint or the code of an error, with its line. An error has its text too.
type Reports = BTreeSet<(String, u64, String)>;

/// A compiler.
struct Driver {
    program: PathBuf,
    /// The options that make all lints and groups warnings.
    warned: Vec<String>,
    /// The options that forbid all lints, and those that forbid all groups.
    forbidden: [Vec<String>; 2],
}

impl Driver {
    /// rustc, and clippy where it is installed.
    fn all() -> Vec<Self> {
        let rustc = PathBuf::from(built::tool("rustc"));
        let sysroot = text_of(Command::new(&rustc).args(["--print", "sysroot"]));
        let sysroot = sysroot.expect("there is a compiler");
        let clippy = Path::new(sysroot.trim()).join("bin/clippy-driver");
        [rustc, clippy.with_extension(EXE_EXTENSION)]
            .into_iter()
            .filter_map(Self::new)
            .collect()
    }

    fn new(program: PathBuf) -> Option<Self> {
        let help = text_of(Command::new(&program).args(["-W", "help"]))?;
        let (lints, groups) = names(&help);
        let level = |flag: &str, names: &[String]| {
            let options = names.iter().flat_map(|name| [flag, name]);
            options.map(str::to_owned).collect()
        };
        Some(Self {
            program,
            warned: level("-W", &[lints.clone(), groups.clone()].concat()),
            // An `allow` differs between a forbidden group and a forbidden lint.
            forbidden: [level("-F", &lints), level("-F", &groups)],
        })
    }

    fn reports(&self, level: &[String], mode: (&str, &str), source: &Path) -> Reports {
        static RUNS: AtomicUsize = AtomicUsize::new(0);
        let (edition, kind) = mode;
        let mut command = Command::new(&self.program);
        command.args(["--edition", edition, "--error-format", "json", kind]);
        // Compilers that run at the same time write different files.
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let metadata = source.with_extension(format!("{run}.rmeta"));
        let emit = format!("metadata={}", metadata.display());
        command.args(["--emit", &emit]);
        built::use_libraries(
            &mut command,
            &[built::runtime(), built::macros("async_trait")],
        );
        command.args(level).arg(source);
        let output = command.output().expect("the compiler runs");
        fs::remove_file(metadata).ok();
        let text = String::from_utf8(output.stderr).expect("it writes text");
        text.lines().flat_map(reports).collect()
    }

    /// Compares the reports at one level and in one mode. Returns a line for each difference.
    fn compare(&self, level: &[String], mode: (&str, &str), sources: &[PathBuf; 2]) -> Vec<String> {
        let [annotated, unannotated] = sources;
        let lines: Vec<_> = FUNCTIONS.lines().collect();
        let line = |number: u64| lines[usize::try_from(number).expect("a small number") - 1];
        let found = self.reports(level, mode, annotated);
        let mut expected = self.reports(level, mode, unannotated);
        expected.retain(|(_, number, _)| !line(*number).trim_start().starts_with(PLAIN));
        let additional = found
            .difference(&expected)
            .filter(|(lint, ..)| lint != CONTRADICTS)
            .map(|report| ("only when annotated", report));
        // Errors may end a compilation before all lints have run.
        let is_warning = level.first().is_some_and(|flag| flag == "-W");
        let missing = expected
            .difference(&found)
            .filter(|(lint, ..)| is_warning && KEPT.contains(&lint.as_str()))
            .map(|report| ("only when plain", report));
        let mistakes = additional
            .chain(missing)
            .map(|(which, (lint, number, text))| {
                let (program, flag) = (self.program.display(), &level[0]);
                let line = line(*number);
                format!("{program} {mode:?} {flag}: {which}: {lint} {text} at {number}: {line}")
            });
        let mistakes = mistakes.collect();
        // A compilation without errors ran to its end.
        let of_lint = |lint: &str| expected.iter().any(|(found, ..)| found == lint);
        assert!(of_lint("unused_variables") || !is_warning, "{expected:?}");
        mistakes
    }
}

fn text_of(command: &mut Command) -> Option<String> {
    let output = command
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

/// The names of all lints and all groups, from a compiler's help text.
fn names(help: &str) -> (Vec<String>, Vec<String>) {
    let (mut lints, mut groups) = (Vec::new(), Vec::new());
    let mut are_groups = false;
    for line in help.lines() {
        let mut words = line.split_whitespace();
        if line.starts_with("Lint ") {
            are_groups = line.starts_with("Lint groups");
        } else if let (Some(name), Some(next)) = (words.next(), words.next()) {
            let is_level = matches!(next, "allow" | "warn" | "deny" | "forbid");
            if are_groups
                && next.contains('-')
                && name.chars().any(char::is_alphabetic)
                && name != "name"
            {
                groups.push(name.to_owned());
            } else if !are_groups && is_level {
                lints.push(name.to_owned());
            }
        }
    }
    (lints, groups)
}

/// The reports in one line of a compiler's output.
fn reports(line: &str) -> Reports {
    let Ok(report) = serde_json::from_str::<Value>(line) else {
        return Reports::new();
    };
    let Some(code) = report["code"]["code"].as_str() else {
        // The count of all errors has no position.
        return Reports::new();
    };
    let text = report["message"].as_str().filter(|_| code.starts_with('E'));
    let text = text.unwrap_or_default().to_owned();
    let spans = report["spans"].as_array().into_iter().flatten();
    let primary = spans.filter(|span| span["is_primary"] == true);
    primary
        .map(|span| {
            (
                code.to_owned(),
                span["line_start"].as_u64().unwrap_or_default(),
                text.clone(),
            )
        })
        .collect()
}

/// `text` without the attributes: each one becomes as many empty lines.
fn plain(text: &str) -> String {
    const BEGIN: &str = "#[timeout(";
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let mut open = 1;
        let end = after.find(|c| {
            open += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            open == 0
        });
        let (attribute, after) = after.split_at(end.expect("it is closed"));
        plain.push_str(before);
        plain.extend(attribute.chars().filter(|c| *c == '\n'));
        rest = after.strip_prefix(")]").expect("it is closed");
    }
    plain.push_str(rest);
    plain.replace(PLAIN, "")
}

// Fails if the expansion has an `allow`, a last expression in place of a `return`, or a parameter
// that lints see.
#[test]
fn an_annotated_function_has_the_lints_of_the_plain_one() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("lints");
    fs::create_dir_all(&folder).expect("it can be made");
    let [annotated, unannotated] = ["annotated.rs", "plain.rs"].map(|name| folder.join(name));
    fs::write(&annotated, FUNCTIONS).expect("it can be written");
    fs::write(&unannotated, plain(FUNCTIONS)).expect("it can be written");
    let sources = [annotated, unannotated];

    let drivers = Driver::all();
    if drivers.len() == 1 {
        println!("without clippy, which is not installed");
    }
    let mut comparisons = Vec::new();
    for driver in &drivers {
        comparisons.extend(MODES.map(|mode| (driver, &driver.warned, mode)));
        comparisons.extend(driver.forbidden.iter().map(|level| (driver, level, ALL_OF)));
    }
    let mistakes = Mutex::new(Vec::new());
    let threads = thread::available_parallelism().map_or(1, usize::from);
    run_concurrently(threads, comparisons.len(), |place| {
        let (driver, level, mode) = comparisons[place];
        let found = driver.compare(level, mode, &sources);
        mistakes.lock().expect("no panic").extend(found);
    });
    let mistakes = mistakes.into_inner().expect("no panic");
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}
