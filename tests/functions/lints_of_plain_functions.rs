//! Lints find in annotated functions what they find in plain ones, and nothing else: every lint and
//! group of rustc and clippy, as a warning, denied and forbidden, in each edition.
//!
//! The functions are in `lints/functions.rs`. The compiler reads them as they are, and again
//! without the attributes. What it reports is compared by lint and line. An `allow` in an expansion
//! would be an error where its lint is forbidden.

use std::collections::BTreeSet;
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX, EXE_EXTENSION};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const FUNCTIONS: &str = include_str!("../lints/functions.rs");

/// Ways to compile the functions: the edition, and the kind of the result. Only a test build has
/// the functions that are tests.
const MODES: [(&str, &str); 4] = [
    ("2018", "--crate-type=lib"),
    ("2021", "--crate-type=lib"),
    ("2024", "--crate-type=lib"),
    ("2024", "--test"),
];

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
    /// The options for each level of lints.
    levels: Vec<Vec<String>>,
}

impl Driver {
    /// rustc, and clippy where it is installed.
    fn all() -> Vec<Self> {
        let rustc = PathBuf::from(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
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
        // An `allow` differs between a forbidden group and a forbidden lint.
        let levels = vec![
            level("-W", &[lints.clone(), groups.clone()].concat()),
            level("-D", &lints),
            level("-F", &lints),
            level("-F", &groups),
        ];
        Some(Self { program, levels })
    }

    fn reports(&self, level: &[String], mode: (&str, &str), source: &Path) -> Reports {
        let (edition, kind) = mode;
        let built = std::env::current_exe().expect("this program has a path");
        let built = built.parent().expect("it is in a folder");
        let external = |name: &str, prefix: &str, suffix: &str| {
            format!("{name}={}", newest(built, prefix, suffix).display())
        };
        let output = Command::new(&self.program)
            .args(["--edition", edition, "--error-format", "json"])
            .args([kind, "--emit", "metadata", "--out-dir"])
            .arg(source.parent().expect("it is in a folder"))
            .arg("--extern")
            .arg(external("timeout_runtime", "libtimeout_runtime-", ".rlib"))
            .arg("--extern")
            .arg(external(
                "async_trait",
                &format!("{DLL_PREFIX}async_trait-"),
                DLL_SUFFIX,
            ))
            .arg("-L")
            .arg(format!("dependency={}", built.display()))
            .args(level)
            .arg(source)
            .output()
            .expect("the compiler runs");
        let text = String::from_utf8(output.stderr).expect("it writes text");
        text.lines().flat_map(reports).collect()
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

/// The library that was built last. Any build works: they differ in features only.
fn newest(folder: &Path, prefix: &str, suffix: &str) -> PathBuf {
    let files = fs::read_dir(folder).expect("it is a folder");
    let files = files.map(|file| file.expect("it can be read").path());
    let is_wanted = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(prefix) && name.ends_with(suffix))
    };
    files
        .filter(is_wanted)
        .max_by_key(|path| fs::metadata(path).and_then(|file| file.modified()).ok())
        .unwrap_or_else(|| panic!("no {prefix}*{suffix} in {}", folder.display()))
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
    let lines: Vec<_> = FUNCTIONS.lines().collect();
    let line = |number: u64| lines[usize::try_from(number).expect("a small number") - 1];

    let drivers = Driver::all();
    if drivers.len() == 1 {
        println!("without clippy, which is not installed");
    }
    let mut mistakes = Vec::new();
    for driver in &drivers {
        for mode in MODES {
            for level in &driver.levels {
                let found = driver.reports(level, mode, &annotated);
                let mut expected = driver.reports(level, mode, &unannotated);
                expected.retain(|(_, number, _)| !line(*number).trim_start().starts_with(PLAIN));
                let more = found
                    .difference(&expected)
                    .filter(|(lint, ..)| lint != CONTRADICTS)
                    .map(|report| ("only when annotated", report));
                // Errors may end a compilation before all lints have run.
                let is_warning = level.first().is_some_and(|flag| flag == "-W");
                let less = expected
                    .difference(&found)
                    .filter(|(lint, ..)| is_warning && KEPT.contains(&lint.as_str()))
                    .map(|report| ("only when plain", report));
                for (which, (lint, number, text)) in more.chain(less) {
                    let (program, flag) = (driver.program.display(), &level[0]);
                    mistakes.push(format!(
                        "{program} {mode:?} {flag}: {which}: {lint} {text} at {number}: {}",
                        line(*number)
                    ));
                }
                // A compilation without errors ran to its end.
                let of_lint = |lint: &str| expected.iter().any(|(found, ..)| found == lint);
                assert!(of_lint("unused_variables") || !is_warning, "{expected:?}");
            }
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}
