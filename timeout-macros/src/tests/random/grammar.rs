//! Generates attributes and functions from their grammar, with a known number of mistakes.

use proc_macro2::TokenStream;

use super::Case;
use super::chance::Chance;
use super::words::{self, OPTIONS, UNNAMED, right, wrong};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sync,
    Async,
    Future,
}

/// Generates a use of the attribute, with or without mistakes.
pub(super) fn case(chance: &mut Chance) -> Case {
    let kind = chance.pick(&[Kind::Sync, Kind::Sync, Kind::Async, Kind::Future]);
    let mut attribute = Attribute::right(kind, chance);
    if chance.one_in(2) {
        attribute.spoil(chance);
    }
    let item = Item::by_chance(kind, chance);
    let elsewhere = if attribute.moves_away(kind) {
        item.mistakes_elsewhere
    } else {
        0
    };
    let silent = usize::from(item.is_silent && !attribute.garbled && !attribute.has("fallback"));
    Case {
        args: parse(&attribute.text(chance)),
        item: parse(&item.text),
        mistakes: Some(attribute.mistakes + item.mistakes + elsewhere + silent),
    }
}

fn parse(text: &str) -> TokenStream {
    text.parse()
        .unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// Options in order, each with the text after its word. The limit without a word has an empty one.
struct Attribute {
    options: Vec<(&'static str, String)>,
    /// The index of an option without a comma in front.
    joined: Option<usize>,
    /// A part was not understood, and may have been meant as any option.
    garbled: bool,
    mistakes: usize,
}

impl Attribute {
    fn right(kind: Kind, chance: &mut Chance) -> Self {
        let mut words = vec![chance.pick(&["ms", "secs", "limit", "deadline", UNNAMED])];
        for word in [
            "name",
            "token",
            "upstream",
            "deadline",
            "inherit",
            "fallback",
            "on_late",
            "max_abandoned",
            "crate",
        ] {
            if !words.contains(&word) && chance.one_in(4) {
                words.push(word);
            }
        }
        let mut options: Vec<_> = words
            .into_iter()
            .map(|word| (word, after(word, chance.pick(right(word)))))
            .collect();
        options.extend(way_to_run(kind, chance));
        for at in (1..options.len()).rev() {
            options.swap(at, chance.below(at + 1));
        }
        if let Some(at) = options.iter().position(|(word, _)| *word == UNNAMED) {
            options.swap(0, at);
        }
        Self {
            options,
            joined: None,
            garbled: false,
            mistakes: 0,
        }
    }

    fn has(&self, word: &str) -> bool {
        self.options.iter().any(|(known, _)| *known == word)
    }

    /// Adds some mistakes. At most one of them makes the end of an option ambiguous.
    fn spoil(&mut self, chance: &mut Chance) {
        if chance.one_in(2) {
            let at = chance.below(self.options.len());
            let word = self.options[at].0;
            self.options[at].1 = after(word, chance.pick(wrong(word)));
            self.mistakes += 1;
        }
        let absent: Vec<_> = OPTIONS.into_iter().filter(|word| !self.has(word)).collect();
        if chance.one_in(2) {
            let word = chance.pick(&absent);
            self.insert(word, format!(" = {}", chance.pick(wrong(word))), chance);
        }
        if chance.one_in(3) {
            let word = self.options[chance.below(self.options.len())].0;
            if word != UNNAMED {
                // A second value is a mistake for any value, and the first one counts.
                let text = after(word, chance.pick(right(word)));
                self.options.push((word, text));
                self.mistakes += 1;
            }
        }
        match chance.below(3) {
            0 => {
                // In first place, some of these are limits.
                let at = 1 + chance.below(self.options.len());
                let text = chance.pick(&words::NO_OPTION).to_owned();
                self.options.insert(at, ("", text));
                self.mistakes += 1;
                self.garbled = true;
            }
            1 => {
                let absent: Vec<_> = OPTIONS.into_iter().filter(|word| !self.has(word)).collect();
                let half = chance.pick(&words::HALF).to_owned();
                self.insert(chance.pick(&absent), half, chance);
            }
            _ if self.mistakes == 0 && self.options.len() > 1 => {
                self.joined = Some(1 + chance.below(self.options.len() - 1));
                self.garbled = true;
                self.mistakes += 1;
            }
            _ => {}
        }
    }

    fn insert(&mut self, word: &'static str, text: String, chance: &mut Chance) {
        let first = usize::from(self.has(UNNAMED));
        let at = first + chance.below(self.options.len() + 1 - first);
        self.options.insert(at, (word, text));
        self.mistakes += 1;
    }

    /// Whether the operation moves to a worker or a task, as far as the attribute is understood.
    fn moves_away(&self, kind: Kind) -> bool {
        let value = |word: &str| {
            let mut options = self.options.iter().enumerate();
            let (_, (_, text)) =
                options.find(|(at, (known, _))| *known == word && self.joined != Some(*at))?;
            Some(text.strip_prefix(" = ").unwrap_or("half typed"))
        };
        let cancel = value("cancel").unwrap_or("true");
        let run = value("run").unwrap_or(match kind {
            _ if self.garbled => "unknown",
            Kind::Sync => "\"worker\"",
            Kind::Async if cancel == "false" => "\"task\"",
            Kind::Async | Kind::Future => "\"inline\"",
        });
        ["\"worker\"", "\"task\""].contains(&run)
    }

    fn text(&self, chance: &mut Chance) -> String {
        let mut text = String::new();
        for (at, (word, value)) in self.options.iter().enumerate() {
            let comma = if at == 0 {
                ""
            } else if self.joined == Some(at) {
                " "
            } else {
                ", "
            };
            text.extend([comma, word, value]);
        }
        if chance.one_in(3) {
            text.push(',');
        }
        text
    }
}

/// The text of a value after its option word.
fn after(word: &str, value: &str) -> String {
    if word == UNNAMED {
        value.to_owned()
    } else {
        format!(" = {value}")
    }
}

/// Generates `run`, `cancel` and `grace`, with values that do not contradict each other.
fn way_to_run(kind: Kind, chance: &mut Chance) -> Vec<(&'static str, String)> {
    let run = match kind {
        Kind::Sync => chance.pick(&[None, Some("worker"), Some("inline")]),
        Kind::Async => chance.pick(&[None, Some("worker"), Some("inline"), Some("task")]),
        Kind::Future => chance.pick(&[None, Some("inline")]),
    };
    let may_outlive = kind != Kind::Future && run != Some("inline");
    let cancel = match chance.below(3) {
        0 => Some(true),
        1 if may_outlive => Some(false),
        _ => None,
    };
    let mut options = Vec::new();
    options.extend(run.map(|place| ("run", format!(" = \"{place}\""))));
    options.extend(cancel.map(|cancel| ("cancel", format!(" = {cancel}"))));
    if cancel != Some(false) && chance.one_in(3) {
        options.push(("grace", format!(" = {}", chance.pick(right("grace")))));
    }
    options
}

struct Item {
    text: String,
    mistakes: usize,
    /// Further mistakes, if the operation moves to a worker or a task.
    mistakes_elsewhere: usize,
    /// Whether the function returns nothing and cannot be a test, which is a mistake without
    /// `fallback`.
    is_silent: bool,
}

impl Item {
    fn by_chance(kind: Kind, chance: &mut Chance) -> Self {
        let mut item = Self {
            text: String::new(),
            mistakes: 0,
            mistakes_elsewhere: 0,
            is_silent: false,
        };
        let mut may_be_test = item.qualifiers(kind, chance);
        let name = chance.pick(&[
            "f",
            "r#fn",
            "cancel_token",
            "t\u{e9}st",
            "__options",
            "union",
        ]);
        let generics = chance.pick(&words::GENERICS);
        item.push(&[" fn ", name, generics, "("]);
        let begin = item.text.len();
        item.receiver(chance);
        for _ in 0..chance.below(4) {
            item.param(chance);
        }
        may_be_test |= kind == Kind::Sync
            && item.mistakes_elsewhere == 0
            && item.text.len() == begin
            && ["", "<>"].contains(&generics);
        if chance.one_in(16) {
            item.push(&[chance.pick(&["...", "last: ..."])]);
            item.mistakes += 1;
        }
        item.push(&[")"]);
        item.output(kind, chance);
        item.is_silent &= !may_be_test;
        item.push(&[
            " ",
            chance.pick(&words::CLAUSES),
            chance.pick(&words::BODIES),
        ]);
        item
    }

    fn push(&mut self, parts: &[&str]) {
        self.text.extend(parts.iter().copied());
    }

    /// Adds attributes and qualifiers. Returns whether an attribute makes the function a test.
    fn qualifiers(&mut self, kind: Kind, chance: &mut Chance) -> bool {
        for _ in 0..chance.below(3) {
            self.push(&[chance.pick(&words::ATTRIBUTES), " "]);
        }
        let is_test = self.text.contains("test]");
        self.push(&[chance.pick(&["", "pub", "pub(crate)", "pub(in super::x)"])]);
        if chance.one_in(16) {
            self.push(&[" const"]);
            self.mistakes += 1;
        }
        if kind == Kind::Async {
            self.push(&[" async"]);
        }
        if chance.one_in(16) {
            self.push(&[" unsafe"]);
            self.mistakes_elsewhere += 1;
        }
        if chance.one_in(16) {
            self.push(&[chance.pick(&[" extern", " extern \"C\"", " extern r\"C\""])]);
            self.mistakes += 1;
        }
        is_test
    }

    fn receiver(&mut self, chance: &mut Chance) {
        if chance.one_in(2) {
            return;
        }
        let condition = self.condition(chance);
        if chance.one_in(2) {
            let owned = chance.pick(&[
                "self",
                "mut self",
                "self: Arc<Self>",
                "mut self: Box<Self>",
                "&'static self",
            ]);
            self.push(&[owned, ", "]);
        } else {
            let borrowed = chance.pick(&[
                "&self",
                "&mut self",
                "&'a self",
                "self: &Self",
                "self: Pin<&mut Self>",
            ]);
            self.push(&[borrowed, ", "]);
            self.mistakes_elsewhere += usize::from(!condition);
        }
    }

    /// Adds an attribute to a parameter, or none. Returns whether it is a condition, so that the
    /// parameter may be absent.
    fn condition(&mut self, chance: &mut Chance) -> bool {
        let attribute = chance.pick(&[
            "",
            "",
            "",
            "#[cfg(x)] ",
            "#[cfg_attr(x, cfg(y))] ",
            "#[allow(unused)] ",
            "#[cfg_attr(x, expect(unused), y)] ",
            "#[doc = \"x\"] ",
        ]);
        self.push(&[attribute]);
        attribute.contains(" cfg(") || attribute.starts_with("#[cfg(")
    }

    fn param(&mut self, chance: &mut Chance) {
        let condition = self.condition(chance);
        let pattern = chance.pick(&words::PATTERNS);
        if chance.one_in(4) {
            self.push(&[pattern, ": ", chance.pick(&words::BORROWS), ", "]);
            self.mistakes_elsewhere += usize::from(!condition);
        } else {
            self.push(&[pattern, ": ", chance.pick(&words::OWNED), ", "]);
        }
    }

    fn output(&mut self, kind: Kind, chance: &mut Chance) {
        let never = chance.one_in(16);
        self.mistakes += usize::from(never);
        let result_type = if never {
            chance.pick(&["!", "(!)"])
        } else {
            chance.pick(&words::ANSWERS)
        };
        match kind {
            Kind::Sync | Kind::Async if !never && chance.one_in(8) => self.is_silent = true,
            Kind::Sync | Kind::Async => self.push(&[" -> ", result_type]),
            Kind::Future if chance.one_in(2) => self.push(&[
                " -> impl Send + core::future::Future<Output = ",
                result_type,
                "> + use<>",
            ]),
            Kind::Future => self.push(&[
                " -> Pin<Box<dyn Future<Output = ",
                result_type,
                "> + Send + '_>>",
            ]),
        }
    }
}
