//! Starts servers for the tests and for `stop_times`, in temporary folders and at free ports.

mod account;
pub mod http;
pub mod postgres;
mod process;
pub mod processes;
pub mod redis;

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// With this variable in the environment, a missing server is an error.
const REQUIRED: &str = "TIMEOUT_REQUIRE_SERVERS";

/// Says that there is no server of this kind to test against.
fn skip<T>(kind: &str) -> Option<T> {
    assert!(env::var_os(REQUIRED).is_none(), "no {kind} server here");
    eprintln!("skipped: no {kind} server here");
    None
}

/// Finds a program in the folders of `PATH`, then in `others`.
fn find(program: &str, others: Vec<PathBuf>) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(others);
    let mut files = folders.map(|folder| folder.join(program));
    files.find(|file| file.is_file())
}

/// Starts a server in a new folder, again if its port was taken meanwhile.
fn in_new_folder<T>(start: impl Fn(&Path) -> io::Result<T>) -> T {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut attempts = 5;
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("timeout-drivers-{}-{number}", std::process::id());
        let folder = env::temp_dir().join(name);
        let started = fs::create_dir(&folder).and_then(|()| start(&folder));
        attempts -= 1;
        match started {
            Err(_) if attempts > 0 => {
                let _ = fs::remove_dir_all(&folder);
            }
            started => return started.expect("the server starts"),
        }
    }
}
