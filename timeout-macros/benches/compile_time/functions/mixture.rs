use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::support::{Error, fetch};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    sku: String,
    count: u32,
}

pub struct Summary {
    lines: Vec<Item>,
    total: u64,
}

#[derive(Default)]
pub struct Inventory {
    counts: HashMap<String, u32>,
    visits: usize,
}

#[limited(numbers)]
pub fn numbers(line: String) -> Result<Vec<u32>, Error> {
    let mut numbers = Vec::new();
    for part in line.split(',') {
        numbers.push(part.trim().parse::<u32>()?);
    }
    Ok(numbers)
}

#[limited(divisor)]
pub fn divisor(number: u64) -> Result<u64, Error> {
    let mut candidate = 2;
    while number % candidate != 0 {
        cancel_token.check()?;
        candidate += 1;
    }
    Ok(candidate)
}

#[limited(largest)]
pub fn largest<T: Ord + Clone + Send + 'static>(mut items: Vec<T>) -> Result<T, Error> {
    items.sort();
    let Some(last) = items.last() else {
        return Err(Error::Missing("largest".to_owned()));
    };
    Ok(last.clone())
}

#[limited(words, inline)]
pub fn words(text: &str, word: &str) -> Result<usize, Error> {
    let count = text.split(' ').filter(|found| *found == word).count();
    if count == 0 {
        return Err(Error::Missing(format!(
            "no `{word}` in {} bytes",
            text.len()
        )));
    }
    Ok(count)
}

impl Inventory {
    fn items(&self) -> impl Iterator<Item = Item> {
        self.counts.iter().map(|(sku, count)| Item {
            sku: sku.clone(),
            count: *count,
        })
    }

    #[limited(summary)]
    pub fn summary(self: Arc<Self>, least: u32) -> Result<Summary, Error> {
        let lines: Vec<_> = self.items().filter(|item| item.count >= least).collect();
        let total = lines.iter().map(|item| u64::from(item.count)).sum();
        if lines.is_empty() {
            return Err(Error::Empty);
        }
        Ok(Summary { lines, total })
    }

    #[limited(take, inline)]
    pub fn take(&mut self, sku: &str) -> Result<u32, Error> {
        self.visits += 1;
        let count = self
            .counts
            .get_mut(sku)
            .ok_or_else(|| Error::Missing(sku.to_owned()))?;
        *count = count.checked_sub(1).ok_or(Error::Empty)?;
        Ok(*count)
    }

    #[limited(stock)]
    pub async fn stock(&self, sku: &str) -> Result<Item, Error> {
        let answer = fetch(sku).await?;
        let known = self.counts.get(sku).copied().unwrap_or_default();
        let count = answer.parse::<u32>()? + known;
        let sku = sku.to_owned();
        Ok(Item { sku, count })
    }

    #[limited(restock)]
    pub async fn restock<I>(&mut self, skus: I, each: u32) -> Result<Summary, Error>
    where
        I: IntoIterator<Item = String> + Send,
        I::IntoIter: Send,
    {
        for sku in skus {
            fetch(&sku).await?;
            *self.counts.entry(sku).or_default() += each;
        }
        let lines: Vec<_> = self.items().collect();
        let total = u64::from(each) * u64::try_from(lines.len()).unwrap_or_default();
        Ok(Summary { lines, total })
    }
}

#[limited(first)]
pub async fn first(keys: Vec<String>) -> Result<String, Error> {
    for key in &keys {
        let answer = fetch(key).await?;
        if !answer.is_empty() {
            return Ok(answer);
        }
    }
    Err(Error::Empty)
}

#[limited(poll)]
pub async fn poll(key: &str, times: usize) -> Result<Option<String>, Error> {
    for _ in 0..times {
        cancel_token.check()?;
        if let Ok(answer) = fetch(key).await {
            return Ok(Some(answer));
        }
    }
    Ok(None)
}

pub fn all(text: String) -> Pin<Box<dyn Future<Output = Result<usize, Error>> + Send>> {
    Box::pin(async move {
        let mut inventory = Inventory::default();
        let found = words(&text, "1")? + numbers(text.clone())?.len();
        let each = u32::try_from(divisor(91)?).unwrap_or_default();
        let restocked = inventory.restock(vec![text.clone()], each).await?;
        let most = largest(restocked.lines)?;
        let taken = inventory.take(&most.sku)? + inventory.stock(&text).await?.count;
        let answer = first(vec![text.clone()]).await?;
        let again = poll(&answer, 3).await?.unwrap_or_default();
        let summary = Arc::new(inventory).summary(taken)?;
        let total = usize::try_from(summary.total).unwrap_or_default();
        Ok(found + again.len() + summary.lines.len() + total)
    })
}
