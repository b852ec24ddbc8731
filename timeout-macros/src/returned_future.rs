//! Finds the future at the end of the body of a function that returns one.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::ToTokens;

/// How a body ends.
pub(crate) enum ReturnedFuture {
    /// The body is an `async` block, or `Box::pin` of one, and nothing else.
    WholeBody(Block),
    /// Statements precede the future, or one of them defines the `async fn` that returns it.
    AfterStatements,
    /// Anything else.
    Unknown,
}

/// An `async` block, with the `Box::pin` call around it, if any.
pub(crate) struct Block {
    /// `async` or `async move`.
    pub(crate) words: TokenStream,
    pub(crate) braces: Group,
    /// The path of `Box::pin` and its parentheses.
    boxed: Option<(TokenStream, Group)>,
}

impl ReturnedFuture {
    /// Classifies the end of a body, given as the tokens between its braces.
    pub(crate) fn of(body: TokenStream) -> Self {
        let tokens: Vec<TokenTree> = body.into_iter().collect();
        let (start, block) = if let Some((start, block)) = Block::at_end(&tokens) {
            (start, block)
        } else if let Some((start, arguments)) = boxed(&tokens) {
            let inner: Vec<TokenTree> = without_comma(arguments.stream());
            let path = tokens[start..tokens.len() - 1].iter().cloned().collect();
            match Block::at_end(&inner) {
                Some((0, block)) => (start, block.boxed(path, arguments)),
                None if calls_async_fn(&tokens[..start], &inner) => return Self::AfterStatements,
                _ => return Self::Unknown,
            }
        } else {
            return Self::Unknown;
        };
        match tokens[..start].last() {
            None => Self::WholeBody(block),
            Some(TokenTree::Punct(punct)) if punct.as_char() == ';' => Self::AfterStatements,
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                Self::AfterStatements
            }
            Some(_) => Self::Unknown,
        }
    }
}

impl Block {
    /// The block at the end of `tokens`, and the index at which it begins.
    fn at_end(tokens: &[TokenTree]) -> Option<(usize, Self)> {
        let (TokenTree::Group(braces), mut front) = tokens.split_last()? else {
            return None;
        };
        if braces.delimiter() != Delimiter::Brace {
            return None;
        }
        if let [rest @ .., word] = front {
            if is_word(word, "move") {
                front = rest;
            }
        }
        match front {
            [rest @ .., word] if is_word(word, "async") => {
                let block = Self {
                    words: tokens[rest.len()..tokens.len() - 1]
                        .iter()
                        .cloned()
                        .collect(),
                    braces: braces.clone(),
                    boxed: None,
                };
                Some((rest.len(), block))
            }
            _ => None,
        }
    }

    fn boxed(self, path: TokenStream, parentheses: Group) -> Self {
        let boxed = Some((path, parentheses));
        Self { boxed, ..self }
    }

    /// Puts `tokens` in place of the block.
    pub(crate) fn around(&self, tokens: TokenStream) -> TokenStream {
        let Some((path, parentheses)) = &self.boxed else {
            return tokens;
        };
        let mut group = Group::new(Delimiter::Parenthesis, tokens);
        group.set_span(parentheses.span());
        let mut call = path.clone();
        group.to_tokens(&mut call);
        call
    }
}

/// If `tokens` end with a call of `Box::pin`: the index at which its path begins, and its
/// arguments.
fn boxed(tokens: &[TokenTree]) -> Option<(usize, Group)> {
    let (TokenTree::Group(arguments), mut front) = tokens.split_last()? else {
        return None;
    };
    if arguments.delimiter() != Delimiter::Parenthesis {
        return None;
    }
    let mut names = Vec::new();
    while let [rest @ .., TokenTree::Ident(name)] = front {
        names.push(name);
        front = rest;
        match front {
            [rest @ .., one, other] if is_sign(one, ':') && is_sign(other, ':') => front = rest,
            _ => break,
        }
    }
    match names[..] {
        [pin, name, ..] if pin == "pin" && name == "Box" => Some((front.len(), arguments.clone())),
        _ => None,
    }
}

/// Whether `argument` calls an `async fn` that `statements` define.
fn calls_async_fn(statements: &[TokenTree], argument: &[TokenTree]) -> bool {
    let [TokenTree::Ident(called), TokenTree::Group(_)] = argument else {
        return false;
    };
    statements.windows(3).any(|row| {
        is_word(&row[0], "async")
            && is_word(&row[1], "fn")
            && matches!(&row[2], TokenTree::Ident(name) if name == called)
    })
}

fn without_comma(tokens: TokenStream) -> Vec<TokenTree> {
    let mut tokens: Vec<TokenTree> = tokens.into_iter().collect();
    if tokens.last().is_some_and(|last| is_sign(last, ',')) {
        tokens.pop();
    }
    tokens
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

#[cfg(test)]
mod tests {
    use super::ReturnedFuture;

    #[test]
    fn a_body_is_classified_by_its_end() {
        for (body, expected) in [
            ("async move { 5 }", "whole body"),
            ("async { 5 }", "whole body"),
            ("Box::pin(async move { 5 })", "whole body"),
            ("::std::boxed::Box::pin(async { 5 },)", "whole body"),
            ("let x = 5; async move { x }", "after statements"),
            (
                "if x { return y() } Box::pin(async move { x })",
                "after statements",
            ),
            (
                "async fn inner(x: u8) {} Box::pin(inner(5))",
                "after statements",
            ),
            ("async fn inner(x: u8) {} Box::pin(outer(5))", "unknown"),
            ("return async move { 5 }", "unknown"),
            ("let x = async move { 5 };", "unknown"),
            ("Box::pin(work(5))", "unknown"),
            ("Box::pin(async { 5 }.boxed())", "unknown"),
            ("Rc::pin(async { 5 })", "unknown"),
            ("work(async { 5 })", "unknown"),
            ("work()", "unknown"),
            ("{ 5 }", "unknown"),
            ("", "unknown"),
        ] {
            let found = match ReturnedFuture::of(body.parse().expect(body)) {
                ReturnedFuture::WholeBody(_) => "whole body",
                ReturnedFuture::AfterStatements => "after statements",
                ReturnedFuture::Unknown => "unknown",
            };
            assert_eq!(found, expected, "{body}");
        }
    }
}
