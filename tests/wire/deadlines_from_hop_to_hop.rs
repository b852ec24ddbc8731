//! A chain of services never sends a longer deadline than the one that the first service received.

use crate::{support, wire};
use std::convert::Infallible;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use proptest::prelude::{ProptestConfig, Strategy};
use proptest::{collection, prop_assert, prop_assert_eq, proptest, sample};
use support::{paused_runtime, runtime};
use timeout_runtime::integrations::tower::{ClientLayer, DeadlineHeader, ServerLayer};
use tokio::runtime::Runtime;
use tower::{BoxError, Layer, ServiceExt, service_fn};
use wire::{Served, client, meaning, name, request, response_to, serve, text, uri, written};

const LONGEST: Duration = Duration::from_secs(400 * 366 * 86_400);

fn plain() -> DeadlineHeader {
    DeadlineHeader::Millis(HeaderName::from_static("x-time-left"))
}

/// The header that a service sends in `to` after it received `encoded` in `from` and worked for
/// `taken`; `None` if the deadline passed meanwhile.
async fn sent_on(
    (from, encoded): (&DeadlineHeader, HeaderValue),
    taken: Duration,
    to: &DeadlineHeader,
) -> Option<HeaderValue> {
    let service = service_fn(async |_: Request<()>| {
        if taken > Duration::ZERO {
            tokio::time::advance(taken).await;
        }
        let name = name(to);
        let network = service_fn(move |sent: Request<()>| {
            std::future::ready(Ok::<_, Infallible>(sent.headers()[&name].clone()))
        });
        let client = ClientLayer::new(to.clone()).layer(network);
        let sent = client.oneshot(Request::new(())).await;
        let mut response = Response::new(String::new());
        if let Ok(sent) = sent {
            response.extensions_mut().insert(sent);
        }
        Ok::<_, Infallible>(response)
    });
    let mut asked = Request::new(());
    asked.headers_mut().insert(name(from), encoded);
    let response = ServerLayer::new(from.clone()).layer(service).oneshot(asked);
    let mut response = response.await.unwrap_or_else(|never| match never {});
    response.extensions_mut().remove()
}

/// The deadline that each service of a chain receives, with its unit. The first one receives
/// `first`; each service takes the given time and sends the given header.
fn hops(
    header: &DeadlineHeader,
    first: Duration,
    taken: &[(Duration, DeadlineHeader)],
) -> Vec<(Duration, Duration)> {
    paused_runtime().block_on(async {
        let read = |value: &HeaderValue| meaning(value.to_str().expect("ASCII"));
        let (mut header, mut value) = (header, written(header, first).1);
        let mut encoded = vec![read(&value)];
        for (taken, next) in taken {
            match sent_on((header, value), *taken, next).await {
                None => break,
                Some(sent) => (header, value) = (next, sent),
            }
            encoded.push(read(&value));
        }
        encoded
    })
}

/// Durations of every order of magnitude.
fn duration() -> impl Strategy<Value = Duration> {
    let nanos = u64::try_from(LONGEST.as_nanos()).expect("fits into u64");
    (0..=nanos, 0..64_u32).prop_map(|(nanos, shift)| Duration::from_nanos(nanos >> shift))
}

fn header() -> impl Strategy<Value = DeadlineHeader> {
    sample::select(vec![DeadlineHeader::Grpc, plain()])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1000, ..ProptestConfig::default() })]

    // Fails if a service sends a unit more than is left, or rounds up the time that it has read.
    #[test]
    fn a_forwarded_deadline_does_not_grow(
        header in header(),
        first in duration(),
        taken in collection::vec(duration(), 3),
    ) {
        let all: Vec<_> = taken.iter().map(|taken| (*taken, header.clone())).collect();
        let encoded = hops(&header, first, &all);
        for (hop, taken) in encoded.windows(2).zip(&taken) {
            let [(before, _), (after, unit)] = hop else { unreachable!() };
            prop_assert!(after <= before, "{:?}", encoded);
            // A hop does not shorten the remaining time either.
            let left = before.saturating_sub(*taken);
            prop_assert!(left <= *after && *after < left + *unit, "{:?}", encoded);
        }
        // A chain stops early only where the deadline has passed.
        if let (Some((encoded, _)), Some(taken)) = (encoded.last(), taken.get(encoded.len() - 1)) {
            prop_assert!(taken >= encoded, "{:?} of {:?}", taken, encoded);
        }
    }

    #[test]
    fn a_deadline_is_forwarded_unchanged_by_services_that_take_no_time(header in header(), first in duration()) {
        let encoded = hops(&header, first, &[0; 3].map(|_| (Duration::ZERO, header.clone())));
        let is_same = encoded.iter().all(|(next, _)| *next == encoded[0].0);
        prop_assert!(is_same, "{:?}", encoded);
        let hops = if encoded[0].0.is_zero() { 1 } else { 4 };
        prop_assert_eq!(encoded.len(), hops);
    }

    /// Where the next header has a coarser unit, the time is rounded up to that unit, once.
    #[test]
    fn mixed_headers_round_up_to_the_coarsest_unit_once(
        start in header(),
        first in duration(),
        taken in collection::vec((duration(), header()), 5),
    ) {
        let encoded = hops(&start, first, &taken);
        for (hop, (taken, _)) in encoded.windows(2).zip(&taken) {
            let [(before, _), (after, unit)] = hop else { unreachable!() };
            let left = before.saturating_sub(*taken);
            prop_assert!(left <= *after && *after < left + *unit, "{:?}", encoded);
        }
        let coarsest = encoded.iter().map(|(_, unit)| unit.as_nanos()).max().expect("the first");
        let most = encoded[0].0.as_nanos().div_ceil(coarsest) * coarsest;
        prop_assert!(encoded.iter().all(|(next, _)| next.as_nanos() <= most), "{:?}", encoded);
    }
}

/// The header's value as the server received it.
fn received(header: &DeadlineHeader, asked: &Request<Incoming>) -> String {
    let mut values = asked.headers().get_all(name(header)).iter();
    let value = values.next().expect("the header is present");
    assert!(values.next().is_none(), "the header is sent once");
    value.to_str().expect("ASCII").to_owned()
}

/// A chain of three services. Each response holds the header that its service received, followed by
/// the response of the next service.
fn three(runtime: &Runtime, header: &DeadlineHeader) -> std::net::SocketAddr {
    let layer = ServerLayer::new(header.clone());
    let encoded = header.clone();
    let last = service_fn(move |asked| {
        let encoded = received(&encoded, &asked);
        async move { Served::Ok(text(encoded)) }
    });
    let mut address = serve(runtime, &layer, last);
    for _ in 0..2 {
        let (client, next, encoded) = (client(header.clone()), uri(address), header.clone());
        let hop = service_fn(move |asked| {
            let (client, encoded) = (client.clone(), received(&encoded, &asked));
            let asked = request(&next);
            async move {
                let response = client.oneshot(asked).await.map_err(Into::into);
                let response = response.unwrap_or_else(|error: BoxError| panic!("{error}"));
                let after = response.into_body().collect().await.expect("a body");
                let after = String::from_utf8(after.to_bytes().to_vec()).expect("ASCII");
                Served::Ok(text(format!("{encoded} {after}")))
            }
        });
        address = serve(runtime, &layer, hop);
    }
    address
}

#[test]
fn a_forwarded_deadline_does_not_grow_over_real_connections() {
    let runtime = runtime();
    for (header, values) in [
        (
            DeadlineHeader::Grpc,
            &[
                "99999999u",
                "600S",
                "600000m",
                "10M",
                "00000010M",
                "1H",
                "3513600H",
            ][..],
        ),
        (
            DeadlineHeader::Envoy,
            &["60000", "100000001", "12648960000000"],
        ),
    ] {
        let address = three(&runtime, &header);
        for value in values {
            let response = response_to(address, format!("{}: {value}\r\n", name(&header)));
            let (_, body) = response.split_once("\r\n\r\n").expect("a body");
            let encoded: Vec<Duration> =
                body.split(' ').map(|encoded| meaning(encoded).0).collect();
            assert_eq!(encoded.len(), 3, "{response}");
            assert_eq!(encoded[0], meaning(value).0, "{response}");
            assert!(
                encoded.is_sorted_by(|before, after| before >= after),
                "{response}"
            );
            assert!(encoded[2] > encoded[0] / 2, "{response}");
        }
    }
}
