//! One row per recipe.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::cmd;
use timeout_driver_examples as recipes;
use timeout_driver_examples::servers::http::Http;
use timeout_driver_examples::servers::postgres::Postgres;
use timeout_driver_examples::servers::processes;
use timeout_driver_examples::servers::redis::Redis;
use tokio::runtime::Runtime;

use crate::measure;

/// The limit of the calls, which end at an earlier deadline.
const LIMIT: Duration = Duration::from_secs(3600);

pub(crate) fn measure_all(runs: usize) {
    let runtime = Runtime::new().expect("threads can be started");
    of_sqlite(runs);
    if let Some(server) = Postgres::start() {
        of_postgres(runs, &server, &runtime);
    }
    if let Some(server) = Redis::start() {
        of_redis(runs, &server, &runtime);
    }
    of_http(runs, &runtime);
    of_socket(runs);
    if cfg!(target_os = "linux") {
        of_child(runs);
        of_file(runs);
    }
    of_channel(runs);
}

fn of_sqlite(runs: usize) {
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
                   SELECT count(*) FROM n";
    let busy = AtomicBool::new(false);
    let call = || {
        let db = rusqlite::Connection::open_in_memory().expect("there is memory");
        busy.store(true, Ordering::SeqCst);
        recipes::sqlite::count(&db, endless, LIMIT).expect_err("the statement never ends");
        busy.store(false, Ordering::SeqCst);
    };
    measure(runs, "rusqlite", call, || busy.load(Ordering::SeqCst));
}

fn of_postgres(runs: usize, server: &Postgres, runtime: &Runtime) {
    let endless = "SELECT 42::bigint FROM pg_sleep(1e6)";
    let mut monitor = server.connect();
    let mut is_busy = || {
        let sql = "SELECT count(*) FROM pg_stat_activity \
                   WHERE state = 'active' AND query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()";
        monitor
            .query_one(sql, &[])
            .expect("the server responds")
            .get::<_, i64>(0)
            > 0
    };
    let call = || {
        drop(recipes::postgres::total(
            server.connect(),
            endless.to_owned(),
            LIMIT,
        ));
    };
    measure(runs, "postgres, cancel request", call, &mut is_busy);

    let (db, control) = (server.connect(), server.connect());
    let (db, control) = (Arc::new(Mutex::new(db)), Arc::new(Mutex::new(control)));
    let call = || {
        let (db, control) = (Arc::clone(&db), Arc::clone(&control));
        drop(recipes::postgres::sum(
            db,
            control,
            endless.to_owned(),
            LIMIT,
        ));
    };
    measure(runs, "postgres, second connection", call, &mut is_busy);

    let db = Arc::new(tokio::sync::Mutex::new(server.connect_async(runtime)));
    let average = || {
        let (db, server) = (Arc::clone(&db), server.address());
        recipes::tokio_postgres::average(db, server, endless.to_owned(), LIMIT)
    };
    measure(
        runs,
        "tokio-postgres",
        || drop(runtime.block_on(average())),
        &mut is_busy,
    );
}

fn of_redis(runs: usize, server: &Redis, runtime: &Runtime) {
    let mut monitor = server.connect("monitor");
    let mut is_busy = || Redis::is_waiting(&mut monitor, "row");
    let (db, control) = (server.connect("row"), server.connect("control"));
    let (db, control) = (Arc::new(Mutex::new(db)), Arc::new(Mutex::new(control)));
    let call = || {
        let (db, control) = (Arc::clone(&db), Arc::clone(&control));
        drop(recipes::redis::pop(db, control, "empty".to_owned(), LIMIT));
    };
    measure(runs, "redis, CLIENT UNBLOCK", call, &mut is_busy);

    let db = Arc::new(tokio::sync::Mutex::new(
        server.connect_async(runtime, "row"),
    ));
    let control = server.connect_async(runtime, "control");
    let call = || {
        let (db, control) = (Arc::clone(&db), control.clone());
        let pop = recipes::redis::pop_async(db, control, "empty".to_owned(), LIMIT);
        drop(runtime.block_on(pop));
    };
    measure(runs, "redis async, CLIENT UNBLOCK", call, &mut is_busy);

    let call = || {
        let command = cmd("BLPOP").arg("empty").arg(0).to_owned();
        drop(recipes::redis::request::<()>(
            server.connect("row"),
            command,
            LIMIT,
        ));
    };
    measure(runs, "redis, read timeout", call, &mut is_busy);
}

fn of_http(runs: usize, runtime: &Runtime) {
    let server = Http::start();
    let is_busy = || server.waiting() > 0;
    let url = server.url("never");

    let agent = ureq::Agent::new_with_defaults();
    let call = || drop(recipes::ureq::fetch(agent.clone(), url.clone(), LIMIT));
    measure(runs, "ureq, its timeout", call, is_busy);

    let agent = recipes::ureq::checking_agent();
    let call = || drop(recipes::ureq::fetch(agent.clone(), url.clone(), LIMIT));
    measure(runs, "ureq, sockets that check the token", call, is_busy);

    let client = reqwest::Client::new();
    let call = || drop(runtime.block_on(recipes::reqwest::fetch(&client, &url, LIMIT)));
    measure(runs, "reqwest", call, is_busy);

    let client = reqwest::blocking::Client::new();
    let call = || {
        drop(recipes::reqwest::fetch_blocking(
            client.clone(),
            url.clone(),
            LIMIT,
        ));
    };
    measure(runs, "reqwest::blocking, its timeout", call, is_busy);
}

fn of_socket(runs: usize) {
    let server = Http::start();
    let request = "GET /never HTTP/1.1\r\n\r\n";
    let call = || {
        let (server, request) = (server.address(), request.to_owned());
        drop(recipes::socket::greet(server, request, LIMIT));
    };
    measure(runs, "a socket", call, || server.waiting() > 0);
}

fn of_child(runs: usize) {
    // The shell waits for another process.
    let script = "sleep 86399; true";
    let call = || drop(recipes::child::shell(script.to_owned(), LIMIT));
    measure(runs, "a child process", call, || processes::with("86399"));
}

fn of_file(runs: usize) {
    // A pipe that no process writes to cannot be opened.
    let pipe = std::env::temp_dir().join(format!("stop-times-{}", std::process::id()));
    let created = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(created.expect("mkfifo is installed").success());
    let name = pipe.to_str().expect("UTF-8");
    let call = || drop(recipes::uninterruptible::read_file(pipe.clone(), LIMIT));
    measure(runs, "a file, in a child process", call, || {
        processes::with(name)
    });
    std::fs::remove_file(&pipe).expect("the pipe exists");
}

fn of_channel(runs: usize) {
    let (_sender, values) = crossbeam_channel::unbounded::<u32>();
    let busy = AtomicBool::new(false);
    let call = || {
        busy.store(true, Ordering::SeqCst);
        drop(recipes::channel::first(
            values.clone(),
            values.clone(),
            LIMIT,
        ));
        busy.store(false, Ordering::SeqCst);
    };
    measure(runs, "crossbeam-channel", call, || {
        busy.load(Ordering::SeqCst)
    });
}
