use std::fmt;
use std::num::ParseIntError;

#[derive(Debug)]
pub enum Error {
    Missing(String),
    Number(ParseIntError),
    Empty,
    Stopped(Stopped),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl std::error::Error for Error {}

impl From<ParseIntError> for Error {
    fn from(error: ParseIntError) -> Self {
        Self::Number(error)
    }
}

impl From<Stopped> for Error {
    fn from(error: Stopped) -> Self {
        Self::Stopped(error)
    }
}

/// Is ready at the second poll.
pub async fn fetch(key: &str) -> Result<String, Error> {
    if key.is_empty() {
        return Err(Error::Missing(key.to_owned()));
    }
    let mut asked = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut asked, true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
    Ok(key.len().to_string())
}
