//! Calls of the interface `rows`. Parameters are words as the canonical ABI lays them out, in a call as in memory.

use super::{ANSWER, ENTITY, Script, number, odd, one_of};
use interlock_conformance::Random;

/// The number of the first of these imports in the guest; they stand in the order of [`Script::rows`].
pub(super) const FIRST: u8 = 16;
/// How many there are.
const COUNT: u64 = 12;
/// Words of the largest action: of a claim.
const ACTION_WORDS: usize = 17;

/// Tables that there are, or not, or that are no names.
const TABLES: [&str; 5] = ["jobs", "jobs", "jobs", "others", "Jo bs"];

impl Script {
    /// Any of them, after its number has been chosen.
    pub(super) fn rows(&mut self, handle: u32, random: &mut Random) {
        let nth = number(COUNT, random);
        self.calls.push(FIRST + u8::try_from(nth).unwrap_or_default());
        let table = self.table(random);
        match nth {
            // get, delete, update
            0..=2 => {
                let action = [0, 5, 2][nth as usize];
                let what = self.action(action, random);
                let name = if nth == 0 { Vec::new() } else { self.some_text(random) };
                self.words(&[&[handle][..], &table, &what, &name, &[ANSWER]].concat());
            }
            // put, upsert, claim
            3..=5 => {
                let action = [1, 3, 4][nth as usize - 3];
                let (what, name) = (self.action(action, random), self.some_text(random));
                self.placed(&[&[ENTITY][..], &table, &what, &name].concat());
            }
            6 => {
                let what = [self.filter(random), self.order(random), self.some_number(random)].concat();
                let what = [what, self.some_text(random), self.fields(random)].concat();
                self.placed(&[&[ENTITY][..], &table, &what].concat());
            }
            7 => {
                let operation = self.operation(random);
                self.placed(&[&[ENTITY][..], &operation].concat());
            }
            8 => {
                let operations = self.several(65, random, Self::operation);
                let requirements = self.several(33, random, Self::requirement);
                let name = self.some_text(random);
                self.words(&[&[handle][..], &operations, &requirements, &name, &[ANSWER]].concat());
            }
            9 => {
                let requirement = self.row_requirement(random);
                self.words(&[&[handle][..], &requirement, &[ANSWER]].concat());
            }
            10 => {
                let requirement = self.entity_requirement(random);
                self.words(&[&[handle][..], &requirement, &[ANSWER]].concat());
            }
            _ => self.words(&[handle, ANSWER]),
        }
    }

    fn words(&mut self, words: &[u32]) {
        words.iter().for_each(|word| self.word(*word));
    }

    /// Parameters that stand in memory, and where the answer goes.
    fn placed(&mut self, parameters: &[u32]) {
        let at = self.put_words(parameters);
        self.words(&[at, ANSWER]);
    }

    fn put_words(&mut self, words: &[u32]) -> u32 {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.put(&bytes)
    }

    fn table(&mut self, random: &mut Random) -> Vec<u32> {
        if odd(random) {
            return self.text(random).to_vec();
        }
        let table = one_of(&TABLES, random);
        vec![self.put(table.as_bytes()), u32::try_from(table.len()).unwrap_or_default()]
    }

    /// A value: JSON, or where it comes from.
    fn value(&mut self, random: &mut Random) -> Vec<u32> {
        let from = if odd(random) { 2 } else { number(2, random) };
        [&[from][..], &self.text(random)].concat()
    }

    /// A key, half of the time a good one: or no row would ever be written.
    fn key(&mut self, random: &mut Random) -> Vec<u32> {
        match random.below(2) {
            0 => vec![0, self.put(b"\"a\""), 3],
            _ => self.value(random),
        }
    }

    /// The same of a row's value.
    fn row(&mut self, random: &mut Random) -> Vec<u32> {
        match random.below(2) {
            0 => vec![self.put(br#"{"n":1}"#), 7],
            _ => self.text(random).to_vec(),
        }
    }

    fn some_text(&mut self, random: &mut Random) -> Vec<u32> {
        [&[u32::from(random.below(3) == 0)][..], &self.text(random)].concat()
    }

    fn some_number(&mut self, random: &mut Random) -> Vec<u32> {
        vec![number(2, random), if odd(random) { u32::MAX } else { number(1_002, random) }]
    }

    /// A list, now and then longer than it may be: where it is, and how long.
    fn several(
        &mut self,
        odd_count: u32,
        random: &mut Random,
        one: fn(&mut Self, &mut Random) -> Vec<u32>,
    ) -> Vec<u32> {
        // Mostly none: what is refused for one of its lists is never written.
        let count = if odd(random) && odd(random) { odd_count } else { number(2, random) * number(3, random) };
        let mut all = Vec::new();
        for _ in 0..count {
            all.extend(one(self, random));
        }
        vec![self.put_words(&all), count]
    }

    fn fields(&mut self, random: &mut Random) -> Vec<u32> {
        self.several(300, random, |script, random| script.text(random).to_vec())
    }

    fn changes(&mut self, random: &mut Random) -> Vec<u32> {
        self.several(65, random, |script, random| {
            let (field, case) = (script.text(random), if odd(random) { 6 } else { number(6, random) });
            [&[case][..], &field, &script.value(random), &[3]].concat()
        })
    }

    fn filter(&mut self, random: &mut Random) -> Vec<u32> {
        self.several(20, random, |script, random| {
            script.several(20, random, |script, random| {
                let (field, operator) = (script.text(random), if odd(random) { 11 } else { number(11, random) });
                [&field[..], &[operator], &script.value(random)].concat()
            })
        })
    }

    fn order(&mut self, random: &mut Random) -> Vec<u32> {
        let by = if odd(random) { 3 } else { number(3, random) };
        [&[number(2, random), by][..], &self.text(random), &[number(2, random)]].concat()
    }

    /// The record of an action, in the order of the variant's cases.
    fn action(&mut self, case: u32, random: &mut Random) -> Vec<u32> {
        let (truth, key) = (number(2, random), self.key(random));
        match case {
            0 => [key, self.fields(random)].concat(),
            1 => {
                let (value, fill) = (self.row(random), self.changes(random));
                let expected = [vec![number(2, random), number(2, random)], self.text(random).to_vec()].concat();
                [key, value, fill, expected, self.fields(random)].concat()
            }
            2 => [key, self.filter(random), self.changes(random), self.fields(random), vec![truth]].concat(),
            3 => {
                let (insert, fill) = (self.row(random), self.changes(random));
                [key, insert, fill, self.changes(random), self.fields(random)].concat()
            }
            4 => {
                let (filter, set) = (self.filter(random), self.changes(random));
                let which = [vec![number(2, random)], filter, vec![number(2, random)], set].concat();
                let bounds = [self.order(random), self.some_number(random), vec![number(2, random)]].concat();
                [which, bounds, self.fields(random), vec![truth]].concat()
            }
            _ => [key, self.filter(random), vec![truth]].concat(),
        }
    }

    /// A table, and an action as long as the longest.
    fn operation(&mut self, random: &mut Random) -> Vec<u32> {
        let case = number(6, random);
        let (table, mut what) = (self.table(random), self.action(case, random));
        what.resize(ACTION_WORDS, 0);
        [table, vec![if odd(random) { 6 } else { case }], what].concat()
    }

    fn row_requirement(&mut self, random: &mut Random) -> Vec<u32> {
        let (table, key, filter) = (self.table(random), self.key(random), self.filter(random));
        [table, key, vec![number(2, random)], filter].concat()
    }

    fn entity_requirement(&mut self, random: &mut Random) -> Vec<u32> {
        [self.text(random).to_vec(), self.fields(random), self.filter(random)].concat()
    }

    /// Either of the two, as long as the longer.
    fn requirement(&mut self, random: &mut Random) -> Vec<u32> {
        let case = number(2, random);
        let mut what = if case == 0 { self.row_requirement(random) } else { self.entity_requirement(random) };
        what.resize(8, 0);
        [vec![if odd(random) { 2 } else { case }], what].concat()
    }
}
