//! A server process that ends with the program that has started it.

use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until its input ends, which happens when the program that has started it ends in any way.
/// Then stops the server and removes its folder.
const GUARD: &str = r#"
read -r _
kill -s "$1" "$2"
checks=500
while kill -0 "$2" && [ "$checks" -gt 0 ]; do
    sleep 0.02
    checks=$((checks - 1))
done
rm -rf "$3"
"#;

/// A server on the loopback interface, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) address: SocketAddr,
    server: Child,
    guard: Child,
}

impl Process {
    /// Starts a server and waits until it is ready. `command` gets a free port and returns the
    /// command to run. `signal` ends the server. On failure the error has its log.
    pub(super) fn start(
        folder: &Path,
        signal: &str,
        command: impl FnOnce(u16) -> Command,
        is_ready: impl Fn(SocketAddr) -> bool,
    ) -> io::Result<Self> {
        let address = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
        let log = folder.join("log");
        let output = File::create(&log)?;
        let mut server = command(address.port());
        server
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        let server = in_own_group(&mut server).spawn()?;

        let mut guard = Command::new("sh");
        let number = server.id().to_string();
        guard.args(["-c", GUARD, "sh", signal, &number]).arg(folder);
        guard
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let guard = in_own_group(&mut guard).spawn()?;

        let mut process = Self {
            address,
            server,
            guard,
        };
        let end = Instant::now() + PATIENCE;
        while !is_ready(address) {
            if process.server.try_wait()?.is_some() || Instant::now() > end {
                return Err(io::Error::other(std::fs::read_to_string(log)?));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(process)
    }

    /// Sends a signal to the server. Its process number is kept until this is dropped.
    pub(super) fn signal(&self, signal: &str) -> io::Result<()> {
        let number = self.server.id().to_string();
        let status = Command::new("kill")
            .args(["-s", signal, &number])
            .status()?;
        if status.success() {
            Ok(())
        } else {
            Err(io::Error::other("there is no such process"))
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.server.wait();
        let _ = self.guard.wait();
    }
}

/// Keeps the terminal's interrupt from a process, which ends with this program anyway.
fn in_own_group(command: &mut Command) -> &mut Command {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    command
}
