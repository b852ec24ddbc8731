use std::time::Duration;

use timeout_driver_examples::Error;
use timeout_driver_examples::servers::http::Http;
use timeout_driver_examples::socket::greet;

use crate::support::{LONG, ends_at_a_cancellation, ends_at_its_limit, leaves_nothing_running};

fn get(server: &Http, page: &str, limit: Duration) -> Result<String, Error> {
    greet(
        server.address(),
        format!("GET /{page} HTTP/1.1\r\n\r\n"),
        limit,
    )
}

#[test]
fn a_read_from_a_silent_server_ends_at_the_limit() {
    let server = Http::start();
    ends_at_its_limit(
        |limit| get(&server, "never", limit),
        || server.waiting() > 0,
    );
    leaves_nothing_running("greet");
}

#[test]
fn a_read_from_a_silent_server_ends_at_a_cancellation() {
    let server = Http::start();
    ends_at_a_cancellation(
        |limit| get(&server, "never", limit),
        || server.waiting() > 0,
    );
}

#[test]
fn a_server_that_responds_in_time_is_heard() {
    let line = get(&Http::start(), "slow", LONG).unwrap();
    assert_eq!(line, "HTTP/1.1 200 OK\r\n");
}
