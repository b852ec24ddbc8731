//! Functions of every shape, for rustdoc: it must show the signatures that are written here.
//!
//! Each attribute has a line of its own; without these lines the program has plain functions.

// The functions are never called, and some exist only for their signatures.
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic
)]

use std::collections::HashMap;
use std::error::Error;
use std::fmt::{Debug, Display};
use std::future::Future;
use std::hash::Hash;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

// The plain functions see the same traits.
use timeout_runtime as _;

/// Functions that run on a worker.
pub mod on_worker {
    use super::*;

    /// Counts the words of a *text*.
    ///
    /// # Errors
    ///
    /// When time runs out.
    #[timeout_runtime::timeout(secs = 60)]
    pub fn words(text: String, least: usize) -> io::Result<usize> {
        Ok(text.split(' ').filter(|word| word.len() >= least).count())
    }

    #[timeout_runtime::timeout(secs = 60, cancel = false)]
    #[must_use = "it was work"]
    pub fn sorted(mut rows: Vec<u32>, mut _seen: Option<&'static str>) -> io::Result<Vec<u32>> {
        rows.sort_unstable();
        Ok(rows)
    }

    /// A generic one.
    #[timeout_runtime::timeout(secs = 60)]
    pub fn generic<'a, K, V: Clone + ?Sized, const N: usize>(
        keys: [K; N],
        values: HashMap<K, Box<V>>,
        names: [&'static str; 2],
    ) -> Result<Vec<Box<V>>, Box<dyn Error + Send + Sync>>
    where
        'a: 'static,
        K: Eq + Hash + Send + 'static,
        V: Send + 'static,
        Box<V>: Clone,
        for<'b> &'b K: Debug,
    {
        let _ = names;
        Ok(keys
            .iter()
            .filter_map(|key| values.get(key).cloned())
            .collect())
    }

    #[timeout_runtime::timeout(secs = 60)]
    pub fn hidden(
        parts: impl Iterator<Item = String> + Send + 'static,
        change: Box<dyn Fn(&str) -> String + Send>,
    ) -> io::Result<impl Iterator<Item = String> + Debug> {
        Ok(parts
            .map(|part| change(&part))
            .collect::<Vec<_>>()
            .into_iter())
    }

    #[timeout_runtime::timeout(secs = 60, run = "worker")]
    pub async fn polled(row: fn(u8) -> [u8; 2 + 2], r#type: u8) -> Option<[u8; 4]> {
        Some(row(r#type))
    }
}

/// Functions that run where they are called.
pub mod inline {
    use super::*;

    #[timeout_runtime::timeout(secs = 60, run = "inline")]
    pub fn longest<'a, 'b: 'a>(first: &'a str, second: &'b mut &'a str) -> io::Result<&'a str> {
        *second = first;
        Ok(first)
    }

    #[timeout_runtime::timeout(secs = 60, run = "inline")]
    pub(crate) fn of_the_crate(text: &str, _rest: &[u8]) -> Option<usize> {
        Some(text.len())
    }

    /// An `async` one.
    #[timeout_runtime::timeout(secs = 60)]
    pub async fn borrowing(text: &str, mut least: usize) -> io::Result<&str> {
        least += 1;
        Ok(&text[least..])
    }

    #[timeout_runtime::timeout(secs = 60)]
    #[deprecated(since = "0.1.0", note = "too old")]
    #[must_use]
    pub async fn answers<T>(value: T) -> Result<T, io::Error>
    where
        T: Default + Display,
    {
        Ok(value)
    }

    #[timeout_runtime::timeout(secs = 60, fallback = |_| 0)]
    pub fn falls_back(text: String) -> usize {
        text.len()
    }
}

/// Functions that return futures.
pub mod futures {
    use super::*;

    #[timeout_runtime::timeout(secs = 60)]
    pub fn hidden<T: Clone>(value: &T) -> impl Future<Output = io::Result<T>> + use<'_, T> {
        let value = value.clone();
        async move { Ok(value) }
    }

    #[timeout_runtime::timeout(secs = 60)]
    pub fn boxed<'a>(
        text: &'a str,
    ) -> Pin<Box<dyn Future<Output = io::Result<usize>> + Send + 'a>> {
        Box::pin(async move { Ok(text.len()) })
    }
}

/// What methods are of.
#[derive(Debug, Default)]
pub struct Inventory<T> {
    counts: HashMap<String, T>,
}

impl<T: Clone + Debug + Send + Sync + 'static> Inventory<T> {
    /// Takes one.
    #[timeout_runtime::timeout(secs = 60, run = "inline")]
    pub fn take(&mut self, sku: &str) -> io::Result<Option<T>> {
        Ok(self.counts.remove(sku))
    }

    /// Takes all.
    #[timeout_runtime::timeout(secs = 60)]
    pub fn take_all(mut self, _until: Option<u64>) -> io::Result<Vec<T>> {
        Ok(self.counts.drain().map(|(_, count)| count).collect())
    }

    #[timeout_runtime::timeout(secs = 60)]
    pub fn shared(self: Arc<Self>, sku: String) -> io::Result<Option<T>> {
        Ok(self.counts.get(&sku).cloned())
    }

    #[timeout_runtime::timeout(secs = 60)]
    pub async fn stock<'a>(&'a self, sku: &str) -> io::Result<Option<&'a T>> {
        Ok(self.counts.get(sku))
    }

    #[timeout_runtime::timeout(secs = 60)]
    pub fn later(self: &Arc<Self>) -> impl Future<Output = io::Result<usize>> + Send + 'static {
        let this = Arc::clone(self);
        async move { Ok(this.counts.len()) }
    }

    #[timeout_runtime::timeout(secs = 60)]
    pub async fn new(counts: HashMap<String, T>) -> io::Result<Self> {
        Ok(Self { counts })
    }
}

/// A trait with an implementation whose methods have limits, and with a method that has one itself.
#[allow(async_fn_in_trait)] // As written.
pub trait Store<K: ?Sized> {
    /// Its values.
    type Value;

    /// Gets one.
    async fn get(&self, key: &K) -> io::Result<Self::Value>;

    /// Puts one.
    fn put(&mut self, key: Box<K>, value: Self::Value) -> io::Result<()>;

    /// Is there.
    #[timeout_runtime::timeout(secs = 60, run = "inline")]
    fn has<'a>(&self, keys: &'a [Box<K>]) -> io::Result<Option<&'a K>>
    where
        Self: Sized,
    {
        Ok(keys.first().map(|key| &**key))
    }
}

impl<T: Clone + Send> Store<str> for Inventory<T> {
    type Value = T;

    #[timeout_runtime::timeout(secs = 60)]
    async fn get(&self, key: &str) -> io::Result<T> {
        self.counts
            .get(key)
            .cloned()
            .ok_or_else(|| io::Error::other("none"))
    }

    #[timeout_runtime::timeout(secs = 60, run = "inline")]
    fn put(&mut self, key: Box<str>, mut value: T) -> io::Result<()> {
        std::mem::swap(
            self.counts.entry(key.into()).or_insert(value.clone()),
            &mut value,
        );
        Ok(())
    }
}

/// Functions that take their arguments apart: rustdoc shows a name for the whole.
pub mod apart {
    use super::*;

    #[timeout_runtime::timeout(secs = 60)]
    pub fn tuple((from, mut to): (u32, u32), step: u32) -> io::Result<u32> {
        to += step;
        Ok(to - from)
    }

    #[timeout_runtime::timeout(secs = 60)]
    pub fn unnamed(_: Vec<u8>, (): ()) -> Option<usize> {
        None
    }

    #[timeout_runtime::timeout(secs = 60, run = "inline")]
    pub fn fields<T>(first: T, Inventory { counts, .. }: &Inventory<T>) -> io::Result<usize> {
        drop(first);
        Ok(counts.len())
    }

    /// Of an `async fn`, rustdoc shows such a name in any case.
    #[timeout_runtime::timeout(secs = 60)]
    pub async fn awaited([first, ..]: [u8; 3], &second: &u8) -> io::Result<u8> {
        Ok(first + second)
    }
}

fn main() {}
