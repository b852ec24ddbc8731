//! Floods the runtime with calls of every kind, and checks that no call is lost, reported twice or
//! abandoned for good: `soak --seed 7`.
//!
//! The program runs phases of ten parts. After each part it waits until no call is in progress and
//! takes stock: every call has one outcome, which its caller received; every operation and every
//! value is accounted for; and no memory, thread or file is kept.

// Fails, for example, if a dropped call emits no event, if a result without a caller is not
// reported, if a late event is emitted twice, or if every success counts. Fails if a late value is
// forgotten, if an ended operation stays in the list of abandoned ones, if a token stays linked to
// its parent, or if the timer keeps disarmed alarms.

mod caller;
mod course;
mod ledger;
mod messages;
mod operation;
mod phase;
#[path = "../../support/random.rs"]
mod random;
mod stock;
mod ways;

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use lexopt::{Arg, Parser, ValueExt};
use timeout_runtime::add_listener;

use course::{Course, Way};
use phase::{Callers, Phase};

struct Options {
    seed: u64,
    /// Number of calls in the phase with calls of every kind.
    calls: usize,
    /// Number of calls of each caller in the phase with far limits.
    far_calls: usize,
    /// Number of messages sent close to the limit of their receiver.
    messages: u32,
    /// Greatest run time of the program.
    longest: Duration,
}

impl Options {
    fn read() -> Result<Self, lexopt::Error> {
        let mut options = Self {
            seed: std::process::id().into(),
            calls: 1_000_000,
            far_calls: 200_000,
            messages: 2_000,
            longest: Duration::MAX,
        };
        let mut arguments = Parser::from_env();
        while let Some(argument) = arguments.next()? {
            match argument {
                Arg::Long("seed") => options.seed = arguments.value()?.parse()?,
                Arg::Long("calls") => options.calls = arguments.value()?.parse()?,
                Arg::Long("far-calls") => options.far_calls = arguments.value()?.parse()?,
                Arg::Long("messages") => options.messages = arguments.value()?.parse()?,
                Arg::Long("max-secs") => {
                    options.longest = Duration::from_secs(arguments.value()?.parse()?);
                }
                other => return Err(other.unexpected()),
            }
        }
        Ok(options)
    }
}

/// Makes the allocator keep no freed memory for each thread, which would look like a leak. The
/// allocator reads this variable when a process starts.
const TUNABLES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0");

/// Runs this program again in a child process with these allocator settings. Fails if the child
/// takes longer than `longest`.
fn again(longest: Duration) -> io::Result<ExitCode> {
    let (name, value) = TUNABLES;
    let mut arguments = env::args_os();
    let program = arguments.next().unwrap_or_default();
    let mut child = Command::new(program)
        .args(arguments)
        .env(name, value)
        .spawn()?;
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if start.elapsed() > longest {
            child.kill()?;
            child.wait()?;
            eprintln!("soak: still running after {longest:?}");
            return Ok(ExitCode::FAILURE);
        }
        thread::sleep(Duration::from_millis(100));
    };
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

fn main() -> io::Result<ExitCode> {
    let Options {
        seed,
        calls,
        far_calls,
        messages,
        longest,
    } = match Options::read() {
        Ok(options) => options,
        Err(error) => {
            eprintln!(
                "soak: {error}; options: --seed, --calls, --far-calls, --messages and --max-secs"
            );
            return Ok(ExitCode::from(64));
        }
    };
    if env::var_os(TUNABLES.0).is_none() {
        return again(longest);
    }
    operation::count_panics();
    ledger::watch_for_stops();
    let callers = Callers::new();
    println!("soak --seed {seed} --calls {calls} --far-calls {far_calls} --messages {messages}");
    let listener = add_listener(ledger::record);

    Phase {
        name: "calls of every kind",
        callers: 32,
        calls: calls.div_ceil(2 * 32 * phase::PARTS),
        draw: |random, is_async, _| Course::any(random, is_async),
        beside: false,
    }
    .run(&callers, seed);
    Phase {
        name: "short calls with far limits",
        callers: 8,
        calls: far_calls.div_ceil(phase::PARTS),
        draw: |_, is_async, call| {
            let way = if is_async { Way::Task } else { Way::Worker };
            Course::far(way, call)
        },
        beside: true,
    }
    .run(&callers, seed);

    // The ledger counts calls from the first one on, and knows nothing of these.
    drop(listener);
    messages::run(seed, messages);

    ledger::print();
    operation::print();
    println!("longest stop of the process: {:?}", ledger::longest_stop());
    Ok(match ledger::breaches() {
        0 => {
            println!("nothing lost, nothing doubled, nothing still running");
            ExitCode::SUCCESS
        }
        breaches => {
            println!("BREACHES: {breaches}, the first of them above; seed {seed}");
            ExitCode::FAILURE
        }
    })
}
