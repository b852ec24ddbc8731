//! The layers of this crate: each module uses lower layers only.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The modules, lowest layer first. `ARCHITECTURE.md` draws the same picture.
const LAYERS: &[&[&str]] = &[
    &["sync", "memory", "one_line", "unwind", "forked"],
    &["shards"],
    &["probe", "registry", "time", "limits"],
    &["threads", "outcome"],
    &["event", "timer"],
    &["pool"],
    &["terms"],
    &["token"],
    &["context"],
    &["call"],
    &["net", "testing", "timeout", "workers"],
    &["integrations", "private"],
];

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// The module of a file, such as `call` for `call/start.rs`. `None` for tests and for `lib.rs`.
fn module_of(path: &Path) -> Option<String> {
    let text = path.to_str()?.trim_end_matches(".rs").replace('\\', "/");
    let parts: Vec<_> = text.split('/').collect();
    if parts.iter().any(|part| ["tests", "models"].contains(part)) || text == "lib" {
        return None;
    }
    parts.first().map(|&module| module.to_owned())
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The code of a file without comments and without its tests.
fn code(text: &str) -> String {
    let text = text.split("mod tests {").next().unwrap_or_default();
    let lines = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The modules that `code` names after `crate::`, also in a list such as `crate::{a, b::c}`.
fn used(code: &str) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let Some(list) = rest.strip_prefix('{') else {
            used.insert(word(rest));
            continue;
        };
        let mut depth = 0;
        let mut start = 0;
        for (at, character) in list.char_indices() {
            match character {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    used.insert(word(list[start..at].trim()));
                    start = at + 1;
                    if character == '}' {
                        break;
                    }
                }
                _ => {}
            }
        }
    }
    used.remove("");
    used
}

fn word(text: &str) -> String {
    let is_part = |character: &char| character.is_alphanumeric() || *character == '_';
    let word: String = text.chars().take_while(is_part).collect();
    // The files of `private` are modules with these names, which generated code uses.
    if word.starts_with("__timeout") {
        return "private".to_owned();
    }
    word
}

#[test]
fn each_module_uses_lower_layers_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 50, "the sources are at {}", root.display());
    let mut faults = Vec::new();
    let mut modules = BTreeSet::new();
    for file in files {
        let path = file.strip_prefix(&root).unwrap();
        let Some(module) = module_of(path) else {
            continue;
        };
        let layer = layer_of(&module).unwrap_or_default();
        for other in used(&code(&fs::read_to_string(&file).unwrap())) {
            let is_lower = layer_of(&other).is_some_and(|other| other < layer);
            if other != module && !is_lower {
                faults.push(format!("{}: `{module}` uses `{other}`", path.display()));
            }
        }
        modules.insert(module);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let listed: BTreeSet<_> = LAYERS.iter().copied().flatten().copied().collect();
    let modules: BTreeSet<_> = modules.iter().map(String::as_str).collect();
    assert_eq!(modules, listed, "each module is in one layer");
}

#[test]
fn modules_in_lists_are_found() {
    let code = "use crate::a::B;\nuse crate::{c, d::{E, f::G}, h};\npub(crate) fn i() {}";
    let expected = ["a", "c", "d", "h"].map(str::to_owned);
    assert_eq!(used(code), BTreeSet::from(expected));
}
