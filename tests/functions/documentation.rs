//! rustdoc shows the same signature and docs with and without the attribute.

use crate::built;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = include_str!("../programs/documented.rs");

/// The beginning of the lines that are removed.
const ATTRIBUTE: &str = "#[timeout_runtime::timeout(";

/// Arguments that are patterns: the text for the plain function, and the generated names.
const ABANDONING: [(&str, &str, &str); 4] = [
    (
        "apart/fn.tuple.html",
        "(from, to): (u32, u32)",
        "__arg0: (u32, u32)",
    ),
    ("apart/fn.unnamed.html", "_: Vec<u8>", "__arg0: Vec<u8>"),
    ("apart/fn.unnamed.html", "(): ()", "__arg1: ()"),
    (
        "apart/fn.fields.html",
        "_: &Inventory<T>",
        "__arg1: &Inventory<T>",
    ),
];

/// Some complete signatures.
const SHOWN: [(&str, &str); 4] = [
    (
        "on_worker/fn.sorted.html",
        "pub fn sorted(rows: Vec<u32>, _seen: Option<&'static str>) -> Result<Vec<u32>>",
    ),
    (
        "inline/fn.borrowing.html",
        "pub async fn borrowing(text: &str, least: usize) -> Result<&str>",
    ),
    (
        "struct.Inventory.html",
        "pub fn shared(self: Arc<Self>, sku: String) -> Result<Option<T>>",
    ),
    (
        "trait.Store.html",
        "async fn get(&self, key: &K) -> Result<Self::Value>",
    ),
];

/// The text of each page, by its path.
type Pages = BTreeMap<PathBuf, String>;

/// The pages of `program`, as `cargo doc` builds those of a program.
fn documented(name: &str, program: &str) -> Pages {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("documentation");
    let folder = folder.join(name);
    // Pages of an earlier run.
    fs::remove_dir_all(&folder).ok();
    fs::create_dir_all(&folder).expect("a folder");
    let source = folder.join("documented.rs");
    fs::write(&source, program).expect("a file");
    let mut command = Command::new(built::tool("rustdoc"));
    command.args(["--edition", "2024", "--crate-name", "documented"]);
    command.args(["--crate-version", env!("CARGO_PKG_VERSION")]);
    command.args(["--crate-type", "bin", "--document-private-items"]);
    built::use_libraries(&mut command, &[built::runtime()]);
    command.arg("--out-dir").arg(&folder).arg(&source);
    let output = command.output().expect("an installed program");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}:\n{said}");
    pages(&folder.join("documented"))
}

fn pages(root: &Path) -> Pages {
    let mut pages = Pages::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("rustdoc's output") {
            let path = entry.expect("a page").path();
            if path.is_dir() {
                directories.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "html")
            {
                let page = fs::read_to_string(&path).expect("a page");
                let path = path
                    .strip_prefix(root)
                    .expect("a path below the root")
                    .to_owned();
                pages.insert(path, text(&page));
            }
        }
    }
    pages
}

/// The body text of a page without tags, with runs of whitespace replaced by one space.
fn text(page: &str) -> String {
    let (_, body) = page.split_once("<body").expect("a page has a body");
    let between = body.split('<').filter_map(|part| part.split_once('>'));
    let text: String = between.map(|(_, text)| text).collect();
    let text = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The attribute must not show in a signature: no other types, bounds or names, no lost docs, and
/// no added functions.
#[test]
fn rustdoc_shows_the_signature_of_the_plain_function() {
    let is_kept = |line: &&str| !line.trim_start().starts_with(ATTRIBUTE);
    let kept: Vec<&str> = PROGRAM.lines().filter(is_kept).collect();
    let annotated = documented("annotated", PROGRAM);
    let mut plain = documented("plain", &kept.join("\n"));
    for (path, pattern, name) in ABANDONING {
        let page = plain.get_mut(Path::new(path)).expect(path);
        assert!(page.contains(pattern), "{page}");
        *page = page.replace(pattern, name);
    }
    let names = |pages: &Pages| pages.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&annotated), names(&plain));
    for (path, expected) in &plain {
        assert_eq!(annotated[path], *expected, "{}", path.display());
    }
    // The comparison must not be empty.
    for (path, signature) in SHOWN {
        let page = &annotated[Path::new(path)];
        assert!(page.contains(signature), "{page}");
    }
}
