//! From TOML to [`Allowed`]: every value where it stands, every problem at once.

use super::{Allow, Allowed, BadConfiguration, Problem};
use crate::method::Method;
use crate::networks::{Networks, network};
use crate::pattern::Pattern;
use crate::secret::Source;
use crate::url::excerpt;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A configuration in bytes: thousands of rules.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Problems that are told: more are noise.
const PROBLEMS_MAX: usize = 100;

type Value<'a> = Spanned<DeValue<'a>>;

struct Reader<'a> {
    text: &'a str,
    folder: &'a Path,
    problems: Vec<(usize, Problem)>,
}

pub(super) fn allowed(file: &Path, text: &str, besides: &[&str]) -> Result<Allowed, BadConfiguration> {
    let folder = file.parent().unwrap_or_else(|| Path::new(""));
    let fits = text.len() <= TEXT_BYTES_MAX;
    let (tree, errors) = DeTable::parse_recoverable(if fits { text } else { "" });
    let mut reader = Reader { text, folder, problems: Vec::new() };
    if !fits {
        reader.say(0, format_args!("expected at most 1 MiB, got {} bytes", text.len()), "write fewer, wider rules");
    }
    for error in &errors {
        let at = error.span().map_or(0, |span| span.start);
        reader.say(at, format_args!("not TOML: {}", error.message()), "correct it as TOML asks");
    }
    // What hangs on the whole text cannot be judged while it is no TOML.
    let read = if errors.is_empty() { reader.root(tree.get_ref(), besides) } else { Allowed::default() };
    if reader.problems.is_empty() {
        return Ok(read);
    }
    reader.problems.sort_by_key(|(at, _)| *at);
    let problems = reader.problems.into_iter().map(|(_, problem)| problem).take(PROBLEMS_MAX).collect();
    Err(BadConfiguration { file: file.to_owned(), problems })
}

impl<'a> Reader<'a> {
    fn say(&mut self, at: usize, message: impl Display, remedy: impl Into<String>) {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let problem = Problem { line, column, message: excerpt_long(&message.to_string()), remedy: remedy.into() };
        self.problems.push((at, problem));
    }

    fn root(&mut self, table: &'a DeTable<'a>, besides: &[&str]) -> Allowed {
        let known: Vec<&str> = ["effects"].iter().chain(besides).copied().collect();
        self.keys("the configuration", table, &known);
        let Some(effects) = get(table, "effects").and_then(|effects| self.table("`effects`", effects)) else {
            return Allowed::default();
        };
        self.keys("`effects`", effects, &["allow", "networks", "secrets", "tls"]);
        let secrets = self.secrets(effects);
        let rules = self.rules(effects, &secrets);
        let networks = get(effects, "networks").map(|value| self.networks(value)).unwrap_or_default();
        let tls = get(effects, "tls").and_then(|tls| self.table("`effects.tls`", tls));
        let (roots, public_roots) = tls.map_or((None, true), |tls| self.tls(tls));
        Allowed { rules, networks, secrets: secrets.into_iter().collect(), roots, public_roots }
    }

    fn rules(&mut self, effects: &'a DeTable<'a>, secrets: &BTreeMap<String, Source>) -> Vec<Allow> {
        let tables = get(effects, "allow").map(|value| self.array("`effects.allow`", value)).unwrap_or_default();
        tables.iter().filter_map(|value| self.rule(value, secrets)).collect()
    }

    fn rule(&mut self, value: &'a Value<'a>, secrets: &BTreeMap<String, Source>) -> Option<Allow> {
        let table = self.table("an `effects.allow`", value)?;
        self.keys("an `effects.allow`", table, &["url", "methods", "secrets"]);
        let url = self.need(value, table, "url", "add the URLs it allows: url = \"https://tickets.example.com/*\"");
        let url = url.and_then(|url| self.parsed::<Pattern>("url", url, "write it as the URLs it allows"));
        let methods = self.need(value, table, "methods", "add what it allows there: methods = [\"POST\"]");
        let methods = methods.map(|methods| self.methods(methods)).unwrap_or_default();
        let named = get(table, "secrets").map(|value| self.array("`secrets`", value)).unwrap_or_default();
        let named = named.iter().filter_map(|value| self.known_secret(value, secrets)).collect();
        url.map(|url| Allow { url, methods, secrets: named })
    }

    fn methods(&mut self, value: &'a Value<'a>) -> Vec<Method> {
        let words = self.array("`methods`", value);
        if words.is_empty() {
            self.say(value.span().start, "expected at least one method, got an empty list", "or take the rule out");
        }
        words.iter().filter_map(|word| self.parsed("methods", word, "write it in capitals")).collect()
    }

    fn known_secret(&mut self, value: &'a Value<'a>, secrets: &BTreeMap<String, Source>) -> Option<String> {
        let name = self.text_of("`secrets`", value)?;
        if !secrets.contains_key(name) {
            let message = format!("expected a secret of `effects.secrets`, got {:?}", excerpt(name));
            self.say(value.span().start, message, format!("add [effects.secrets.{name}] with `file` or `env`"));
        }
        Some(name.to_owned())
    }

    fn networks(&mut self, value: &'a Value<'a>) -> Networks {
        let mut networks = Vec::new();
        for value in self.array("`effects.networks`", value) {
            let Some(text) = self.text_of("`networks`", value) else { continue };
            match network(text) {
                Ok(network) => networks.push(network),
                Err(expected) => {
                    let message = format!("expected {expected}, got {:?}", excerpt(text));
                    self.say(value.span().start, message, "write the network's first address and its bits");
                }
            }
        }
        Networks(networks)
    }

    fn secrets(&mut self, effects: &'a DeTable<'a>) -> BTreeMap<String, Source> {
        let table = get(effects, "secrets").and_then(|secrets| self.table("`effects.secrets`", secrets));
        let mut secrets = BTreeMap::new();
        for (key, value) in table.into_iter().flatten() {
            let name = key.get_ref().as_ref();
            if !is_name(name) {
                let message = format!("expected a secret's name, got {:?}", excerpt(name));
                self.say(key.span().start, message, "use small letters, digits and hyphens, beginning with a letter");
            }
            if let Some(source) = self.source(name, value) {
                secrets.insert(name.to_owned(), source);
            }
        }
        secrets
    }

    fn source(&mut self, name: &str, value: &'a Value<'a>) -> Option<Source> {
        let what = format!("`effects.secrets.{}`", excerpt(name));
        let table = self.table(&what, value)?;
        self.keys(&what, table, &["file", "env"]);
        match (get(table, "file"), get(table, "env")) {
            (Some(file), None) => {
                let path = self.text_of("`file`", file)?;
                Some(Source::File(self.folder.join(path)))
            }
            (None, Some(env)) => {
                let variable = self.text_of("`env`", env)?;
                // What the system's call for variables would panic or misread on.
                if variable.is_empty() || variable.contains(['=', '\0']) {
                    let message = format!("expected an environment variable, got {:?}", excerpt(variable));
                    self.say(env.span().start, message, "write its name, without `=`");
                }
                Some(Source::Env(variable.to_owned()))
            }
            (file, _) => {
                let got = if file.is_some() { "both" } else { "neither" };
                let at = value.span().start;
                self.say(
                    at,
                    format_args!("expected {what} to have `file` or `env`, got {got}"),
                    "say where it is kept",
                );
                // Known all the same: a rule that names it is right.
                Some(Source::Env(String::new()))
            }
        }
    }

    fn tls(&mut self, table: &'a DeTable<'a>) -> (Option<std::path::PathBuf>, bool) {
        self.keys("`effects.tls`", table, &["roots", "public"]);
        let roots = get(table, "roots").and_then(|roots| self.text_of("`roots`", roots));
        let roots = roots.map(|path| self.folder.join(path));
        let public = match get(table, "public").map(|value| (value.span().start, value.get_ref())) {
            None => true,
            Some((at, DeValue::Boolean(false))) if roots.is_none() => {
                let message = "expected somebody to be trusted, got `public = false` without `roots`";
                self.say(at, message, "add the file with the certificates to trust instead");
                false
            }
            Some((_, DeValue::Boolean(public))) => *public,
            Some((at, other)) => {
                let message = format!("expected `public` to be true or false, got {}", kind(other));
                self.say(at, message, "write it without quotes");
                true
            }
        };
        (roots, public)
    }

    fn keys(&mut self, what: &str, table: &'a DeTable<'a>, known: &[&str]) {
        for key in table.keys().filter(|key| !known.contains(&key.get_ref().as_ref())) {
            let message = format!("{what} has no key {:?}", excerpt(key.get_ref()));
            self.say(key.span().start, message, format!("use one of `{}`", known.join("`, `")));
        }
    }

    fn need(&mut self, whole: &'a Value<'a>, table: &'a DeTable<'a>, key: &str, remedy: &str) -> Option<&'a Value<'a>> {
        let found = get(table, key);
        if found.is_none() {
            self.say(whole.span().start, format_args!("an `effects.allow` has no `{key}`"), remedy);
        }
        found
    }

    fn parsed<T: std::str::FromStr<Err: Display>>(
        &mut self,
        key: &str,
        value: &'a Value<'a>,
        remedy: &str,
    ) -> Option<T> {
        let text = self.text_of(&format!("`{key}`"), value)?;
        text.parse().map_err(|why: T::Err| self.say(value.span().start, why, remedy)).ok()
    }

    fn text_of(&mut self, what: &str, value: &'a Value<'a>) -> Option<&'a str> {
        match value.get_ref() {
            DeValue::String(text) => Some(text.as_ref()),
            other => self.wrong(value.span(), what, "text in quotes", other),
        }
    }

    fn array(&mut self, what: &str, value: &'a Value<'a>) -> &'a [Value<'a>] {
        match value.get_ref() {
            DeValue::Array(items) => items,
            other => self.wrong(value.span(), what, "a list", other).unwrap_or_default(),
        }
    }

    fn table(&mut self, what: &str, value: &'a Value<'a>) -> Option<&'a DeTable<'a>> {
        match value.get_ref() {
            DeValue::Table(table) => Some(table),
            other => self.wrong(value.span(), what, "a table", other),
        }
    }

    fn wrong<T>(&mut self, at: Range<usize>, what: &str, expected: &str, got: &DeValue<'_>) -> Option<T> {
        let message = format!("expected {what} to be {expected}, got {}", kind(got));
        self.say(at.start, message, format!("write {expected}"));
        None
    }
}

fn get<'a>(table: &'a DeTable<'a>, key: &str) -> Option<&'a Value<'a>> {
    table.get::<str>(key)
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn is_name(text: &str) -> bool {
    text.len() <= 63
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

fn excerpt_long(text: &str) -> String {
    const SHOWN: usize = 400;
    text.char_indices().nth(SHOWN).map_or_else(|| text.to_owned(), |(end, _)| format!("{}...", &text[..end]))
}
