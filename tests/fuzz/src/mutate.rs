//! Changes of an input: bytes, words of the grammar, lines, and parts of another input.

use interlock_conformance::Random;

/// The longest input that changes make, in bytes: long enough for every rule, short enough to run thousands a second.
const INPUT_BYTES_MAX: usize = 8 * 1024;
/// Changes in a row, at most.
const CHANGES_MAX: u64 = 6;
/// Numbers at the edges of what the formats hold.
const EDGES: [&str; 16] = [
    "0",
    "-0",
    "1",
    "-1",
    "127",
    "128",
    "255",
    "256",
    "1000",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
];

/// Another input, made from one of `pool` by a few changes.
#[must_use]
pub fn mutate(pool: &[Vec<u8>], words: &[&str], random: &mut Random) -> Vec<u8> {
    let mut input = one_of(pool, random).cloned().unwrap_or_default();
    for _ in 0..=random.below(CHANGES_MAX) {
        change(&mut input, pool, words, random);
    }
    input.truncate(INPUT_BYTES_MAX);
    input
}

fn change(input: &mut Vec<u8>, pool: &[Vec<u8>], words: &[&str], random: &mut Random) {
    match random.below(12) {
        0 => flip(input, random),
        1 => drop(input.drain(part(input, random))),
        2 => repeat(input, random),
        3 | 4 => insert_word(input, words, random),
        5 | 6 => replace_token(input, words, random),
        7 => cross(input, pool, random),
        8 => move_line(input, random),
        9 => insert_line(input, pool, random),
        10 => number(input, random),
        _ => insert(input, &[u8::try_from(random.below(256)).unwrap_or_default()], random),
    }
}

fn one_of<'a, T>(all: &'a [T], random: &mut Random) -> Option<&'a T> {
    all.get(index(all.len(), random))
}

/// A place in something of this length.
fn index(length: usize, random: &mut Random) -> usize {
    usize::try_from(random.below(length as u64)).unwrap_or_default()
}

/// A short part of an input, or any.
fn part(input: &[u8], random: &mut Random) -> std::ops::Range<usize> {
    let from = index(input.len() + 1, random);
    let most = if random.below(4) == 0 { input.len() } else { 16 };
    let length = index(most + 1, random);
    from..(from + length).min(input.len())
}

fn insert(input: &mut Vec<u8>, what: &[u8], random: &mut Random) {
    let at = index(input.len() + 1, random);
    input.splice(at..at, what.iter().copied());
}

fn flip(input: &mut [u8], random: &mut Random) {
    let at = index(input.len(), random);
    if let Some(byte) = input.get_mut(at) {
        *byte ^= 1 << random.below(8);
    }
}

/// Doubles a part, sometimes often: nesting and lengths beyond every bound.
fn repeat(input: &mut Vec<u8>, random: &mut Random) {
    let part = part(input, random);
    let times = if random.below(8) == 0 { 200 } else { 1 };
    let copied: Vec<u8> = input.get(part.clone()).unwrap_or_default().to_vec();
    let room = INPUT_BYTES_MAX.saturating_sub(input.len()) / copied.len().max(1);
    input.splice(part.start..part.start, copied.repeat(room.min(times)));
}

fn insert_word(input: &mut Vec<u8>, words: &[&str], random: &mut Random) {
    if let Some(word) = one_of(words, random) {
        insert(input, word.as_bytes(), random);
    }
}

/// Puts a word, a number at an edge or another token of the input where a token stands.
fn replace_token(input: &mut Vec<u8>, words: &[&str], random: &mut Random) {
    let tokens = tokens(input);
    let Some(place) = one_of(&tokens, random).cloned() else { return };
    let with: Vec<u8> = match random.below(3) {
        0 => one_of(&EDGES, random).map(|edge| edge.as_bytes().to_vec()),
        1 => one_of(&tokens, random).and_then(|other| input.get(other.clone())).map(<[u8]>::to_vec),
        _ => one_of(words, random).map(|word| word.as_bytes().to_vec()),
    }
    .unwrap_or_default();
    input.splice(place, with);
}

/// Runs of letters, digits and hyphens.
fn tokens(input: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut found: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, byte) in input.iter().enumerate() {
        if !byte.is_ascii_alphanumeric() && *byte != b'-' && *byte != b'_' {
            continue;
        }
        match found.last_mut().filter(|last| last.end == at) {
            Some(last) => last.end = at + 1,
            None => found.push(at..at + 1),
        }
    }
    found
}

/// A number of the input becomes one beside it, or one at an edge.
fn number(input: &mut Vec<u8>, random: &mut Random) {
    let all = tokens(input).into_iter();
    let numbers: Vec<_> =
        all.filter(|place| input.get(place.clone()).is_some_and(|text| text.iter().all(u8::is_ascii_digit))).collect();
    let Some(place) = one_of(&numbers, random).cloned() else { return flip(input, random) };
    let text = String::from_utf8_lossy(input.get(place.clone()).unwrap_or_default()).into_owned();
    let next = match (random.below(3), text.parse::<u64>()) {
        (0, Ok(number)) => number.wrapping_add(1).to_string(),
        (1, Ok(number)) => number.wrapping_sub(1).to_string(),
        _ => one_of(&EDGES, random).map(ToString::to_string).unwrap_or_default(),
    };
    input.splice(place, next.into_bytes());
}

/// The beginning of one input and the end of another.
fn cross(input: &mut Vec<u8>, pool: &[Vec<u8>], random: &mut Random) {
    let Some(other) = one_of(pool, random) else { return };
    let (at, from) = (index(input.len() + 1, random), index(other.len() + 1, random));
    input.truncate(at);
    input.extend_from_slice(other.get(from..).unwrap_or_default());
}

fn lines(input: &[u8]) -> Vec<Vec<u8>> {
    input.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// Takes a line out, or puts it somewhere else, or both.
fn move_line(input: &mut Vec<u8>, random: &mut Random) {
    let mut all = lines(input);
    let Some(line) = one_of(&all, random).cloned() else { return };
    if random.below(2) == 0 {
        let from = index(all.len(), random);
        all.remove(from);
    }
    if random.below(2) == 0 {
        let to = index(all.len() + 1, random);
        all.insert(to, line);
    }
    *input = all.concat();
}

/// A line of another input.
fn insert_line(input: &mut Vec<u8>, pool: &[Vec<u8>], random: &mut Random) {
    let Some(line) = one_of(pool, random).and_then(|other| one_of(&lines(other), random).cloned()) else { return };
    let mut all = lines(input);
    let to = index(all.len() + 1, random);
    all.insert(to, line);
    *input = all.concat();
}
