//! Finds out from its syntax whether a body reaches its end.

use proc_macro2::TokenStream;
use syn::visit::{self, Visit};
use syn::{Block, Expr, ExprBreak, ExprClosure, ExprForLoop, ExprLoop, ExprWhile, Macro, Stmt};

/// Whether control never passes the end of `body`, because it returns, panics or loops before.
/// Macros and functions that never return are not recognised, except for the panicking macros of
/// `std`.
pub(crate) fn never_ends(body: &TokenStream) -> bool {
    syn::parse2(body.clone()).is_ok_and(|body| in_block(&body))
}

fn in_block(block: &Block) -> bool {
    block.stmts.iter().any(|stmt| match stmt {
        Stmt::Local(local) => local.init.as_ref().is_some_and(|init| in_expr(&init.expr)),
        Stmt::Expr(expr, _) => in_expr(expr),
        Stmt::Macro(stmt) => panics(&stmt.mac),
        Stmt::Item(_) => false,
    })
}

fn in_expr(expr: &Expr) -> bool {
    match expr {
        Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => true,
        Expr::Loop(repeated) => !Breaks::any(repeated),
        Expr::Macro(call) => panics(&call.mac),
        Expr::Block(block) => block.label.is_none() && in_block(&block.block),
        Expr::Unsafe(block) => in_block(&block.block),
        Expr::If(branch) => {
            let both = |other: &Expr| in_block(&branch.then_branch) && in_expr(other);
            in_expr(&branch.cond)
                || branch
                    .else_branch
                    .as_ref()
                    .is_some_and(|(_, other)| both(other))
        }
        Expr::Match(choice) => {
            let mut arms = choice.arms.iter();
            in_expr(&choice.expr) || (!choice.arms.is_empty() && arms.all(|arm| in_expr(&arm.body)))
        }
        Expr::Call(call) => call.args.iter().any(in_expr),
        Expr::MethodCall(call) => in_expr(&call.receiver) || call.args.iter().any(in_expr),
        Expr::Await(inner) => in_expr(&inner.base),
        Expr::Group(inner) => in_expr(&inner.expr),
        Expr::Paren(inner) => in_expr(&inner.expr),
        Expr::Reference(inner) => in_expr(&inner.expr),
        Expr::Try(inner) => in_expr(&inner.expr),
        Expr::Unary(inner) => in_expr(&inner.expr),
        _ => false,
    }
}

fn panics(call: &Macro) -> bool {
    let name = call.path.segments.last().map(|segment| &segment.ident);
    let panics = ["panic", "todo", "unimplemented", "unreachable"];
    name.is_some_and(|name| panics.iter().any(|panics| name == panics))
}

/// Searches a loop for a `break` that ends it, or may end it.
#[derive(Default)]
struct Breaks {
    found: bool,
    /// The number of loops around the part at hand, inside the searched loop.
    loops: usize,
}

impl Breaks {
    fn any(repeated: &ExprLoop) -> bool {
        let mut search = Self::default();
        search.visit_block(&repeated.body);
        search.found
    }

    fn inside(&mut self, visit: impl FnOnce(&mut Self)) {
        self.loops += 1;
        visit(self);
        self.loops -= 1;
    }
}

impl Visit<'_> for Breaks {
    fn visit_expr_break(&mut self, end: &ExprBreak) {
        self.found |= self.loops == 0 || end.label.is_some();
        visit::visit_expr_break(self, end);
    }

    fn visit_expr_loop(&mut self, repeated: &ExprLoop) {
        self.inside(|search| visit::visit_expr_loop(search, repeated));
    }

    fn visit_expr_while(&mut self, repeated: &ExprWhile) {
        self.inside(|search| visit::visit_expr_while(search, repeated));
    }

    fn visit_expr_for_loop(&mut self, repeated: &ExprForLoop) {
        self.inside(|search| visit::visit_expr_for_loop(search, repeated));
    }

    fn visit_expr_closure(&mut self, _: &ExprClosure) {}
}

#[cfg(test)]
mod tests {
    use super::never_ends;

    #[test]
    fn a_body_that_returns_panics_or_loops_has_no_end() {
        for body in [
            "{ return 5; }",
            "{ let x = 5; return x }",
            "{ panic!(\"so\") }",
            "{ std::todo!(); }",
            "{ loop { work().await; } }",
            "{ loop { while x { break; } } }",
            "{ if x { return 1; } else { panic!() } }",
            "{ match x { 1 => return 1, _ => { todo!() } } }",
            "{ (return 5) }",
            "{ let x = match y { _ => return 5 }; x }",
            "{ Ok(return 5) }",
            "{ loop { let f = || loop { break; }; } }",
        ] {
            assert!(never_ends(&body.parse().expect(body)), "{body}");
        }
    }

    #[test]
    fn a_body_with_a_value_has_an_end() {
        for body in [
            "{ 5 }",
            "{}",
            "{ if x { return 1; } 5 }",
            "{ if x { return 1 } else { 5 } }",
            "{ match x { 1 => return 1, _ => 5 } }",
            "{ loop { if x { break 5; } } }",
            "{ 'a: loop { loop { break 'a 5; } } }",
            "{ while x { return 1; } 5 }",
            "{ || return 5 }",
            "{ async { return 5 } }",
            "{ x. }",
        ] {
            assert!(!never_ends(&body.parse().expect(body)), "{body}");
        }
    }
}
