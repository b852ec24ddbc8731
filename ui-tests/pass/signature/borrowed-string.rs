use timeout_runtime::{TimeoutError, timeout};

#[timeout(secs = 60, run = "inline")]
fn first<'a>(text: &'a str, rest: &mut String) -> Result<&'a str, TimeoutError> {
    let (first, others) = text.split_once(' ').unwrap_or((text, ""));
    rest.push_str(others);
    Ok(first)
}

#[timeout(secs = 60)]
fn owned(text: String, kind: &'static str, is_wanted: fn(&str) -> bool) -> Option<String> {
    is_wanted(&text).then(|| text + kind)
}

fn main() {
    let mut rest = String::new();
    assert_eq!(first("a b c", &mut rest).unwrap(), "a");
    assert_eq!(rest, "b c");
    assert_eq!(owned("a".into(), "b", |_| true).as_deref(), Some("ab"));
}
