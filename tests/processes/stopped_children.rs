//! Feature `process`: a cancellation ends a child with all of its group, and leaves no process.
#![cfg(unix)]

use crate::children::{
    Signal, cancelled_when_ready, children, ids, is_running, kill, sh, state, stopped,
};
use crate::concurrent::{must_return, run_concurrently};
use crate::own_process::in_own_process;
use crate::support;
use std::io::Read;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::Barrier;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use support::{EVERY_WAY, Gate, SOON, Way, assert_timed_out, eventually, limit, short};
use timeout_runtime::integrations::process::{Child, Error, Process};
use timeout_runtime::{CancelToken, Outcome, TimeoutError};

/// Longer than any test runs.
const AGES: Duration = Duration::from_secs(3600);

const NO_GRACE: Duration = Duration::ZERO;

/// Runs `script` until it creates the file `$READY`. Returns what it has written to stdout.
#[track_caller]
fn stopped_output(script: &'static str, grace: Duration) -> Vec<u8> {
    let output = must_return(move || {
        cancelled_when_ready(script, |command, token| {
            Process::new(command, token).grace(grace).output()
        })
    });
    stopped(output).0
}

/// Starts `command`, and reads its first line.
fn started(
    command: &mut Command,
    token: &CancelToken,
    grace: Duration,
) -> (Child, String, ChildStdout) {
    command.stdout(Stdio::piped());
    let process = Process::new(command, token).grace(grace);
    let mut child = process.spawn().unwrap();
    let mut stdout = child.stdout.take().expect("a pipe");
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') {
        let mut byte = [0];
        stdout.read_exact(&mut byte).expect("a line");
        line.extend(byte);
    }
    (child, String::from_utf8(line).unwrap(), stdout)
}

/// On a busy machine, a killed child can outlive the call.
#[track_caller]
fn assert_reaped(id: u32) {
    eventually("the child is reaped", || state(id).is_none());
}

#[track_caller]
fn assert_gone(id: u32) {
    eventually("the process ends", || !is_running(id));
}

// Fails if the signal goes to the child alone.
#[test]
fn a_cancellation_kills_the_child_and_all_processes_of_its_group() {
    let stdout = stopped_output(
        "sleep 600 & echo $$ $!; touch \"$READY\"; sleep 600; true",
        NO_GRACE,
    );
    let &[child, grandchild] = &ids(&stdout)[..] else {
        panic!("{stdout:?}");
    };
    assert_reaped(child);
    assert_gone(grandchild);
}

// Fails if a child that has exited is reaped while its output is read: the group is lost then.
#[test]
fn a_process_of_the_group_that_outlives_the_child_and_holds_its_pipe_is_killed() {
    // The process has another parent once the child has exited.
    let script = "sh -c 'while [ \"$(ps -o ppid= -p $$)\" -eq $0 ]; do :; done; sleep 0.05; \
                  touch \"$READY\"; exec sleep 600' $$ & echo $$ $!";
    let stdout = stopped_output(script, NO_GRACE);
    let &[child, grandchild] = &ids(&stdout)[..] else {
        panic!("{stdout:?}");
    };
    assert_reaped(child);
    assert_gone(grandchild);
}

// Fails if the call waits for the end of the output after the kill.
#[test]
#[cfg(target_os = "linux")]
fn a_process_in_another_session_that_holds_the_pipe_holds_no_caller() {
    let stdout = stopped_output(
        "setsid sleep 600 & echo $$ $!; \
         while [ \"$(ps -o sid= -p $!)\" -ne $! ]; do :; done; touch \"$READY\"; sleep 600",
        NO_GRACE,
    );
    let &[child, daemon] = &ids(&stdout)[..] else {
        panic!("{stdout:?}");
    };
    assert_reaped(child);
    assert!(is_running(daemon), "it is not in the group");
    kill(daemon);
}

#[test]
fn a_child_that_closes_its_pipes_is_killed() {
    let (sender, child) = channel();
    let output = must_return(move || {
        let script = "exec >&- 2>&-; touch \"$READY\"; sleep 600; true";
        cancelled_when_ready(script, |command, token| {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let child = Process::new(command, token).spawn()?;
            sender.send(child.id()).unwrap();
            child.wait_with_output()
        })
    });
    stopped(output);
    assert_reaped(child.recv().unwrap());
}

// Fails if the kill comes at the cancellation, or never.
#[test]
fn a_child_that_ignores_sigterm_is_killed_after_the_grace() {
    const GRACE: Duration = Duration::from_millis(200);
    let token = CancelToken::new();
    let script = "trap '' TERM; echo ready; while :; do sleep 600; done";
    let (mut child, ..) = started(&mut sh(script), &token, GRACE);
    let start = Instant::now();
    token.cancel();
    let child = must_return(move || {
        stopped(child.wait());
        child
    });
    assert!(start.elapsed() >= GRACE, "{:?}", start.elapsed());
    assert_reaped(child.id());
}

// Fails if the grace is waited for to its end, or the output after the cancellation is lost.
#[test]
fn a_child_can_clean_up_within_the_grace() {
    let stdout = stopped_output(
        "trap 'echo cleaned up; exit' TERM; touch \"$READY\"; while :; do sleep 0.01; done",
        AGES,
    );
    assert_eq!(stdout, b"cleaned up\n");
}

// Fails if the rest of the group is left, or is killed only after the grace.
#[test]
fn when_the_child_exits_within_the_grace_the_rest_of_its_group_is_killed() {
    let stdout = stopped_output(
        "sh -c 'trap \"\" TERM; exec sleep 600' & echo $!; trap exit TERM; sleep 0.1; \
         touch \"$READY\"; while :; do sleep 0.01; done",
        AGES,
    );
    assert_gone(ids(&stdout)[0]);
}

#[test]
fn without_grace_a_child_is_killed_at_the_cancellation() {
    let stdout = stopped_output(
        "trap 'echo cleaned up; exit' TERM; echo ready; touch \"$READY\"; \
         while :; do sleep 0.01; done",
        NO_GRACE,
    );
    assert_eq!(stdout, b"ready\n");
}

#[test]
fn a_child_that_had_exited_before_the_cancellation_is_reaped() {
    let token = CancelToken::new();
    let mut child = Process::new(&mut sh("exit 7"), &token).spawn().unwrap();
    eventually("the child exits", || state(child.id()) == Some('Z'));
    token.cancel();
    stopped(child.wait());
    assert_eq!(state(child.id()), None);
}

// Fails if a success is reported for a child that was killed, or with a part of its output.
#[test]
fn a_child_that_exits_at_the_cancellation_has_all_its_output_or_is_stopped() {
    const PRINTED: usize = 100_000;
    in_own_process(|| {
        for round in 0..200 {
            let token = CancelToken::new();
            let cancels = token.clone();
            let canceller = thread::spawn(move || {
                thread::sleep(Duration::from_micros(40 * round));
                cancels.cancel();
            });
            let mut command = sh("head -c 100000 /dev/zero; exit 7");
            match Process::new(&mut command, &token).output() {
                Ok(output) => {
                    assert_eq!(output.status.code(), Some(7));
                    assert_eq!(output.stdout.len(), PRINTED);
                }
                Err(Error::Stopped { stdout, .. }) => assert!(stdout.len() <= PRINTED),
                Err(error) => panic!("{error:?}"),
            }
            canceller.join().unwrap();
        }
        eventually("all children are reaped", || children().is_empty());
    });
}

#[test]
fn fifty_concurrent_children_leave_no_process() {
    const CHILDREN: usize = 50;
    in_own_process(|| {
        let (token, are_running) = (CancelToken::new(), Barrier::new(CHILDREN + 1));
        let (sender, grandchildren) = channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                run_concurrently(CHILDREN, CHILDREN, |place| {
                    let grace = Duration::from_millis(20 * (place as u64 % 3));
                    let script = "trap '' TERM; sleep 600 & echo $!; sleep 600; true";
                    let (mut child, line, _stdout) =
                        started(&mut sh(script), &token.child(), grace);
                    sender.send(line).unwrap();
                    are_running.wait();
                    stopped(child.wait());
                    assert_reaped(child.id());
                });
            });
            are_running.wait();
            token.cancel();
        });
        drop(sender);
        let grandchildren: Vec<_> = grandchildren
            .iter()
            .flat_map(|line| ids(line.as_bytes()))
            .collect();
        assert_eq!(grandchildren.len(), CHILDREN);
        grandchildren.into_iter().for_each(assert_gone);
        eventually("all children are reaped", || children().is_empty());
    });
}

#[test]
fn a_dropped_child_is_killed_and_reaped() {
    let token = CancelToken::new();
    let script = "sleep 600 & echo $!; sleep 600; true";
    let (child, line, _stdout) = started(&mut sh(script), &token, NO_GRACE);
    let id = child.id();
    drop(child);
    assert_reaped(id);
    assert_gone(ids(line.as_bytes())[0]);
    assert!(!token.is_cancelled());
}

// Fails if the timer does not take the steps after the first one.
#[test]
fn a_dropped_child_has_its_grace_and_is_reaped_by_the_timer() {
    let clean = "trap 'touch \"$CLEANED\"; exit' TERM; echo ready; while :; do sleep 0.01; done";
    let mut command = sh(clean);
    let cleaned = Signal::new(&mut command, "CLEANED");
    let (child, ..) = started(&mut command, &CancelToken::new(), AGES);
    let id = child.id();
    drop(child);
    cleaned.wait();
    assert_reaped(id);

    let mut stubborn = sh("trap '' TERM; echo ready; while :; do sleep 600; done");
    let grace = Duration::from_millis(50);
    let (child, ..) = started(&mut stubborn, &CancelToken::new(), grace);
    let id = child.id();
    drop(child);
    assert_reaped(id);
}

// Fails if only a thread that waits for the child kills it.
#[test]
fn a_blocked_read_ends_at_the_cancellation_and_wait_reports_it() {
    let token = CancelToken::new();
    let script = "echo first; sleep 600; echo second";
    let (mut child, line, mut stdout) = started(&mut sh(script), &token, NO_GRACE);
    assert_eq!(line, "first\n");
    let reader = thread::spawn(move || {
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).map(|_| rest)
    });
    token.cancel();
    let rest = must_return(move || reader.join().unwrap());
    assert_eq!(rest.unwrap(), "", "the output is truncated");
    stopped(child.wait());
}

// Fails if only a thread that waits for the child kills or reaps it.
#[test]
fn the_child_of_an_operation_that_is_stuck_elsewhere_ends_with_its_call() {
    for way in [Way::SyncWorker, Way::AsyncWorker] {
        let (gate, (sender, child)) = (Gate::new(), channel());
        let stuck = gate.clone();
        let outcome = way.run(&limit("stopped_children::stuck", short()), move |token| {
            let mut command = sh("sleep 600; true");
            let child = Process::new(&mut command, &token).spawn()?;
            sender.send(child.id()).unwrap();
            stuck.wait();
            Ok::<_, Error>(())
        });
        assert_timed_out(way, &outcome);
        let id = child.recv_timeout(SOON).unwrap();
        assert_reaped(id);
        gate.open();
    }
}

#[test]
fn the_deadline_of_a_call_kills_its_child_wherever_it_runs() {
    for way in EVERY_WAY {
        let (sender, ended) = channel();
        let outcome = way.run(&limit("stopped_children::limit", short()), move |token| {
            let mut command = sh("sleep 600 & sleep 600; true");
            let child = Process::new(&mut command, &token).spawn()?;
            let id = child.id();
            let output = child.wait_with_output();
            sender.send((id, output)).unwrap();
            Err::<(), _>(Error::from(token.check().unwrap_err()))
        });
        assert_timed_out(way, &outcome);
        let (id, output) = ended.recv_timeout(SOON).unwrap();
        assert_eq!(state(id), None, "{way:?}");
        assert!(
            matches!(&output, Err(Error::Stopped { error, .. }) if error.is_timed_out()),
            "{way:?}: {output:?}"
        );
    }
}

#[test]
fn an_upstream_token_kills_the_child_of_a_call() {
    let shutdown = CancelToken::new();
    let context = timeout_runtime::CallContext::detached().with_token(&shutdown);
    let outcome: Outcome<(), TimeoutError> = context.run(|| {
        limit("stopped_children::upstream", support::LONG).outcome(move |token| {
            let (mut child, ..) = started(&mut sh("echo ready; sleep 600; true"), &token, NO_GRACE);
            shutdown.cancel();
            stopped(child.wait());
            token.check()
        })
    });
    assert!(matches!(outcome, Outcome::Cancelled(_)), "{outcome:?}");
}

#[test]
fn a_child_that_exits_by_itself_leaves_its_other_processes_running() {
    let token = CancelToken::new();
    let mut command = sh("sleep 600 >/dev/null 2>&1 & echo $!");
    let output = Process::new(&mut command, &token).output().unwrap();
    token.cancel();
    let id = ids(&output.stdout)[0];
    assert!(is_running(id));
    kill(id);
}
