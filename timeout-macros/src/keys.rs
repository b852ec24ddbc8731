//! The table of options: their words, the forms of their values, and how each value is read.

use std::fmt::Display;

use proc_macro2::Ident;
use quote::ToTokens;

use crate::args::{Args, Reading};
use crate::suggest::{self, expected};
use crate::values;

/// An option word, the form of its value, and the function that reads the value.
pub(crate) struct Key {
    pub(crate) word: &'static str,
    pub(crate) takes: &'static str,
    pub(crate) example: &'static str,
    /// Words for this option in other libraries.
    near: &'static [&'static str],
    pub(crate) read: fn(Reading<'_>, &mut Args),
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
pub(crate) static KEYS: [Key; 15] = [
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

/// The first argument if it has no option word.
pub(crate) static UNNAMED: Key = Key {
    word: "limit",
    takes: "a duration",
    example: r#""50ms""#,
    near: &[],
    read: |option, args| option.fill(&mut args.unnamed, values::unnamed),
};

/// Whether `word` is an option.
pub(crate) fn is_option(word: &Ident) -> bool {
    KEYS.iter().any(|key| word == key.word)
}

/// The words of all options.
#[cfg(test)]
pub(crate) fn options() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.word)
}

/// The words of all options, for error messages.
pub(crate) fn words() -> String {
    KEYS.iter()
        .map(|key| format!("`{}`", key.word))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The error for a word that is not an option. With `as_limit`, the word may also be a variable
/// that was meant as the limit.
pub(crate) fn unknown(word: &Ident, as_limit: bool) -> String {
    let typed = word.to_string();
    let meant = meant(&typed).map(|meant| {
        if as_limit {
            format!("{meant}`, or `limit = {typed}")
        } else {
            meant
        }
    });
    format!("unknown option `{typed}`; {}", expected(meant, words()))
}

/// The option that was probably meant by `typed`: a place to run, the start of an option word, a
/// misspelt one, or the word for it in another library.
pub(crate) fn meant(typed: &str) -> Option<String> {
    if let "worker" | "inline" | "task" = typed {
        return Some(format!("run = \"{typed}\""));
    }
    let all = || KEYS.iter().map(|key| key.word);
    let near = KEYS.iter().find(|key| key.near.contains(&typed));
    near.map(|key| key.word)
        .or_else(|| suggest::nearest(typed, all()))
        .or_else(|| all().find(|word| !typed.is_empty() && word.starts_with(typed)))
        .map(str::to_owned)
}
