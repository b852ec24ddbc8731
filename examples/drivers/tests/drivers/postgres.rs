use std::sync::{Arc, LazyLock, Mutex};
use std::thread;

use postgres::Client;
use timeout_driver_examples::Error;
use timeout_driver_examples::postgres::{sum, total};
use timeout_driver_examples::servers::postgres::Postgres;

use crate::support::{
    LONG, ends_at_a_cancellation, ends_at_its_limit, eventually, interrupts_nothing_else,
    leaves_nothing_running,
};

/// The server of all tests, if one is installed.
pub(crate) fn server() -> Option<&'static Postgres> {
    static SERVER: LazyLock<Option<Postgres>> = LazyLock::new(Postgres::start);
    SERVER.as_ref()
}

/// A query of about two milliseconds.
pub(crate) const FINITE: &str = "SELECT 42::bigint FROM pg_sleep(0.002)";

/// A query that never ends. `name` identifies it.
pub(crate) fn endless(name: &str) -> String {
    format!("SELECT 42::bigint FROM pg_sleep(1e6) -- {name}")
}

/// The processes of the server that run the query of that name.
pub(crate) fn running(monitor: &mut Client, name: &str) -> Vec<i32> {
    let sql = "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query LIKE $1";
    let rows = monitor.query(sql, &[&format!("%-- {name}")]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

fn shared(server: &Postgres) -> Arc<Mutex<Client>> {
    Arc::new(Mutex::new(server.connect()))
}

#[test]
fn a_cancel_request_ends_the_query_at_the_limit() {
    let Some(server) = server() else { return };
    let mut monitor = server.connect();
    ends_at_its_limit(
        |limit| total(server.connect(), endless("total 1"), limit),
        || !running(&mut monitor, "total 1").is_empty(),
    );
    leaves_nothing_running("total");
}

#[test]
fn a_cancel_request_ends_the_query_at_a_cancellation() {
    let Some(server) = server() else { return };
    let mut monitor = server.connect();
    ends_at_a_cancellation(
        |limit| total(server.connect(), endless("total 2"), limit),
        || !running(&mut monitor, "total 2").is_empty(),
    );
}

#[test]
fn no_later_query_is_interrupted_as_the_connection_is_closed() {
    let Some(server) = server() else { return };
    let db = Mutex::new(Some(server.connect()));
    interrupts_nothing_else(
        |limit| {
            let client = db
                .lock()
                .unwrap()
                .take()
                .unwrap_or_else(|| server.connect());
            let (value, client) = total(client, FINITE.to_owned(), limit)?;
            *db.lock().unwrap() = Some(client);
            Ok(value)
        },
        || {
            let mut db = db.lock().unwrap();
            let client = db.get_or_insert_with(|| server.connect());
            assert_eq!(client.query_one(FINITE, &[]).unwrap().get::<_, i64>(0), 42);
        },
    );
}

#[test]
fn a_second_connection_ends_the_query_at_the_limit() {
    let Some(server) = server() else { return };
    let (db, control, mut monitor) = (shared(server), shared(server), server.connect());
    ends_at_its_limit(
        |limit| {
            sum(
                Arc::clone(&db),
                Arc::clone(&control),
                endless("sum 1"),
                limit,
            )
        },
        || !running(&mut monitor, "sum 1").is_empty(),
    );
    leaves_nothing_running("sum");
}

#[test]
fn a_second_connection_ends_the_query_at_a_cancellation() {
    let Some(server) = server() else { return };
    let (db, control, mut monitor) = (shared(server), shared(server), server.connect());
    ends_at_a_cancellation(
        |limit| {
            sum(
                Arc::clone(&db),
                Arc::clone(&control),
                endless("sum 2"),
                limit,
            )
        },
        || !running(&mut monitor, "sum 2").is_empty(),
    );
}

#[test]
fn no_later_query_on_the_connection_is_interrupted() {
    let Some(server) = server() else { return };
    let (db, control) = (shared(server), shared(server));
    interrupts_nothing_else(
        |limit| {
            sum(
                Arc::clone(&db),
                Arc::clone(&control),
                FINITE.to_owned(),
                limit,
            )
        },
        || {
            let row = db.lock().unwrap().query_one(FINITE, &[]).unwrap();
            assert_eq!(row.get::<_, i64>(0), 42);
        },
    );
}

#[test]
fn a_backend_that_is_terminated_is_an_error_of_the_driver() {
    let Some(server) = server() else { return };
    let (db, control, mut monitor) = (shared(server), shared(server), server.connect());
    thread::scope(|scope| {
        let one = scope.spawn(|| total(server.connect(), endless("ended"), LONG).map(drop));
        let two = scope.spawn(|| sum(db, control, endless("ended"), LONG).map(drop));
        eventually("both queries run", || {
            running(&mut monitor, "ended").len() == 2
        });
        for pid in running(&mut monitor, "ended") {
            monitor
                .execute("SELECT pg_terminate_backend($1)", &[&pid])
                .unwrap();
        }
        for call in [one, two] {
            assert!(matches!(call.join().unwrap(), Err(Error::Postgres(_))));
        }
    });
}
