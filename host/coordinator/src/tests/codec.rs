//! Keys: every one comes back, and bytes are ordered as what they stand for.

use super::run;
use super::world::{Kept, World, accepted, command, deploy, entity, parse, rest};
use crate::codec::{decode, encode, entities, histories, range, rows_claimed};
use interlock_kernel::command::{Create, OnExisting, Outcome, Verb};
use interlock_kernel::doc::Digest;
use interlock_kernel::ids::{EntityId, EntityKey, EventId, MachineName, Name, TableName};
use interlock_kernel::record::{Key, Part, Place};
use interlock_kernel::time::{StoreTime, WallTime};
use interlock_kernel::view::{IndexSpan, Span};
use interlock_kernel::{Incarnation, SessionId};

/// xorshift: the same seed gives the same keys.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Small, large and in between.
    fn number(&mut self) -> u64 {
        match self.below(4) {
            0 => self.below(3),
            1 => u64::MAX - self.below(3),
            2 => self.below(1 << 20),
            _ => self.next(),
        }
    }

    fn text(&mut self, letters: &[char], most: u64) -> String {
        let length = 1 + self.below(most);
        (0..length).filter_map(|_| letters.get(self.below(letters.len() as u64) as usize)).collect()
    }

    fn machine(&mut self) -> MachineName {
        parse(&format!("a{}", self.text(&['a', 'b', '-', '0'], 3)))
    }

    fn entity(&mut self) -> EntityId {
        let key: EntityKey = parse(&self.text(&['a', 'b', '/', '.', ' ', 'ü', '\u{10FFFF}'], 4));
        EntityId { machine: self.machine(), key }
    }

    fn event(&mut self) -> EventId {
        parse(&self.text(&['a', 'b', '@', '-'], 6))
    }

    fn name(&mut self) -> Name {
        parse(&format!("t{}", self.text(&['a', 'b'], 2)))
    }

    fn key(&mut self, sessions: &[SessionId], incarnations: &[Incarnation]) -> Key {
        let session = sessions[self.below(sessions.len() as u64) as usize];
        let incarnation = incarnations[self.below(incarnations.len() as u64) as usize];
        match self.below(30) {
            0 => Key::Machine(self.machine()),
            1 => Key::Revision(self.machine(), self.number()),
            2 => Key::Head(self.entity()),
            3 => Key::Part(self.entity(), Part::ALL[self.below(6) as usize]),
            4 => Key::Inbox(self.entity(), self.number()),
            5 => Key::History(self.entity(), incarnation, self.number()),
            6 => Key::Dedup(self.entity(), self.event()),
            7 => Key::Due(StoreTime(self.number()), self.entity()),
            8 => Key::Timer(WallTime(self.number().cast_signed()), self.entity(), self.name()),
            9 => Key::Open(session, self.entity()),
            10 => Key::Session(session),
            11 => Key::Expiry(StoreTime(self.number()), self.number(), self.below(1 << 32) as u32),
            12 => Key::Lease(parse(&self.row())),
            13 => Key::LeaseEntry(parse(&self.row()), self.number()),
            14 => Key::Lapse(StoreTime(self.number()), parse(&self.row())),
            15 => Key::Effect(self.entity(), self.number()),
            16 => Key::Outbox(self.machine(), self.name(), StoreTime(self.number()), self.entity(), self.number()),
            17 => Key::Flight(session, self.entity(), self.number()),
            18 => Key::Table(self.table()),
            19 => Key::TableSpec(self.table(), self.number()),
            20 => Key::Row(self.table(), parse(&self.row())),
            21 | 22 => self.indexed(),
            23 => Key::RowDue(StoreTime(self.number()), self.table(), parse(&self.row())),
            24 => Key::RowHeld(self.entity(), incarnation, self.number(), self.table(), parse(&self.row())),
            28 => Key::RowKept(self.entity(), incarnation, self.number(), self.table(), parse(&self.row())),
            25 => Key::RowEntry(self.table(), self.number()),
            26 => Key::Schedule(parse(self.name().as_str())),
            27 => Key::ScheduleDue(WallTime(self.number().cast_signed()), parse(self.name().as_str())),
            _ => match self.below(3) {
                0 => Key::Memo(self.entity(), Digest::of(&[&self.number().to_be_bytes()])),
                1 => Key::Answered(self.event()),
                _ => Key::Secret,
            },
        }
    }

    fn table(&mut self) -> TableName {
        parse(&format!("t{}", self.text(&['a', '_'], 1)))
    }

    fn row(&mut self) -> String {
        format!("r{}", self.text(&['a', 'b', '/', '@'], 3))
    }

    /// Fields as an index has them: whole values, with zeros and all.
    fn fields(&mut self) -> Vec<u8> {
        let one = |draw: &mut Self| match draw.below(4) {
            0 => vec![1],
            1 => vec![5, draw.below(3) as u8, 0, draw.below(3) as u8],
            2 => vec![5, 0xFF, 0xFF, draw.below(256) as u8],
            _ => vec![6, draw.below(2) as u8 + 1, 0, 1],
        };
        [one(self), one(self)].concat()
    }

    fn place(&mut self) -> Place {
        Place { seq: self.number(), n: self.below(1 << 32) as u32 }
    }

    fn indexed(&mut self) -> Key {
        Key::RowIndex(self.table(), self.below(2) as u32, self.fields(), self.place(), parse(&self.row()))
    }
}

/// Sessions and incarnations, which only the kernel mints: of a few boots and creates.
async fn minted() -> (Vec<SessionId>, Vec<Incarnation>) {
    let mut world = World::new(Kept::AsItIs).await;
    accepted(world.host().submit(deploy(super::world::POOL, "one")).await);
    let (mut sessions, mut incarnations) = (Vec::new(), Vec::new());
    for nth in 0..4 {
        sessions.extend(world.host().core().session_id());
        let create = Create {
            entity: entity(&format!("e{nth}")),
            desired: None,
            labels: Default::default(),
            on_existing: OnExisting::Same,
            event: None,
        };
        let outcome = accepted(world.host().submit(command(Verb::Create(Box::new(create)))).await);
        if let Outcome::Created { incarnation, .. } = outcome {
            incarnations.push(incarnation);
        }
        world.play("kill-9").await;
        world.play("boot").await;
        rest().await;
    }
    (sessions, incarnations)
}

#[test]
fn every_key_comes_back_from_its_bytes() {
    let (sessions, incarnations) = run(minted());
    let mut draw = Draw(0x1234_5678_9abc_def1);
    for _ in 0..20_000 {
        let key = draw.key(&sessions, &incarnations);
        let bytes = encode(&key);
        assert_eq!(decode(&bytes).as_ref(), Ok(&key), "{bytes:02x?}");
        assert!(bytes[0] >= interlock_store::USER_KEYS_FROM && bytes[0].is_ascii_uppercase(), "{key:?}");
    }
}

#[test]
fn bytes_are_ordered_as_times_numbers_and_names_are() {
    let (sessions, incarnations) = run(minted());
    let mut draw = Draw(42);
    for _ in 0..20_000 {
        let (a, b) = (draw.key(&sessions, &incarnations), draw.key(&sessions, &incarnations));
        let wanted = match (&a, &b) {
            (Key::Due(a, x), Key::Due(b, y)) => (a, x).cmp(&(b, y)),
            (Key::Timer(a, x, s), Key::Timer(b, y, t)) => (a, x, s).cmp(&(b, y, t)),
            (Key::Open(a, x), Key::Open(b, y)) => (a, x).cmp(&(b, y)),
            (Key::Expiry(a, x, s), Key::Expiry(b, y, t)) => (a, x, s).cmp(&(b, y, t)),
            (Key::Inbox(a, x), Key::Inbox(b, y)) => (a, x).cmp(&(b, y)),
            (Key::Head(a), Key::Head(b)) => a.cmp(b),
            (Key::Row(a, x), Key::Row(b, y)) => (a, x).cmp(&(b, y)),
            (Key::RowDue(a, x, s), Key::RowDue(b, y, t)) => (a, x, s).cmp(&(b, y, t)),
            (Key::RowIndex(a, i, f, p, x), Key::RowIndex(b, j, g, q, y)) => (a, i, f, p, x).cmp(&(b, j, g, q, y)),
            (Key::ScheduleDue(a, x), Key::ScheduleDue(b, y)) => (a, x).cmp(&(b, y)),
            (Key::Schedule(a), Key::Schedule(b)) => a.cmp(b),
            (Key::Dedup(a, x), Key::Dedup(b, y)) => (a, x).cmp(&(b, y)),
            // Newest first, within an entity.
            (Key::History(a, x, s), Key::History(b, y, t)) => a.cmp(b).then((y, t).cmp(&(x, s))),
            (Key::Head(a), Key::History(b, ..)) | (Key::Part(a, _), Key::Dedup(b, _)) => {
                a.cmp(b).then(std::cmp::Ordering::Less)
            }
            _ => continue,
        };
        assert_eq!(encode(&a).cmp(&encode(&b)), wanted, "{a:?} and {b:?}");
    }
}

#[test]
fn a_run_of_keys_holds_exactly_its_own() {
    let (sessions, incarnations) = run(minted());
    let mut draw = Draw(7);
    let keys: Vec<Key> = (0..700).map(|_| draw.key(&sessions, &incarnations)).collect();
    let inside = |(from, to): &(Vec<u8>, Vec<u8>), key: &Key| {
        let bytes = encode(key);
        *from <= bytes && bytes < *to
    };
    for key in &keys {
        let id = match key {
            Key::Head(id) | Key::Inbox(id, _) | Key::History(id, ..) => id.clone(),
            _ => continue,
        };
        let (session, incarnation) = (sessions[1], incarnations[1]);
        let until = StoreTime(draw.number());
        let newest = draw.number();
        let runs = [
            range(&Span::Inbox(id.clone())),
            range(&Span::Open(session)),
            range(&Span::Expired(until)),
            range(&Span::Sessions),
            range(&Span::History(id.clone(), incarnation, newest)),
            histories(&id),
            entities(Some(&id.machine)),
            rows_claimed(&id, None)[0].clone(),
            rows_claimed(&id, None)[1].clone(),
            rows_claimed(&id, Some((incarnation.get(), 1)))[0].clone(),
            rows_claimed(&id, Some((incarnation.get(), 1)))[1].clone(),
        ];
        for other in &keys {
            let belongs = [
                matches!(other, Key::Inbox(of, _) if *of == id),
                matches!(other, Key::Open(of, _) if *of == session),
                matches!(other, Key::Expiry(due, ..) if *due <= until && until.0 < u64::MAX),
                matches!(other, Key::Session(_)),
                matches!(other, Key::History(of, i, n) if *of == id && *i == incarnation && *n <= newest),
                matches!(other, Key::History(of, ..) if *of == id),
                crate::views::entity_of(other.clone()).is_some_and(|of| of.machine == id.machine)
                    && !matches!(
                        other,
                        Key::Due(..)
                            | Key::Timer(..)
                            | Key::Open(..)
                            | Key::Outbox(..)
                            | Key::Flight(..)
                            | Key::RowHeld(..)
                            | Key::RowKept(..)
                    ),
                matches!(other, Key::RowHeld(of, ..) if *of == id),
                matches!(other, Key::RowKept(of, ..) if *of == id),
                matches!(other, Key::RowHeld(of, i, 1, ..) if *of == id && *i == incarnation),
                matches!(other, Key::RowKept(of, i, 1, ..) if *of == id && *i == incarnation),
            ];
            for (nth, (run, belongs)) in runs.iter().zip(belongs).enumerate() {
                if nth == 2 && until.0 == u64::MAX {
                    continue;
                }
                assert_eq!(inside(run, other), belongs, "run {nth} of {key:?}: {other:?}");
            }
        }
    }
}

#[test]
fn a_run_of_an_index_holds_what_stands_between_two_beginnings() {
    let mut draw = Draw(11);
    let keys: Vec<Key> = (0..400).map(|_| draw.indexed()).collect();
    for _ in 0..400 {
        let Key::RowIndex(table, index, fields, place, row) = draw.indexed() else { continue };
        let beginning =
            |fields: Vec<u8>, draw: &mut Draw| fields[..[0, 4, 8][draw.below(3) as usize].min(fields.len())].to_vec();
        let (a, b) = (draw.fields(), draw.fields());
        let (a, b) = (beginning(a, &mut draw), beginning(b, &mut draw));
        let (from, to) = if a <= b { (a, b) } else { (b, a) };
        let to = (draw.below(3) > 0).then_some(to);
        let after = (draw.below(2) > 0).then(|| (fields.clone(), place, row.clone()));
        for back in [false, true] {
            let (table, after, to) = (table.clone(), after.clone(), to.clone());
            let span = IndexSpan { table, index, from: from.clone(), to, after, back };
            let (first, behind) = range(&Span::RowIndex(Box::new(span.clone())));
            for key in &keys {
                let Key::RowIndex(of, number, fields, place, row) = key else { continue };
                let entry = (fields.clone(), *place, row.clone());
                let belongs = *of == span.table
                    && *number == span.index
                    && span.from <= *fields
                    && span.to.as_ref().is_none_or(|to| fields < to)
                    && span.after.as_ref().is_none_or(|after| if back { entry < *after } else { entry > *after });
                let bytes = encode(key);
                assert_eq!(first <= bytes && bytes < behind, belongs, "{span:?}: {key:?}");
            }
        }
    }
}

#[test]
fn what_is_no_key_is_refused_and_not_guessed() {
    let texts: [&[u8]; 7] =
        [b"", b"Z", b"M", b"Mab", b"Mab\x00\x02", b"D\x00\x00\x00\x00\x00\x00\x00\x01", b"MAB\x00\x01"];
    for bytes in texts {
        assert!(decode(bytes).is_err(), "{bytes:02x?}");
    }
    let mut long = encode(&Key::Secret);
    long.push(0);
    assert!(decode(&long).is_err());
}

#[test]
fn changed_bytes_are_another_key_or_none() {
    let (sessions, incarnations) = run(minted());
    let mut draw = Draw(99);
    let mut keys = 0;
    for _ in 0..50_000 {
        let mut bytes = encode(&draw.key(&sessions, &incarnations));
        for _ in 0..=draw.below(3) {
            let at = draw.below(bytes.len() as u64) as usize;
            match draw.below(4) {
                0 => bytes[at] ^= 1 << draw.below(8),
                1 => bytes.insert(at, draw.below(256) as u8),
                2 if bytes.len() > 1 => drop(bytes.remove(at)),
                _ => bytes.truncate(at + 1),
            }
        }
        if let Ok(key) = decode(&bytes) {
            assert_eq!(encode(&key), bytes, "{key:?} is written in two ways");
            keys += 1;
        }
    }
    assert!((1_000..50_000).contains(&keys), "{keys} of 50,000 still are keys");
}
