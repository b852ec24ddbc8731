use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;

use crate::support::{Error, fetch};

#[methods]
pub trait Store {
    async fn get(&self, key: &str) -> Result<String, Error>;
    async fn put(&mut self, key: String, value: String) -> Result<(), Error>;
    async fn total(&self, keys: &[String]) -> Result<Total, Error>;
    async fn first(&self, keys: Vec<String>) -> Result<Option<Found>, Error>;
    async fn remove(&mut self, key: &str) -> Result<usize, Error>;
}

pub struct Total {
    keys: usize,
    total: u64,
}

pub struct Found {
    key: String,
    value: String,
}

#[derive(Default)]
pub struct Memory {
    values: HashMap<String, String>,
}

#[methods]
impl Store for Memory {
    #[limited(get)]
    async fn get(&self, key: &str) -> Result<String, Error> {
        if let Some(value) = self.values.get(key) {
            return Ok(value.clone());
        }
        fetch(key).await
    }

    #[limited(put)]
    async fn put(&mut self, key: String, value: String) -> Result<(), Error> {
        let before = fetch(&key).await?;
        if before != value {
            self.values.insert(key, value);
        }
        Ok(())
    }

    #[limited(total)]
    async fn total(&self, keys: &[String]) -> Result<Total, Error> {
        let mut total = 0;
        for key in keys {
            total += fetch(key).await?.parse::<u64>()?;
        }
        let keys = keys.len();
        Ok(Total { keys, total })
    }

    #[limited(first)]
    async fn first(&self, keys: Vec<String>) -> Result<Option<Found>, Error> {
        for key in keys {
            let value = fetch(&key).await?;
            if self.values.contains_key(&value) {
                return Ok(Some(Found { key, value }));
            }
        }
        Ok(None)
    }

    #[limited(remove)]
    async fn remove(&mut self, key: &str) -> Result<usize, Error> {
        let answer = fetch(key).await?;
        self.values.remove(key).ok_or(Error::Empty)?;
        self.values.remove(&answer);
        Ok(self.values.len())
    }
}

pub fn all(key: String) -> Pin<Box<dyn Future<Output = Result<usize, Error>> + Send>> {
    Box::pin(async move {
        let mut memory = Memory::default();
        let value = memory.get(&key).await?;
        memory.put(key.clone(), value).await?;
        let Total { keys, total } = memory.total(&[key.clone()]).await?;
        let first = memory.first(vec![key.clone()]).await?;
        let found = first.map_or(0, |found| found.key.len() + found.value.len());
        let total = usize::try_from(total).unwrap_or_default();
        Ok(memory.remove(&key).await? + keys + found + total)
    })
}
