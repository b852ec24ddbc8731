//! The README's example of paused time. It needs a feature of Tokio that nobody else should get with ours, so it is compiled here.

include!("programs/paused.rs");

#[test]
fn the_readme_shows_this_example() {
    assert!(include_str!("../README.md").contains(include_str!("programs/paused.rs")));
}
