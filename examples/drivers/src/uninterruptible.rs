//! A file and name resolution, by programs of the system in a child process. Nothing can interrupt
//! them inside a process, and a process can be killed.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use timeout_runtime::integrations::process::Process;
use timeout_runtime::timeout;

use crate::Error;

/// Reads a file, which may be on a network file system that hangs.
///
/// # Errors
///
/// Fails at the limit, or if the file cannot be read.
#[timeout(name = "read_file", limit = limit)]
pub fn read_file(path: PathBuf, limit: Duration) -> Result<Vec<u8>, Error> {
    let mut command = Command::new("cat");
    command.arg("--").arg(path);
    let output = Process::new(&mut command, &cancel_token).output()?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(std::io::Error::other(message).into())
}

/// Resolves a name. Returns no address if there is no such name.
///
/// # Errors
///
/// Fails at the limit, or if there is no program `getent`.
#[timeout(name = "resolve", limit = limit)]
pub fn resolve(name: String, limit: Duration) -> Result<Vec<IpAddr>, Error> {
    let mut command = Command::new("getent");
    command.args(["ahosts", "--", &name]);
    let output = Process::new(&mut command, &cancel_token).output()?;
    // A line for each address and kind of socket, which begins with the address.
    let lines = String::from_utf8_lossy(&output.stdout);
    let words = lines.lines().filter_map(|line| line.split(' ').next());
    let mut addresses: Vec<_> = words.filter_map(|word| word.parse().ok()).collect();
    addresses.dedup();
    Ok(addresses)
}
