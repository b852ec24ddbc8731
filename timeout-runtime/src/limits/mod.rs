//! Limits that are changed while the process runs, by the name of the function.
//!
//! The limit of a call is the first of these that exists:
//!
//! 1. the limit that [`set`] or [`load`] has set for its name;
//! 2. the limit in the environment variable `TIMEOUT_LIMITS`, such as
//!    `TIMEOUT_LIMITS="inventory=80ms, price=2s"`, which is read when the first call begins;
//! 3. the limit in the code: that of the attribute, of [`Timeout`](crate::Timeout) or of
//!    [`within`](crate::within).
//!
//! A change applies to calls that begin after it. Running calls keep their limits. Deadlines that a
//! call inherits, `deadline = ..` and `grace` stay as they are.
//!
//! While no limit changes, a call reads two or three words for this, which no thread writes.
//!
//! ```
//! use std::time::Duration;
//! use timeout_runtime::{CancelToken, TimeoutError, limits, timeout};
//!
//! #[timeout(name = "inventory", ms = 50, run = "inline")]
//! fn limit_of_inventory() -> Result<Option<Duration>, TimeoutError> {
//!     Ok(cancel_token.remaining())
//! }
//!
//! limits::set("inventory", Duration::from_secs(90))?;
//! assert!(limit_of_inventory()? > Some(Duration::from_secs(60)));
//!
//! limits::reset("inventory");
//! assert!(limit_of_inventory()? <= Some(Duration::from_millis(50)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod in_force;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{env, fmt};

pub(crate) use in_force::InForce;
pub use text::InvalidLimits;

/// The environment variable with limits.
const VARIABLE: &str = "TIMEOUT_LIMITS";

/// Limits by the names of functions.
type Limits = BTreeMap<String, Duration>;

/// Changes with every change of a limit, from one even number to the next. No function has seen the
/// first one before its first call.
static GENERATION: AtomicU32 = AtomicU32::new(2);

static STORE: Mutex<Store> = Mutex::new(Store {
    set: BTreeMap::new(),
    environment: None,
    in_code: BTreeMap::new(),
});

struct Store {
    set: Limits,
    /// `None` until the variable is read.
    environment: Option<Limits>,
    /// The limits in the code, of functions that have been called.
    in_code: BTreeMap<&'static str, Duration>,
}

impl Store {
    /// Locks the store and reads the environment variable the first time.
    fn lock() -> MutexGuard<'static, Self> {
        let mut store = STORE.lock().unwrap_or_else(PoisonError::into_inner);
        store.read_environment();
        store
    }

    fn read_environment(&mut self) {
        if self.environment.is_none() {
            let read = read_environment();
            if let Err(error) = &read {
                // No caller has asked for it. If standard error is closed, nobody can be told.
                let _ = writeln!(io::stderr(), "timeout-runtime: {error}");
            }
            self.environment = Some(read.unwrap_or_default());
        }
    }

    fn of_environment(&self, name: &str) -> Option<Duration> {
        self.environment.as_ref()?.get(name).copied()
    }

    /// The limit that replaces the one in the code.
    fn replacement(&self, name: &str) -> Option<(Duration, Origin)> {
        let set = self.set.get(name).map(|limit| (*limit, Origin::Set));
        set.or_else(|| Some((self.of_environment(name)?, Origin::Environment)))
    }
}

/// The limits in the environment variable.
fn read_environment() -> Result<Limits, InvalidLimits> {
    match env::var_os(VARIABLE) {
        None => Ok(Limits::new()),
        Some(text) => text::parse(&text.to_string_lossy()).map_err(InvalidLimits::in_variable),
    }
}

/// Where a limit comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// The code: the attribute, a [`Timeout`](crate::Timeout), or [`within`](crate::within).
    Code,
    /// The environment variable `TIMEOUT_LIMITS`.
    Environment,
    /// [`set`] or [`load`].
    Set,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Code => "code",
            Self::Environment => "environment",
            Self::Set => "set",
        })
    }
}

/// The limit of all calls with one name. Returned by [`list`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limit {
    /// The name of the calls.
    pub name: String,
    /// The limit of calls that begin now. [`Duration::MAX`] means no limit.
    pub limit: Duration,
    /// Where the limit comes from.
    pub origin: Origin,
    /// The limit in the code, as the last call found it that was the first one after a change.
    /// `None` if no call of this name has begun, for example because the name is misspelt.
    pub in_code: Option<Duration>,
}

/// Sets the limit of all calls with this name that begin from now on. [`Duration::MAX`] means no
/// limit.
///
/// The name need not be known: its first call may come later. [`list`] shows names that no call has
/// used.
///
/// # Errors
///
/// Returns [`InvalidLimits`] if `limit` is zero, and changes nothing.
///
/// ```
/// use std::time::Duration;
/// use timeout_runtime::limits;
///
/// limits::set("price", Duration::from_millis(250))?;
/// let error = limits::set("price", Duration::ZERO).unwrap_err();
/// assert_eq!(error.to_string(), "the limit of `price` is zero; no limit was changed");
/// assert_eq!(limits::list()[0].limit, Duration::from_millis(250));
/// # Ok::<(), limits::InvalidLimits>(())
/// ```
pub fn set(name: &str, limit: Duration) -> Result<(), InvalidLimits> {
    text::check(name, limit)?;
    change(|store| store.set.insert(name.to_owned(), limit));
    Ok(())
}

/// Sets the limits in `text`, which has the form of the environment variable: names, each with `=`
/// and a duration, separated by commas. A duration is written as in the attribute, such as `80ms`
/// or `1m 30s`; `none` means no limit. Names that are not in `text` keep their limits.
///
/// # Errors
///
/// Returns [`InvalidLimits`], which names the first wrong part, and changes nothing.
///
/// ```
/// use timeout_runtime::limits;
///
/// limits::load("inventory=80ms, price=2s, report=none")?;
/// let error = limits::load("inventory=20ms, price=soon").unwrap_err();
/// assert!(error.to_string().contains("`price=soon`"));
/// assert_eq!(limits::list()[0].limit.as_millis(), 80);
/// # Ok::<(), limits::InvalidLimits>(())
/// ```
pub fn load(text: &str) -> Result<(), InvalidLimits> {
    let limits = text::parse(text)?;
    change(|store| store.set.extend(limits));
    Ok(())
}

/// Takes back what [`set`] and [`load`] have set for this name. The limit is that of the
/// environment again, or the one in the code. Returns whether a limit was set.
///
/// ```
/// use std::time::Duration;
/// use timeout_runtime::limits;
///
/// limits::set("price", Duration::from_secs(1))?;
/// assert!(limits::reset("price"));
/// assert!(!limits::reset("price"));
/// # Ok::<(), limits::InvalidLimits>(())
/// ```
#[allow(clippy::must_use_candidate)] // Whether a limit was set often does not matter.
pub fn reset(name: &str) -> bool {
    change(|store| store.set.remove(name)).is_some()
}

/// Returns the limits of all names, sorted by name: those that are set, those in the environment,
/// and those of functions that have been called.
///
/// ```
/// use std::time::Duration;
/// use timeout_runtime::limits;
///
/// limits::set("price", Duration::from_millis(250))?;
/// for limit in limits::list() {
///     println!("{} {:?} ({})", limit.name, limit.limit, limit.origin); // price 250ms (set)
/// }
/// # Ok::<(), limits::InvalidLimits>(())
/// ```
#[must_use]
pub fn list() -> Vec<Limit> {
    let store = Store::lock();
    let environment = store.environment.iter().flat_map(BTreeMap::keys);
    let replaced = store.set.keys().chain(environment).map(String::as_str);
    let names: BTreeSet<&str> = replaced.chain(store.in_code.keys().copied()).collect();
    let limit_of = |name: &str| {
        let in_code = store.in_code.get(name).copied();
        let in_force = store.replacement(name);
        let (limit, origin) = in_force.or_else(|| Some((in_code?, Origin::Code)))?;
        Some(Limit {
            name: name.to_owned(),
            limit,
            origin,
            in_code,
        })
    };
    names.into_iter().filter_map(limit_of).collect()
}

/// Checks the environment variable `TIMEOUT_LIMITS`, so that a program can refuse to start with a
/// wrong one. Without this check, the first call prints the error to standard error and ignores the
/// whole variable.
///
/// # Errors
///
/// Returns [`InvalidLimits`], which names the first wrong part.
///
/// ```
/// use timeout_runtime::limits;
///
/// limits::check_environment()?;
/// # Ok::<(), limits::InvalidLimits>(())
/// ```
pub fn check_environment() -> Result<(), InvalidLimits> {
    read_environment().map(|_| ())
}

/// Changes the store. Calls that begin after this see the change.
fn change<T>(change: impl FnOnce(&mut Store) -> T) -> T {
    let mut store = Store::lock();
    let changed = change(&mut store);
    GENERATION.fetch_add(2, Ordering::Release);
    changed
}
