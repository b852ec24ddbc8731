use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{self, Command};
use std::{env, fs};

use timeout_driver_examples::Error;
use timeout_driver_examples::servers::processes;
use timeout_driver_examples::uninterruptible::{read_file, resolve};

use crate::support::{LONG, ends_at_a_cancellation, ends_at_its_limit, leaves_nothing_running};

/// A pipe in the file system, which cannot be opened as long as no process writes to it. Removed on
/// drop.
struct Pipe(PathBuf);

impl Pipe {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("timeout-drivers-{}-{name}", process::id()));
        let status = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(status.success());
        Self(path)
    }

    fn is_read(&self) -> bool {
        processes::with(self.0.to_str().unwrap())
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_file_that_hangs_ends_at_the_limit() {
    let pipe = Pipe::new("limit");
    ends_at_its_limit(|limit| read_file(pipe.0.clone(), limit), || pipe.is_read());
    leaves_nothing_running("read_file");
}

#[test]
fn a_file_that_hangs_ends_at_a_cancellation() {
    let pipe = Pipe::new("cancellation");
    ends_at_a_cancellation(|limit| read_file(pipe.0.clone(), limit), || pipe.is_read());
}

#[test]
fn a_file_has_all_its_bytes_and_a_missing_one_is_an_error() {
    let path = env::temp_dir().join(format!("timeout-drivers-{}-file", process::id()));
    let bytes: Vec<u8> = (0..=250).cycle().take(1 << 20).collect();
    fs::write(&path, &bytes).unwrap();
    assert!(read_file(path.clone(), LONG).unwrap() == bytes);
    fs::remove_file(&path).unwrap();
    let error = read_file(path, LONG).unwrap_err();
    assert!(matches!(&error, Error::Io(_)), "{error:?}");
    assert!(error.to_string().contains("No such file"), "{error}");
}

#[test]
fn a_name_has_addresses() {
    let addresses = resolve("localhost".to_owned(), LONG).unwrap();
    assert!(!addresses.is_empty());
    assert!(addresses.iter().all(IpAddr::is_loopback));
    // The name stands for no host on any network.
    let addresses = resolve("no-host.invalid".to_owned(), LONG).unwrap();
    assert!(addresses.is_empty());
}
