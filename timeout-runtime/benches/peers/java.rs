//! [`Java`]: measures virtual threads of a Java virtual machine, if the environment names one.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::measured::Measured;
use crate::options::Options;

/// The environment variable with the path of a `java` of version 21 or later.
const VARIABLE: &str = "TIMEOUT_BENCH_JAVA";

/// A Java process. It reads a number of milliseconds, makes calls for that time, and prints the
/// median duration.
pub(crate) struct Java {
    process: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Java {
    /// Starts the process. Returns `None` if the row is not wanted or no `java` is named.
    pub(crate) fn start(options: &Options, row: &str) -> Option<Self> {
        let java = env::var_os(VARIABLE).filter(|_| options.wants(row))?;
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers/Join.java");
        let mut process = Command::new(java)
            .arg(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .inspect_err(|error| eprintln!("{VARIABLE} cannot be run: {error}"))
            .ok()?;
        let (to, from) = (process.stdin.take(), process.stdout.take()?);
        Some(Self {
            process,
            to,
            from: BufReader::new(from),
        })
    }

    pub(crate) fn measure(&mut self, time: Duration) -> Measured {
        let mut line = String::new();
        if let Some(to) = &mut self.to
            && writeln!(to, "{}", time.as_millis()).is_ok()
        {
            // An error leaves the line empty.
            let _ = self.from.read_line(&mut line);
        }
        Measured::only(line.trim().parse().unwrap_or(f64::NAN))
    }
}

impl Drop for Java {
    fn drop(&mut self) {
        // Closing its input makes the process exit.
        self.to = None;
        let _ = self.process.wait();
    }
}
