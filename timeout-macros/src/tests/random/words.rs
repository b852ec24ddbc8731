//! The parts from which random attributes and functions are built.

/// All options.
pub(super) const OPTIONS: [&str; 15] = [
    "name",
    "ms",
    "secs",
    "limit",
    "cancel",
    "grace",
    "run",
    "token",
    "upstream",
    "deadline",
    "inherit",
    "fallback",
    "on_late",
    "max_abandoned",
    "crate",
];

/// Stands for the word of the limit without a word.
pub(super) const UNNAMED: &str = "";

/// Valid values. None mentions a part of a pattern in [`PATTERNS`].
pub(super) fn right(option: &str) -> &'static [&'static str] {
    match option {
        "name" => &[
            "\"f\"",
            "NAME",
            "r#\"a \"b\" {\"#",
            "concat!(\"a\", \"b\")",
            "Self::NAME",
            "\"\"",
        ],
        "ms" | "secs" | "max_abandoned" => &[
            "5",
            "0x1f",
            "1_000u64",
            "u64::MAX",
            "self.count()",
            "if x { 1 } else { 2 }",
            "5 + 5",
            "(5)",
            "18446744073709551615",
        ],
        UNNAMED | "limit" | "grace" => &[
            "\"1m 30s\"",
            "\" 5ms\"",
            "Duration::MAX",
            "config().limit",
            "{ LIMIT }",
            "limit!()",
        ],
        "cancel" | "inherit" => &["true", "false"],
        "run" => &["\"worker\"", "\"inline\"", "\"task\""],
        "token" => &["stop", "cancel_token", "r#type", "union", "t", "\"stop\""],
        "upstream" => &[
            "shutdown",
            "[]",
            "[one, two.token(), &three]",
            "self.tokens[0]",
            "x..y",
            "-x",
            "if x { y } else { z }",
            "x as T",
        ],
        "deadline" => &[
            "until",
            "Deadline::never()",
            "request.deadline",
            "from - to",
        ],
        "fallback" => &[
            "|_| None",
            "panic_on_timeout",
            "|error: TimeoutError| -> Option<u8> { None }",
            "move |_| x",
            "f::<T>",
            "\"panic_on_timeout\"",
        ],
        "on_late" => &[
            "drop",
            "|late| pool.put(late)",
            "|_: Option<u8>| {}",
            "{ let pool = pool.clone(); move |late| pool.put(late) }",
            "self.give_back()",
            "\"Self::give_back\"",
        ],
        "crate" => &[
            "facade",
            "::facade::timeout_runtime",
            "crate::runtime",
            "\"a::b\"",
            "self::x",
        ],
        _ => unreachable!("every option has an arm"),
    }
}

/// Invalid values. Each is one mistake.
pub(super) fn wrong(option: &str) -> &'static [&'static str] {
    match option {
        "name" => &["5", "true", "'x'", "b\"x\"", "-5"],
        "ms" | "secs" | "max_abandoned" => &[
            "0",
            "-1",
            "1.5",
            "\"5\"",
            "5ms",
            "99999999999999999999",
            "true",
            "0x0",
        ],
        "limit" | "grace" => &[
            "5",
            "\"\"",
            "\"0s\"",
            "\"5 sec\"",
            "\"1.5s\"",
            "true",
            "\"99999999999999999999999h\"",
            "\"\u{b5}\\u{0}\"",
        ],
        UNNAMED => &[
            "5",
            "5ms",
            "5u8",
            "\"scan\"",
            "\"\"",
            "\"0s\"",
            "\"5 sec\"",
            "1.5",
            "-5",
            "true",
        ],
        "cancel" | "inherit" => &["1", "maybe", "\"true\"", "!true"],
        "run" => &["\"inlin\"", "inline", "5", "\"\"", "\"worker \""],
        "token" => &["\"x y\"", "self", "a::b", "5", "crate", "f()", "_"],
        "upstream" => &["5", "\"a\"", "[x, 5]", "-1"],
        "deadline" => &["5", "\"5s\"", "'x'", "1.5"],
        "on_late" => &["5", "|| {}", "|x, y| drop(x)", "true"],
        "fallback" => &["5", "|| 0", "|x, y| 0", "\"x y\""],
        "crate" => &[
            "5", "\"a b\"", "f()", "a::<u8>", "\"\"", "a::try", "\"fn\"", "\"a::_\"",
        ],
        _ => unreachable!("every option has an arm"),
    }
}

/// Text that may follow a half-typed option word.
pub(super) const HALF: [&str; 12] = [
    "",
    " =",
    " = 5 +",
    "(5)",
    ": 5",
    " == 5",
    " = x.",
    " = f(,)",
    " = =",
    " = try",
    " = x., 5",
    " = [x; 1 2]",
];

/// Text that is not an option, for the place of one.
pub(super) const NO_OPTION: [&str; 11] = [
    "5",
    "colour = 1",
    "Ms = 5",
    "after(5)",
    "\"1s\"",
    "x.y",
    "=",
    "+ 5",
    "inline",
    "'a",
    "{ }",
];

pub(super) const ATTRIBUTES: [&str; 7] = [
    "#[a::test]",
    "#[doc = \"x\"]",
    "/// x\n",
    "#[inline]",
    "#[cfg(x)]",
    "#[a::b(c, => )]",
    "#[cfg_attr(x, must_use)]",
];

pub(super) const GENERICS: [&str; 6] = [
    "",
    "<>",
    "<T>",
    "<'a, T: Tr + 'a + ?Sized, const N: usize>",
    "<T: Tr<X = u8> = u8,>",
    "<#[a] T, const C: char>",
];

pub(super) const CLAUSES: [&str; 4] = [
    "",
    "where T: Copy ",
    "where for<'b> &'b T: Into<u8>, ",
    "where ",
];

pub(super) const PATTERNS: [&str; 17] = [
    "x",
    "mut x",
    "_",
    "(p, q)",
    "[p, .., q]",
    "S { p, ref q, .. }",
    "p @ 1..=2",
    "ref p",
    "ref mut p",
    "&p",
    "r#fn",
    "1",
    "(mut p, _)",
    "m!(p)",
    "(E::P(p) | E::Q(p))",
    "S { 0: p, .. }",
    "()",
];

pub(super) const OWNED: [&str; 10] = [
    "u32",
    "Vec<T>",
    "&'static str",
    "[u8; N]",
    "impl Into<u32> + Send",
    "fn(&str) -> &u8",
    "(A, B)",
    "Box<dyn for<'x> Fn(&'x u8)>",
    "<T as Tr>::X",
    "m!(x)",
];

pub(super) const BORROWS: [&str; 8] = [
    "&str",
    "&mut [u8]",
    "Cow<'_, str>",
    "Option<&'a T>",
    "impl Iterator<Item = &u8>",
    "Pin<&mut T>",
    "&&'static u8",
    "Box<dyn Tr + 'a>",
];

pub(super) const ANSWERS: [&str; 7] = [
    "Option<u8>",
    "Result<(), E>",
    "(Answer)",
    "impl Tr",
    "Result<impl Tr + use<>, Box<dyn E>>",
    "Box<dyn Tr>",
    "m!()",
];

pub(super) const BODIES: [&str; 12] = [
    "{}",
    "{ None }",
    "{ cancel_token.check()?; None }",
    "{ #![allow(unused)] #![doc = \"{}\"] stop }",
    "{ \"{stop:?} {cancel_token}\" }",
    "{ let x = ; }",
    "{ $x @ # 5 }",
    "{ foo( r#type.).. => }",
    "{ s. }",
    "{ #! x }",
    "{ #![a] #! [b] #!(c) t }",
    "{ try { union } }",
];
