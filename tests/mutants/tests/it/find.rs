//! What is a check, and what is done to it.

use expect_test::{Expect, expect};
use interlock_mutants::find::{asks, find};

fn check(source: &str, expected: Expect) {
    let known = asks(source).unwrap();
    let (mutants, text) = find("lib.rs", source, &known, &mut 0).unwrap();
    let lines = mutants.iter().map(|one| format!("{} {}: `{}` {}\n", one.line, one.function, one.check, one.change));
    expected.assert_eq(&lines.collect::<String>());
    asks(&text).unwrap_or_else(|why| panic!("{why}: {text}")); // it is still Rust
}

#[test]
fn refusals_are_removed_forced_and_asked_in_another_order() {
    check(
        "fn f(a: u8) -> Result<u8, ()> {
            let Some(b) = g(a) else { return Err(()) };
            if let Some(refused) = h(a) { return refused; }
            if a > MAX { return Err(()); }
            Ok(b)
        }",
        expect![[r#"
            2 f: `let Some(b) = g(a)` always
            3 f: `if let Some(refused) = h(a)` never
            3 f: `if let Some(refused) = h(a)` asked before let Some(b) = g(a)
            4 f: `a > MAX` > becomes >=
            4 f: `a > MAX` > becomes <=
            4 f: `if a > MAX` never
            4 f: `if a > MAX` always
            4 f: `if a > MAX` asked before if let Some(refused) = h(a)
        "#]],
    );
}

#[test]
fn conditions_lose_their_operands_and_change_their_signs() {
    check(
        "impl T {
            fn f(&self) -> bool { self.a == 1 && !self.b && (self.c() || self.d < 2) }
            fn c(&self) -> bool { matches!(self.e, A | B if self.b) }
        }",
        expect![[r#"
            2 T::f: `self.a == 1` == becomes !=
            2 T::f: `self.a == 1 && !self.b && (self.c() || self.d < 2)` without self.a == 1
            2 T::f: `self.a == 1 && !self.b && (self.c() || self.d < 2)` without !self.b
            2 T::f: `self.c() || self.d < 2` without self.c()
            2 T::f: `self.d < 2` < becomes <=
            2 T::f: `self.d < 2` < becomes >=
            2 T::f: `self.c() || self.d < 2` without self.d < 2
            2 T::f: `self.c() || self.d < 2` || becomes &&
            2 T::f: `self.a == 1 && !self.b && (self.c() || self.d < 2)` without (self.c() || self.d < 2)
            2 T::f: `self.a == 1 && !self.b && (self.c() || self.d < 2)` && becomes ||
            2 T::f: `self.a == 1 && !self.b && (self.c() || self.d < 2)` never
            2 T::f: `self.a == 1 && !self.b && (self.c() || self.d < 2)` always
            3 T::c: `matches!(self.e, A | B if self.b)` without A
            3 T::c: `matches!(self.e, A | B if self.b)` without B
            3 T::c: `matches!(self.e, A | B if self.b)` without self.b
            3 T::c: `matches!(self.e, A | B if self.b)` never
            3 T::c: `matches!(self.e, A | B if self.b)` always
        "#]],
    );
}

#[test]
fn predicates_options_arms_guards_and_bounds_are_checks_too() {
    check(
        "fn f(all: &[u8]) -> Option<u8> {
            let one = all.iter().find(|one| **one != 0)?;
            let wait = one.min(MAX);
            Some(match wait { 0 => 1, 1 => 2, n if n > 5 => 3, Some(x) => x, _ => 4 })
        }",
        expect![[r#"
            2 f: `**one != 0` != becomes ==
            2 f: `find(|one| **one != 0)` never
            2 f: `find(|one| **one != 0)` always
            2 f: `let one = all.iter().find(|one| **one != 0)?` never
            3 f: `one.min(MAX)` without .min(MAX)
            4 f: `n > 5` > becomes >=
            4 f: `n > 5` > becomes <=
            4 f: `n if n > 5` never
            4 f: `n if n > 5` always
            4 f: `match wait: 0` does what 1 does
            4 f: `match wait: 1` does what _ does
            4 f: `match wait: _` does what 1 does
            4 f: `match wait: Some(x)` never
        "#]],
    );
}

#[test]
fn what_only_shows_or_is_constant_is_no_check() {
    check(
        "const A: bool = 1 < 2;
        impl fmt::Display for T { fn fmt(&self) -> R { if self.a { b() } else { c() } } }
        fn name(self) -> &'static str { if self.a { \"a\" } else { \"b\" } }
        #[cfg(test)]
        mod tests { fn f() { if a { b() } } }",
        expect![""],
    );
}

#[test]
fn the_same_check_twice_in_a_function_is_told_apart() {
    check(
        "fn f() { if a { b() } if a { c() } }",
        expect![[r#"
            1 f: `if a` never
            1 f: `if a` always
            1 f: `if a (2)` never
            1 f: `if a (2)` always
        "#]],
    );
}
