//! [`Java`]: virtual threads of a Java virtual machine, where one is named.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::measured::Measured;
use crate::options::Options;

/// Names a `java` of version 21 or later.
const VARIABLE: &str = "TIMEOUT_BENCH_JAVA";

/// Waits for the number of milliseconds that it is to call for, and answers with the median.
pub(crate) struct Java {
    process: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Java {
    /// `None` if the row is not asked for or no `java` is named.
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
        let mut answer = String::new();
        if let Some(to) = &mut self.to
            && writeln!(to, "{}", time.as_millis()).is_ok()
        {
            // An answer that does not come leaves the text empty.
            let _ = self.from.read_line(&mut answer);
        }
        Measured::only(answer.trim().parse().unwrap_or(f64::NAN))
    }
}

impl Drop for Java {
    fn drop(&mut self) {
        // Without a next line it ends by itself.
        self.to = None;
        let _ = self.process.wait();
    }
}
