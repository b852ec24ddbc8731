//! Parses the arguments of the attribute: one table of options, each of which fills one slot once.

use std::fmt::Display;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, Path, Token};

use crate::editor::Typed;
use crate::errors::Errors;
use crate::groups;
use crate::slot::{Given, Slot};
use crate::suggest::{self, expected};
use crate::values::{self, Place, Time, Value};

/// The options of one use of the attribute, each value checked on its own.
#[derive(Default)]
pub(crate) struct Args {
    pub(crate) name: Slot<TokenStream>,
    pub(crate) ms: Slot<TokenStream>,
    pub(crate) secs: Slot<TokenStream>,
    pub(crate) limit: Slot<Time>,
    pub(crate) cancel: Slot<bool>,
    pub(crate) grace: Slot<Time>,
    pub(crate) run: Slot<Place>,
    pub(crate) token: Slot<Ident>,
    pub(crate) upstream: Slot<Vec<TokenStream>>,
    pub(crate) deadline: Slot<TokenStream>,
    pub(crate) inherit: Slot<bool>,
    pub(crate) fallback: Slot<TokenStream>,
    pub(crate) on_late: Slot<TokenStream>,
    pub(crate) max_abandoned: Slot<TokenStream>,
    pub(crate) runtime: Slot<Path>,
    /// All options as typed, in order.
    pub(crate) typed: Vec<Typed>,
    /// A part of the text was not understood, so it may have been meant as any option that is
    /// absent.
    pub(crate) garbled: bool,
}

/// An option word, the form of its value, and the function that reads the value.
pub(crate) struct Key {
    pub(crate) word: &'static str,
    pub(crate) takes: &'static str,
    pub(crate) example: &'static str,
    /// Words for this option in other libraries.
    near: &'static [&'static str],
    read: fn(Reading<'_>, &mut Args),
}

impl Key {
    /// Describes the form that the value must have.
    pub(crate) fn expects(&self) -> String {
        let Self {
            word,
            takes,
            example,
            ..
        } = self;
        format!("`{word}` takes {takes}, as in `{example}`")
    }

    /// The error for a value of the wrong kind.
    pub(crate) fn refuse(&self, value: &impl ToTokens) -> syn::Error {
        syn::Error::new_spanned(value, self.expects())
    }

    /// The error for a value of the right kind that breaks `rule`.
    pub(crate) fn refuse_with(&self, value: &impl ToTokens, rule: impl Display) -> syn::Error {
        syn::Error::new_spanned(value, format_args!("`{}` {rule}", self.word))
    }
}

/// All options, in the order in which error messages list them.
static KEYS: [Key; 15] = [
    Key {
        word: "name",
        takes: "a string",
        example: r#"name = "scan""#,
        near: &["label", "id"],
        read: |option, args| option.fill(&mut args.name, values::text),
    },
    Key {
        word: "ms",
        takes: "an integer",
        example: "ms = 50",
        near: &["after", "millis", "milliseconds"],
        read: |option, args| option.fill(&mut args.ms, values::count),
    },
    Key {
        word: "secs",
        takes: "an integer",
        example: "secs = 5",
        near: &["seconds", "s"],
        read: |option, args| option.fill(&mut args.secs, values::count),
    },
    Key {
        word: "limit",
        takes: "a duration",
        example: r#"limit = "1m 30s""#,
        near: &["timeout", "duration", "within"],
        read: |option, args| option.fill(&mut args.limit, values::time),
    },
    Key {
        word: "cancel",
        takes: "`true` or `false`",
        example: "cancel = false",
        near: &["cancellable", "cancel_on_timeout", "cooperative"],
        read: |option, args| option.fill(&mut args.cancel, values::flag),
    },
    Key {
        word: "grace",
        takes: "a duration",
        example: r#"grace = "250ms""#,
        near: &["grace_period"],
        read: |option, args| option.fill(&mut args.grace, values::time),
    },
    Key {
        word: "run",
        takes: "a string",
        example: r#"run = "inline""#,
        near: &["mode", "on", "spawn"],
        read: |option, args| option.fill(&mut args.run, values::run),
    },
    Key {
        word: "token",
        takes: "an identifier",
        example: "token = stop",
        near: &["cancel_token", "signal"],
        read: |option, args| option.fill(&mut args.token, values::identifier),
    },
    Key {
        word: "upstream",
        takes: "tokens",
        example: "upstream = [shutdown, request]",
        near: &["parent", "parents", "linked"],
        read: |option, args| option.fill(&mut args.upstream, values::references),
    },
    Key {
        word: "deadline",
        takes: "a `Deadline` or an `Instant`",
        example: "deadline = request.deadline",
        near: &["until", "at"],
        read: |option, args| option.fill(&mut args.deadline, values::moment),
    },
    Key {
        word: "inherit",
        takes: "`true` or `false`",
        example: "inherit = false",
        near: &["detached", "propagate"],
        read: |option, args| option.fill(&mut args.inherit, values::flag),
    },
    Key {
        word: "fallback",
        takes: "a function of `TimeoutError`",
        example: "fallback = |_| 0",
        near: &["default", "on_timeout", "or_else"],
        read: |option, args| option.fill(&mut args.fallback, values::function),
    },
    Key {
        word: "on_late",
        takes: "a function of the return type",
        example: "on_late = give_back",
        near: &["late", "on_abandoned", "reclaim", "dispose", "cleanup"],
        read: |option, args| option.fill(&mut args.on_late, values::function),
    },
    Key {
        word: "max_abandoned",
        takes: "an integer",
        example: "max_abandoned = 8",
        near: &["max_concurrent", "capacity"],
        read: |option, args| option.fill(&mut args.max_abandoned, values::count),
    },
    Key {
        word: "crate",
        takes: "a path",
        example: "crate = facade::timeout_runtime",
        near: &["crate_path", "crate_name", "krate"],
        read: |option, args| option.fill(&mut args.runtime, values::path),
    },
];

impl Args {
    /// Parses all of `tokens`, even after mistakes.
    pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut args = Self::default();
        let options = |input: ParseStream<'_>| {
            let mut place = 0;
            while !input.is_empty() {
                args.option(input, place, errors);
                place += 1;
            }
            Ok(())
        };
        // The options consume all tokens and report the tokens that they do not understand.
        let _: syn::Result<()> = options.parse2(groups::opened(tokens));
        args
    }

    /// The expressions that are evaluated in front of the operation, as typed. Absent ones are
    /// empty.
    pub(crate) fn expressions(&self) -> [TokenStream; 9] {
        // A path in quotes was typed as a literal, so the parsed value is used.
        let function = |slot: &Slot<TokenStream>| {
            slot.given()
                .map(|given| given.value.clone())
                .unwrap_or_default()
        };
        [
            self.ms.typed(),
            self.secs.typed(),
            self.limit.typed(),
            self.grace.typed(),
            self.upstream.typed(),
            self.deadline.typed(),
            function(&self.fallback),
            function(&self.on_late),
            self.max_abandoned.typed(),
        ]
    }

    /// Reads one option and the comma after it.
    fn option(&mut self, input: ParseStream<'_>, place: usize, errors: &mut Errors) {
        if let Some(word) = word(input) {
            let behind = input.fork();
            self.named_option(word.clone(), input, place, errors);
            let behind = values::between(&behind, input);
            self.typed.push(Typed::new(word, behind));
        } else {
            self.garbled = true;
            errors.push(self.no_option(input));
            skip_value(input);
        }
        if !input.is_empty() && input.parse::<Token![,]>().is_err() {
            self.garbled = true;
            errors.push(input.error("expected `,`"));
            skip_value(input);
            let _: syn::Result<Token![,]> = input.parse();
        }
    }

    /// The error for tokens that are not an option: most likely a limit without its option word.
    fn no_option(&self, input: ParseStream<'_>) -> syn::Error {
        let value = input.fork().parse::<Expr>().ok();
        let meant = value.as_ref().filter(|_| self.has_no_limit());
        let expected = expected(meant.and_then(values::as_limit), words());
        match value {
            Some(value) => syn::Error::new_spanned(value, expected),
            None => input.error(expected),
        }
    }

    /// Whether no option so far sets the limit.
    pub(crate) fn has_no_limit(&self) -> bool {
        self.ms.is_absent() && self.secs.is_absent() && self.limit.is_absent()
    }

    /// Reads the part of an option that follows its word.
    fn named_option(
        &mut self,
        word: Ident,
        input: ParseStream<'_>,
        place: usize,
        errors: &mut Errors,
    ) {
        if let Some(key) = KEYS.iter().find(|key| word == key.word) {
            let reading = Reading {
                key,
                word,
                place,
                input,
                errors,
            };
            (key.read)(reading, self);
        } else {
            self.garbled = true;
            errors.add(&word, unknown(&word));
            skip_value(input);
        }
    }
}

/// One option whose word has been read. The input is at its `=`.
struct Reading<'a> {
    key: &'static Key,
    word: Ident,
    place: usize,
    input: ParseStream<'a>,
    errors: &'a mut Errors,
}

impl Reading<'_> {
    /// Reads the value into `slot`, if the slot is empty and `check` accepts the value.
    fn fill<T>(self, slot: &mut Slot<T>, check: fn(&Value, &Key) -> syn::Result<T>) {
        let Self {
            key,
            word,
            place,
            input,
            errors,
        } = self;
        let value = value(key, &word, input);
        if !slot.is_absent() {
            return errors.add(word, format_args!("option `{}` is given twice", key.word));
        }
        let checked = value.and_then(|value| Ok((check(&value, key)?, value.typed)));
        *slot = match checked {
            Ok((value, typed)) => Slot::Given(Given {
                value,
                word,
                typed,
                place,
            }),
            Err(error) => {
                errors.push(error);
                Slot::Refused
            }
        };
    }
}

/// Reads `= value`. After a failure, `input` is at the next option.
fn value(key: &Key, word: &Ident, input: ParseStream<'_>) -> syn::Result<Value> {
    let Ok(equals) = input.parse::<Token![=]>() else {
        skip_value(input);
        return Err(syn::Error::new_spanned(word, key.expects()));
    };
    // No value begins with the rest of `==` or `=>`.
    let missing =
        input.is_empty() || input.peek(Token![,]) || input.peek(Token![=]) || input.peek(Token![>]);
    let value = input.parse::<Value>();
    value.map_err(|error| {
        skip_value(input);
        // An error at the end of the input has the span of the whole attribute, which does not show
        // the place.
        let broken_off = format!("{:?}", error.span()) == format!("{:?}", Span::call_site());
        if missing || broken_off {
            syn::Error::new_spanned(equals, key.expects())
        } else {
            error
        }
    })
}

/// Reads the word of an option, unless it is part of a value such as `config.limit` or
/// `Duration::MAX`.
fn word(input: ParseStream<'_>) -> Option<Ident> {
    let goes_on = input.peek2(Token![::]) || input.peek2(Token![.]) || input.peek2(Token![!]);
    if goes_on {
        None
    } else {
        input.call(Ident::parse_any).ok()
    }
}

/// Skips to the next comma that an option follows, or to the end. Other commas may be part of a
/// broken value.
fn skip_value(input: ParseStream<'_>) {
    while !input.is_empty() && !in_front_of_option(input) {
        let _: syn::Result<TokenTree> = input.parse();
    }
}

fn in_front_of_option(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    let comma = ahead.parse::<Token![,]>().is_ok();
    let word = || ahead.call(Ident::parse_any).is_ok();
    let after_word = || ahead.is_empty() || ahead.peek(Token![=]) || ahead.peek(Token![,]);
    comma && (ahead.is_empty() || (word() && after_word()))
}

/// Whether `word` is an option.
pub(crate) fn is_option(word: &Ident) -> bool {
    KEYS.iter().any(|key| word == key.word)
}

/// The words of all options.
#[cfg(test)]
pub(crate) fn options() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.word)
}

fn words() -> String {
    KEYS.iter()
        .map(|key| format!("`{}`", key.word))
        .collect::<Vec<_>>()
        .join(", ")
}

fn unknown(word: &Ident) -> String {
    let typed = word.to_string();
    let near = || {
        KEYS.iter()
            .find(|key| key.near.contains(&typed.as_str()))
            .map(|key| key.word)
    };
    let meant = match typed.as_str() {
        place @ ("worker" | "inline" | "task") => Some(format!("run = \"{place}\"")),
        typed => suggest::nearest(typed, KEYS.iter().map(|key| key.word))
            .or_else(near)
            .map(str::to_owned),
    };
    format!("unknown option `{typed}`; {}", expected(meant, words()))
}
