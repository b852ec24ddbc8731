//! Counts how often the cancellation of a query of `PostgreSQL` reaches the next query on the
//! connection.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ::postgres::error::SqlState;
use ::postgres::{Client, NoTls};
use timeout_driver_examples::servers::postgres::Postgres;
use timeout_driver_examples::{Error, postgres, tokio_postgres};
use timeout_runtime::timeout;
use tokio::runtime::Runtime;

/// A query of about two milliseconds.
const QUERY: &str = "SELECT 42::bigint FROM pg_sleep(0.002)";

/// Cancels at every time from far before the end of a query until far after it.
fn time_of(number: u32) -> Duration {
    Duration::from_micros(u64::from(number % 100) * 60)
}

/// `cancelled` runs a query that is cancelled after the given time, and `next` runs a query.
fn count(
    pairs: u32,
    name: &str,
    mut cancelled: impl FnMut(Duration),
    mut next: impl FnMut() -> Result<(), ::postgres::Error>,
) {
    let mut reached = 0;
    for number in 0..pairs {
        cancelled(time_of(number));
        match next() {
            Ok(()) => {}
            Err(error) if error.code() == Some(&SqlState::QUERY_CANCELED) => reached += 1,
            Err(error) => panic!("{name}: {error}"),
        }
        // What is still on its way arrives meanwhile.
        thread::sleep(Duration::from_millis(20));
    }
    println!("{name:<42} {reached:>8}");
}

/// The cancel request of the driver, on a connection that is used again.
#[timeout(name = "kept", limit = limit, run = "inline")]
fn kept(db: &mut Client, limit: Duration) -> Result<i64, Error> {
    let query = db.cancel_token();
    let stop = move || query.cancel_query(NoTls);
    Ok(cancel_token
        .interrupt_with(stop, || db.query_one(QUERY, &[]))??
        .get(0))
}

pub(crate) fn count_all(pairs: u32) {
    let Some(server) = Postgres::start() else {
        return;
    };
    let runtime = Runtime::new().expect("threads can be started");
    println!("\nnext queries that are cancelled, of {pairs}");

    let db = Mutex::new(server.connect());
    let next = || lock(&db).query_one(QUERY, &[]).map(drop);
    let alone = |after| {
        let (query, has_ended) = (lock(&db).cancel_token(), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(after);
                if !has_ended.load(Ordering::SeqCst) {
                    let _ = query.cancel_query(NoTls);
                }
            });
            drop(lock(&db).query_one(QUERY, &[]));
            has_ended.store(true, Ordering::SeqCst);
        });
    };
    count(pairs, "the driver alone: cancel request", alone, next);
    let interrupted = |after| drop(kept(&mut lock(&db), after));
    count(pairs, "interrupt_with, cancel request", interrupted, next);

    let db = Arc::new(Mutex::new(server.connect()));
    let control = Arc::new(Mutex::new(server.connect()));
    let next = || lock(&db).query_one(QUERY, &[]).map(drop);
    let sum = |after| {
        drop(postgres::sum(
            Arc::clone(&db),
            Arc::clone(&control),
            QUERY.to_owned(),
            after,
        ));
    };
    count(pairs, "the recipe with a second connection", sum, next);

    let db = Arc::new(tokio::sync::Mutex::new(server.connect_async(&runtime)));
    let next = || {
        let row = runtime.block_on(async { db.lock().await.query_one(QUERY, &[]).await });
        row.map(drop)
    };
    let average = |after| {
        let (db, server) = (Arc::clone(&db), server.address());
        drop(runtime.block_on(tokio_postgres::average(db, server, QUERY.to_owned(), after)));
    };
    count(pairs, "the recipe for tokio-postgres", average, next);
}

fn lock<T>(value: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    value.lock().expect("no thread has panicked")
}
