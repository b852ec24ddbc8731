//! Compares the cost of calls with other ways to limit the time of an operation.
//!
//! `benches/README.md` describes how to run it and how to read its table.

#[path = "peers/annotated.rs"]
mod annotated;
#[path = "peers/async_calls.rs"]
mod async_calls;
#[path = "peers/blocking.rs"]
mod blocking;
#[path = "peers/callers.rs"]
mod callers;
#[path = "peers/chains.rs"]
mod chains;
#[path = "peers/chart.rs"]
mod chart;
#[path = "peers/child.rs"]
mod child;
#[path = "peers/fan_out.rs"]
mod fan_out;
#[path = "peers/finding.rs"]
mod finding;
#[path = "peers/group.rs"]
mod group;
#[path = "peers/java.rs"]
mod java;
#[path = "peers/lateness.rs"]
mod lateness;
#[path = "peers/load.rs"]
mod load;
#[path = "peers/measured.rs"]
mod measured;
#[path = "peers/meter.rs"]
mod meter;
#[path = "peers/offload.rs"]
mod offload;
#[path = "peers/operations.rs"]
mod operations;
#[path = "peers/options.rs"]
mod options;
#[path = "peers/partner.rs"]
mod partner;
#[path = "peers/pending.rs"]
mod pending;
#[path = "peers/process_status.rs"]
mod process_status;
#[path = "peers/shapes.rs"]
mod shapes;
#[path = "peers/sync_calls.rs"]
mod sync_calls;
#[path = "peers/table.rs"]
mod table;
#[path = "peers/targets.rs"]
mod targets;
#[path = "peers/tokens.rs"]
mod tokens;

use std::process::ExitCode;

use finding::Finding;
use options::Options;

/// Every group, in the order of the table.
const GROUPS: &[fn(&Options) -> Vec<Finding>] = &[
    sync_calls::one_caller,
    sync_calls::without_spinning,
    sync_calls::two_callers,
    sync_calls::eight_callers,
    sync_calls::many_callers,
    sync_calls::overheads,
    blocking::throughput,
    blocking::workers,
    lateness::sync,
    load::sparse,
    load::beside_busy_threads,
    async_calls::on_current_thread,
    async_calls::on_multi_thread,
    async_calls::sleeping,
    shapes::on_one_thread,
    shapes::on_several_threads,
    pending::all,
    async_calls::polling,
    lateness::awaited,
    tokens::reads,
    tokens::made,
    fan_out::cancelling,
    chains::all,
];

fn main() -> ExitCode {
    let options = match Options::read() {
        Ok(Some(options)) => options,
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    if let Some((job, words)) = &options.job {
        match job.as_str() {
            "rows" => measure(&options)
                .iter()
                .for_each(|finding| println!("{}", finding.write())),
            "busy" => load::keep_busy(),
            "pending" => pending::hold(words),
            "chain" => chains::run(words),
            _ => {
                eprintln!("unknown job: {job}");
                return ExitCode::from(2);
            }
        }
        return ExitCode::SUCCESS;
    }
    if !targets::ROWS.iter().any(|row| options.wants(row.name)) {
        eprintln!("no row matches `--only`");
        return ExitCode::from(2);
    }
    let findings = measure(&options);
    let missed = table::print(&options, &findings);
    if let Some(Err(error)) = options
        .chart
        .as_ref()
        .map(|path| chart::write(path, &findings))
    {
        eprintln!("cannot write the chart: {error}");
        return ExitCode::FAILURE;
    }
    if missed.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("missed: {}", missed.join(", "));
    if options.gate {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

fn measure(options: &Options) -> Vec<Finding> {
    GROUPS.iter().flat_map(|group| group(options)).collect()
}
