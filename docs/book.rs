//! The guide holds together: what is a chapter is listed and compiled, and links lead somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The pieces of code that there may be. Those in Rust are compiled and run.
const CODE: [&str; 5] = ["rust", "rust,test_harness", "toml", "console", "text"];

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text of each chapter, by the name of its file.
fn chapters() -> BTreeMap<String, String> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = fs::read_dir(src).expect("there are chapters");
    files
        .map(|file| PathBuf::from(file.expect("a file").file_name()))
        .filter(|name| name.extension().is_some_and(|kind| kind == "md"))
        .map(|name| name.into_os_string().into_string().expect("UTF-8"))
        .filter(|name| name != "SUMMARY.md")
        .map(|name| (name.clone(), read(&format!("src/{name}"))))
        .collect()
}

/// Of a text in Markdown, the lines of prose, and how each piece of code is called.
fn parted(text: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut prose, mut code) = (Vec::new(), Vec::new());
    let mut is_code = false;
    for line in text.lines() {
        assert!(!line.trim().starts_with("~~~"), "{line}");
        match line.trim().strip_prefix("```") {
            Some(called) => {
                is_code = !is_code;
                if is_code {
                    code.push(called);
                }
            }
            None if !is_code => prose.push(line),
            None => {}
        }
    }
    assert!(!is_code, "a piece of code has no end");
    (prose, code)
}

/// Where the links of `prose` lead to.
fn links<'a>(prose: &[&'a str]) -> Vec<&'a str> {
    let to_elsewhere = |line: &&&str| line.contains("][");
    assert_eq!(prose.iter().find(to_elsewhere), None);
    let links = prose.iter().flat_map(|line| line.split("](").skip(1));
    links.filter_map(|link| link.split(')').next()).collect()
}

/// How mdBook calls a heading in links.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().replace(' ', "-")
}

#[test]
fn each_chapter_is_listed_and_compiled() {
    let chapters: BTreeSet<String> = chapters().into_keys().collect();
    let summary = read("src/SUMMARY.md");
    let listed = links(&summary.lines().collect::<Vec<_>>());
    assert_eq!(chapters, listed.into_iter().map(str::to_owned).collect());

    let guide = read("guide.rs");
    let compiled = guide.split("include_str!(\"src/").skip(1);
    let compiled = compiled.filter_map(|rest| rest.split('"').next());
    assert_eq!(chapters, compiled.map(str::to_owned).collect());
}

#[test]
fn no_piece_of_rust_is_left_out() {
    for (name, text) in chapters() {
        for called in parted(&text).1 {
            assert!(CODE.contains(&called), "{name}: {called:?}");
        }
    }
}

#[test]
fn each_link_leads_somewhere() {
    let chapters = chapters();
    for (name, text) in &chapters {
        for link in links(&parted(text).0) {
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let file = if file.is_empty() { name } else { file };
            let Some(there) = chapters.get(file) else {
                read(&format!("src/{file}"));
                continue;
            };
            let headings = parted(there).0;
            let mut headings = headings.iter().filter(|line| line.starts_with('#'));
            assert!(
                place.is_empty() || headings.any(|heading| anchor(heading) == place),
                "{name}: {link}"
            );
        }
    }
}
