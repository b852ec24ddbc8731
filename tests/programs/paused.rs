use timeout_runtime::{TimeoutError, timeout};

#[timeout(name = "nightly", secs = 3600)]
async fn nightly() -> Result<(), TimeoutError> {
    std::future::pending().await
}

#[tokio::test(start_paused = true)]
async fn the_night_ends_at_once() {
    assert!(nightly().await.unwrap_err().is_timed_out());
}
