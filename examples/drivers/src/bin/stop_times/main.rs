//! Measures how soon after its deadline each recipe has stopped, and how often a cancelled query
//! harms the next one on its connection.
//!
//! ```text
//! cargo run --manifest-path examples/drivers/Cargo.toml --bin stop_times
//! ```
//!
//! `--runs 100` stops each recipe a hundred times, and `--races 1000` makes so many pairs of
//! queries.

mod races;
mod rows;

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use lexopt::prelude::*;
use timeout_runtime::{CallContext, Deadline, workers};

/// The time that the work has to start before the deadline, at first.
const LEAD: Duration = Duration::from_millis(200);

/// The pause between two looks at a server, which needs the processor too.
const PAUSE: Duration = Duration::from_micros(200);

/// The time after which a wait fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// Prints how soon one recipe stops. `call` never ends on its own, and `is_busy` tells whether the
/// server works for it.
fn measure(runs: usize, name: &str, call: impl Fn() + Sync, mut is_busy: impl FnMut() -> bool) {
    let (mut returned, mut idle) = (Vec::new(), Vec::new());
    let mut lead = LEAD;
    while returned.len() < runs {
        let deadline = Instant::now() + lead;
        thread::scope(|scope| {
            let caller = scope.spawn(|| {
                let context = CallContext::detached().with_deadline(Deadline::at(deadline));
                context.run(&call);
                assert_eq!(
                    workers::drain(PATIENCE),
                    0,
                    "{name}: the operation does not end"
                );
                deadline.elapsed()
            });
            let mut was_busy = false;
            let mut is_before = true;
            let is_idle_after = loop {
                let is_busy = is_busy();
                let after = deadline.elapsed();
                was_busy |= is_busy && is_before;
                is_before = Instant::now() < deadline;
                if !is_busy && !is_before {
                    break after;
                }
                assert!(after < PATIENCE, "{name}: the server does not stop");
                thread::sleep(PAUSE);
            };
            let has_returned_after = caller.join().expect("the caller returns");
            if was_busy {
                idle.push(is_idle_after);
                returned.push(has_returned_after);
            } else {
                // The machine is busy: the work had not started before the deadline.
                lead = (2 * lead).min(PATIENCE);
            }
        });
    }
    println!(
        "{name:<42} {} {}",
        summary(&mut returned),
        summary(&mut idle)
    );
}

/// The median and the maximum.
fn summary(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let (median, max) = (times[times.len() / 2], times[times.len() - 1]);
    format!("{:8.1} {:8.1}", millis(median), millis(max))
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut runs, mut pairs) = (30, 300);
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("runs") => runs = arguments.value()?.parse()?,
            Long("races") => pairs = arguments.value()?.parse()?,
            argument => return Err(argument.unexpected().into()),
        }
    }
    println!("milliseconds after the deadline, median and maximum of {runs} runs");
    println!("{:<42} {:>17} {:>17}", "", "has returned", "server is idle");
    rows::measure_all(runs.max(1));
    races::count_all(pairs);
    Ok(())
}
