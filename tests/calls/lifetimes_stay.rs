//! Annotated functions borrow exactly as their signatures say. Half of the test is that this
//! compiles.

#![deny(
    elided_lifetimes_in_paths,
    single_use_lifetimes,
    mismatched_lifetime_syntaxes
)]

use crate::support;
use std::future::Future;

use std::fmt::Debug;

use support::block_on;
use timeout_runtime::{TimeoutError, timeout};

/// The other argument may be dropped before the result.
#[timeout(secs = 60)]
#[allow(single_use_lifetimes)] // Written out to distinguish the two arguments.
async fn pick<'a, 'b>(x: &'a str, _y: &'b str) -> Result<&'a str, TimeoutError> {
    Ok(x)
}

#[timeout(secs = 60, run = "inline")]
fn pick_inline<'a>(x: &'a str, y: &str) -> Result<&'a str, TimeoutError> {
    assert_ne!(x, y);
    Ok(x)
}

struct Table(Vec<String>);

impl Table {
    #[timeout(secs = 60)]
    async fn rows(&self, key: &str) -> Result<Vec<&str>, TimeoutError> {
        let rows = self.0.iter().map(String::as_str);
        Ok(rows.filter(|row| row.starts_with(key)).collect())
    }

    #[timeout(secs = 60, run = "inline")]
    fn first(&mut self, key: &str) -> Option<&mut String> {
        self.0.iter_mut().find(|row| row.starts_with(key))
    }

    #[timeout(secs = 60)]
    fn later<'a>(
        &'a self,
        key: &'a str,
    ) -> impl Future<Output = Result<Vec<&'a str>, TimeoutError>> + use<'a> {
        self.rows(key)
    }
}

#[timeout(secs = 60)]
#[allow(clippy::extra_unused_lifetimes)] // Only the lifetime is captured.
fn bytes<'a>(rows: Vec<u8>) -> Result<impl Iterator<Item = u8> + use<'a>, TimeoutError> {
    Ok(rows.into_iter())
}

#[timeout(secs = 60)]
async fn count<const N: usize, T>(
    rows: [T; N],
    of: impl Into<String>,
) -> Result<usize, TimeoutError>
where
    T: PartialEq<String>,
{
    let of = of.into();
    Ok(rows.iter().filter(|row| **row == of).count())
}

#[timeout(secs = 60, run = "inline")]
fn shown(row: &str) -> Result<Box<dyn Debug + '_>, TimeoutError> {
    if row.is_empty() {
        return Ok(Box::new(()));
    }
    Ok(Box::new(row))
}

#[timeout(secs = 60)]
async fn shown_later(row: &str) -> Result<Box<dyn Debug + '_>, TimeoutError> {
    if row.is_empty() {
        return Ok(Box::new(()));
    }
    Ok(Box::new(row))
}

#[test]
fn a_result_borrows_only_from_the_arguments_in_its_signature() {
    let x = "x".to_owned();
    let picked = {
        let y = "y".to_owned();
        let picked = block_on(pick(&x, &y)).unwrap();
        assert_eq!(picked, pick_inline(&x, &y).unwrap());
        picked
    };
    assert_eq!(picked, "x");

    let mut table = Table(vec!["ab".into(), "cd".into()]);
    let rows = {
        let key = "a".to_owned();
        block_on(table.rows(&key)).unwrap()
    };
    assert_eq!(rows, ["ab"]);
    assert_eq!(block_on(table.later("c")).unwrap(), ["cd"]);
    let first = {
        let key = "c".to_owned();
        table.first(&key).unwrap()
    };
    first.push('!');
    assert_eq!(table.0[1], "cd!");
}

#[test]
fn opaque_and_generic_types_are_kept() {
    assert_eq!(bytes(vec![1, 2]).unwrap().sum::<u8>(), 3);
    assert_eq!(block_on(count(["a", "b", "a"], "a")).unwrap(), 2);
    for row in ["", "row"] {
        let plain = format!("{:?}", shown(row).unwrap());
        assert_eq!(plain, format!("{:?}", block_on(shown_later(row)).unwrap()));
    }
}
