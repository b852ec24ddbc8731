use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands as _, Cmd, Commands as _, Connection, cmd};
use timeout_driver_examples::Error;
use timeout_driver_examples::redis::{pop, pop_async, request};
use timeout_driver_examples::servers::redis::Redis;
use timeout_runtime::{CallContext, CancelToken};
use tokio::runtime::Runtime;
use tokio::sync::Mutex as AsyncMutex;

use crate::support::{
    LONG, ends_at_a_cancellation, ends_at_its_limit, ends_with_its_future, eventually,
    interrupts_nothing_else, leaves_nothing_running,
};

/// The server of most tests, if one is installed.
fn server() -> Option<&'static Redis> {
    static SERVER: LazyLock<Option<Redis>> = LazyLock::new(Redis::start);
    SERVER.as_ref()
}

/// A connection that is listed under a name, and one that unblocks it.
#[derive(Clone)]
struct Blocking(Arc<Mutex<Connection>>, Arc<Mutex<Connection>>);

impl Blocking {
    fn connect(server: &Redis, name: &str) -> Self {
        let [db, control] = [name, "control"].map(|name| server.connect(name));
        Self(Arc::new(Mutex::new(db)), Arc::new(Mutex::new(control)))
    }

    fn pop(&self, key: &str, limit: Duration) -> Result<String, Error> {
        let Self(db, control) = self.clone();
        pop(db, control, key.to_owned(), limit)
    }
}

/// The same, with async connections.
struct Async(
    Arc<AsyncMutex<MultiplexedConnection>>,
    MultiplexedConnection,
);

impl Async {
    fn connect(server: &Redis, runtime: &Runtime, name: &str) -> Self {
        let [db, control] = [name, "control"].map(|name| server.connect_async(runtime, name));
        Self(Arc::new(AsyncMutex::new(db)), control)
    }

    fn pop(
        &self,
        key: &str,
        limit: Duration,
    ) -> impl Future<Output = Result<String, Error>> + Send + use<> {
        let Self(db, control) = self;
        pop_async(Arc::clone(db), control.clone(), key.to_owned(), limit)
    }
}

/// A command that waits for an element of the list `key`.
fn blpop(key: &str) -> Cmd {
    cmd("BLPOP").arg(key).arg(0).to_owned()
}

/// Runs `calls` while another connection adds an element to the list `key` every two milliseconds,
/// if it has none.
fn while_filled(server: &Redis, key: &str, calls: impl FnOnce()) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut db = server.connect("filler");
            while !done.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(2));
                if db.llen::<_, usize>(key).unwrap() == 0 {
                    db.rpush::<_, _, ()>(key, 42).unwrap();
                }
            }
        });
        let _done = SetOnDrop(&done);
        calls();
    });
}

/// Ends the other thread also if the calls panic.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn number(value: &str) -> i64 {
    value.parse().unwrap()
}

#[test]
fn a_blocking_command_ends_at_the_limit() {
    let Some(server) = server() else { return };
    let (db, mut monitor) = (
        Blocking::connect(server, "pop-1"),
        server.connect("monitor"),
    );
    ends_at_its_limit(
        |limit| db.pop("empty", limit),
        || Redis::is_waiting(&mut monitor, "pop-1"),
    );
    leaves_nothing_running("pop");
}

#[test]
fn a_blocking_command_ends_at_a_cancellation() {
    let Some(server) = server() else { return };
    let (db, mut monitor) = (
        Blocking::connect(server, "pop-2"),
        server.connect("monitor"),
    );
    ends_at_a_cancellation(
        |limit| db.pop("empty", limit),
        || Redis::is_waiting(&mut monitor, "pop-2"),
    );
}

#[test]
fn no_later_command_on_the_connection_is_interrupted() {
    let Some(server) = server() else { return };
    let (key, db) = ("filled-1", Blocking::connect(server, "pop-3"));
    let call = |limit| Ok(number(&db.pop(key, limit)?));
    let next = || {
        let [_, value]: [String; 2] = db.0.lock().unwrap().blpop(key, 0.0).unwrap();
        assert_eq!(value, "42");
    };
    while_filled(server, key, || interrupts_nothing_else(call, next));
}

#[test]
fn an_async_blocking_command_ends_at_the_limit() {
    let (Some(server), runtime) = (server(), Runtime::new().unwrap()) else {
        return;
    };
    let db = Async::connect(server, &runtime, "async-1");
    let mut monitor = server.connect("monitor");
    ends_at_its_limit(
        |limit| runtime.block_on(db.pop("empty", limit)),
        || Redis::is_waiting(&mut monitor, "async-1"),
    );
    leaves_nothing_running("pop_async");
}

#[test]
fn an_async_blocking_command_ends_at_a_cancellation() {
    let (Some(server), runtime) = (server(), Runtime::new().unwrap()) else {
        return;
    };
    let db = Async::connect(server, &runtime, "async-2");
    let mut monitor = server.connect("monitor");
    ends_at_a_cancellation(
        |limit| runtime.block_on(db.pop("empty", limit)),
        || Redis::is_waiting(&mut monitor, "async-2"),
    );
}

#[test]
fn an_async_blocking_command_ends_when_the_future_of_its_call_is_dropped() {
    let (Some(server), runtime) = (server(), Runtime::new().unwrap()) else {
        return;
    };
    let db = Async::connect(server, &runtime, "async-3");
    let mut monitor = server.connect("monitor");
    ends_with_its_future(&runtime, db.pop("empty", LONG), || {
        Redis::is_waiting(&mut monitor, "async-3")
    });
}

#[test]
fn no_later_command_on_the_async_connection_is_interrupted() {
    let (Some(server), runtime) = (server(), Runtime::new().unwrap()) else {
        return;
    };
    let (key, db) = ("filled-2", Async::connect(server, &runtime, "async-4"));
    let call = |limit| Ok(number(&runtime.block_on(db.pop(key, limit))?));
    let next = || {
        let popped = runtime.block_on(async { db.0.lock().await.blpop(key, 0.0).await });
        let [_, value]: [String; 2] = popped.unwrap();
        assert_eq!(value, "42");
    };
    while_filled(server, key, || interrupts_nothing_else(call, next));
}

// Fails if the connection has the default timeout of its driver, which is shorter.
#[test]
fn an_async_blocking_command_ends_not_before_its_limit() {
    let (Some(server), runtime) = (server(), Runtime::new().unwrap()) else {
        return;
    };
    let db = Async::connect(server, &runtime, "async-5");
    let result = runtime.block_on(db.pop("empty", Duration::from_secs(1)));
    assert!(matches!(result, Err(Error::Timeout(error)) if error.is_timed_out()));
}

#[test]
fn any_command_ends_at_the_limit_with_a_read_timeout() {
    let Some(server) = server() else { return };
    let mut monitor = server.connect("monitor");
    ends_at_its_limit(
        |limit| request::<[String; 2]>(server.connect("request-1"), blpop("empty"), limit),
        || Redis::is_waiting(&mut monitor, "request-1"),
    );
    leaves_nothing_running("request");
}

// Fails if the recipe leaves its timeout on the connection.
#[test]
fn no_later_command_is_interrupted_as_the_connection_is_closed() {
    let Some(server) = server() else { return };
    let (key, db) = ("filled-3", Mutex::new(None));
    let connection = || {
        db.lock()
            .unwrap()
            .take()
            .unwrap_or_else(|| server.connect("request-2"))
    };
    let call = |limit| {
        let ([_, value], open): ([String; 2], _) = request(connection(), blpop(key), limit)?;
        *db.lock().unwrap() = Some(open);
        Ok(number(&value))
    };
    let next = || {
        let mut open = connection();
        let [_, value]: [String; 2] = open.blpop(key, 0.0).unwrap();
        assert_eq!(value, "42");
        *db.lock().unwrap() = Some(open);
    };
    while_filled(server, key, || interrupts_nothing_else(call, next));
}

#[test]
fn a_caller_is_back_at_its_limit_while_a_script_blocks_the_server() {
    let Some(server) = Redis::start() else { return };
    let script = cmd("EVAL").arg("while true do end").arg(0).to_owned();
    let result = request::<()>(server.connect("script"), script, Duration::from_millis(300));
    assert!(matches!(result, Err(Error::Timeout(error)) if error.is_timed_out()));
    leaves_nothing_running("request");
}

#[test]
fn a_server_that_is_killed_is_an_error_of_the_driver() {
    let (Some(server), runtime) = (Redis::start(), Runtime::new().unwrap()) else {
        return;
    };
    let blocking = Blocking::connect(&server, "pop-4");
    let r#async = Async::connect(&server, &runtime, "async-6");
    let mut monitor = server.connect("monitor");
    thread::scope(|scope| {
        let one = scope.spawn(|| blocking.pop("empty", LONG));
        let two = scope.spawn(|| runtime.block_on(r#async.pop("empty", LONG)));
        eventually("both commands wait", || {
            ["pop-4", "async-6"]
                .iter()
                .all(|name| Redis::is_waiting(&mut monitor, name))
        });
        server.kill().unwrap();
        for call in [one, two] {
            assert!(matches!(call.join().unwrap(), Err(Error::Redis(_))));
        }
    });
}

/// The stop needs the server, too, so the operation ends with the freeze.
#[test]
fn a_caller_is_back_at_a_cancellation_while_the_server_is_frozen() {
    let Some(server) = Redis::start() else { return };
    let db = Blocking::connect(&server, "pop-5");
    let mut monitor = server.connect("monitor");
    let token = CancelToken::new();
    thread::scope(|scope| {
        let _guard = token.drop_guard();
        let context = CallContext::detached().with_token(&token);
        let call = scope.spawn(move || context.run(|| db.pop("empty", LONG)));
        eventually("the command waits", || {
            Redis::is_waiting(&mut monitor, "pop-5")
        });
        server.freeze().unwrap();
        token.cancel();
        let result = call.join().unwrap();
        assert!(matches!(result, Err(Error::Timeout(error)) if error.is_cancelled()));
        server.thaw().unwrap();
    });
    leaves_nothing_running("pop");
}
