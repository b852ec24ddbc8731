//! Parses the arguments of the attribute. Each option of the table fills one slot once.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, Path, Token};

use crate::editor::Typed;
use crate::errors::Errors;
use crate::groups;
use crate::keys::{KEYS, Key, UNNAMED, unknown, words};
use crate::slot::{Given, Slot};
use crate::suggest::expected;
use crate::unnamed;
use crate::values::{self, Place, Time, Value};

/// The options of one use of the attribute, each value checked on its own.
#[derive(Default)]
pub(crate) struct Args {
    pub(crate) name: Slot<TokenStream>,
    pub(crate) ms: Slot<TokenStream>,
    pub(crate) secs: Slot<TokenStream>,
    pub(crate) limit: Slot<Time>,
    /// The limit without an option word, in first place.
    pub(crate) unnamed: Slot<Time>,
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
    pub(crate) fn expressions(&self) -> [TokenStream; 10] {
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
            self.unnamed.typed(),
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
        let word = if place == 0 && unnamed::is_next(input) {
            None
        } else {
            word(input)
        };
        if let Some(word) = word {
            let behind = input.fork();
            self.named_option(word.clone(), input, place, errors);
            let behind = values::between(&behind, input);
            self.typed.push(Typed::new(word, behind));
        } else {
            let begin = input.fork();
            self.unnamed_option(input, place, errors);
            let value = values::between(&begin, input);
            self.typed.push(Typed::unnamed(value));
        }
        if !input.is_empty() && input.parse::<Token![,]>().is_err() {
            self.garbled = true;
            errors.push(input.error("expected `,`"));
            skip_value(input);
            let _: syn::Result<Token![,]> = input.parse();
        }
    }

    /// Reads a value without an option word: the limit, if it comes first.
    fn unnamed_option(&mut self, input: ParseStream<'_>, place: usize, errors: &mut Errors) {
        let begin = input.fork();
        let value = input.parse::<Value>().ok();
        match value.filter(|value| !matches!(value.expr, Expr::Assign(_))) {
            Some(value) if place == 0 => {
                let word = unnamed::word(&value.typed);
                let reading = Reading {
                    key: &UNNAMED,
                    word,
                    place,
                    value: Ok(value),
                    errors,
                };
                (UNNAMED.read)(reading, self);
            }
            value => {
                errors.push(self.no_option(&begin, value.as_ref()));
                self.garbled = true;
                skip_value(input);
            }
        }
    }

    /// The error for tokens that are not an option: a limit in another place than the first, or no
    /// value at all.
    fn no_option(&self, begin: ParseStream<'_>, value: Option<&Value>) -> syn::Error {
        let Some(Value { expr, typed }) = value else {
            return begin.error(expected(None::<&str>, words()));
        };
        let meant = values::as_limit(expr).filter(|_| self.has_no_limit());
        let expected = expected(meant, words());
        let message = format!("only the first argument may have no name; {expected}");
        syn::Error::new_spanned(typed, message)
    }

    /// Whether no option so far sets the limit.
    pub(crate) fn has_no_limit(&self) -> bool {
        self.ms.is_absent()
            && self.secs.is_absent()
            && self.limit.is_absent()
            && self.unnamed.is_absent()
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
            let value = value(key, &word, input);
            let reading = Reading {
                key,
                word,
                place,
                value,
                errors,
            };
            (key.read)(reading, self);
        } else {
            self.garbled = true;
            let is_alone = input.is_empty() || input.peek(Token![,]);
            errors.add(&word, unknown(&word, place == 0 && is_alone));
            skip_value(input);
        }
    }
}

/// One option that has been read, and not checked.
pub(crate) struct Reading<'a> {
    key: &'static Key,
    word: Ident,
    place: usize,
    value: syn::Result<Value>,
    errors: &'a mut Errors,
}

impl Reading<'_> {
    /// Puts the value into `slot`, if the slot is empty and `check` accepts the value.
    pub(crate) fn fill<T>(self, slot: &mut Slot<T>, check: fn(&Value, &Key) -> syn::Result<T>) {
        let Self {
            key,
            word,
            place,
            value,
            errors,
        } = self;
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

/// Reads the word of an option, unless it is part of a value.
fn word(input: ParseStream<'_>) -> Option<Ident> {
    let ahead = input.fork();
    ahead.call(Ident::parse_any).ok()?;
    if unnamed::goes_on(&ahead) {
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
