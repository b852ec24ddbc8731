//! Finds the names that an option's expression uses.

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{
    Arm, Block, Expr, ExprCall, ExprClosure, ExprForLoop, ExprIf, ExprPath, ExprWhile, Item, Macro,
    Pat, PatIdent,
};

/// The mentions of `names` as values in `expr`. Names of called functions do not count, and neither
/// do names that a closure, a block or a pattern inside `expr` rebinds.
pub(crate) fn all(expr: &TokenStream, names: &[Ident]) -> Vec<Ident> {
    let mut search = Mentions {
        names,
        bound: Vec::new(),
        found: Vec::new(),
    };
    if let (false, Ok(expr)) = (names.is_empty(), syn::parse2(expr.clone())) {
        search.visit_expr(&expr);
    }
    search.found
}

/// The names that patterns bind, each once, at any depth of the visited syntax.
#[derive(Default)]
pub(crate) struct Bound(Vec<PatIdent>);

impl Bound {
    pub(crate) fn of(pat: &Pat) -> Vec<PatIdent> {
        let mut bound = Self::default();
        bound.visit_pat(pat);
        bound.0
    }
}

impl Visit<'_> for Bound {
    fn visit_pat_ident(&mut self, part: &PatIdent) {
        if self.0.iter().all(|known| known.ident != part.ident) {
            self.0.push(part.clone());
        }
        visit::visit_pat_ident(self, part);
    }
}

struct Mentions<'a> {
    names: &'a [Ident],
    /// The names that are rebound in the part at hand.
    bound: Vec<Ident>,
    found: Vec<Ident>,
}

impl Mentions<'_> {
    fn note(&mut self, name: &Ident) {
        if self.names.contains(name) && !self.bound.contains(name) {
            self.found.push(name.clone());
        }
    }

    /// Visits a part that may rebind names.
    fn within(&mut self, bind: impl FnOnce(&mut Bound), visit: impl FnOnce(&mut Self)) {
        let mut inner = Bound::default();
        bind(&mut inner);
        let outer = self.bound.len();
        self.bound
            .extend(inner.0.into_iter().map(|part| part.ident));
        visit(self);
        self.bound.truncate(outer);
    }

    /// Notes the names among the arguments of a macro, except for fields, segments of paths, and
    /// names before `=`, `:` or `!`.
    fn tokens(&mut self, tokens: TokenStream) {
        let is = |token: Option<&TokenTree>, sign: &[char]| matches!(token, Some(TokenTree::Punct(punct)) if sign.contains(&punct.as_char()));
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(name) => {
                    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
                    if !is(before, &['.', ':']) && !is(tokens.get(at + 1), &['=', ':', '!']) {
                        self.note(name);
                    }
                }
                _ => {}
            }
        }
    }
}

impl Visit<'_> for Mentions<'_> {
    fn visit_expr_path(&mut self, path: &ExprPath) {
        if let Some(name) = path.path.get_ident() {
            self.note(name);
        }
    }

    fn visit_expr_call(&mut self, call: &ExprCall) {
        if !matches!(*call.func, Expr::Path(_)) {
            self.visit_expr(&call.func);
        }
        call.args
            .iter()
            .for_each(|argument| self.visit_expr(argument));
    }

    fn visit_macro(&mut self, call: &Macro) {
        self.tokens(call.tokens.clone());
    }

    fn visit_item(&mut self, _: &Item) {}

    fn visit_expr_closure(&mut self, closure: &ExprClosure) {
        self.within(
            |bound| bound.visit_expr_closure(closure),
            |search| visit::visit_expr_closure(search, closure),
        );
    }

    fn visit_block(&mut self, block: &Block) {
        self.within(
            |bound| bound.visit_block(block),
            |search| visit::visit_block(search, block),
        );
    }

    fn visit_arm(&mut self, arm: &Arm) {
        self.within(
            |bound| bound.visit_arm(arm),
            |search| visit::visit_arm(search, arm),
        );
    }

    fn visit_expr_if(&mut self, branch: &ExprIf) {
        self.within(
            |bound| bound.visit_expr_if(branch),
            |search| visit::visit_expr_if(search, branch),
        );
    }

    fn visit_expr_while(&mut self, repeated: &ExprWhile) {
        self.within(
            |bound| bound.visit_expr_while(repeated),
            |search| visit::visit_expr_while(search, repeated),
        );
    }

    fn visit_expr_for_loop(&mut self, repeated: &ExprForLoop) {
        self.within(
            |bound| bound.visit_expr_for_loop(repeated),
            |search| visit::visit_expr_for_loop(search, repeated),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::all;
    use proc_macro2::Span;
    use syn::Ident;

    #[test]
    fn values_are_found_and_functions_fields_and_rebound_names_are_not() {
        let names = ["from", "to"].map(|name| Ident::new(name, Span::call_site()));
        for (expr, expected) in [
            ("from", &["from"][..]),
            ("u64::from(to)", &["to"]),
            ("from(1) + to.len()", &["to"]),
            ("[a, &from, to]", &["from", "to"]),
            ("max(from, from)", &["from", "from"]),
            ("from(1)", &[]),
            ("range.from", &[]),
            ("from::x", &[]),
            ("|from| from + to", &["to"]),
            ("{ let from = 5; from + to }", &["to"]),
            ("{ fn to() {} from }", &["from"]),
            ("match x { Some(from) => from, _ => 1 }", &[]),
            (
                "match to { Some(from) => from, _ => from }",
                &["to", "from"],
            ),
            ("if let Some(from) = to { from } else { 0 }", &["to"]),
            ("pick!(from, x.from, to = 5, [to])", &["from", "to"]),
            ("", &[]),
            ("from.", &[]),
        ] {
            let tokens = expr.parse().expect(expr);
            let found = all(&tokens, &names);
            assert_eq!(found, expected, "{expr}");
        }
        assert!(all(&"from".parse().expect("tokens"), &[]).is_empty());
    }
}
