//! Tests the output and the exit codes of these examples.
//!
//! `cargo test -p timeout-integration-examples` builds the examples first. With `--test examples`
//! it does not.

use std::fs;
#[cfg(unix)]
use std::io::{self, BufRead, BufReader, Read, Write};
#[cfg(unix)]
use std::net::TcpStream;
use std::path::Path;
#[cfg(unix)]
use std::process::{Command, Stdio};

use plot::Plot;
use running::{Printed, assert_event, example, run, run_plain};
#[cfg(unix)]
use timeout_runtime::timeout;

#[path = "../checks/plot.rs"]
mod plot;
#[path = "../checks/running.rs"]
mod running;

/// Returns the lines of `printed` without their milliseconds, and the milliseconds.
fn without_millis(printed: &str) -> (Vec<String>, Vec<u64>) {
    let mut times = Vec::new();
    let lines = printed.lines().map(|line| {
        let (before, after) = line.split_once(" ms left").unwrap_or((line, ""));
        let (place, number) = before.rsplit_once(' ').unwrap_or((before, ""));
        match number.parse() {
            Ok(time) => {
                times.push(time);
                format!("{place} .. ms left{after}")
            }
            Err(_) => line.to_owned(),
        }
    });
    (lines.collect(), times)
}

#[test]
fn child_is_killed_only_if_it_is_stuck_at_the_deadline() {
    let Printed { stdout, code, .. } = run_plain("child");
    assert_eq!(
        stdout,
        "quick: the child exited by itself: true\nquick: done in time\n\
         careful: the child exited by itself: true\ncareful: too little time for an hour of work\n\
         stuck: timed out\n"
    );
    assert_eq!(code, Some(0));
}

#[test]
fn http_deadline_passes_the_remaining_time_to_each_service() {
    let Printed { stdout, code, .. } = run_plain("http_deadline");
    let (lines, times) = without_millis(&stdout);
    assert_eq!(
        lines,
        [
            "a client with ten seconds:",
            "  shop: .. ms left",
            "  orders: .. ms left",
            "  stock: .. ms left",
            "  response: 7 pieces",
            "a client with three seconds:",
            "  shop: .. ms left",
            "  orders: .. ms left",
            "  stock: .. ms left",
            "  timed out: true",
            "  stock was cancelled",
        ]
    );
    // The first two services take 20 ms each.
    for (limit, left) in [(10_000, &times[..3]), (3_000, &times[3..])] {
        assert!(left[0] <= limit, "{left:?}");
        assert!(
            left.is_sorted_by(|before, after| *before >= after + 20 - 1),
            "{left:?}"
        );
    }
    assert_eq!(code, Some(0));
}

#[test]
fn grpc_deadline_applies_to_client_and_server() {
    let Printed { stdout, code, .. } = run_plain("grpc_deadline");
    let (lines, times) = without_millis(&stdout);
    assert_eq!(
        lines,
        [
            "a client with ten seconds:",
            "  server: .. ms left for `bolt`",
            "  response: 7 pieces",
            "a server with a limit of two seconds:",
            "  server: .. ms left for `nail`",
            "  status: DeadlineExceeded",
            "a client with one second:",
            "  server: .. ms left for `nail`",
            "  timed out: true",
            "a client whose deadline has passed:",
            "  the request was not sent: its caller's deadline had passed",
        ]
    );
    assert!(
        times[0] <= 2000 && times[1] <= 2000 && times[2] <= 1000,
        "{times:?}"
    );
    assert_eq!(code, Some(0));
}

#[test]
fn traced_shows_the_span_across_threads() {
    let Printed { stdout, code, .. } = run_plain("traced");
    let expected = [
        (
            "INFO timeout-",
            "traced: looks up the price sku=\"bolt\"",
            "",
        ),
        (
            "DEBUG main",
            "timeout_runtime: succeeded name=\"price\" call=1 elapsed=",
            " limit=20s worker=timeout-",
        ),
        ("INFO main", "traced: makes an offer price=", ""),
        ("INFO main", "traced: has made an offer", ""),
        (
            "DEBUG main",
            "timeout_runtime: succeeded name=\"offer\" call=2 elapsed=",
            " limit=20s",
        ),
        (
            "WARN main",
            "timeout_runtime: timed_out name=\"audit\" call=3 elapsed=",
            " limit=1s worker=timeout-",
        ),
        ("INFO timeout-", "traced: has audited", ""),
        (
            "WARN timeout-",
            "timeout_runtime: abandoned_succeeded name=\"audit\" call=3 elapsed=",
            " limit=1s worker=timeout-",
        ),
    ];
    let mut lines = stdout.lines();
    for (place, start, end) in expected {
        let line = lines.next().expect("a line is printed");
        let (before, event) = line
            .split_once(" order{id=7}: ")
            .unwrap_or_else(|| panic!("not inside the span: {line:?}"));
        let before = before.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(before.starts_with(place), "{line:?} is not on {place:?}");
        assert_event(Some(event), start, end);
    }
    assert_eq!(lines.next(), None);
    assert_eq!(code, Some(0));
}

#[test]
fn metrics_are_what_prometheus_scrapes() {
    let Printed { stdout, code, .. } = run_plain("metrics");
    let (during, after) = stdout
        .split_once("after its end:\n")
        .expect("there are two scrapes");
    for line in [
        "# TYPE timeout_calls_total counter",
        "# HELP timeout_calls_total Calls that have ended.",
        "timeout_calls_total{name=\"price\",status=\"succeeded\"} 2",
        "timeout_calls_total{name=\"price\",status=\"failed\"} 1",
        "timeout_calls_total{name=\"audit\",status=\"timed_out\"} 1",
        "# TYPE timeout_call_duration_seconds histogram",
        "timeout_call_duration_seconds_bucket{name=\"audit\",status=\"timed_out\",le=\"0.01\"} 0",
        "timeout_call_duration_seconds_count{name=\"audit\",status=\"timed_out\"} 1",
        "# TYPE timeout_abandoned_operations gauge",
    ] {
        for scrape in [during, after] {
            assert!(
                scrape.lines().any(|other| other == line),
                "{line}: {scrape}"
            );
        }
    }
    assert!(during.contains("timeout_abandoned_operations{name=\"audit\"} 1\n"));
    assert!(!during.contains("timeout_late_endings_total{"));
    assert!(after.contains("timeout_abandoned_operations{name=\"audit\"} 0\n"));
    let late = "timeout_late_endings_total{name=\"audit\",status=\"abandoned_succeeded\"} 1\n";
    assert!(after.contains(late), "{after}");
    assert_eq!(code, Some(0));
}

/// Sends a request, and keeps its connection open.
#[cfg(unix)]
fn send_request(address: &str, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it is sent");
    stream
}

#[cfg(unix)]
fn signal(name: &str, process: u32) {
    let kill = Command::new("kill")
        .args(["-s", name, &process.to_string()])
        .status();
    assert!(kill.expect("`kill` runs").success());
}

/// Starts the server, stops it during two requests, and returns the responses, the lines that it
/// printed since then, and its exit code.
#[cfg(unix)]
#[timeout(name = "stop_during_requests", secs = 60)]
fn stop_during_requests() -> io::Result<([String; 2], Vec<String>, Option<i32>)> {
    let mut command = example("shutdown", Path::new("."));
    let mut server = command.stdout(Stdio::piped()).spawn()?;
    let process = server.id();
    let _stop = cancel_token.on_cancel(move || signal("KILL", process));
    let mut lines = BufReader::new(server.stdout.take().expect("it is piped")).lines();
    let mut line = || lines.next().expect("there is a line");

    let first = line()?;
    let address = first.strip_prefix("listening on ").expect("its address");
    let mut report = send_request(address, "/report");
    assert_eq!(line()?, "`report` is running");
    let mut feed = send_request(address, "/feed");
    assert_eq!(line()?, "`feed` is running");

    signal("TERM", process);
    let mut responses = [String::new(), String::new()];
    report.read_to_string(&mut responses[0])?;
    feed.read_to_string(&mut responses[1])?;
    let lines = lines.collect::<io::Result<_>>()?;
    Ok((responses, lines, server.wait()?.code()))
}

/// The line of an event without the number of its call.
#[cfg(unix)]
fn without_number(event: &str) -> String {
    let (name, rest) = event.split_once(" #").expect("an event with a number");
    let rest = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
    format!("{name}{rest}")
}

// Fails if the layer has no token: the requests would continue for minutes.
#[cfg(unix)]
#[test]
fn shutdown_cancels_requests_and_leaves_nothing_running() {
    let (responses, mut lines, code) = stop_during_requests().expect("the server stops");
    for response in responses {
        let (head, body) = response.split_once("\r\n\r\n").expect("a response");
        assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
        assert_eq!(body, "");
    }
    assert_eq!(lines.remove(0), "the server stops");
    assert_eq!(lines.pop().as_deref(), Some("operations left: 0"));
    // The requests end at the same time, in any order. The threads that start them choose the
    // numbers of the calls.
    let mut lines: Vec<_> = lines.iter().map(|line| without_number(line)).collect();
    lines.sort();
    let [feed, abandoned, report] = &lines[..] else {
        panic!("{lines:?}");
    };
    let on_worker = " (limit 600s) on timeout-";
    assert_event(
        Some(abandoned),
        "`report` abandoned, stopped after ",
        on_worker,
    );
    assert_event(Some(report), "`report` was cancelled after ", on_worker);
    assert_event(Some(feed), "`feed` was cancelled after ", " (limit 600s)");
    assert_eq!(code, Some(0));
}

/// Splits a row into its cells, which are separated by at least two spaces.
fn cells(row: &str) -> Vec<&str> {
    let cells = row.split("  ").map(str::trim);
    cells.filter(|cell| !cell.is_empty()).collect()
}

fn number(text: &str) -> u32 {
    let number = text.parse();
    number.unwrap_or_else(|_| panic!("{text:?} is not a number"))
}

// Fails if a limit, a text, the curve or an axis is elsewhere in the plot, or if the advice is for
// another rate than the one in the table.
#[test]
fn choose_limit_recommends_the_limit_in_its_plot() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("choose_limit.svg");
    let mut command = example("choose_limit", Path::new("."));
    command.arg(&path);
    let Printed {
        stdout,
        stderr,
        code,
    } = run(command);
    assert_eq!((stderr.as_str(), code), ("", Some(0)), "{stdout}");

    let lines: Vec<_> = stdout.lines().collect();
    let &[_, head, present, generous, thin, "", trial, plot] = &lines[..] else {
        panic!("{stdout}");
    };
    assert_eq!(
        cells(head),
        ["limit", "calls", "cut", "1 in 10", "1 in 100", "1 in 1000"]
    );
    assert_eq!(thin, "* thin evidence: fewer than ten calls lie beyond");
    assert_eq!(plot, format!("plot: {}", path.display()));

    // The service takes longer for at least 50 of the requests, and never responds to two of them.
    let &["40 ms, present", "2000", by_present, _, "longer", "longer*"] = &cells(present)[..]
    else {
        panic!("{present}");
    };
    assert!(number(by_present) >= 50, "{present}");
    let &["1000 ms, generous", "2000", cut, ten, hundred, thousand] = &cells(generous)[..] else {
        panic!("{generous}");
    };
    assert!(number(cut) >= 2 && thousand.ends_with('*'), "{generous}");
    let ten = number(ten.trim_end_matches(" ms"));
    let recommended = number(hundred.trim_end_matches(" ms"));
    assert!(
        (90..=1000).contains(&recommended) && ten <= recommended,
        "{generous}"
    );
    let cut = trial
        .strip_prefix(&format!("trial: {recommended} ms cut "))
        .and_then(|rest| rest.strip_suffix(" of 2000 calls"))
        .unwrap_or_else(|| panic!("{trial}"));
    assert!((1..number(by_present)).contains(&number(cut)), "{trial}");

    let plot = Plot::parse(&fs::read_to_string(path).expect("the plot can be read"));
    plot.assert_limit(40, &format!("present: 40 ms, cut {by_present} of 2000"));
    plot.assert_limit(
        recommended,
        &format!("recommended: {recommended} ms, 1 in 100"),
    );
    plot.assert_cuts(recommended, 1.0);
}

// Fails if the file is opened after the measurement.
#[test]
fn choose_limit_reports_an_unwritable_path_first() {
    let mut command = example("choose_limit", Path::new("."));
    command.arg("no-such-directory/plot.svg");
    let Printed {
        stdout,
        stderr,
        code,
    } = run(command);
    assert_eq!(stdout, "");
    let reason = stderr.strip_prefix("choose_limit: cannot write no-such-directory/plot.svg: ");
    assert!(reason.is_some_and(|reason| reason.trim() != ""), "{stderr}");
    assert_eq!(code, Some(1));
}
