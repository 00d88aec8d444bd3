//! What happens: one thing in each `[[when]]`, told by its first word.

use super::{Reader, texts, unknown_step};
use crate::Fault;
use crate::scenario::keys;
use crate::scenario::{Act, Advance, Answer, AnswerKind, Ask, Call, CallKind, Planted, Request, When};
use interlock_kernel::command::OnExisting;
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{EntityId, EventId, Name};
use interlock_kernel::record::Expect;
use interlock_kernel::rejection::Code as No;
use interlock_kernel::value::parse_ms;
use interlock_kernel::view::Schema;
use interlock_manifest::reading::{Code, DURATION_MS_MAX, Keys, Log, Node, Spot, Table, excerpt, list, suggest};

/// What happens, by the word that says so, in the order in which the words are looked for: `fault` stands
/// beside others too, and `then` beside all.
const VERBS: [(&str, &Keys); 16] = [
    ("send", &keys::SEND),
    ("apply", &keys::APPLY),
    ("create", &keys::CREATE),
    ("kill", &keys::KILL),
    ("unpark", &keys::UNPARK),
    ("delete", &keys::DELETE),
    ("acquire", &keys::ACQUIRE),
    ("extend", &keys::EXTEND),
    ("release", &keys::RELEASE),
    ("rows", &keys::ROWS),
    ("advance", &keys::ADVANCE),
    ("crash", &keys::CRASH),
    ("down", &keys::DOWN),
    ("wall", &keys::WALL),
    ("fault", &keys::PLANT),
    ("then", &keys::CHECK),
];

/// What can be made to happen to a step's call.
const FAULTS: [(&str, Fault); 8] = [
    ("crash", Fault::Crash),
    ("crash-after", Fault::CrashBehind),
    ("conflict", Fault::Conflict),
    ("fenced", Fault::Fenced),
    ("lease-lost", Fault::LeaseLost),
    ("unavailable", Fault::Unavailable),
    ("unknown-kept", Fault::Unknown { kept: true }),
    ("unknown-lost", Fault::Unknown { kept: false }),
];

/// What can be made to happen to a client's request.
const AT_THE_STORE: [(&str, Fault); 3] = [
    ("unavailable", Fault::Unavailable),
    ("unknown-kept", Fault::Unknown { kept: true }),
    ("unknown-lost", Fault::Unknown { kept: false }),
];

/// Calls and attempts that a fault may wait for, and times that it may come: more than the limits of a step.
const COUNT_MAX: u64 = 100_000;

impl Reader<'_> {
    /// What a `[[when]]` says: the thing that happens, and what must then be so.
    pub(super) fn when(&mut self, node: &Node<'_>, log: &mut Log<'_>) -> Vec<When> {
        let line = log.line(node.key.start);
        let there: Vec<_> = VERBS.iter().filter(|(verb, _)| node.part(verb).is_some()).collect();
        let is_aside = |verb: &str| matches!(verb, "fault" | "then");
        let Some((verb, keys)) = there.first() else {
            self.no_verb(node, log);
            return Vec::new();
        };
        if let Some((other, _)) = there.get(1).filter(|(other, _)| !is_aside(other)) {
            let message = format!("`{verb}` and `{other}` are two things that happen");
            let at = node.part(other).map_or(node.key.clone(), |other| other.key);
            log.add(Code::BadValue, &at, message, "write each into a [[when]] of its own, in their order");
            return Vec::new();
        }
        let Some(table) = node.table(keys, log) else { return Vec::new() };
        let act = self.act(verb, &table, log).map(|act| When { line, act });
        let checks = table.get("then").map(|node| node.one_or_more()).unwrap_or_default();
        let checks = checks.iter().filter_map(|item| self.then(item, log));
        act.into_iter().chain(checks.map(|then| When { line: then.line, act: Act::Expect(Box::new(then)) })).collect()
    }

    fn no_verb(&self, node: &Node<'_>, log: &mut Log<'_>) {
        let verbs = VERBS.map(|(verb, _)| verb);
        let written = node.keys();
        let near = written.iter().find_map(|key| {
            let remedy = suggest(key.value, verbs, "");
            remedy.starts_with("did you mean").then(|| (key.at.clone(), remedy))
        });
        let (at, remedy) = near.unwrap_or((node.key.clone(), "say what happens: send = \"resize\"".to_owned()));
        log.add(Code::MissingKey, &at, format!("`{}` does not say what happens", node.path), remedy)
            .expected(format!("one of {}", list(&verbs)));
    }

    fn act(&mut self, verb: &str, table: &Table<'_>, log: &mut Log<'_>) -> Option<Act> {
        let node = table.get(verb)?;
        Some(match verb {
            "acquire" | "extend" | "release" => Act::Lease(self.deed(verb, &node, table, log)?),
            "rows" => Act::Rows(Box::new(self.asking(&node, table, log)?)),
            "advance" => Act::Advance(advance(&node, log)?),
            "crash" => {
                only_true(&node, log)?;
                Act::Crash
            }
            "down" => Act::Down(node.duration(1..=DURATION_MS_MAX, log)?.value),
            "wall" => Act::Wall(jump(&node, log)?),
            "fault" => Act::Fault(self.planted(&node, log)?),
            "then" => return None,
            _ => Act::Ask(self.ask(verb, &node, table, log)?),
        })
    }

    fn ask(&mut self, verb: &str, node: &Node<'_>, table: &Table<'_>, log: &mut Log<'_>) -> Option<Ask> {
        let entity = match verb {
            "create" => self.key(node, log).map(|key| self.id(key.value)),
            _ => self.entity(table, log),
        };
        let answer = table.get("answer").map(|node| answer(&node, log));
        let is_invalid = matches!(&answer, Some(Some(Answer { kind: AnswerKind::Refused(Some(No::Invalid)), .. })));
        let fault = table.get("fault").map(|node| node.choice(&AT_THE_STORE, log));
        let request = match verb {
            "send" => self.send(node, table, is_invalid, log),
            "apply" => {
                let schema = (!is_invalid).then_some(Schema::Desired);
                let desired = self.document(node, schema, log);
                desired.map(|desired| Request::Apply { desired, generation: count(table, "generation", log) })
            }
            "create" => self.create(table, is_invalid, log),
            "kill" => node.text(log).map(|reason| Request::Kill { reason: reason.value.to_owned() }),
            "unpark" => only_true(node, log).map(|()| Request::Unpark),
            _ => only_true(node, log).map(|()| Request::Delete),
        };
        // What is written and cannot be read was reported: nothing of it is played.
        let (answer, fault) =
            (answer.map_or(Some(None), |read| read.map(Some)), fault.map_or(Some(None), |f| f.map(Some)));
        Some(Ask { entity: entity?, request: request?, answer: answer?, fault: fault?.map(|fault| fault.value) })
    }

    fn send(&mut self, node: &Node<'_>, table: &Table<'_>, is_invalid: bool, log: &mut Log<'_>) -> Option<Request> {
        let event = node.name::<Name>(log);
        let event = event.filter(|event| {
            let known = || self.machine.events.keys().map(Name::as_str);
            let is_known = self.machine.events.contains_key(&event.value);
            if !is_known {
                let message = format!("the machine declares no event `{}`", event.value);
                let remedy = suggest(event.value.as_str(), known(), "declare it in the manifest");
                log.add(Code::UndeclaredEvent, &event.at, message, remedy);
            }
            is_known
        });
        self.sends += 1;
        let id = match table.get("id") {
            Some(node) => self.id_of(&node, log),
            None => super::nth_id(self.sends).parse().ok(),
        };
        let payload = match table.get("payload") {
            Some(node) => {
                let schema = event.as_ref().filter(|_| !is_invalid).map(|event| Schema::Event(&event.value));
                Some(self.document(&node, schema, log)?)
            }
            None => None,
        };
        let event = event?;
        if payload.is_none() && !is_invalid {
            self.no_payload(&event, log);
        }
        let expect = Expect {
            incarnation: None,
            execution: count(table, "expect_execution", log),
            visit: count(table, "expect_visit", log),
            generation: count(table, "expect_generation", log),
            version: count(table, "expect_version", log),
        };
        Some(Request::Send { event: event.value, payload, id: id?, expect })
    }

    /// An id of its own; that of an earlier event makes it the same event again.
    fn id_of(&self, node: &Node<'_>, log: &mut Log<'_>) -> Option<EventId> {
        let id = event_id(node, log)?;
        if let Some(later) = self.unnamed.iter().find(|nth| **nth > self.sends && super::nth_id(**nth) == id.as_str()) {
            let message = format!("`{id}` is the id of event number {later}, which comes later and has no other");
            log.add(super::REUSED_ID, &node.at(), message, "use another id here");
        }
        Some(id)
    }

    /// An event without payload is judged by its schema too.
    fn no_payload(&self, event: &Spot<Name>, log: &mut Log<'_>) {
        let judged = self.machine.events.get(&event.value).and_then(|spec| spec.judged(None));
        let breach = judged.zip(self.compiled.as_ref());
        if let Some(Err(breach)) = breach.map(|(doc, compiled)| compiled.check(Schema::Event(&event.value), &doc)) {
            let message = format!("`{}` needs a payload", event.value);
            let remedy = "add it: payload = { ... }; to see it refused, write answer = \"refused invalid\"";
            log.add(super::SCHEMA, &event.at, message, remedy).expected(breach.expected).got("no payload");
        }
    }

    fn create(&self, table: &Table<'_>, is_invalid: bool, log: &mut Log<'_>) -> Option<Request> {
        let policies = [
            ("same", OnExisting::Same),
            ("fail", OnExisting::Fail),
            ("use", OnExisting::Use),
            ("recreate", OnExisting::Recreate),
        ];
        let schema = (!is_invalid).then_some(Schema::Desired);
        let desired = match table.get("desired") {
            Some(node) => Some(self.document(&node, schema, log)?),
            None => None,
        };
        let existing = table.get("on_existing").and_then(|node| node.choice(&policies, log));
        Some(Request::Create {
            desired,
            labels: table.get("labels").map(|node| texts(&node, log)).unwrap_or_default(),
            existing: existing.map_or(OnExisting::Same, |policy| policy.value),
        })
    }

    fn planted(&self, node: &Node<'_>, log: &mut Log<'_>) -> Option<Planted> {
        let table = node.table(&keys::FAULT, log)?;
        let step = table.get("step").and_then(|node| node.name::<Name>(log));
        if let Some(step) = step.as_ref().filter(|step| !self.steps.contains(step.value.as_str())) {
            unknown_step(&self.steps, step, log);
        }
        let mut number = |key: &str| {
            let found = table.get(key).and_then(|node| node.integer(1..=COUNT_MAX, log));
            found.and_then(|number| u32::try_from(number.value).ok())
        };
        let (attempt, times) = (number("attempt"), number("times"));
        let call = table.get("call").map(|node| call(&node, log));
        let what = table.need("what", "say what happens: what = \"crash\"", log);
        let what = what.and_then(|node| node.choice(&FAULTS, log));
        let entity: Option<EntityId> = match table.get("entity") {
            Some(_) => Some(self.entity(&table, log)?),
            None => None,
        };
        Some(Planted {
            entity,
            step: step.map(|step| step.value),
            attempt,
            call: call.unwrap_or(Some(Call::Nth(1)))?,
            what: what?.value,
            times: times.unwrap_or(1),
        })
    }
}

/// A call by its number, or by what it asks for and its number among those: 2, "save", "save 2".
fn call(node: &Node<'_>, log: &mut Log<'_>) -> Option<Call> {
    let Some(text) = node.as_text() else {
        let nth = node.integer(1..=COUNT_MAX, log)?;
        return u32::try_from(nth.value).ok().map(Call::Nth);
    };
    let (word, number) = text.split_once(' ').unwrap_or((text, "1"));
    let kind = CallKind::WORDS.into_iter().find(|(known, _)| *known == word).map(|(_, kind)| kind);
    let number = number.trim().parse().ok().filter(|nth| (1..=COUNT_MAX).contains(&u64::from(*nth)));
    if let (Some(kind), Some(nth)) = (kind, number) {
        return Some(Call::Of(kind, nth));
    }
    let words = CallKind::WORDS.map(|(word, _)| word);
    let message = format!("{:?} is no call of a step", excerpt(text));
    let remedy = match kind {
        Some(_) => format!("write \"{word}\", or \"{word} 2\" for the second"),
        None => suggest(word, words, ""),
    };
    log.add(Code::BadChoice, &node.at(), message, remedy)
        .expected(format!("a number, or {}; with a number behind it from the second on", list(&words)));
    None
}

/// What a client must hear: one word, behind `refused` a code, behind all `again` if it was so already.
pub(super) fn answer(node: &Node<'_>, log: &mut Log<'_>) -> Option<Answer> {
    let text = node.text(log)?;
    let words: Vec<&str> = text.value.split_whitespace().collect();
    let again = words.len() > 1 && words.last() == Some(&"again");
    let words = if again { &words[..words.len() - 1] } else { &words[..] };
    let kinds = AnswerKind::WORDS.map(|(word, _)| word);
    let found = match words {
        ["refused", code] => match No::ALL.into_iter().find(|known| known.as_str() == code.replace('-', "_")) {
            Some(code) => Some(AnswerKind::Refused(Some(code))),
            None => {
                let codes = No::ALL.map(No::as_str);
                let message = format!("{:?} is no reason for a refusal", excerpt(code));
                log.add(Code::BadChoice, &text.at, message, suggest(code, codes, "")).expected(list(&codes));
                return None;
            }
        },
        [word] => AnswerKind::WORDS.iter().find(|(known, _)| known == word).map(|(_, kind)| *kind),
        _ => None,
    };
    match found {
        Some(kind) => Some(Answer { kind, again }),
        None => {
            let message = format!("{:?} is no answer", excerpt(text.value));
            // A refusal is often told by its code alone.
            let code = No::ALL.map(No::as_str).into_iter().find(|code| *code == text.value.replace('-', "_"));
            let remedy = match code {
                Some(code) => format!("write \"refused {code}\""),
                None => suggest(words.first().copied().unwrap_or_default(), kinds, ""),
            };
            log.add(Code::BadChoice, &text.at, message, remedy)
                .expected(format!("{}; behind it `again` if it was so already", list(&kinds)));
            None
        }
    }
}

pub(super) fn event_id(node: &Node<'_>, log: &mut Log<'_>) -> Option<EventId> {
    let text = node.text(log)?;
    let id = text.value.parse::<EventId>();
    id.map_err(|why| {
        let message = format!("{:?} is no event id", excerpt(text.value));
        log.add(Code::BadName, &text.at, message, "use short printable text").expected(why.expected);
    })
    .ok()
}

fn count(table: &Table<'_>, key: &str, log: &mut Log<'_>) -> Option<u64> {
    table.get(key).and_then(|node| node.integer(0..=u64::from(u32::MAX), log)).map(|number| number.value)
}

fn only_true(node: &Node<'_>, log: &mut Log<'_>) -> Option<()> {
    let truth = node.boolean(log)?;
    if !truth.value {
        let message = format!("`{}` = false is nothing that happens", node.path);
        log.add(Code::BadValue, &truth.at, message, "write true, or leave it out");
        return None;
    }
    Some(())
}

fn advance(node: &Node<'_>, log: &mut Log<'_>) -> Option<Advance> {
    if node.as_text() == Some("until-idle") {
        return Some(Advance::UntilIdle);
    }
    if let Some(text) = node.as_text().filter(|text| !text.starts_with(|c: char| c.is_ascii_digit())) {
        let message = format!("`{}` is neither a duration nor `until-idle`: {:?}", node.path, excerpt(text));
        let remedy = suggest(text, ["until-idle"], "write a whole number and ms, s, m, h or d: \"90s\"");
        log.add(Code::BadDuration, &node.at(), message, remedy).expected("\"90s\" or \"until-idle\"");
        return None;
    }
    Some(Advance::By(node.duration(1..=DURATION_MS_MAX, log)?.value))
}

fn jump(node: &Node<'_>, log: &mut Log<'_>) -> Option<i64> {
    let text = node.text(log)?;
    let (sign, span) = match (text.value.strip_prefix('+'), text.value.strip_prefix('-')) {
        (Some(span), _) => (1, span),
        (_, Some(span)) => (-1, span),
        (None, None) => (0, text.value),
    };
    match parse_ms(span).ok().filter(|ms| sign != 0 && *ms <= DURATION_MS_MAX).and_then(|ms| i64::try_from(ms).ok()) {
        Some(ms) => Some(sign * ms),
        None => {
            let message = format!("{:?} is no jump of the wall clock", excerpt(text.value));
            log.add(Code::BadDuration, &text.at, message, "write how far, and in which direction: \"+1h\" or \"-30s\"");
            None
        }
    }
}

/// The document of a literal table; nothing is looked up.
pub(super) fn literal(node: &Node<'_>, log: &mut Log<'_>) -> Option<Doc> {
    if !node.is_table() {
        node.wrong("a table", "write the fields that are looked at: { size = 4 }", log);
        return None;
    }
    Some(Doc::new(node.json(log)?))
}
