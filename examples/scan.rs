//! Searches the files of a directory tree for a pattern, and keeps the matches when its limit
//! passes.
//!
//! ```text
//! cargo run -p timeout-examples --example scan -- . 'fn \w+' --ms 20000
//! ```
//!
//! - Prints matches to stdout as `path:line: text`, and a summary and the events to stderr.
//! - Searches files as bytes, and replaces characters that are not printable UTF-8 in the output.
//! - Skips binary files, which have a NUL in the first 8 KiB.
//! - Counts unreadable files, and does not follow symbolic links.
//! - Does not start the search with a limit of zero.
//!
//! The exit code is 0 if the search has finished, 1 if it timed out, and 2 for invalid arguments.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lexopt::{Arg, Parser, ValueExt};
use regex::bytes::Regex;
use timeout_runtime::{CallStatus, CancelToken, TimeoutError, add_listener, timeout};
use walkdir::WalkDir;

const USAGE: &str = "usage: scan [PATH] [PATTERN] [--ms N]

  PATH     a directory or a file (default: .)
  PATTERN  a regular expression (default: fn \\w+)
  --ms N   the limit in milliseconds (default: 2000)
";

/// The number of bytes that are checked for a NUL.
const HEAD: usize = 8 * 1024;
/// Longer lines are searched in pieces of this size.
const LONGEST_LINE: u64 = 1024 * 1024;
/// The number of characters of a matching line that are printed.
const SHOWN: usize = 200;

/// The results so far. The caller shares them, so they survive a timeout.
#[derive(Default)]
struct Found {
    matches: Vec<Match>,
    searched: usize,
    binary: usize,
    unreadable: usize,
}

struct Match {
    path: Arc<Path>,
    line: usize,
    text: String,
}

/// The operation. Its limit is an argument. It stops within the grace, so nothing is abandoned.
#[timeout(name = "scan", ms = ms, grace = "100ms")]
fn scan(
    ms: u64,
    root: PathBuf,
    pattern: Regex,
    found: Arc<Mutex<Found>>,
    bar: ProgressBar,
) -> Result<(), TimeoutError> {
    let limit = Duration::from_millis(ms);
    for entry in WalkDir::new(root).sort_by_file_name() {
        cancel_token.check()?;
        let searched = match entry {
            Ok(entry) if entry.file_type().is_file() => {
                search(entry.path(), &pattern, &found, &cancel_token)
            }
            Ok(_) => continue,
            Err(error) => Err(error.into()),
        };
        // If the token was cancelled during the file, this returns its error.
        cancel_token.check()?;
        let mut found = found.lock().unwrap();
        match searched {
            Ok(Kind::Text) => found.searched += 1,
            Ok(Kind::Binary) => found.binary += 1,
            Err(_) => found.unreadable += 1,
        }
        let left = cancel_token.remaining().unwrap_or(limit);
        show(&bar, &found, limit.saturating_sub(left));
    }
    Ok(())
}

enum Kind {
    Text,
    Binary,
}

fn search(
    path: &Path,
    pattern: &Regex,
    found: &Mutex<Found>,
    token: &CancelToken,
) -> io::Result<Kind> {
    let mut reader = BufReader::with_capacity(HEAD, File::open(path)?);
    if reader.fill_buf()?.contains(&0) {
        return Ok(Kind::Binary);
    }
    let path: Arc<Path> = path.into();
    let mut piece = Vec::new();
    let mut line = 1;
    while (&mut reader)
        .take(LONGEST_LINE)
        .read_until(b'\n', &mut piece)?
        > 0
    {
        token.check()?;
        let is_whole = piece.ends_with(b"\n");
        let text = piece.trim_ascii_end();
        if pattern.is_match(text) {
            let found_here = Match {
                path: Arc::clone(&path),
                line,
                text: printable(text),
            };
            found.lock().unwrap().matches.push(found_here);
        }
        line += usize::from(is_whole);
        piece.clear();
    }
    Ok(Kind::Text)
}

/// Replaces control characters, which could control a terminal.
fn printable(text: &[u8]) -> String {
    let safe = |char: char| match char {
        '\t' => ' ',
        control if control.is_control() => char::REPLACEMENT_CHARACTER,
        char => char,
    };
    let text = String::from_utf8_lossy(text);
    text.trim_start().chars().take(SHOWN).map(safe).collect()
}

/// Creates a bar that shows the used part of the limit; hidden if there is no terminal.
fn progress(ms: u64) -> ProgressBar {
    let target = if io::stdout().is_terminal() && io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(ms), target);
    match ProgressStyle::with_template("[{bar:30}] {msg}") {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        Err(_) => bar,
    }
}

fn show(bar: &ProgressBar, found: &Found, used: Duration) {
    if !bar.is_hidden() {
        let (searched, matches) = (found.searched, found.matches.len());
        bar.set_message(format!("{searched} files, {matches} matches"));
        bar.set_position(u64::try_from(used.as_millis()).unwrap_or(u64::MAX));
    }
}

struct Arguments {
    path: PathBuf,
    pattern: Regex,
    ms: u64,
}

impl Arguments {
    /// Returns `None` if the arguments ask for help.
    fn parse() -> Result<Option<Self>, lexopt::Error> {
        let (mut ms, mut values) = (2000, Vec::<OsString>::new());
        let mut parser = Parser::from_env();
        while let Some(arg) = parser.next()? {
            match arg {
                Arg::Long("ms") => {
                    let value = parser.value()?.parse();
                    ms = value.map_err(|error| format!("--ms: {error}"))?;
                }
                Arg::Short('h') | Arg::Long("help") => return Ok(None),
                Arg::Value(value) if values.len() < 2 => values.push(value),
                other => return Err(other.unexpected()),
            }
        }
        let mut values = values.into_iter();
        let path = values.next().map_or_else(|| ".".into(), PathBuf::from);
        let pattern = values
            .next()
            .map_or(Ok(r"fn \w+".into()), ValueExt::string)?;
        let about = fs::metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        if !about.is_dir() && !about.is_file() {
            return Err(format!("{}: neither a directory nor a file", path.display()).into());
        }
        let pattern = Regex::new(&pattern).map_err(|error| error.to_string())?;
        Ok(Some(Self { path, pattern, ms }))
    }
}

/// Prints a line to stderr. Ignores errors, such as a closed pipe.
fn report(line: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn print(matches: &[Match]) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for Match { path, line, text } in matches {
        let path = path.display();
        writeln!(out, "{path}:{line}: {text}")?;
    }
    out.flush()
}

fn run(arguments: Arguments) -> io::Result<ExitCode> {
    let Arguments { path, pattern, ms } = arguments;
    // Events are printed after the progress bar is removed.
    let (sender, events) = mpsc::channel();
    let _listener = add_listener(move |event| {
        let _ = sender.send(event.to_string());
    });

    let found = Arc::new(Mutex::new(Found::default()));
    let bar = progress(ms);
    let result = scan(ms, path, pattern, Arc::clone(&found), bar.clone());
    bar.finish_and_clear();

    let found = std::mem::take(&mut *found.lock().unwrap());
    match print(&found.matches) {
        // The reader has closed the pipe, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        printed => printed?,
    }
    let status = match &result {
        Ok(()) => "finished",
        Err(error) if error.status() != CallStatus::NotStarted => "timed out, found so far",
        Err(_) => "not started",
    };
    report(format_args!(
        "{status}: {} matches in {} files ({} binary skipped, {} unreadable)",
        found.matches.len(),
        found.searched,
        found.binary,
        found.unreadable,
    ));
    events.try_iter().for_each(report);
    Ok(match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(1),
    })
}

fn main() -> ExitCode {
    let fail = |error: &dyn std::fmt::Display| {
        report(format_args!("scan: {error}"));
        ExitCode::from(2)
    };
    match Arguments::parse() {
        Ok(Some(arguments)) => run(arguments).unwrap_or_else(|error| fail(&error)),
        Ok(None) => {
            let _ = io::stdout().write_all(USAGE.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => fail(&error),
    }
}
