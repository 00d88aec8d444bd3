//! Scripts of the guest in `caller.wat`.

mod rows;

use interlock_conformance::Random;

/// Where the guest keeps a script's heap, and where answers may be put.
const HEAP: u32 = 0x20002;
const ANSWER: u32 = 0x10000;
/// What stands for the entity's handle.
const ENTITY: u32 = 0xe7e7_e7e7;

/// Words that are put into scripts.
pub(super) const WORDS: &str = "\u{0}\u{0}\u{0}\u{0}¦calm¦stopped¦{}¦{\"n\":1}¦{\"n\":1e400}¦data.n¦desired.x¦outputs.a.b¦\
    now+5m¦event.s¦row.x¦interlock/execution¦[[[[[[[[¦\u{7}¦\u{6}¦\u{1}\u{0}\u{0}\u{0}¦\u{2}\u{0}\u{1}\u{0}";

/// Texts where one stands: good ones, and what no host wants to hear.
const TEXTS: [&str; 26] = [
    "calm",
    "calling",
    "nowhere",
    "",
    "{}",
    "{\"n\": 1}",
    "{\"n\": 18446744073709551616}",
    "{\"n\": \"x\"}",
    "{\"n\":",
    "null",
    "data.n",
    "data.a[0].b",
    "outputs.x",
    "desired.x",
    "event.s",
    "now+5m",
    "now-99999999999d",
    "execution",
    "interlock/execution",
    "a\u{0}b\u{1b}[2J",
    "\u{202e}\u{1f600}",
    "1e308",
    "\"a\"",
    "{\"status\": \"pending\", \"n\": 1}",
    "row.n",
    "caller/a",
];

/// A script whose calls are as the contract says, most of the time.
pub(super) fn well_formed(random: &mut Random) -> Vec<u8> {
    let mut script = Script { heap: Vec::new(), calls: Vec::new() };
    for _ in 0..=random.below(6) {
        script.call(random);
    }
    if random.below(2) == 0 {
        script.transition("calm");
    }
    let length = u16::try_from(script.heap.len()).unwrap_or(u16::MAX);
    [&length.to_le_bytes()[..], &script.heap, &script.calls].concat()
}

/// Once in a while.
fn odd(random: &mut Random) -> bool {
    random.below(16) == 0
}

fn number(below: u64, random: &mut Random) -> u32 {
    u32::try_from(random.below(below)).unwrap_or_default()
}

fn one_of<T: Copy>(all: &[T], random: &mut Random) -> T {
    all[random.below(all.len() as u64) as usize]
}

struct Script {
    heap: Vec<u8>,
    calls: Vec<u8>,
}

impl Script {
    fn put(&mut self, bytes: &[u8]) -> u32 {
        // Lists are read at multiples of four.
        while !(HEAP as usize + self.heap.len()).is_multiple_of(4) {
            self.heap.push(0);
        }
        let at = HEAP + u32::try_from(self.heap.len()).unwrap_or_default();
        self.heap.extend_from_slice(bytes);
        at
    }

    fn word(&mut self, word: u32) {
        self.calls.extend_from_slice(&word.to_le_bytes());
    }

    /// A text's place and length; now and then another length, or bytes that are no text.
    fn text(&mut self, random: &mut Random) -> [u32; 2] {
        let times = if odd(random) { 400 } else { 1 };
        let mut bytes = one_of(&TEXTS, random).repeat(times).into_bytes();
        if odd(random) && odd(random) {
            bytes.push(0xff);
        }
        let length = u32::try_from(bytes.len()).unwrap_or_default();
        let length = if odd(random) && odd(random) { u32::MAX } else { length };
        [self.put(&bytes), length]
    }

    fn optional(&mut self, random: &mut Random) {
        let [at, length] = self.text(random);
        let some = u32::from(random.below(3) == 0);
        [some, at, length].into_iter().for_each(|word| self.word(word));
    }

    /// A list of mutations: 28 bytes each, the case, a field and a value.
    fn mutations(&mut self, random: &mut Random) {
        let count = if odd(random) { 65 } else { number(3, random) };
        let mut all = Vec::new();
        for _ in 0..count {
            let (field, value) = (self.text(random), self.text(random));
            let case = if odd(random) { 6 } else { number(6, random) };
            let from = if odd(random) { 2 } else { number(2, random) };
            for word in [case, field[0], field[1], from, value[0], value[1], 3] {
                all.extend_from_slice(&word.to_le_bytes());
            }
        }
        let at = self.put(&all);
        self.word(at);
        self.word(count);
    }

    /// A list of conditions: 28 bytes each.
    fn conditions(&mut self, random: &mut Random) {
        let count = if odd(random) { 33 } else { number(2, random) };
        let mut all = Vec::new();
        for _ in 0..count {
            let [kind, reason, message] = [self.text(random), self.text(random), self.text(random)];
            let status = if odd(random) { 3 } else { number(3, random) };
            for word in [kind[0], kind[1], status, reason[0], reason[1], message[0], message[1]] {
                all.extend_from_slice(&word.to_le_bytes());
            }
        }
        let at = self.put(&all);
        self.word(at);
        self.word(count);
    }

    fn transition(&mut self, to: &str) {
        let at = self.put(to.as_bytes());
        self.calls.push(7);
        let length = u32::try_from(to.len()).unwrap_or_default();
        [ENTITY, at, length, 0, 0, 0, 0, 0, 0, HEAP + 2, 0, HEAP + 2, 0, ANSWER].into_iter().for_each(|w| self.word(w));
    }

    fn call(&mut self, random: &mut Random) {
        let often = [0, 1, 2, 3, 4, 5, 6, 6, 6, 6, 6, 7, 7, 7, 9, 12, 13, 15];
        // What drops the entity, or wants a lease that nobody can have.
        let seldom = [8, 10, 11, 14];
        // A handle that nobody gave it, sometimes.
        let handle = if odd(random) { number(9, random) } else { ENTITY };
        if random.below(2) == 0 {
            return self.rows(handle, random);
        }
        let nth = if odd(random) { one_of(&seldom, random) } else { one_of(&often, random) };
        self.calls.push(nth);
        match nth {
            0 | 2 | 5 => [handle, ANSWER].into_iter().for_each(|word| self.word(word)),
            6 => {
                self.word(handle);
                self.documents(random);
            }
            7 => {
                self.word(handle);
                let [at, length] = self.text(random);
                self.word(at);
                self.word(length);
                self.documents(random);
            }
            9 => {
                let [at, length] = self.text(random);
                let some = number(2, random);
                [handle, at, length, some, u32::MAX, u32::MAX, ANSWER].into_iter().for_each(|word| self.word(word));
            }
            10 => [handle, 0, 0, 0, ANSWER].into_iter().for_each(|word| self.word(word)),
            11 => [handle, ANSWER].into_iter().for_each(|word| self.word(word)),
            15 => {
                let level = if odd(random) { 5 } else { number(5, random) };
                let ([at, length], [field, long]) = (self.text(random), self.text(random));
                let fields = self.put(&[field, long, field, long].map(u32::to_le_bytes).concat());
                [level, at, length, fields, 1].into_iter().for_each(|word| self.word(word));
            }
            _ => self.word(handle),
        }
    }

    fn documents(&mut self, random: &mut Random) {
        self.optional(random);
        self.optional(random);
        self.mutations(random);
        self.conditions(random);
        self.word(ANSWER);
    }
}
