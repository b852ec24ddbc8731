//! Sockets that many threads use, with one token or a token each.

use crate::concurrent::must_return;
use crate::random::Random;
use crate::socket_pairs::{Connected, bytes, for_each_socket, token_error};
use crate::support;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use support::SOON;
use timeout_runtime::net::CancellableStream;
use timeout_runtime::{CancelToken, TimeoutError};

#[test]
fn one_cancellation_ends_a_thousand_reads() {
    const CONNECTIONS: usize = 50;
    const READS: usize = 20;

    let token = CancelToken::new();
    let all_read = Arc::new(Barrier::new(CONNECTIONS * READS + 1));
    let (sender, ended) = mpsc::channel();
    let mut silent = Vec::new();
    for _ in 0..CONNECTIONS {
        let (stream, peer) = TcpStream::pair();
        silent.push(peer);
        let stream = Arc::new(CancellableStream::new(stream, &token));
        for _ in 0..READS {
            let (stream, sender) = (Arc::clone(&stream), sender.clone());
            let all_read = Arc::clone(&all_read);
            thread::spawn(move || {
                all_read.wait();
                sender.send((&*stream).read(&mut [0; 8])).unwrap();
            });
        }
    }
    all_read.wait();
    token.cancel();
    for _ in 0..CONNECTIONS * READS {
        let read = ended.recv_timeout(SOON).expect("the read ends");
        assert!(token_error(read).is_cancelled());
    }
}

for_each_socket! {
    /// If the first clone to go set the timeouts back, a read of the others could block for ever.
    fn a_clone_that_is_dropped_leaves_the_reads_of_the_others_in_steps<S>() {
        let (token, (stream, mut peer)) = (CancelToken::new(), S::pair());
        let handle = stream.other_handle();
        let mut waits = CancellableStream::new(stream, &token);
        let mut goes = waits.try_clone().unwrap();
        peer.write_all(b"ab").unwrap();
        waits.read_exact(&mut [0]).unwrap();
        goes.read_exact(&mut [0]).unwrap();
        let read = thread::spawn(move || waits.read(&mut [0; 8]));
        drop(goes);
        if cfg!(unix) {
            assert!(handle.timeouts()[0].is_some());
        }
        token.cancel();
        assert!(token_error(must_return(|| read.join().unwrap())).is_cancelled());
        assert_eq!(handle.timeouts(), [None, None]);
    }
}

for_each_socket! {
    /// One value reads and another one writes, and each has a handle of the socket.
    fn a_value_for_each_direction_changes_nothing_for_the_other<S>() {
        let (token, (stream, mut peer)) = (CancelToken::new(), S::pair());
        let mut reads = CancellableStream::new(stream.other_handle(), &token);
        let started = Arc::new(Barrier::new(2));
        let read = {
            let started = Arc::clone(&started);
            thread::spawn(move || {
                reads.read_exact(&mut [0]).unwrap();
                started.wait();
                reads.read(&mut [0; 8])
            })
        };
        peer.write_all(b"a").unwrap();
        started.wait();
        for _ in 0..20 {
            let mut writes = CancellableStream::new(stream.other_handle(), &CancelToken::new());
            writes.write_all(b"b").unwrap();
        }
        peer.read_exact(&mut [0; 20]).unwrap();
        token.cancel();
        assert!(token_error(must_return(|| read.join().unwrap())).is_cancelled());
        assert_eq!(stream.timeouts(), [None, None]);
    }
}

/// Calls `transfer` with one token after the other. Each is cancelled at a random moment.
fn with_short_tokens<S: Connected>(
    mut stream: CancellableStream<S>,
    seed: u64,
    mut transfer: impl FnMut(&mut CancellableStream<S>) -> io::Result<bool>,
) {
    let (tokens, cancels) = mpsc::channel::<(CancelToken, Duration)>();
    let canceller = thread::spawn(move || {
        for (token, after) in cancels {
            thread::sleep(after);
            token.cancel();
        }
    });
    let mut random = Random::new(seed);
    loop {
        let token = CancelToken::new();
        stream.set_token(&token);
        tokens.send((token, random.micros(0..500))).unwrap();
        let ended = loop {
            match transfer(&mut stream) {
                Ok(true) => {}
                Ok(false) => break true,
                Err(error) => {
                    error.downcast::<TimeoutError>().expect("the token's error");
                    break false;
                }
            }
        };
        if ended {
            break;
        }
    }
    drop(tokens);
    canceller.join().unwrap();
}

for_each_socket! {
    fn cancellations_lose_no_byte_and_repeat_none<S>() {
        const BYTES: usize = 4 << 20;

        for seed in 0..4 {
            let (from, to) = S::pair();
            let [from, to] = [from, to].map(|s| CancellableStream::new(s, &CancelToken::new()));
            let sent = bytes(BYTES);
            thread::scope(|scope| {
                let sent = &sent;
                scope.spawn(move || {
                    let (mut written, mut random) = (0, Random::new(seed));
                    with_short_tokens(from, 100 + seed, |stream| {
                        let most = 1 + usize::try_from(random.below(100_000)).unwrap();
                        let end = (written + most).min(BYTES);
                        written += stream.write(&sent[written..end])?;
                        Ok(written < BYTES)
                    });
                });
                let (mut received, mut random) = (Vec::new(), Random::new(seed));
                with_short_tokens(to, 200 + seed, |stream| {
                    let most = 1 + usize::try_from(random.below(100_000)).unwrap();
                    let mut buffer = vec![0; most];
                    let count = stream.read(&mut buffer)?;
                    received.extend_from_slice(&buffer[..count]);
                    Ok(count > 0)
                });
                assert!(received == *sent, "seed {seed}: {} bytes", received.len());
            });
        }
    }
}
