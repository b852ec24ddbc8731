//! Reads and writes of sockets: a cancellation ends them, and no byte is lost or made up.

use crate::concurrent::must_return;
use crate::socket_pairs::{Connected, bytes, for_each_socket, token_error, token_until};
use crate::support;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use support::{EVERY_WAY, Gate, assert_timed_out, limit, short, short_limit};
use timeout_runtime::net::CancellableStream;
use timeout_runtime::{CancelToken, Cause, Deadline, TimeoutError};

/// Larger than the buffers of a connection.
const LARGE: usize = 32 << 20;

/// Writes until there is an error. Returns the number of bytes, and the error.
fn fill<S: Connected>(stream: &mut CancellableStream<S>, bytes: &[u8]) -> (usize, io::Error) {
    let mut written = 0;
    loop {
        assert!(written < bytes.len(), "the buffers hold all bytes");
        match stream.write(&bytes[written..]) {
            Ok(count) => written += count,
            Err(error) => return (written, error),
        }
    }
}

for_each_socket! {
    fn bytes_arrive_in_both_directions<S>() {
        let (token, (here, there)) = (CancelToken::new(), S::pair());
        let [here, there] = [here, there].map(|stream| CancellableStream::new(stream, &token));
        let sent = bytes(LARGE);
        thread::scope(|scope| {
            for (from, to) in [(&here, &there), (&there, &here)] {
                let sent = &sent;
                scope.spawn(move || { from }.write_all(sent).unwrap());
                scope.spawn(move || {
                    let mut received = vec![0; LARGE];
                    { to }.read_exact(&mut received).unwrap();
                    assert!(received == *sent);
                });
            }
        });
        drop(here);
        assert_eq!((&there).read(&mut [0; 8]).unwrap(), 0);
    }
}

for_each_socket! {
    fn a_read_that_is_cancelled_leaves_the_connection_as_it_was<S>() {
        let (token, (stream, mut peer)) = (CancelToken::new(), S::pair());
        let mut stream = CancellableStream::new(stream, &token);
        let started = Gate::new();
        let reads = {
            let started = started.clone();
            thread::spawn(move || {
                started.open();
                (stream.read(&mut [0; 8]), stream)
            })
        };
        started.wait();
        token.cancel_with("shutdown");
        let (read, mut stream) = must_return(|| reads.join().unwrap());
        assert_eq!(token_error(read), token.check().unwrap_err());

        stream.set_token(&CancelToken::new());
        peer.write_all(b"next").unwrap();
        let mut received = [0; 4];
        stream.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"next");
        stream.write_all(b"back").unwrap();
        peer.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"back");
    }
}

#[test]
fn a_read_ends_at_the_deadline_of_the_call() {
    for way in EVERY_WAY {
        let (stream, _silent) = TcpStream::pair();
        let outcome = way.run(&limit("sockets::read", short()), move |token| {
            let read = CancellableStream::new(stream, &token).read(&mut [0; 8]);
            let error = token_error(read);
            assert_eq!(error.cause(), Cause::TimedOut, "{way:?}");
            Err::<(), TimeoutError>(error)
        });
        assert_timed_out(way, &outcome);
    }
}

for_each_socket! {
    fn with_a_cancelled_token_nothing_is_read_or_written<S>() {
        let (token, (stream, mut peer)) = (CancelToken::new(), S::pair());
        let mut stream = CancellableStream::new(stream, &token);
        peer.write_all(b"waits").unwrap();
        token.cancel();
        assert!(token_error(stream.read(&mut [0; 8])).is_cancelled());
        assert!(token_error(stream.write(b"lost")).is_cancelled());

        stream.set_token(&CancelToken::new());
        let mut received = [0; 5];
        stream.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"waits");
        drop(stream);
        assert_eq!(peer.read(&mut received).unwrap(), 0);
    }
}

for_each_socket! {
    /// The peer closes the connection because of the same cancellation.
    fn a_stream_that_ends_after_the_cancellation_is_not_whole<S>() {
        for _ in 0..200 {
            let (token, (stream, mut peer)) = (CancelToken::new(), S::pair());
            let mut stream = CancellableStream::new(stream, &token);
            let peer = thread::spawn(move || {
                peer.write_all(b"half").unwrap();
                token.cancel();
            });
            let mut received = Vec::new();
            let read = stream.read_to_end(&mut received);
            assert!(token_error(read).is_cancelled());
            assert!(b"half".starts_with(&received), "{received:?}");
            peer.join().unwrap();
        }
    }
}

for_each_socket! {
    /// The peer has the same deadline, and is a little earlier than the timer here.
    fn a_stream_that_ends_after_the_deadline_is_not_whole<S>() {
        for _ in 0..100 {
            let (stream, mut peer) = S::pair();
            let deadline = Deadline::after(Duration::from_millis(2));
            // A child does not read the clock: it waits for the timer.
            let token = token_until(deadline).child();
            let mut stream = CancellableStream::new(stream, &token);
            let peer = thread::spawn(move || {
                peer.write_all(b"half").unwrap();
                while !deadline.has_passed() {}
            });
            let read = stream.read_to_end(&mut Vec::new());
            assert!(token_error(read).is_deadline_exceeded());
            peer.join().unwrap();
        }
    }
}

for_each_socket! {
    /// A peer that closes the connection with bytes unread resets it.
    fn a_reset_after_the_cancellation_is_the_error_of_the_token<S>() {
        for _ in 0..200 {
            let (token, (stream, peer)) = (CancelToken::new(), S::pair());
            let mut stream = CancellableStream::new(stream, &token);
            stream.write_all(b"unread").unwrap();
            let peer = thread::spawn(move || {
                token.cancel();
                drop(peer);
            });
            assert!(token_error(stream.read(&mut [0; 8])).is_cancelled());
            peer.join().unwrap();
        }
    }
}

for_each_socket! {
    fn without_a_cancellation_the_stream_has_its_own_end_and_errors<S>() {
        let (stream, mut peer) = S::pair();
        let mut stream = CancellableStream::new(stream, &CancelToken::new());
        peer.write_all(b"half").unwrap();
        drop(peer);
        let error = stream.read_exact(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
        let (_, error) = fill(&mut stream, &bytes(LARGE));
        assert!(error.downcast::<TimeoutError>().is_err());
    }
}

for_each_socket! {
    /// Each byte that a write has counted arrives, and no other.
    fn a_write_to_a_peer_that_does_not_read_ends_at_the_deadline<S>() {
        let (stream, mut peer) = S::pair();
        let token = token_until(Deadline::after(short_limit()));
        let mut stream = CancellableStream::new(stream, &token);
        let sent = bytes(LARGE);
        let (written, error) = fill(&mut stream, &sent);
        assert!(token_error::<()>(Err(error)).is_deadline_exceeded());
        drop(stream);
        let mut received = Vec::new();
        peer.read_to_end(&mut received).unwrap();
        assert!(received == sent[..written]);
    }
}

for_each_socket! {
    fn a_write_to_a_peer_that_stops_reading_ends_with_the_cancellation<S>() {
        let (token, (stream, mut peer)) = (CancelToken::new(), S::pair());
        let mut stream = CancellableStream::new(stream, &token);
        let writes = thread::spawn(move || stream.write_all(&bytes(LARGE)));
        peer.read_exact(&mut [0; 1000]).unwrap();
        token.cancel();
        let write = must_return(|| writes.join().unwrap());
        assert!(token_error(write).is_cancelled());
    }
}

for_each_socket! {
    fn a_timeout_of_the_stream_ends_the_wait_with_the_error_of_the_stream<S>() {
        let (stream, _silent) = S::pair();
        stream.set_timeouts(Some(Duration::from_millis(60)));
        let timeout = stream.timeouts()[0].unwrap();
        let mut stream = CancellableStream::new(stream, &CancelToken::new());
        must_return(move || {
            for _ in 0..2 {
                let start = Instant::now();
                let error = stream.read(&mut [0; 8]).unwrap_err();
                assert!(start.elapsed() >= timeout);
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                let error = fill(&mut stream, &bytes(LARGE)).1;
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
            }
        });
    }
}

for_each_socket! {
    fn the_timeouts_are_as_before_after_the_last_wait<S>() {
        for timeout in [None, Some(Duration::from_secs(50))] {
            let (stream, mut peer) = S::pair();
            stream.set_timeouts(timeout);
            let (other, before) = (stream.other_handle(), stream.timeouts());
            let exchange = |stream: &mut CancellableStream<S>, peer: &mut S| {
                stream.write_all(b"ping").unwrap();
                peer.read_exact(&mut [0; 4]).unwrap();
                peer.write_all(b"pong").unwrap();
                stream.read_exact(&mut [0; 4]).unwrap();
            };
            let token = CancelToken::new();
            let mut first = CancellableStream::new(stream, &token);
            exchange(&mut first, &mut peer);
            let mut second = first.try_clone().unwrap();
            exchange(&mut second, &mut peer);
            drop(first);
            exchange(&mut second, &mut peer);
            let stream = second.into_inner();
            assert_eq!((stream.timeouts(), other.timeouts()), (before, before));

            exchange(&mut CancellableStream::new(stream, &token), &mut peer);
            assert_eq!(other.timeouts(), before);
        }
    }
}

for_each_socket! {
    /// A stream in a pool is wrapped for one call.
    fn a_borrowed_stream_is_as_before_after_the_call<S>() {
        let (stream, mut peer) = S::pair();
        let before = stream.timeouts();
        let token = CancelToken::new();
        {
            let mut wrapped = CancellableStream::new(&stream, &token);
            peer.write_all(b"ping").unwrap();
            wrapped.read_exact(&mut [0; 4]).unwrap();
            token.cancel();
            assert!(token_error(wrapped.read(&mut [0; 4])).is_cancelled());
        }
        assert_eq!(stream.timeouts(), before);
    }
}

for_each_socket! {
    fn a_non_blocking_stream_waits_and_stays_non_blocking<S>() {
        let (token, (stream, mut peer)) = (CancelToken::new(), S::pair());
        stream.set_mode(true);
        let mut stream = CancellableStream::new(stream, &token);
        let started = Gate::new();
        let waits = {
            let started = started.clone();
            thread::spawn(move || {
                started.open();
                stream.read_exact(&mut [0; 4]).unwrap();
                let (written, error) = fill(&mut stream, &bytes(LARGE));
                (written, error, stream)
            })
        };
        started.wait();
        peer.write_all(b"ping").unwrap();
        peer.read_exact(&mut [0; 1000]).unwrap();
        token.cancel();
        let (written, error, stream) = must_return(|| waits.join().unwrap());
        assert!(written >= 1000);
        assert!(token_error::<()>(Err(error)).is_cancelled());
        if cfg!(unix) {
            let mut stream = stream.into_inner();
            let error = stream.read(&mut [0; 8]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
        }
    }
}

/// A wrapped stream can be shut down, and its reads end.
#[test]
fn a_stream_that_is_shut_down_elsewhere_ends() {
    let (stream, _silent) = TcpStream::pair();
    let mut stream = CancellableStream::new(stream, &CancelToken::new());
    stream.get_ref().shutdown(Shutdown::Read).unwrap();
    assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
}
