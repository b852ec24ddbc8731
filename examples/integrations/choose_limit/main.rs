//! Chooses a limit from measured durations.
//!
//! The present limit cuts too many calls, and the durations of cut calls are unknown. The example
//! therefore measures calls under a generous limit, recommends a limit, and tries it.
//!
//! ```text
//! cargo run -p timeout-integration-examples --example choose_limit -- quotes.svg
//! ```
//!
//! The argument is the path of the plot. The default is a file beside the program.

use std::env;
use std::fs::{self, File};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use timeout_runtime::integrations::latency::{Advice, Latency};
use timeout_runtime::{EventKind, TimeoutError, add_listener};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tower::BoxError;

use plot::Line;
use shop::Shop;

mod plot;
mod shop;

/// The number of calls under each limit.
const CALLS: u32 = 2000;

/// The number of concurrent calls.
const CONCURRENT: usize = 16;

/// The limits of the calls, in milliseconds.
const PRESENT: u64 = 40;
const GENEROUS: u64 = 1000;

/// The rates of timeouts in the table, as one in so many calls.
const RATES: [NonZeroU64; 3] = [rate(10), CHOSEN, rate(1000)];

/// The rate that the recommended limit is for.
const CHOSEN: NonZeroU64 = rate(100);

const fn rate(one_in: u64) -> NonZeroU64 {
    NonZeroU64::new(one_in).expect("not zero")
}

/// The measurements of the calls under one limit.
struct Evidence {
    /// The recommended limit for each of `RATES`.
    advice: [Advice; RATES.len()],
    /// The durations of the successful calls, in ascending order.
    succeeded: Vec<Duration>,
}

impl Evidence {
    /// Makes `CALLS` calls, with numbers from `first` on.
    async fn gather(shop: &Shop, first: u32, limit: u64) -> Result<Self, BoxError> {
        let latency = Latency::new();
        let (sender, times) = mpsc::channel();
        let _times = add_listener(move |event| {
            if let EventKind::Succeeded = event.kind {
                let _ = sender.send(event.elapsed);
            }
        });

        let places = Arc::new(Semaphore::new(CONCURRENT));
        let mut calls = JoinSet::new();
        for number in first..first + CALLS {
            let place = Arc::clone(&places).acquire_owned().await?;
            let shop = shop.clone();
            calls.spawn(async move {
                let result = shop.quote(number, limit).await;
                drop(place);
                result
            });
        }
        for result in calls.join_all().await {
            match result {
                Err(error) if !is_timed_out(&error) => return Err(error),
                _ => {}
            }
        }
        let mut succeeded: Vec<_> = times.try_iter().collect();
        succeeded.sort_unstable();
        // Dropping `latency` ends the recording: the next calls have another limit.
        let advice = RATES.map(|rate| latency.advise(rate).remove("quote"));
        let advice = advice.map(|advice| advice.expect("there were calls"));
        Ok(Self { advice, succeeded })
    }

    /// Returns the recommended limit for the chosen rate.
    fn chosen(&self) -> &Advice {
        let [_, chosen, _] = &self.advice;
        chosen
    }

    /// Prints a row of the table.
    fn print_row(&self, limit: &str) {
        let Advice { calls, cut, .. } = self.chosen();
        print!("{limit:<20}{calls:>6}{cut:>6}");
        for advice in &self.advice {
            let limit =
                whole_millis(advice).map_or("longer".to_owned(), |limit| format!("{limit} ms"));
            let mark = if advice.is_thin { "*" } else { " " };
            print!("{limit:>12}{mark}");
        }
        println!();
    }

    /// Returns limits in milliseconds, with the percentage of calls that each one would cut.
    fn cut_by_limit(&self) -> Vec<(f64, f64)> {
        let mut percent = 100.0;
        let mut curve = vec![];
        for (within, time) in (1..).zip(&self.succeeded) {
            percent = f64::from(CALLS - within) * 100.0 / f64::from(CALLS);
            curve.push((in_millis(*time), percent));
        }
        // Any shorter limit would also cut the calls that the present limit cut.
        if let Some(limit) = self.chosen().present {
            curve.push((in_millis(limit), percent));
        }
        curve
    }
}

fn in_millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn is_timed_out(error: &BoxError) -> bool {
    error.downcast_ref().is_some_and(TimeoutError::is_timed_out)
}

/// Returns the recommended limit, rounded up to whole milliseconds.
fn whole_millis(advice: &Advice) -> Option<u64> {
    let millis = advice.limit?.as_micros().div_ceil(1000);
    u64::try_from(millis).ok()
}

async fn run() -> Result<(), BoxError> {
    let path = match env::args_os().nth(1) {
        Some(path) => PathBuf::from(path),
        None => env::current_exe()?.with_extension("svg"),
    };
    let cannot_write = |error| format!("cannot write {}: {error}", path.display());
    // Checks the path before the calls, which take seconds. Keeps the content of an existing file.
    let file = File::options().create(true).append(true).open(&path);
    drop(file.map_err(cannot_write)?);

    let shop = Shop::open().await?;
    println!("                                   recommended, to cut no more than");
    println!("limit                calls   cut     1 in 10     1 in 100    1 in 1000");
    let present = Evidence::gather(&shop, 0, PRESENT).await?;
    present.print_row(&format!("{PRESENT} ms, present"));
    let generous = Evidence::gather(&shop, CALLS, GENEROUS).await?;
    generous.print_row(&format!("{GENEROUS} ms, generous"));
    println!("* thin evidence: fewer than ten calls lie beyond\n");

    let advice = generous.chosen();
    let recommended = whole_millis(advice).ok_or_else(|| advice.to_string())?;
    let trial = Evidence::gather(&shop, 2 * CALLS, recommended).await?;
    let trial = trial.chosen();
    println!(
        "trial: {recommended} ms cut {} of {} calls",
        trial.cut, trial.calls
    );

    let present = present.chosen();
    let lines = [
        Line::present(
            PRESENT,
            format!(
                "present: {PRESENT} ms, cut {} of {}",
                present.cut, present.calls
            ),
        ),
        Line::recommended(
            recommended,
            format!("recommended: {recommended} ms, 1 in {CHOSEN}"),
        ),
    ];
    let title = format!("How many of {CALLS} quotes a limit would cut");
    let svg = plot::draw(title, generous.cut_by_limit(), lines)?;
    fs::write(&path, svg).map_err(cannot_write)?;
    println!("plot: {}", path.display());
    Ok(())
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("choose_limit: {error}");
            ExitCode::FAILURE
        }
    }
}
