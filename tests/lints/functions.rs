//! Functions of every shape for `lints_of_plain_functions.rs`. They are no good examples: each
//! contains code that some lint reports.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use timeout_runtime::{CancelToken, TimeoutError, timeout};

type CallResult = Result<u32, TimeoutError>;

/// A result that is itself a future.
#[derive(Debug)]
pub struct Handle;

impl Future for Handle {
    type Output = u32;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u32> {
        Poll::Ready(1)
    }
}

fn size(size: usize) -> u32 {
    size as u32
}

fn give_back(late: CallResult) {
    drop(late);
}

fn zero(_: TimeoutError) -> u32 {
    0
}

#[timeout(secs = 60)]
fn sync() -> CallResult {
    Ok(1)
}

#[timeout(secs = 60)]
#[rustfmt::skip]
fn one_line() -> CallResult { Ok(1) }

#[timeout(secs = 60, run = "inline")]
fn inline(row: &str, rows: &mut Vec<u32>) -> CallResult {
    rows.push(1);
    Ok(size(row.len()))
}

#[timeout(secs = 60)]
async fn polled(row: &str) -> CallResult {
    std::future::ready(()).await;
    Ok(size(row.len()))
}

#[timeout(secs = 60, run = "worker")]
async fn on_a_worker(row: String) -> CallResult {
    std::future::ready(()).await;
    Ok(size(row.len()))
}

#[timeout(secs = 60, run = "task")]
async fn task(row: String) -> CallResult {
    std::future::ready(()).await;
    Ok(size(row.len()))
}

#[timeout(secs = 60, cancel = false)]
async fn outlives(row: String) -> CallResult {
    std::future::ready(()).await;
    Ok(size(row.len()))
}

#[timeout(secs = 60)]
async fn never_waits() -> CallResult {
    Ok(1)
}

#[timeout(secs = 60)]
async fn takes_all(mut rows: Vec<String>, (a, mut b): (u32, u32), _: u8, [c, ..]: [u32; 2]) -> CallResult {
    rows.push(String::new());
    b += 1;
    std::future::ready(()).await;
    Ok(a + b + c + size(rows.len()))
}

#[timeout(secs = 60)]
fn takes_all_on_a_worker(mut rows: Vec<String>, (a, mut b): (u32, u32), _: u8, [c, ..]: [u32; 2]) -> CallResult {
    rows.push(String::new());
    b += 1;
    Ok(a + b + c + size(rows.len()))
}

#[timeout(secs = 60, run = "inline")]
fn takes_all_inline(mut rows: Vec<String>, (a, mut b): (u32, u32), _: u8, [c, ..]: [u32; 2]) -> CallResult {
    rows.push(String::new());
    b += 1;
    Ok(a + b + c + size(rows.len()))
}

#[timeout(secs = 60)]
fn not_used(_row: u32, other: String) -> CallResult {
    Ok(1)
}

#[timeout(secs = 60)]
async fn not_used_either(_row: u32, other: String) -> CallResult {
    Ok(1)
}

#[timeout(secs = 60)]
fn asks() -> CallResult {
    //plain let cancel_token = CancelToken::new();
    cancel_token.check()?;
    Ok(1)
}

#[timeout(secs = 60)]
async fn asks_too() -> CallResult {
    //plain let cancel_token = CancelToken::new();
    cancel_token.cancelled().await;
    cancel_token.check()?;
    Ok(1)
}

#[timeout(secs = 60, token = stop)]
fn passes_on(stop: &CancelToken, rows: Vec<u32>) -> CallResult {
    stop.check()?;
    drop(rows);
    Ok(1)
}

#[timeout(secs = 60, token = stop)]
async fn passes_on_too(stop: CancelToken) -> CallResult {
    stop.cancelled().await;
    Ok(1)
}

#[timeout(ms = limit, upstream = stop, grace = "5ms", max_abandoned = 5)]
fn used_by_options(limit: u64, stop: CancelToken) -> CallResult {
    //plain let _ = (limit, stop);
    Ok(1)
}

#[timeout(ms = 5, upstream = [stop, other], grace = "5ms")]
async fn used_by_options_too(stop: &CancelToken, other: Option<CancelToken>) -> CallResult {
    //plain let _ = (stop, other);
    Ok(1)
}

#[timeout("1m", cancel = false)]
fn limit_without_a_name(rows: Vec<u32>, _unused: u32) -> CallResult {
    Ok(size(rows.len()))
}

#[timeout(Duration::from_secs(60))]
async fn limit_without_a_name_of_a_call(mut rows: Vec<u32>, (a, _): (u32, u32)) -> CallResult {
    rows.push(a);
    Ok(size(rows.len()))
}

#[timeout(patience, run = "inline")]
fn limit_without_a_name_of_an_argument(patience: Duration, other: &str) -> CallResult {
    //plain let _ = patience;
    Ok(size(other.len()))
}

#[timeout(secs = 60, fallback = |_| ())]
fn nothing() {}

#[timeout("1m")]
#[test]
fn tested() {
    drop(String::new());
}

#[test]
#[timeout("1m", run = "inline", token = stop)]
fn tested_inline() {
    //plain let stop = CancelToken::new();
    stop.check().unwrap();
}

#[test]
#[timeout("1m", on_late = drop)]
fn tested_late() {}

#[timeout(secs = 60, fallback = |_| ())]
async fn nothing_either() {}

#[timeout(secs = 60, fallback = |_| ())]
fn only_calls() {
    drop(String::new());
}

#[timeout(secs = 60, fallback = zero)]
fn plain() -> u32 {
    1
}

#[timeout(secs = 60, fallback = zero, on_late = drop)]
async fn plain_late() -> u32 {
    std::future::ready(1).await
}

#[timeout(secs = 60, fallback = zero, on_late = |_| ())]
fn plain_late_on_a_worker() -> u32 {
    1
}

#[timeout(secs = 60, on_late = give_back)]
fn late() -> CallResult {
    Ok(1)
}

#[timeout(secs = 60, on_late = give_back, run = "inline")]
fn late_inline() -> CallResult {
    Ok(1)
}

#[timeout(secs = 60, on_late = give_back)]
async fn late_polled() -> CallResult {
    std::future::ready(Ok(1)).await
}

#[timeout(secs = 60, on_late = give_back, run = "task")]
async fn late_task() -> CallResult {
    std::future::ready(Ok(1)).await
}

#[timeout(secs = 60, fallback = |_| Handle)]
fn handle() -> Handle {
    Handle
}

#[timeout(secs = 60, fallback = |_| Handle)]
async fn handle_polled() -> Handle {
    Handle
}

#[timeout(secs = 60, fallback = |_| Handle, run = "worker")]
async fn handle_on_a_worker() -> Handle {
    Handle
}

#[timeout(secs = 60, fallback = |_| Handle, run = "task")]
async fn handle_as_a_task() -> Handle {
    Handle
}

#[timeout(secs = 60, fallback = |_| Handle, on_late = drop)]
async fn handle_late() -> Handle {
    Handle
}

#[timeout(secs = 60)]
fn returned(row: u32) -> impl Future<Output = CallResult> + Send {
    std::future::ready(Ok(row))
}

#[timeout(secs = 60)]
fn returned_block(row: u32) -> impl Future<Output = CallResult> + Send {
    async move { Ok(row) }
}

#[timeout(secs = 60)]
fn boxed<'a>(row: &'a str) -> Pin<Box<dyn Future<Output = CallResult> + Send + 'a>> {
    Box::pin(async move { Ok(size(row.len())) })
}

#[timeout(secs = 60)]
fn generic<T: Into<u32> + Send + 'static>(row: T) -> CallResult {
    Ok(row.into())
}

#[timeout(secs = 60, run = "inline")]
fn generic_inline<T>(row: &T, rows: impl IntoIterator<Item = T>) -> CallResult
where
    T: Copy + Into<u32>,
{
    let mut sum = 0_u32;
    for next in rows {
        sum += next.into();
    }
    Ok(sum + (*row).into())
}

#[timeout(secs = 60)]
async fn generic_polled<T: Into<u32> + Copy, const N: usize>(rows: [T; N]) -> Result<impl Iterator<Item = u32>, TimeoutError> {
    std::future::ready(()).await;
    Ok(IntoIterator::into_iter(rows).map(Into::into))
}

#[timeout(secs = 60)]
async fn borrows<'a>(row: &'a str, _other: &str) -> Result<&'a str, TimeoutError> {
    std::future::ready(()).await;
    Ok(row)
}

#[timeout(secs = 60)]
fn only_returns(row: u32) -> CallResult {
    return Ok(row);
}

#[timeout(secs = 60)]
fn branches(row: u32) -> CallResult {
    if row > 5 {
        return Ok(1);
    }
    match row {
        0 => Ok(2),
        _ => Ok(3),
    }
}

#[timeout(secs = 60)]
async fn branches_too(row: Option<String>) -> CallResult {
    if let Some(row) = row {
        std::future::ready(()).await;
        Ok(size(row.len()))
    } else {
        Ok(5)
    }
}

#[timeout(secs = 60)]
fn loops() -> CallResult {
    loop {
        if let Ok(row) = "5".parse() {
            break Ok(row);
        }
    }
}

#[timeout(secs = 60)]
async fn locks(rows: Arc<std::sync::Mutex<u32>>) -> CallResult {
    Ok(*rows.lock().unwrap())
}

#[timeout(secs = 60)]
fn locks_on_a_worker(rows: Arc<std::sync::Mutex<u32>>) -> CallResult {
    Ok(*rows.lock().unwrap())
}

#[timeout(secs = 60)]
fn boxed_error(row: String) -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
    let row: u32 = row.parse()?;
    Ok(row)
}

#[timeout(secs = 60)]
fn maybe(row: Option<u32>) -> Option<u32> {
    row.map(|row| row + 1)
}

#[timeout(secs = 60)]
fn has_items() -> CallResult {
    const ONE: u32 = 1;
    fn one() -> u32 {
        ONE
    }
    Ok(one())
}

#[timeout(secs = 60)]
fn mistakes(row: u32, mut rows: Vec<u32>, unused: u8) -> CallResult {
    let row = row + 1;
    let mut other = 5;
    std::fs::remove_file("rows");
    if rows[0] == 1 {
        panic!("one");
    }
    Ok(row)
}

#[timeout(secs = 60, run = "inline")]
fn mistakes_inline(row: u32, mut rows: Vec<u32>, unused: u8) -> CallResult {
    let row = row + 1;
    let mut other = 5;
    std::fs::remove_file("rows");
    if rows[0] == 1 {
        panic!("one");
    }
    Ok(row)
}

#[timeout(secs = 60)]
async fn mistakes_polled(row: u32, mut rows: Vec<u32>, unused: u8) -> CallResult {
    let row = row + 1;
    let mut other = 5;
    std::fs::remove_file("rows");
    if rows[0] == 1 {
        panic!("one");
    }
    Ok(row)
}

#[timeout(secs = 60, run = "task")]
async fn mistakes_in_a_task(row: u32, mut rows: Vec<u32>, unused: u8) -> CallResult {
    let row = row + 1;
    let mut other = 5;
    std::fs::remove_file("rows");
    if rows[0] == 1 {
        panic!("one");
    }
    Ok(row)
}

#[timeout(secs = 60)]
fn mistakes_in_a_future(row: u32, mut rows: Vec<u32>, unused: u8) -> impl Future<Output = CallResult> + Send {
    let row = row + 1;
    async move {
        std::fs::remove_file("rows");
        if rows[0] == 1 {
            panic!("one");
        }
        Ok(row)
    }
}

#[timeout(secs = 60)]
fn diverges() -> CallResult {
    panic!("never")
}

#[timeout(secs = 60)]
async fn diverges_too() -> CallResult {
    loop {
        std::future::ready(()).await;
    }
}

#[timeout(secs = 60)]
async fn returns() -> CallResult {
    return Ok(1);
}

#[timeout(secs = 60)]
async fn returns_from_branches(row: u32) -> CallResult {
    if row > 5 {
        return Ok(1);
    } else {
        panic!("never")
    }
}

#[timeout(secs = 60)]
fn goes_on_after_its_end() -> CallResult {
    return Ok(1);
    Ok(2)
}

#[timeout(secs = 60, fallback = |_| Vec::new())]
fn names(r#type: u32, Shouting: u32, _unused: u32, x: u32) -> Vec<u32> {
    vec![r#type, Shouting, x]
}

#[timeout(secs = 60, run = "inline", fallback = |_| Vec::new())]
fn names_inline(r#type: u32, Shouting: u32, _unused: u32, x: u32) -> Vec<u32> {
    vec![r#type, Shouting, x]
}

#[timeout(secs = 60, fallback = |_| Vec::new())]
async fn names_polled(r#type: u32, Shouting: u32, _unused: u32, x: u32) -> Vec<u32> {
    vec![r#type, Shouting, x]
}

#[timeout(secs = 60, run = "inline")]
fn patterns(&(a, b): &(u32, u32), Table(c): Table, ref d: u32, e @ (_, f): (u32, u32)) -> CallResult {
    Ok(a + b + c + d + e.0 + f)
}

#[timeout(secs = 60, run = "inline")]
fn attributes(
    #[allow(unused_variables)] row: u32,
    #[cfg(any())] gone: Missing,
    #[cfg(not(any()))] here: u32,
    #[expect(unused_variables)] other: u32,
) -> CallResult {
    #![allow(clippy::needless_return)]
    return Ok(here);
}

#[timeout(secs = 60)]
fn prints() -> CallResult {
    //plain let cancel_token = CancelToken::new();
    println!("{cancel_token:?}");
    Ok(1)
}

#[timeout(secs = 60, token = stop, deadline = timeout_runtime::Deadline::never(), inherit = false)]
async fn prints_too(rows: Vec<u32>) -> CallResult {
    //plain let stop = CancelToken::new();
    println!("{stop:?} {rows:?}");
    Ok(1)
}

#[timeout(secs = 60)]
fn unit() -> Result<(), TimeoutError> {
    Ok(())
}

#[timeout(secs = 60)]
async fn unit_polled() -> Result<(), TimeoutError> {
    Ok(())
}

#[timeout(secs = 60, fallback = |_| ())]
async fn spelled_unit() -> () {}

#[timeout(secs = 60, fallback = |_| ())]
fn spelled_unit_on_a_worker() -> () {}

/// What it returns must be used.
#[must_use]
#[timeout(secs = 60)]
pub fn public(rows: Vec<u32>) -> CallResult {
    Ok(rows.len() as u32)
}

#[timeout(secs = 60)]
pub async fn undocumented(rows: Vec<u32>) -> CallResult {
    Ok(rows.len() as u32)
}

macro_rules! generated {
    ($name:ident($row:ident: $type:ty), $limit:expr) => {
        #[timeout(secs = $limit)]
        fn $name($row: $type, other: u32, _unused: u32) -> CallResult {
            Ok($row + other)
        }
    };
}

generated!(from_a_macro(row: u32), 60);

/// A type with methods.
#[derive(Debug, Clone)]
pub struct Table(u32);

impl Table {
    #[timeout(secs = 60)]
    pub async fn waits(&self, row: u32) -> CallResult {
        std::future::ready(()).await;
        Ok(self.0 + row)
    }

    #[timeout(secs = 60)]
    pub async fn changes(&mut self) -> CallResult {
        std::future::ready(()).await;
        self.0 += 1;
        Ok(1)
    }

    #[timeout(secs = 60, run = "inline")]
    pub fn looks(&self) -> CallResult {
        Ok(self.0)
    }

    #[timeout(secs = 60)]
    pub fn scan(self: Arc<Self>) -> CallResult {
        Ok(self.0)
    }

    #[timeout(secs = 60)]
    pub fn ends(self) -> CallResult {
        Ok(1)
    }

    #[timeout(secs = 60)]
    pub fn mut_ends(mut self) -> CallResult {
        self.0 += 1;
        Ok(self.0)
    }

    #[timeout(secs = 60)]
    pub fn new(row: u32) -> Result<Self, TimeoutError> {
        Ok(Self(row))
    }

    #[timeout(secs = 60)]
    pub async fn not_used(&self) -> CallResult {
        Ok(1)
    }
}

/// A trait whose implementations have limits.
pub trait Scan {
    /// Scans.
    fn scan(&self) -> CallResult;
    /// Waits.
    fn wait(&self) -> impl Future<Output = CallResult> + Send;
}

impl Scan for Table {
    #[timeout(secs = 60, run = "inline")]
    fn scan(&self) -> CallResult {
        Ok(self.0)
    }

    #[timeout(secs = 60)]
    async fn wait(&self) -> CallResult {
        std::future::ready(()).await;
        Ok(self.0)
    }
}

/// A trait of boxed futures.
#[async_trait::async_trait]
pub trait Boxed {
    /// Waits.
    async fn wait(&self, row: &str) -> CallResult;
}

#[async_trait::async_trait]
impl Boxed for Table {
    #[timeout(secs = 60)]
    async fn wait(&self, row: &str) -> CallResult {
        std::future::ready(()).await;
        Ok(self.0 + size(row.len()))
    }
}
