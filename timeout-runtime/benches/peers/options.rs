//! [`Options`]: what the command line asks for.

use lexopt::{Arg, Error, Parser, ValueExt};

/// What is measured, and how often.
#[derive(Debug, Default)]
pub(crate) struct Options {
    only: Vec<String>,
    rounds: Option<usize>,
    /// Whether a missed target ends the program with an error.
    pub(crate) gate: bool,
    /// What this process does for the one that started it, with its arguments.
    pub(crate) job: Option<(String, Vec<String>)>,
}

impl Options {
    /// `None` if Cargo runs this program as a test, not as a benchmark.
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
                Arg::Long("job") => job = Some(arguments.value()?.string()?),
                Arg::Value(word) if job.is_some() => words.push(word.string()?),
                other => return Err(other.unexpected()),
            }
        }
        options.job = job.map(|job| (job, words));
        Ok(Some(options))
    }

    /// How many rounds, where `usual` is what a full run takes.
    pub(crate) fn rounds(&self, usual: usize) -> usize {
        self.rounds.unwrap_or(usual).max(1)
    }

    /// The same as an argument for a process of this one, if it was given.
    pub(crate) fn asked_rounds(&self) -> Option<usize> {
        self.rounds
    }

    /// Whether the row is asked for: `S1` takes `S1` and `S1e`, not `S10`.
    pub(crate) fn wants(&self, row: &str) -> bool {
        self.only.is_empty()
            || self.only.iter().any(|prefix| {
                row.strip_prefix(prefix.as_str()).is_some_and(|rest| {
                    let digit = |text: Option<char>| text.is_some_and(|c| c.is_ascii_digit());
                    !(digit(prefix.chars().last()) && digit(rest.chars().next()))
                })
            })
    }

    /// Whether this process measures on behalf of another one, which has set the environment for it.
    pub(crate) fn inside(&self) -> bool {
        self.job.is_some()
    }
}
