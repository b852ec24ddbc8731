use timeout_driver_examples::reqwest::{fetch as fetch_async, fetch_blocking};
use timeout_driver_examples::servers::http::Http;
use timeout_driver_examples::ureq::{checking_agent, fetch};
use tokio::runtime::Runtime;
use ureq::Agent;

use crate::support::{
    ends_at_a_cancellation, ends_at_its_limit, interrupts_nothing_else, leaves_nothing_running,
};

#[test]
fn ureq_ends_at_the_limit() {
    let server = Http::start();
    for agent in [Agent::new_with_defaults(), checking_agent()] {
        ends_at_its_limit(
            |limit| fetch(agent.clone(), server.url("never"), limit),
            || server.waiting() > 0,
        );
    }
    leaves_nothing_running("ureq");
}

#[test]
fn ureq_ends_at_a_cancellation_if_its_sockets_check_the_token() {
    let (server, agent) = (Http::start(), checking_agent());
    ends_at_a_cancellation(
        |limit| fetch(agent.clone(), server.url("never"), limit),
        || server.waiting() > 0,
    );
}

#[test]
fn no_later_request_of_ureq_is_interrupted() {
    let server = Http::start();
    for agent in [Agent::new_with_defaults(), checking_agent()] {
        interrupts_nothing_else(
            |limit| {
                Ok(fetch(agent.clone(), server.url("slow"), limit)?
                    .parse()
                    .unwrap())
            },
            || {
                let mut response = agent.get(server.url("slow")).call().unwrap();
                assert_eq!(response.body_mut().read_to_string().unwrap(), "42");
            },
        );
    }
}

#[test]
fn reqwest_ends_at_the_limit() {
    let (server, runtime) = (Http::start(), Runtime::new().unwrap());
    let (client, url) = (reqwest::Client::new(), server.url("never"));
    ends_at_its_limit(
        |limit| runtime.block_on(fetch_async(&client, &url, limit)),
        || server.waiting() > 0,
    );
}

#[test]
fn reqwest_ends_at_a_cancellation() {
    let (server, runtime) = (Http::start(), Runtime::new().unwrap());
    let (client, url) = (reqwest::Client::new(), server.url("never"));
    ends_at_a_cancellation(
        |limit| runtime.block_on(fetch_async(&client, &url, limit)),
        || server.waiting() > 0,
    );
}

#[test]
fn no_later_request_of_reqwest_is_interrupted() {
    let (server, runtime) = (Http::start(), Runtime::new().unwrap());
    let (client, url) = (reqwest::Client::new(), server.url("slow"));
    interrupts_nothing_else(
        |limit| {
            Ok(runtime
                .block_on(fetch_async(&client, &url, limit))?
                .parse()
                .unwrap())
        },
        || {
            let response = runtime.block_on(client.get(&url).send()).unwrap();
            assert_eq!(runtime.block_on(response.text()).unwrap(), "42");
        },
    );
}

#[test]
fn blocking_reqwest_ends_at_the_limit() {
    let (server, client) = (Http::start(), reqwest::blocking::Client::new());
    ends_at_its_limit(
        |limit| fetch_blocking(client.clone(), server.url("never"), limit),
        || server.waiting() > 0,
    );
    leaves_nothing_running("reqwest_blocking");
}

#[test]
fn no_later_request_of_blocking_reqwest_is_interrupted() {
    let (server, client) = (Http::start(), reqwest::blocking::Client::new());
    interrupts_nothing_else(
        |limit| {
            Ok(fetch_blocking(client.clone(), server.url("slow"), limit)?
                .parse()
                .unwrap())
        },
        || {
            let response = client.get(server.url("slow")).send().unwrap();
            assert_eq!(response.text().unwrap(), "42");
        },
    );
}
