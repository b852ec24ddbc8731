//! Runs this program in child processes, for measurements that need or abort a process of their
//! own.

use std::env;
use std::process::{Command, Output, Stdio};

use crate::finding::Finding;
use crate::options::Options;

/// Returns the command of a process that runs `job`.
pub(crate) fn command(job: &str, words: &[&str]) -> Command {
    let program = env::current_exe().expect("the path of this program");
    let mut command = Command::new(program);
    command.args(["--bench", "--job", job]).args(words);
    command
}

/// Measures `rows` in a process with these additional environment variables.
pub(crate) fn rows(options: &Options, rows: &[&str], environment: &[(&str, &str)]) -> Vec<Finding> {
    let wanted: Vec<_> = rows
        .iter()
        .copied()
        .filter(|row| options.wants(row))
        .collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut command = command("rows", &[]);
    command.args(["--only", &wanted.join(",")]);
    if let Some(rounds) = options.asked_rounds() {
        command.args(["--rounds", &rounds.to_string()]);
    }
    command.envs(environment.iter().copied());
    let Some(output) = finished(&mut command) else {
        return wanted
            .iter()
            .map(|row| Finding::count(row, f64::NAN))
            .collect();
    };
    output.lines().filter_map(Finding::read).collect()
}

/// Returns the output of a process, or `None` if the process failed.
pub(crate) fn finished(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::inherit()).output();
    match output {
        Ok(Output { status, stdout, .. }) if status.success() => String::from_utf8(stdout).ok(),
        Ok(Output { status, .. }) => {
            eprintln!("{command:?} ended with {status}");
            None
        }
        Err(error) => {
            eprintln!("{command:?} cannot be run: {error}");
            None
        }
    }
}
