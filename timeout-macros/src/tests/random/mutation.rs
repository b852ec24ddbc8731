//! Mutates uses of the attribute from the tests of this workspace at random.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, Group, Ident, Punct, Spacing, Span, TokenStream, TokenTree};

use super::Case;
use super::chance::Chance;

/// Attributes with their items, as text, since tokens do not outlive a case.
pub(super) struct Corpus(Vec<(String, String)>);

impl Corpus {
    /// Reads the sources. A published package contains only the files in `expansion/`.
    pub(super) fn read() -> Self {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut found = Vec::new();
        for folder in ["src/tests/expansion", "../tests/shapes", "../ui-tests"] {
            for file in sources(&here.join(folder)) {
                let text = fs::read_to_string(&file).expect("a source can be read");
                // A macro in the tests fills in this value.
                let text = text.replace("$run", "\"inline\"");
                let tokens = text.parse().expect("a source can be lexed");
                uses(tokens, &mut found);
            }
        }
        assert!(found.len() >= 25, "only {} uses were found", found.len());
        Self(found)
    }

    fn case(&self, chance: &mut Chance) -> Case {
        let (args, item) = &self.0[chance.below(self.0.len())];
        let parse = |text: &str| text.parse().expect("tokens print as tokens");
        Case {
            args: parse(args),
            item: parse(item),
            mistakes: None,
        }
    }
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("a folder can be listed").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Finds `#[… timeout(ARGS) …] ITEM` at any depth.
fn uses(tokens: TokenStream, found: &mut Vec<(String, String)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else {
            continue;
        };
        uses(group.stream(), found);
        let Some(args) = args(group.stream()) else {
            continue;
        };
        let ends = |token: &TokenTree| match token {
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            TokenTree::Punct(punct) => punct.as_char() == ';',
            _ => false,
        };
        let rest = &tokens[at + 1..];
        let length = rest.iter().position(ends).map_or(rest.len(), |end| end + 1);
        let item: TokenStream = rest[..length].iter().cloned().collect();
        found.push((args.to_string(), item.to_string()));
    }
}

fn args(attribute: TokenStream) -> Option<TokenStream> {
    let tokens: Vec<TokenTree> = attribute.into_iter().collect();
    tokens
        .iter()
        .enumerate()
        .find_map(|(at, token)| match token {
            TokenTree::Group(inner) => match at.checked_sub(1).map(|before| &tokens[before]) {
                Some(TokenTree::Ident(word)) if word == "timeout" => Some(inner.stream()),
                _ => args(inner.stream()),
            },
            _ => None,
        })
}

pub(super) fn of_tokens(corpus: &Corpus, chance: &mut Chance) -> Case {
    let (mut case, other) = (corpus.case(chance), corpus.case(chance));
    for _ in 0..=chance.below(4) {
        if chance.one_in(2) {
            case.args = mutated(case.args, &other.args, chance);
        } else {
            case.item = mutated(case.item, &other.item, chance);
        }
    }
    case
}

/// Changes `tokens` in one place, at any depth.
fn mutated(tokens: TokenStream, other: &TokenStream, chance: &mut Chance) -> TokenStream {
    let mut tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let groups: Vec<usize> = (0..tokens.len())
        .filter(|at| matches!(&tokens[*at], TokenTree::Group(_)))
        .collect();
    if !groups.is_empty() && chance.one_in(2) {
        let at = chance.pick(&groups);
        if let TokenTree::Group(group) = &tokens[at] {
            let inner = mutated(group.stream(), other, chance);
            tokens[at] = Group::new(group.delimiter(), inner).into();
        }
        return tokens.into_iter().collect();
    }
    let from = chance.below(tokens.len() + 1);
    let to = tokens.len().min(from + chance.below(4));
    let part = tokens[from..to].to_vec();
    let new: TokenStream = match chance.below(7) {
        0 => TokenStream::new(),
        1 => part.iter().chain(&part).cloned().collect(),
        2 => {
            let delimiter = chance.pick(&[
                Delimiter::None,
                Delimiter::None,
                Delimiter::Brace,
                Delimiter::Parenthesis,
                Delimiter::Bracket,
            ]);
            TokenTree::from(Group::new(delimiter, part.into_iter().collect())).into()
        }
        3 => part
            .into_iter()
            .flat_map(|token| match token {
                TokenTree::Group(group) => group.stream(),
                token => token.into(),
            })
            .collect(),
        4 => part.into_iter().rev().collect(),
        5 => some(other.clone(), chance)
            .into_iter()
            .chain(part)
            .collect(),
        _ => [odd_token(chance)].into_iter().chain(part).collect(),
    };
    tokens.splice(from..to, new);
    tokens.into_iter().collect()
}

/// A few consecutive tokens, from any depth.
fn some(tokens: TokenStream, chance: &mut Chance) -> TokenStream {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    if tokens.is_empty() {
        return TokenStream::new();
    }
    let from = chance.below(tokens.len());
    match &tokens[from] {
        TokenTree::Group(group) if chance.one_in(2) => some(group.stream(), chance),
        _ => tokens[from..]
            .iter()
            .take(1 + chance.below(4))
            .cloned()
            .collect(),
    }
}

const WORDS: [&str; 30] = [
    "fn",
    "self",
    "Self",
    "crate",
    "super",
    "try",
    "async",
    "const",
    "unsafe",
    "extern",
    "static",
    "mut",
    "ref",
    "dyn",
    "impl",
    "where",
    "for",
    "move",
    "await",
    "gen",
    "safe",
    "_",
    "ms",
    "token",
    "run",
    "cancel_token",
    "timeout",
    "pub",
    "r#type",
    "Future",
];

const LITERALS: [&str; 14] = [
    "0",
    "5",
    "1.5",
    "5ms",
    "99999999999999999999999",
    "'x'",
    "b'x'",
    "\"\"",
    "\"{cancel_token}\"",
    "\"1m 30s\"",
    "r#\"x\"#",
    "c\"x\"",
    "-5",
    "0x",
];

const SIGNS: [char; 16] = [
    ',', ';', ':', '=', '&', '\'', '#', '!', '.', '$', '<', '>', '|', '@', '?', '-',
];

fn odd_token(chance: &mut Chance) -> TokenTree {
    match chance.below(4) {
        0 => word(chance.pick(&WORDS)),
        1 => {
            let text = chance.pick(&LITERALS);
            text.parse().map_or_else(|_| word("x"), TokenTree::Literal)
        }
        2 => Group::new(
            chance.pick(&[
                Delimiter::None,
                Delimiter::Brace,
                Delimiter::Parenthesis,
                Delimiter::Bracket,
            ]),
            TokenStream::new(),
        )
        .into(),
        _ => Punct::new(
            chance.pick(&SIGNS),
            chance.pick(&[Spacing::Alone, Spacing::Joint]),
        )
        .into(),
    }
}

fn word(text: &str) -> TokenTree {
    match text.strip_prefix("r#") {
        Some(raw) => Ident::new_raw(raw, Span::call_site()).into(),
        None => Ident::new(text, Span::call_site()).into(),
    }
}

/// A case whose text was changed. `None` if the new text is not a sequence of tokens.
pub(super) fn of_text(corpus: &Corpus, chance: &mut Chance) -> Option<Case> {
    let (case, other) = (corpus.case(chance), corpus.case(chance));
    let mut args = case.args.to_string();
    let mut item = case.item.to_string();
    for _ in 0..=chance.below(3) {
        if chance.one_in(2) {
            change(&mut args, &other.args.to_string(), chance);
        } else {
            change(&mut item, &other.item.to_string(), chance);
        }
    }
    Some(Case {
        args: args.parse().ok()?,
        item: item.parse().ok()?,
        mistakes: None,
    })
}

fn change(text: &mut String, other: &str, chance: &mut Chance) {
    let (from, to) = part(text, chance);
    let new = match chance.below(5) {
        0 => String::new(),
        1 => text[from..to].repeat(2),
        2 => text[from..to].chars().rev().collect(),
        3 => {
            let (from, to) = part(other, chance);
            other[from..to].to_owned()
        }
        _ => odd_token(chance).to_string(),
    };
    text.replace_range(from..to, &new);
}

/// The range of a few consecutive characters.
fn part(text: &str, chance: &mut Chance) -> (usize, usize) {
    let places: Vec<usize> = text
        .char_indices()
        .map(|(at, _)| at)
        .chain([text.len()])
        .collect();
    let from = chance.below(places.len());
    let to = (places.len() - 1).min(from + chance.below(8));
    (places[from], places[to])
}
