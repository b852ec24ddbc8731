//! Searches every file of a directory tree for a pattern, within a limit, and keeps what it has found when time runs out.
//!
//! ```text
//! cargo run -p timeout-examples --example scan -- . 'fn \w+' --ms 20000
//! ```
//!
//! Matches go to stdout as `path:line: text`, what is said about them to stderr, the events last. Files are searched
//! as bytes and shown with whatever is not printable UTF-8 replaced. A file with a NUL in its first 8 KiB is binary and is skipped;
//! what cannot be read is counted, and symbolic links are not followed. With a limit of zero the search is not started.
//!
//! It exits with 0 if the search has finished, 1 if time ran out, 2 if it was asked for something impossible.

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
use timeout_runtime::{CancelToken, TimeoutError, add_listener, timeout};
use walkdir::WalkDir;

const USAGE: &str = "usage: scan [PATH] [PATTERN] [--ms N]

  PATH     a directory or a file (default: .)
  PATTERN  a regular expression (default: fn \\w+)
  --ms N   the limit in milliseconds (default: 2000)
";

/// So much of a file is looked at to tell whether it is binary.
const HEAD: usize = 8 * 1024;
/// A longer line is searched in pieces of this size.
const LONGEST_LINE: u64 = 1024 * 1024;
/// So many characters of a matching line are shown.
const SHOWN: usize = 200;

/// What has been found so far. The caller holds on to it, so it survives the timeout.
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

/// The operation. The limit is an argument of the call; within the grace it stops, and leaves nothing running behind.
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
        // The error of a file that ends the search is the token's, and comes again.
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

/// The text as a terminal may have it.
fn printable(text: &[u8]) -> String {
    let safe = |char: char| match char {
        '\t' => ' ',
        control if control.is_control() => char::REPLACEMENT_CHARACTER,
        char => char,
    };
    let text = String::from_utf8_lossy(text);
    text.trim_start().chars().take(SHOWN).map(safe).collect()
}

/// A bar that fills up as the limit is used up, on a terminal only.
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
    /// `None` if help is all that was asked for.
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

/// Prints a line to stderr, whether or not anybody reads it.
fn say(line: impl std::fmt::Display) {
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
    // Events wait until the bar is gone.
    let (sender, events) = mpsc::channel();
    let _listener = add_listener(move |event| {
        let _ = sender.send(event.to_string());
    });

    let found = Arc::new(Mutex::new(Found::default()));
    let bar = progress(ms);
    let verdict = scan(ms, path, pattern, Arc::clone(&found), bar.clone());
    bar.finish_and_clear();

    let found = std::mem::take(&mut *found.lock().unwrap());
    match print(&found.matches) {
        // Whoever read has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        printed => printed?,
    }
    let ending = match &verdict {
        Ok(()) => "finished",
        Err(error) if error.was_started() => "timed out, found until then",
        Err(_) => "not started",
    };
    say(format_args!(
        "{ending}: {} matches in {} files ({} binary skipped, {} unreadable)",
        found.matches.len(),
        found.searched,
        found.binary,
        found.unreadable,
    ));
    events.try_iter().for_each(say);
    Ok(match verdict {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(1),
    })
}

fn main() -> ExitCode {
    let wrong = |error: &dyn std::fmt::Display| {
        say(format_args!("scan: {error}"));
        ExitCode::from(2)
    };
    match Arguments::parse() {
        Ok(Some(arguments)) => run(arguments).unwrap_or_else(|error| wrong(&error)),
        Ok(None) => {
            let _ = io::stdout().write_all(USAGE.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => wrong(&error),
    }
}
