//! Checks the guide: each chapter is listed and compiled, and each link has a target.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The kinds of code blocks that a chapter may contain. Cargo compiles and runs those in Rust,
/// except [`COPY`].
const CODE: [&str; 6] = ["rust", "rust,test_harness", COPY, "toml", "console", "text"];

/// The kind of a code block that is a copy from `examples/drivers`. The guide does not have the
/// dependencies of these examples.
const COPY: &str = "rust,ignore";

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text of each chapter, by its file name.
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

/// A code block: what follows its opening fence, and its lines.
struct Code<'a> {
    info: &'a str,
    lines: Vec<&'a str>,
}

/// Splits Markdown into the lines of prose and the code blocks.
fn split_code(text: &str) -> (Vec<&str>, Vec<Code<'_>>) {
    let (mut prose, mut code) = (Vec::new(), Vec::new());
    let mut is_code = false;
    for line in text.lines() {
        assert!(!line.trim().starts_with("~~~"), "{line}");
        match line.trim().strip_prefix("```") {
            Some(info) => {
                is_code = !is_code;
                if is_code {
                    let lines = Vec::new();
                    code.push(Code { info, lines });
                }
            }
            None if !is_code => prose.push(line),
            None => code.last_mut().expect("a block is open").lines.push(line),
        }
    }
    assert!(!is_code, "a code block has no end");
    (prose, code)
}

/// The targets of the links in `prose`.
fn links<'a>(prose: &[&'a str]) -> Vec<&'a str> {
    let is_reference = |line: &&&str| line.contains("][");
    assert_eq!(prose.iter().find(is_reference), None);
    let links = prose.iter().flat_map(|line| line.split("](").skip(1));
    links.filter_map(|link| link.split(')').next()).collect()
}

/// The anchor that mdBook gives a heading.
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
fn each_code_block_is_of_a_known_kind() {
    for (name, text) in chapters() {
        for Code { info, .. } in split_code(&text).1 {
            assert!(CODE.contains(&info), "{name}: {info:?}");
        }
    }
}

#[test]
fn each_code_block_that_is_not_compiled_here_is_a_copy_of_tested_code() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/drivers/src");
    let files = fs::read_dir(sources).expect("there are examples");
    let files = files.map(|file| file.expect("a file").path());
    let files = files.filter(|path| path.is_file());
    let sources: Vec<String> = files
        .map(|path| {
            fs::read_to_string(path)
                .expect("a source file")
                .replace("\r\n", "\n")
        })
        .collect();
    for (name, text) in chapters() {
        for Code { info, lines } in split_code(&text).1 {
            let copy = lines.join("\n");
            assert!(
                info != COPY || sources.iter().any(|source| source.contains(&copy)),
                "{name} differs from the example: {copy}"
            );
        }
    }
}

#[test]
fn each_link_has_a_target() {
    let chapters = chapters();
    for (name, text) in &chapters {
        for link in links(&split_code(text).0) {
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let file = if file.is_empty() { name } else { file };
            let Some(there) = chapters.get(file) else {
                read(&format!("src/{file}"));
                continue;
            };
            let headings = split_code(there).0;
            let mut headings = headings.iter().filter(|line| line.starts_with('#'));
            assert!(
                place.is_empty() || headings.any(|heading| anchor(heading) == place),
                "{name}: {link}"
            );
        }
    }
}
