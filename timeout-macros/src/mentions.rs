//! What an option's expression names.

use proc_macro2::{Ident, TokenStream};
use syn::visit::Visit;
use syn::{Arm, Block, Expr, ExprCall, ExprClosure, ExprPath};

/// The first mention of one of `names` as a value in `expr`. Closures, blocks and arms may bind the name anew, and are left out, as is
/// what is called: that is a function.
pub(crate) fn first(expr: &TokenStream, names: &[Ident]) -> Option<Ident> {
    if names.is_empty() {
        return None;
    }
    let mut search = Mentions { names, found: None };
    search.visit_expr(&syn::parse2(expr.clone()).ok()?);
    search.found
}

struct Mentions<'a> {
    names: &'a [Ident],
    found: Option<Ident>,
}

impl Visit<'_> for Mentions<'_> {
    fn visit_expr_path(&mut self, path: &ExprPath) {
        let mention = path
            .path
            .get_ident()
            .filter(|name| self.names.contains(name));
        self.found = self.found.take().or_else(|| mention.cloned());
    }

    fn visit_expr_call(&mut self, call: &ExprCall) {
        if !matches!(*call.func, Expr::Path(_)) {
            self.visit_expr(&call.func);
        }
        call.args
            .iter()
            .for_each(|argument| self.visit_expr(argument));
    }

    fn visit_expr_closure(&mut self, _: &ExprClosure) {}

    fn visit_block(&mut self, _: &Block) {}

    fn visit_arm(&mut self, _: &Arm) {}
}

#[cfg(test)]
mod tests {
    use super::first;
    use proc_macro2::Span;
    use syn::Ident;

    #[test]
    fn a_value_is_mentioned() {
        let names = ["from", "to"].map(|name| Ident::new(name, Span::call_site()));
        for (expr, expected) in [
            ("from", Some("from")),
            ("u64::from(to)", Some("to")),
            ("from(1) + to.len()", Some("to")),
            ("[a, &from]", Some("from")),
            ("from(1)", None),
            ("range.from", None),
            ("from::x", None),
            ("|from| from", None),
            ("{ let from = 5; from }", None),
            ("match x { Some(from) => from, _ => 1 }", None),
            ("", None),
        ] {
            let tokens = expr.parse().expect(expr);
            let found = first(&tokens, &names).map(|name| name.to_string());
            assert_eq!(found.as_deref(), expected, "{expr}");
        }
        assert!(first(&"from".parse().expect("tokens"), &[]).is_none());
    }
}
