//! An HTTP server in this process, with a page that never comes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// A running server. It responds with `42`: to `/slow` after 2 ms, to `/never` never.
#[derive(Debug)]
pub struct Http {
    address: SocketAddr,
    waiting: Arc<AtomicUsize>,
}

impl Http {
    /// Starts a server, which ends with the process.
    ///
    /// # Panics
    ///
    /// Panics if the system allows no socket.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        let address = listener.local_addr().expect("the socket is bound");
        let waiting = Arc::new(AtomicUsize::new(0));
        let server = Self {
            address,
            waiting: Arc::clone(&waiting),
        };
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let waiting = Arc::clone(&waiting);
                thread::spawn(move || serve(client, &waiting));
            }
        });
        server
    }

    /// The address of the server.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of a page.
    #[must_use]
    pub fn url(&self, page: &str) -> String {
        format!("http://{}/{page}", self.address)
    }

    /// How many clients wait for the page that never comes.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }
}

fn serve(mut client: TcpStream, waiting: &AtomicUsize) -> io::Result<()> {
    let mut requests = BufReader::new(client.try_clone()?);
    loop {
        let mut request = String::new();
        while !request.ends_with("\r\n\r\n") {
            if requests.read_line(&mut request)? == 0 {
                return Ok(());
            }
        }
        if request.starts_with("GET /never ") {
            waiting.fetch_add(1, Ordering::SeqCst);
            // The client sends nothing more: this ends when it closes the connection.
            let closed = requests.read(&mut [0]);
            waiting.fetch_sub(1, Ordering::SeqCst);
            return closed.map(drop);
        }
        if request.starts_with("GET /slow ") {
            thread::sleep(Duration::from_millis(2));
        }
        client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n42")?;
    }
}
