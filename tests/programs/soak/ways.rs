//! Every kind of call, as users write it.

use std::pin::Pin;
use std::sync::LazyLock;
use std::time::Duration;

use timeout_runtime::{CallContext, Timeout, timeout};

use super::course::{Way, Written};
use super::operation::{Job, OpResult};

#[timeout(name = "worker", limit = job.limit, upstream = job.upstream)]
fn worker(job: Job) -> OpResult {
    job.run(&cancel_token)
}

#[timeout(name = "worker", limit = job.limit, upstream = job.upstream, cancel = false)]
fn worker_never_cancelled(job: Job) -> OpResult {
    job.run(&cancel_token)
}

#[timeout(name = "inline", limit = job.limit, upstream = job.upstream, run = "inline")]
fn inline(job: &Job) -> OpResult {
    job.run(&cancel_token)
}

#[timeout(name = "async inline", limit = job.limit, upstream = job.upstream)]
async fn async_inline(job: Job) -> OpResult {
    job.run_async(&cancel_token).await
}

#[timeout(name = "task", limit = job.limit, upstream = job.upstream, run = "task")]
async fn task(job: Job) -> OpResult {
    job.run_async(&cancel_token).await
}

#[timeout(name = "task", limit = job.limit, upstream = job.upstream, cancel = false)]
async fn task_never_cancelled(job: Job) -> OpResult {
    job.run_async(&cancel_token).await
}

#[timeout(name = "async on worker", limit = job.limit, upstream = job.upstream, run = "worker")]
async fn async_on_worker(job: Job) -> OpResult {
    job.run_async(&cancel_token).await
}

#[timeout(name = "async on worker", limit = job.limit, upstream = job.upstream, run = "worker", cancel = false)]
async fn async_on_worker_never_cancelled(job: Job) -> OpResult {
    job.run_async(&cancel_token).await
}

fn policy(way: Way, limit: Duration) -> Timeout {
    static POLICIES: LazyLock<[Timeout; Way::EVERY.len()]> = LazyLock::new(|| {
        Way::EVERY.map(|way| Timeout::new(way.name(), Duration::MAX).expect("a limit"))
    });

    let policy = POLICIES[way as usize].clone();
    policy.with_limit(limit).expect("a limit")
}

/// A policy has no upstream tokens, so the context provides them.
fn context(job: &Job) -> CallContext {
    let context = CallContext::current();
    match &job.upstream {
        Some(upstream) => context.with_token(upstream),
        None => context,
    }
}

/// Makes a sync call.
pub(crate) fn call(job: Job, written: Written) -> OpResult {
    let policy = policy(job.way, job.limit);
    match (job.way, written) {
        (Way::Worker, Written::Attribute) => worker(job),
        (Way::Worker, Written::NeverCancelled) => worker_never_cancelled(job),
        (Way::Worker, Written::Policy) => {
            context(&job).run(|| policy.call(move |token| job.run(&token)))
        }
        (_, Written::Policy) => context(&job).run(|| policy.inline().call(|token| job.run(&token))),
        _ => inline(&job),
    }
}

pub(crate) type Call = Pin<Box<dyn Future<Output = OpResult> + Send>>;

/// Starts an async call.
pub(crate) fn start(job: Job, written: Written) -> Call {
    let policy = policy(job.way, job.limit);
    let context = context(&job);
    match (job.way, written) {
        (Way::Task, Written::Attribute) => Box::pin(task(job)),
        (Way::Task, Written::NeverCancelled) => Box::pin(task_never_cancelled(job)),
        (Way::Task, Written::Policy) => {
            let op = async move |token| job.run_async(&token).await;
            Box::pin(context.scope(policy.as_task().call_async(op)))
        }
        (Way::AsyncOnWorker, Written::Attribute) => Box::pin(async_on_worker(job)),
        (Way::AsyncOnWorker, Written::NeverCancelled) => {
            Box::pin(async_on_worker_never_cancelled(job))
        }
        (Way::AsyncOnWorker, Written::Policy) => {
            let op = async move |token| job.run_async(&token).await;
            Box::pin(context.scope(policy.on_worker().call_async(op)))
        }
        (_, Written::Policy) => {
            let op = async move |token| job.run_async(&token).await;
            Box::pin(context.scope(policy.call_async(op)))
        }
        _ => Box::pin(async_inline(job)),
    }
}
