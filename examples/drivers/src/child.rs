//! Child processes, by the feature `process` of the runtime.

use std::process::{Command, Output};
use std::time::Duration;

use timeout_runtime::integrations::process::Process;
use timeout_runtime::timeout;

use crate::Error;

/// Runs a script. At the cancellation, the shell and the processes that it has started are killed.
///
/// # Errors
///
/// Fails at the limit, or if there is no shell.
#[timeout(name = "shell", limit = limit)]
pub fn shell(script: String, limit: Duration) -> Result<Output, Error> {
    let mut command = Command::new("sh");
    command.args(["-c", &script]);
    Ok(Process::new(&mut command, &cancel_token).output()?)
}
