use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use timeout_driver_examples::Error;
use timeout_driver_examples::postgres::{sum, total};
use timeout_driver_examples::servers::postgres::Postgres;
use timeout_driver_examples::tokio_postgres::average;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;
use tokio_postgres::Client;

use crate::postgres::{FINITE, endless, running, server};
use crate::support::{
    LONG, ends_at_a_cancellation, ends_at_its_limit, ends_with_its_future, eventually,
    interrupts_nothing_else, leaves_nothing_running,
};

/// A connection, and the address of its server.
struct Db(Arc<Mutex<Client>>, SocketAddr);

impl Db {
    fn connect(server: &Postgres, runtime: &Runtime) -> Self {
        let client = server.connect_async(runtime);
        Self(Arc::new(Mutex::new(client)), server.address())
    }

    fn average(
        &self,
        sql: &str,
        limit: Duration,
    ) -> impl Future<Output = Result<i64, Error>> + Send + use<> {
        average(Arc::clone(&self.0), self.1, sql.to_owned(), limit)
    }
}

#[test]
fn a_query_ends_at_the_limit() {
    let (Some(server), runtime) = (server(), Runtime::new().unwrap()) else {
        return;
    };
    let (db, mut monitor) = (Db::connect(server, &runtime), server.connect());
    ends_at_its_limit(
        |limit| runtime.block_on(db.average(&endless("average-1"), limit)),
        || !running(&mut monitor, "average-1").is_empty(),
    );
    leaves_nothing_running("average");
}

#[test]
fn a_query_ends_at_a_cancellation() {
    let (Some(server), runtime) = (server(), Runtime::new().unwrap()) else {
        return;
    };
    let (db, mut monitor) = (Db::connect(server, &runtime), server.connect());
    ends_at_a_cancellation(
        |limit| runtime.block_on(db.average(&endless("average-2"), limit)),
        || !running(&mut monitor, "average-2").is_empty(),
    );
}

#[test]
fn a_query_ends_when_the_future_of_its_call_is_dropped() {
    let (Some(server), runtime) = (server(), Runtime::new().unwrap()) else {
        return;
    };
    let (db, mut monitor) = (Db::connect(server, &runtime), server.connect());
    let call = db.average(&endless("average-3"), LONG);
    ends_with_its_future(&runtime, call, || {
        !running(&mut monitor, "average-3").is_empty()
    });
}

// Fails if a request to cancel is not awaited until the server has carried it out.
#[test]
fn no_later_query_on_the_connection_is_interrupted() {
    let (Some(server), runtime) = (server(), Runtime::new().unwrap()) else {
        return;
    };
    let db = Db::connect(server, &runtime);
    interrupts_nothing_else(
        |limit| runtime.block_on(db.average(FINITE, limit)),
        || {
            let row = runtime.block_on(async { db.0.lock().await.query_one(FINITE, &[]).await });
            assert_eq!(row.unwrap().get::<_, i64>(0), 42);
        },
    );
}

#[test]
fn a_backend_that_is_terminated_is_an_error_of_the_driver() {
    let (Some(server), runtime) = (server(), Runtime::new().unwrap()) else {
        return;
    };
    let (db, mut monitor) = (Db::connect(server, &runtime), server.connect());
    let call = runtime.spawn(db.average(&endless("average-4"), LONG));
    eventually("the query runs", || {
        !running(&mut monitor, "average-4").is_empty()
    });
    for pid in running(&mut monitor, "average-4") {
        monitor
            .execute("SELECT pg_terminate_backend($1)", &[&pid])
            .unwrap();
    }
    assert!(matches!(
        runtime.block_on(call).unwrap(),
        Err(Error::Postgres(_))
    ));
}

#[test]
fn a_server_that_is_killed_is_an_error_of_each_driver() {
    let (Some(server), runtime) = (Postgres::start(), Runtime::new().unwrap()) else {
        return;
    };
    let db = Db::connect(&server, &runtime);
    let [shared, control] = [(); 2].map(|()| Arc::new(std::sync::Mutex::new(server.connect())));
    let (mut monitor, query) = (server.connect(), endless("killed"));
    thread::scope(|scope| {
        let calls = [
            scope.spawn(|| total(server.connect(), query.clone(), LONG).map(drop)),
            scope.spawn(|| sum(shared, control, query.clone(), LONG).map(drop)),
            scope.spawn(|| runtime.block_on(db.average(&query, LONG)).map(drop)),
        ];
        eventually("the queries run", || {
            running(&mut monitor, "killed").len() == calls.len()
        });
        server.kill().unwrap();
        for call in calls {
            assert!(matches!(call.join().unwrap(), Err(Error::Postgres(_))));
        }
    });
}
