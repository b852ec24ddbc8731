//! Ends an axum server in order: at SIGTERM or Ctrl-C it cancels the requests in progress, whose
//! clients get status 503, and leaves nothing running.
//!
//! ```text
//! cargo run -p timeout-integration-examples --example shutdown
//! curl -i http://127.0.0.1:PORT/report
//! kill -TERM PID
//! ```

use std::future::Future;
use std::io;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use timeout_runtime::integrations::tower::{DeadlineHeader, ServerLayer};
use timeout_runtime::{CancelToken, TimeoutError, add_listener, timeout, workers};
use tokio::net::TcpListener;
use tokio::time::sleep;

/// How long requests in progress may continue after the signal.
const FINISH: Duration = Duration::from_secs(1);

/// How long cancelled operations may take to stop.
const STOP: Duration = Duration::from_secs(30);

/// Blocks its worker, as the drivers of many databases do.
#[timeout(name = "report", secs = 600, run = "worker")]
async fn report() -> Result<(), TimeoutError> {
    println!("`report` is running");
    cancel_token.sleep(Duration::from_secs(300))
}

/// Runs in the task of its request.
#[timeout(name = "feed", secs = 600)]
async fn feed() -> Result<(), TimeoutError> {
    println!("`feed` is running");
    sleep(Duration::from_secs(300)).await;
    Ok(())
}

async fn respond(
    call: impl Future<Output = Result<(), TimeoutError>>,
) -> Result<&'static str, StatusCode> {
    match call.await {
        Ok(()) => Ok("done"),
        Err(_) => Err(StatusCode::GATEWAY_TIMEOUT),
    }
}

/// Registers the signals. The future is ready after the first of them.
#[cfg(unix)]
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(not(unix))]
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        interrupt.recv().await;
    })
}

#[tokio::main]
async fn main() -> io::Result<ExitCode> {
    let _listener = add_listener(|event| println!("{event}"));
    let stop_signal = stop_signal()?;

    let shutdown = CancelToken::new();
    let router = Router::new()
        .route("/report", get(async || respond(report()).await))
        .route("/feed", get(async || respond(feed()).await))
        .layer(ServerLayer::new(DeadlineHeader::Envoy).upstream(&shutdown));

    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("listening on {}", listener.local_addr()?);
    axum::serve(listener, router)
        .with_graceful_shutdown(async move {
            stop_signal.await;
            println!("the server stops");
            tokio::spawn(async move {
                sleep(FINISH).await;
                shutdown.cancel_with("the server stops");
            });
        })
        .await?;

    // All responses are sent. Operations on workers may still be stopping.
    let left = workers::drain_async(STOP).await;
    for operation in workers::abandoned() {
        eprintln!("`{}` is still running", operation.name);
    }
    println!("operations left: {left}");
    Ok(ExitCode::from(u8::from(left > 0)))
}
