//! [`Options`]: parses the command line.

use std::env;

/// The number of functions, and the number of rounds.
pub(crate) struct Options {
    pub(crate) functions: usize,
    pub(crate) rounds: usize,
}

impl Options {
    /// Returns `None` if Cargo runs this program as a test, not as a benchmark.
    pub(crate) fn read() -> Option<Self> {
        let mut options = Self {
            functions: 500,
            rounds: 5,
        };
        let mut arguments = env::args().skip(1);
        let mut is_bench = false;
        while let Some(argument) = arguments.next() {
            let mut number = || {
                let number = arguments.next().and_then(|number| number.parse().ok());
                number.unwrap_or_else(|| panic!("`{argument}` takes a number"))
            };
            match argument.as_str() {
                "--bench" => is_bench = true,
                "--quick" => (options.functions, options.rounds) = (100, 3),
                "--functions" => options.functions = number(),
                "--rounds" => options.rounds = number(),
                _ => panic!("`{argument}` is none of `--quick`, `--functions` and `--rounds`"),
            }
        }
        options.functions = options.functions.max(1);
        options.rounds = options.rounds.max(1);
        is_bench.then_some(options)
    }
}
