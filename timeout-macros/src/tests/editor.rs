//! Tests of the expansion in an editor: identifiers that are tokens of the input, and half-typed
//! input.

use proc_macro2::{TokenStream, TokenTree};

use super::expand;
use super::mistakes::errors;

/// An identifier of an expansion, with the position of the input token that it is taken from.
#[derive(Debug, PartialEq, Eq)]
struct Word {
    text: String,
    /// `None` for an identifier that the macro generated.
    place: Option<usize>,
    /// The number of macro calls around it.
    macros: usize,
}

/// All identifiers of `tokens` in order. The input was `source`.
fn words(source: &str, tokens: TokenStream) -> Vec<Word> {
    let mut words = Vec::new();
    collect(source, tokens, 0, &mut words);
    words
}

fn collect(source: &str, tokens: TokenStream, macros: usize, words: &mut Vec<Word>) {
    let (mut name, mut call) = (false, false);
    for token in tokens {
        match &token {
            TokenTree::Ident(ident) => {
                let range = ident.span().byte_range();
                let text = ident.to_string();
                let place = (source.get(range.clone()) == Some(&text)).then_some(range.start);
                words.push(Word {
                    text,
                    place,
                    macros,
                });
            }
            TokenTree::Group(group) => {
                collect(source, group.stream(), macros + usize::from(call), words);
            }
            _ => {}
        }
        call = name && matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '!');
        name = matches!(token, TokenTree::Ident(_));
    }
}

/// The names after each `let`, with or without `mut`.
fn bindings(words: &[Word]) -> Vec<&Word> {
    let is = |index: usize, text: &str| words.get(index).is_some_and(|word| word.text == text);
    (1..words.len())
        .filter(|&index| !is(index, "mut"))
        .filter(|&index| {
            is(index - 1, "let") || is(index - 1, "mut") && is(index.wrapping_sub(2), "let")
        })
        .map(|index| &words[index])
        .collect()
}

/// The positions of the input tokens that the bindings of `name` are taken from.
fn bound(words: &[Word], name: &str) -> Vec<Option<usize>> {
    let bindings = bindings(words).into_iter();
    let named = bindings.filter(|binding| binding.text == name);
    named.map(|binding| binding.place).collect()
}

// The body was an argument of `pin!`. An editor then expanded the body twice, and renaming a `mut`
// argument deleted its `mut`.
// Fails if the body is inside `pin!`.
#[test]
fn no_argument_is_bound_inside_a_macro_call() {
    for run in ["inline", "task", "worker"] {
        for arguments in [
            "mut rows: Vec<u8>, (first, mut second): (u8, u8), _: u8",
            "mut self, rows: Vec<u8>, Pair { first, second }: Pair",
            "rows: Vec<u8>, mut cancel_token: CancelToken",
        ] {
            let source = format!(
                "#[timeout(ms = 5, run = \"{run}\", fallback = |_| None)] async fn f({arguments}) -> Option<u8> \
                 {{ cancel_token.check(); rows.pop() }}"
            );
            let words = words(&source, expand(&source));
            let inside = words
                .iter()
                .find(|word| word.macros > 0 && word.place.is_some());
            assert_eq!(inside, None, "{source}");
            if arguments.contains("rows") {
                assert_eq!(bound(&words, "rows"), [source.find("rows")], "{source}");
            }
        }
    }
}

// Renaming an argument did not rename it in the attribute: the mention there was another variable
// than the one in the body.
// Fails if a mention is bound by another identifier.
#[test]
fn a_mention_in_an_option_is_repeated_after_the_binding() {
    for (args, mentions) in [
        ("limit = limits.whole", 1),
        ("limit = limits.whole, grace = limits.rest()", 2),
        ("ms = 5, fallback = |_| limits", 1),
        ("limit = pick!(limits, x.limits)", 1),
        ("ms = 5, fallback = |limits| limits", 0),
        ("ms = limits::DEFAULT, max_abandoned = x.limits", 0),
    ] {
        let source =
            format!("#[timeout({args})] fn f(mut limits: Limits) -> u8 {{ limits.next() }}");
        let words = words(&source, expand(&source));
        let binding = words
            .windows(3)
            .position(|row| row[0].text == "let" && row[2].text == "limits");
        let behind = &words[binding.expect("the argument is bound")..];
        let typed = source.find(")]").expect("the attribute ends");
        let used = behind
            .windows(3)
            .filter(|row| row[0].text == "let" && row[1].text == "_");
        let places = used.filter_map(|row| row[2].place);
        let used = places.filter(|place| *place < typed);
        assert_eq!(used.count(), mentions, "{source}");
    }
}

// The name in the attribute had no meaning, and renaming the token in the body broke the code.
// Fails if the token is bound by another identifier.
#[test]
fn the_token_is_bound_by_the_name_in_the_attribute() {
    for function in [
        "fn f() -> Option<u8> { stop.check(); println!(\"{stop}\") }",
        "fn f() -> Option<u8> { println!(\"{stop}\") }",
        "async fn f(&self) -> Option<u8> { stop.check() }",
        "fn f() -> impl Future<Output = Option<u8>> { async { stop.check() } }",
    ] {
        let source = format!("#[timeout(token = stop, ms = 5)] {function}");
        let words = words(&source, expand(&source));
        assert_eq!(bound(&words, "stop"), [source.find("stop")], "{source}");
    }
    for body in ["stop.check()", "None"] {
        let source = format!(
            "#[timeout(token = stop, ms = 5)] fn f(stop: &CancelToken) -> Option<u8> {{ {body} }}"
        );
        let words = words(&source, expand(&source));
        let used = words
            .windows(3)
            .filter(|row| row[0].text == "let" && row[1].text == "_");
        let typed = used.filter(|row| row[2].place == source.find("stop"));
        assert!(typed.count() > 0, "{source}");
    }
}

/// The input ranges of all tokens of `expansion`, groups and punctuation included.
fn places(expansion: TokenStream) -> Vec<std::ops::Range<usize>> {
    let mut all = Vec::new();
    for token in expansion {
        all.push(token.span().byte_range());
        if let TokenTree::Group(group) = token {
            all.extend([group.span_open(), group.span_close()].map(|span| span.byte_range()));
            all.extend(places(group.stream()));
        }
    }
    all
}

// An editor replaces code that it cannot parse by `__ra_fixup`, and puts the code back into the
// expansion. A function whose whole body was replaced counted as a function without a body, so
// completion did not work in it.
// Fails if a replaced body is refused, or if its place is given to another token.
#[test]
fn a_body_that_an_editor_has_replaced_is_a_body() {
    for (args, name) in [
        ("ms = 5", "cancel_token"),
        ("ms = 5, token = stop", "stop"),
        ("mss = 5", "cancel_token"),
    ] {
        for function in [
            "fn f(x: u8) -> Option<u8> __ra_fixup",
            "async fn f(&self) -> Option<u8> __ra_fixup",
            "fn f(x: u8) -> Option<u8> { if __ra_fixup { Some(x) } else { None } }",
        ] {
            let source = format!("#[timeout({args})] {function}");
            let expansion = expand(&source);
            let mistakes = usize::from(args == "mss = 5");
            assert_eq!(errors(expansion.clone()).len(), mistakes, "{source}");
            let words = words(&source, expansion.clone());
            assert_eq!(bound(&words, name).len(), 1, "{source}");
            let start = source.find("__ra_fixup").expect("the source contains it");
            let replaced = start..start + "__ra_fixup".len();
            let same = places(expansion)
                .into_iter()
                .filter(|place| *place == replaced);
            assert_eq!(
                same.count(),
                1,
                "the editor would restore the body in another place too: {source}"
            );
        }
    }
    let source = "#[timeout(ms = 5)] fn f() -> u8 { __ra_fixup; cancel_token.check() }";
    let words = words(source, expand(source));
    assert_eq!(bound(&words, "cancel_token"), [source.find("cancel_token")]);
}

// Each generated token was located at the function's name, so "go to definition" offered up to
// seventeen places.
#[test]
fn the_name_of_a_function_is_found_once() {
    for args in [
        "ms = 5",
        "name = \"f\", ms = 5, grace = \"5ms\", fallback = |_| None, on_late = drop, token = stop",
        "ms = 5, deadline = until, upstream = all, inherit = false, max_abandoned = 5",
        "mss = 5",
    ] {
        for function in [
            "fn name_of_it(&self, (a, b): (u8, u8)) -> Option<u8> { cancel_token.check(); stop.check(); None }",
            "async fn name_of_it() -> Option<u8> { None }",
            "fn name_of_it() -> impl Future<Output = Option<u8>> { async { None } }",
            "fn name_of_it() -> Pin<Box<dyn Future<Output = Option<u8>>>> { work() }",
        ] {
            let source = format!("#[timeout({args})] {function}");
            let start = source.find("name_of_it").expect("the source contains it");
            let name = start..start + "name_of_it".len();
            let found = places(expand(&source)).into_iter();
            assert_eq!(found.filter(|place| *place == name).count(), 1, "{source}");
        }
    }
}

// Otherwise "go to definition" of the constant offers the generated code too.
#[test]
fn a_constant_without_a_name_is_mentioned_once() {
    for function in [
        "fn f() -> Option<u8> { None }",
        "async fn f() -> Option<u8> { None }",
    ] {
        let source = format!("#[timeout(LIMIT_OF_IT, grace = \"5ms\")] {function}");
        let start = source.find("LIMIT_OF_IT").expect("the source contains it");
        let constant = start..start + "LIMIT_OF_IT".len();
        let found = places(expand(&source)).into_iter();
        let found = found.filter(|place| *place == constant);
        assert_eq!(found.count(), 1, "{source}");
    }
}

/// The word that rust-analyzer inserts at the cursor.
const AT_CURSOR: &str = "intellijRulezz";

/// Both expansions that an editor uses to complete at the `|` in `args`, as text without spaces,
/// and the position of the cursor in the second one.
fn completing(args: &str, item: &str) -> (String, String, usize) {
    let text = |args: &str| {
        let text = expand(&format!("#[timeout({args})] {item}")).to_string();
        text.replace(' ', "")
    };
    let (typed, with_cursor) = (
        text(&args.replace('|', "")),
        text(&args.replace('|', AT_CURSOR)),
    );
    let place = with_cursor
        .find(AT_CURSOR)
        .expect("the expansion contains the cursor");
    (typed, with_cursor, place)
}

// The two expansions differed before a half-typed value, and the editor looked up its type at the
// wrong position.
// Fails if one of two expansions has other text before the cursor.
#[test]
fn a_half_typed_value_is_completed_among_the_arguments() {
    for args in [
        "limits.|",
        "limits.m|, name = \"f\"",
        "Duration::from_millis(limits.|), run = \"inline\"",
        "limits.whole + |",
        "LIM|",
        "Limits::|",
        "pau|",
        "ms = limits.|",
        "ms = limits.m|",
        "ms = |",
        "secs = 5 + |",
        "limit = Duration::from_millis(limits.|)",
        "limit = limits.|, name = \"f\", grace = \"5ms\"",
        "ms = 5, grace = limits.|",
        "ms = 5, deadline = limits.|",
        "ms = 5, upstream = [limits.a, limits.|]",
        "ms = 5, fallback = err.|",
        "ms = 5, on_late = |",
        "ms = 5, max_abandoned = limits.|, run = \"inline\"",
        "ms = 5, name = limits::|",
        "ms = 5, cancel = t|",
        "foo = limits.|",
        "ms = 5, foo = 5, grace = limits.|",
        "ms = 5, grace = f(limits.|, 5)",
    ] {
        for item in [
            "fn f(mut limits: Limits, (a, b): (u8, u8)) -> u8 { 5 }",
            "async fn f(&self, limits: &Limits) -> u8 { stop.check(); 5 }",
            "fn f(limits: Limits) -> impl Future<Output = u8> { async { 5 } }",
        ] {
            let (typed, with_cursor, place) = completing(args, item);
            assert_eq!(
                typed.get(..place),
                Some(&with_cursor[..place]),
                "{args}: {item}"
            );
            let body = with_cursor[..place]
                .find("->")
                .expect("the signature precedes the body");
            assert!(with_cursor[body..place].contains('{'), "{args}: {item}");
        }
    }
    let (typed, _, place) = completing(
        "ms = 5, fallback = err.|",
        "fn f(x: u8) -> Option<u8> { None }",
    );
    let expected = "__timeout_p::fallback(__timeout_p::never_run::<Option<u8>>,err.";
    assert!(typed[..place].ends_with(expected), "{typed}");
}

// Completion offered no option word: the first expansion contained no path that leads to them.
#[test]
fn option_words_are_completed_where_they_are_typed() {
    for (args, behind) in [
        ("|", ""),
        ("na|", "na"),
        ("can|", "can"),
        ("cancle|", "cancle"),
        ("d|, name = \"f\"", "d"),
        ("ms = 5, |", ""),
        ("ms = 5, gra|ce", "gra"),
        ("ms = 5, gra| = \"5ms\"", "gra"),
        ("foo = 5, na|", "na"),
        ("name = \"f\", ms = limits., na|, cancel = false", "na"),
    ] {
        for item in [
            "fn f(mut limits: Limits, (a, b): (u8, u8)) -> Option<u8> { None }",
            "async fn f(&self) -> Option<u8> { #![allow(unused)] None }",
            "fn f(x: u8) -> impl Future<Output = Option<u8>> { async { None } }",
        ] {
            let (typed, with_cursor, place) = completing(args, item);
            let path = place - behind.len();
            assert_eq!(
                typed.get(..path),
                Some(&with_cursor[..path]),
                "{args}: {item}"
            );
            assert!(with_cursor[..path].ends_with("use::timeout_runtime::__timeout_options::"));
        }
    }
}

/// Hovering over an option word showed no documentation.
// Fails if an option has no documented constant.
#[test]
fn each_option_word_names_a_documented_constant() {
    let source = "#[timeout(name = \"f\", ms = 5, na, crate = facade, r#run = \"inline\", run = \"inline\")] fn f() -> u8 { 5 }";
    let words = words(source, expand(source));
    for word in ["name", "ms", "run"] {
        let mention = words
            .windows(2)
            .find(|row| row[0].text == "options" && row[1].text == word);
        let typed = source.find(&format!(" {word} ")).map(|place| place + 1);
        let typed = typed.or(source.find(&format!("({word} ")).map(|place| place + 1));
        assert_eq!(mention.map(|row| row[1].place), Some(typed), "{word}");
    }
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../timeout-runtime/src/private/options.rs"
    );
    let file = std::fs::read_to_string(path).expect("the runtime is next to this crate");
    let file = syn::parse_file(&file).expect("the file is valid Rust");
    let mut documented = Vec::new();
    for item in file.items {
        if let syn::Item::Const(item) = item {
            assert!(item.attrs.iter().any(|attr| attr.path().is_ident("doc")));
            documented.push(item.ident.to_string());
        }
    }
    let options = crate::keys::options().filter(|word| *word != "crate");
    assert_eq!(documented, options.collect::<Vec<_>>());
}

// Code that only an editor needs reached the compiler.
#[test]
fn an_expansion_without_mistakes_has_no_code_for_editors_only() {
    let expansion = expand("#[timeout(ms = 5, fallback = |_| 0)] fn f() -> u8 { 5 }").to_string();
    assert!(!expansion.contains("rust_analyzer"), "{expansion}");
    let mistaken = expand("#[timeout(ms = 5, fallback = )] fn f() -> u8 { 5 }").to_string();
    let alone = "# [cfg (rust_analyzer)] __timeout_p :: options :: typed ! {";
    assert!(mistaken.contains(alone), "{mistaken}");
}
