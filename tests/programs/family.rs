//! Child processes for tests on every platform.

use std::env;
use std::io::{self, Read, Write};
use std::process::{self, Command};
use std::thread;

fn main() -> io::Result<()> {
    match env::args().nth(1).as_deref() {
        // Copies stdin to stdout and to stderr.
        Some("echo") => {
            let mut chunk = [0; 4096];
            loop {
                let count = io::stdin().read(&mut chunk)?;
                if count == 0 {
                    process::exit(7);
                }
                io::stdout().write_all(&chunk[..count])?;
                io::stdout().flush()?;
                io::stderr().write_all(&chunk[..count])?;
            }
        }
        // Starts a child that shares its pipes.
        Some("parent") => Command::new(env::current_exe()?)
            .arg("child")
            .status()
            .map(drop),
        _ => {
            println!("ready");
            loop {
                thread::park();
            }
        }
    }
}
