//! Exports metrics to Prometheus: scrapes them over HTTP while an operation is abandoned, and again
//! after it has ended.
//!
//! ```text
//! cargo run -p timeout-integration-examples --example metrics
//! ```

use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use timeout_runtime::integrations::metrics::record_events;
use timeout_runtime::{TimeoutError, timeout, workers};

type BoxResult<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[timeout(name = "price", secs = 20)]
fn price(sku: &'static str) -> BoxResult<u32> {
    match sku {
        "bolt" => Ok(12),
        _ => Err("sold out".into()),
    }
}

/// Runs until the books arrive, also after its limit.
#[timeout(name = "audit", secs = 1, cancel = false)]
fn audit(books: Receiver<()>) -> Result<(), TimeoutError> {
    // An error means that no books will arrive.
    let _ = books.recv();
    Ok(())
}

/// Responds to every request with all metrics.
fn serve(listener: &TcpListener, metrics: &PrometheusHandle) -> io::Result<()> {
    loop {
        let (mut client, _) = listener.accept()?;
        let request = BufReader::new(client.try_clone()?).lines();
        for line in request {
            if line?.is_empty() {
                break;
            }
        }
        let body = metrics.render();
        write!(
            client,
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )?;
    }
}

fn scrape(server: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect(server)?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {server}\r\n\r\n")?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    let (_head, body) = response.split_once("\r\n\r\n").unwrap_or_default();
    Ok(body.to_owned())
}

fn main() -> BoxResult<()> {
    // With buckets, durations are exported as a histogram, otherwise as a summary.
    let buckets = [0.001, 0.01, 0.1, 1.0, 10.0];
    let metrics = PrometheusBuilder::new()
        .set_buckets(&buckets)?
        .install_recorder()?;
    let _events = record_events();
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let server = listener.local_addr()?;
    thread::spawn(move || serve(&listener, &metrics));

    price("bolt")?;
    price("bolt")?;
    assert!(price("nut").is_err());
    let (books, has_books) = channel();
    assert!(audit(has_books).is_err_and(|error| error.is_timed_out()));
    println!("while an audit is abandoned:\n{}", scrape(server)?);

    books.send(())?;
    workers::drain(Duration::from_secs(60));
    println!("after its end:\n{}", scrape(server)?);
    Ok(())
}
