use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{env, fs, process};

use rusqlite::Connection;
use timeout_driver_examples::Error;
use timeout_driver_examples::sqlite::{check_while_locked, count};

use crate::support::{LONG, ends_at_a_cancellation, ends_at_its_limit, interrupts_nothing_else};

const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
                       SELECT count(*) FROM n";

/// Takes some milliseconds.
const FINITE: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000) \
                      SELECT 42 + 0 * count(*) FROM n";

/// Makes an endless call, and says meanwhile that it is busy.
fn endless(busy: &AtomicBool, limit: Duration) -> Result<i64, Error> {
    let db = Connection::open_in_memory()?;
    busy.store(true, Ordering::SeqCst);
    let result = count(&db, ENDLESS, limit);
    busy.store(false, Ordering::SeqCst);
    result
}

#[test]
fn an_endless_statement_ends_at_its_limit() {
    let busy = AtomicBool::new(false);
    ends_at_its_limit(
        |limit| endless(&busy, limit),
        || busy.load(Ordering::SeqCst),
    );
}

#[test]
fn an_endless_statement_ends_at_a_cancellation() {
    let busy = AtomicBool::new(false);
    ends_at_a_cancellation(
        |limit| endless(&busy, limit),
        || busy.load(Ordering::SeqCst),
    );
}

#[test]
fn a_wait_for_a_lock_ends_at_its_limit() {
    let file = env::temp_dir().join(format!("timeout-drivers-{}.sqlite", process::id()));
    let locking = Connection::open(&file).unwrap();
    locking
        .execute_batch("CREATE TABLE t(x); BEGIN EXCLUSIVE")
        .unwrap();
    let db = Connection::open(&file).unwrap();
    check_while_locked(&db).unwrap();
    let busy = AtomicBool::new(false);
    let db = Mutex::new(db);
    let call = |limit| {
        busy.store(true, Ordering::SeqCst);
        let result = count(&db.lock().unwrap(), "SELECT 42 + count(*) FROM t", limit);
        busy.store(false, Ordering::SeqCst);
        result
    };
    ends_at_its_limit(call, || busy.load(Ordering::SeqCst));
    locking.execute_batch("COMMIT").unwrap();
    assert_eq!(call(LONG).unwrap(), 42);
    fs::remove_file(file).unwrap();
}

#[test]
fn no_later_statement_is_interrupted() {
    let db = Connection::open_in_memory().unwrap();
    interrupts_nothing_else(
        |limit| count(&db, FINITE, limit),
        || assert_eq!(db.query_row(FINITE, [], |row| row.get(0)), Ok(42)),
    );
    assert_eq!(count(&db, FINITE, LONG).unwrap(), 42);
}
