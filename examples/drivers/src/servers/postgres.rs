//! A `PostgreSQL` server, from the programs of an installed one.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use postgres::{Client, NoTls};
use tokio::runtime::Runtime;
use tokio_postgres::Config;

use super::account::Account;
use super::process::Process;
use super::{find, in_new_folder, skip};

/// A running server.
#[derive(Debug)]
pub struct Postgres(Process);

impl Postgres {
    /// Starts a server, or returns `None` if none is installed.
    ///
    /// # Panics
    ///
    /// Panics if the server does not start, or if the environment requires one and there is none.
    #[must_use]
    pub fn start() -> Option<Self> {
        let Some(initdb) = find("initdb", installed()) else {
            return skip("PostgreSQL");
        };
        // The server is beside the file, and not always beside a link to it.
        let initdb = initdb.canonicalize().expect("the file exists");
        Some(Self(in_new_folder(|folder| start(&initdb, folder))))
    }

    /// The address of the server.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// Connects to the server.
    ///
    /// # Panics
    ///
    /// Panics if the server refuses the connection.
    #[must_use]
    pub fn connect(&self) -> Client {
        connect(self.address()).expect("the server accepts connections")
    }

    /// Connects to the server, with the async driver.
    ///
    /// # Panics
    ///
    /// Panics if the server refuses the connection.
    #[must_use]
    pub fn connect_async(&self, runtime: &Runtime) -> tokio_postgres::Client {
        let connected = runtime.block_on(config(self.address()).connect(NoTls));
        let (client, connection) = connected.expect("the server accepts connections");
        runtime.spawn(connection);
        client
    }

    /// Ends the server and all its connections right away.
    ///
    /// # Errors
    ///
    /// Fails if the server has ended already.
    pub fn kill(&self) -> io::Result<()> {
        self.0.signal("QUIT")
    }
}

fn connect(address: SocketAddr) -> Result<Client, tokio_postgres::Error> {
    postgres::Config::from(config(address)).connect(NoTls)
}

fn config(address: SocketAddr) -> Config {
    let mut config = Config::new();
    config.host(address.ip().to_string()).port(address.port());
    config.user("tester").dbname("postgres");
    config
}

fn start(initdb: &Path, folder: &Path) -> io::Result<Process> {
    let account = Account::for_folder(folder)?;
    let in_folder = |program: &Path| {
        let mut command = Command::new(program);
        command
            .current_dir(folder)
            .arg("-D")
            .arg(folder.join("data"));
        account.runs(&mut command);
        command
    };
    let mut creation = in_folder(initdb);
    creation.args(["--username=tester", "--auth=trust", "--no-sync"]);
    let output = creation.args(["--locale=C", "--encoding=UTF8"]).output()?;
    if !output.status.success() {
        return Err(io::Error::other(
            String::from_utf8_lossy(&output.stderr).into_owned(),
        ));
    }
    let command = |port: u16| {
        let mut server = in_folder(&initdb.with_file_name("postgres"));
        server.args(["-h", "127.0.0.1", "-p", &port.to_string(), "-k", ""]);
        server.args(["-c", "fsync=off", "-c", "autovacuum=off"]);
        server
    };
    // This signal closes all connections and ends the server.
    Process::start(folder, "INT", command, |address| connect(address).is_ok())
}

/// Where the packages of Debian put these programs, the newest version first.
fn installed() -> Vec<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut folders: Vec<_> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort();
    folders.reverse();
    folders
}
