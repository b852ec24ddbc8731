//! A Redis server, from an installed one.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Connection, cmd};
use tokio::runtime::Runtime;

use super::process::Process;
use super::{find, in_new_folder, skip};

/// A running server.
#[derive(Debug)]
pub struct Redis(Process);

impl Redis {
    /// Starts a server, or returns `None` if none is installed.
    ///
    /// # Panics
    ///
    /// Panics if the server does not start, or if the environment requires one and there is none.
    #[must_use]
    pub fn start() -> Option<Self> {
        let program =
            find("redis-server", Vec::new()).or_else(|| find("valkey-server", Vec::new()));
        let Some(program) = program else {
            return skip("Redis");
        };
        Some(Self(in_new_folder(|folder| start(&program, folder))))
    }

    /// Connects to the server, which lists the connection under `name`.
    ///
    /// # Panics
    ///
    /// Panics if the server refuses the connection.
    #[must_use]
    pub fn connect(&self, name: &str) -> Connection {
        let connected = client(self.0.address).get_connection();
        let mut connection = connected.expect("the server accepts connections");
        let named = cmd("CLIENT").arg("SETNAME").arg(name).exec(&mut connection);
        named.expect("the server responds");
        connection
    }

    /// As [`connect`](Self::connect), for async code. The connection has no timeout of its own.
    ///
    /// # Panics
    ///
    /// Panics if the server refuses the connection.
    #[must_use]
    pub fn connect_async(&self, runtime: &Runtime, name: &str) -> MultiplexedConnection {
        runtime.block_on(async {
            // By default a command fails after 500 ms, while it still waits at the server.
            let config = AsyncConnectionConfig::new().set_response_timeout(None);
            let client = client(self.0.address);
            let connected = client.get_multiplexed_async_connection_with_config(&config);
            let connected = connected.await;
            let mut connection = connected.expect("the server accepts connections");
            let mut set_name = cmd("CLIENT");
            let named = set_name
                .arg("SETNAME")
                .arg(name)
                .exec_async(&mut connection)
                .await;
            named.expect("the server responds");
            connection
        })
    }

    /// Returns whether a connection of that name waits in a blocking command.
    ///
    /// # Panics
    ///
    /// Panics if the server does not respond to `monitor`.
    #[must_use]
    pub fn is_waiting(monitor: &mut Connection, name: &str) -> bool {
        let clients = cmd("CLIENT").arg("LIST").query::<String>(monitor);
        let clients = clients.expect("the server responds");
        let named = format!(" name={name} ");
        let mut clients = clients.lines().filter(|client| client.contains(&named));
        clients.any(|client| {
            let mut fields = client.split(' ');
            let flags = fields.find_map(|field| field.strip_prefix("flags="));
            flags.is_some_and(|flags| flags.contains('b'))
        })
    }

    /// Kills the server.
    ///
    /// # Errors
    ///
    /// Fails if the server has ended already.
    pub fn kill(&self) -> io::Result<()> {
        self.0.signal("KILL")
    }

    /// Makes the server respond to nothing, as a server that is out of reach.
    ///
    /// # Errors
    ///
    /// Fails if the server has ended.
    pub fn freeze(&self) -> io::Result<()> {
        self.0.signal("STOP")
    }

    /// Ends a [`freeze`](Self::freeze).
    ///
    /// # Errors
    ///
    /// Fails if the server has ended.
    pub fn thaw(&self) -> io::Result<()> {
        self.0.signal("CONT")
    }
}

fn client(address: SocketAddr) -> Client {
    Client::open(format!("redis://{address}")).expect("the address is valid")
}

fn start(program: &Path, folder: &Path) -> io::Result<Process> {
    // A server that computes ignores all other signals.
    let command = |port: u16| {
        let mut server = Command::new(program);
        server
            .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--dir"])
            .arg(folder);
        server.args(["--save", "", "--appendonly", "no"]);
        server
    };
    Process::start(folder, "KILL", command, |address| {
        client(address).get_connection().is_ok()
    })
}
