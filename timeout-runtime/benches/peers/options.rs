//! [`Options`]: the command line.

use std::path::PathBuf;

use lexopt::{Arg, Error, Parser, ValueExt};

/// The rows to measure, and the number of rounds.
#[derive(Debug, Default)]
pub(crate) struct Options {
    only: Vec<String>,
    rounds: Option<usize>,
    /// Whether a missed target is an error.
    pub(crate) gate: bool,
    /// Where to write the chart of the README.
    pub(crate) chart: Option<PathBuf>,
    /// The job of a child process, and its arguments.
    pub(crate) job: Option<(String, Vec<String>)>,
}

impl Options {
    /// Parses the command line. Returns `None` if Cargo runs this program as a test.
    pub(crate) fn read() -> Result<Option<Self>, Error> {
        if !std::env::args_os().any(|argument| argument == "--bench") {
            return Ok(None);
        }
        let mut options = Self {
            gate: true,
            ..Self::default()
        };
        let mut words = Vec::new();
        let mut job = None;
        let mut arguments = Parser::from_env();
        while let Some(argument) = arguments.next()? {
            match argument {
                Arg::Long("bench") => {}
                Arg::Long("quick") => options.rounds = Some(3),
                Arg::Long("rounds") => options.rounds = Some(arguments.value()?.parse()?),
                Arg::Long("only") => {
                    let prefixes = arguments.value()?.string()?;
                    options.only.extend(prefixes.split(',').map(str::to_owned));
                }
                Arg::Long("no-gate") => options.gate = false,
                Arg::Long("chart") => options.chart = Some(arguments.value()?.into()),
                Arg::Long("job") => job = Some(arguments.value()?.string()?),
                Arg::Value(word) if job.is_some() => words.push(word.string()?),
                other => return Err(other.unexpected()),
            }
        }
        options.job = job.map(|job| (job, words));
        Ok(Some(options))
    }

    /// Returns the number of rounds. `usual` is the default.
    pub(crate) fn rounds(&self, usual: usize) -> usize {
        self.rounds.unwrap_or(usual).max(1)
    }

    /// Returns the number of rounds on the command line, to pass it on to a child process.
    pub(crate) fn asked_rounds(&self) -> Option<usize> {
        self.rounds
    }

    /// Returns whether to measure the row. `S1` selects `S1` and `S1e`, but not `S10`.
    pub(crate) fn wants(&self, row: &str) -> bool {
        self.only.is_empty()
            || self.only.iter().any(|prefix| {
                row.strip_prefix(prefix.as_str()).is_some_and(|rest| {
                    let digit = |text: Option<char>| text.is_some_and(|c| c.is_ascii_digit());
                    !(digit(prefix.chars().last()) && digit(rest.chars().next()))
                })
            })
    }

    /// Returns whether this is a child process, with the environment that its parent has set.
    pub(crate) fn inside(&self) -> bool {
        self.job.is_some()
    }
}
