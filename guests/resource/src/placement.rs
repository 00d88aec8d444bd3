//! Where to put the nodes of a pool: a plain search over 192 hosts, the same answer every time.
//!
//! It knows no entity and no host of steps. It takes about a second on purpose: long enough to
//! be killed in the middle.

use std::fmt;

const ZONES: usize = 3;
const RACKS: usize = 8;
const SLOTS: usize = 8;
const HOSTS: usize = ZONES * RACKS * SLOTS;

/// Placements looked at per search: about a second of wasm. A build for tests is slower, and needs no such good
/// answer.
const BUDGET: u32 = if cfg!(debug_assertions) { 20_000 } else { 2_000_000 };

/// After so many in a row that were no better, begin from another random placement.
const PATIENCE: u32 = 20_000;

/// Names of `count` hosts for this image, spread well; none if there is no room.
///
/// An image whose name ends in a number of gigabytes (`train-80g`) needs as much free memory on
/// each host; others need 4.
pub(crate) fn search(count: u32, image: &str) -> Option<Vec<String>> {
    search_within(BUDGET, count as usize, need_gb(image), seed(image))
}

fn search_within(budget: u32, count: usize, need_gb: u32, seed: u64) -> Option<Vec<String>> {
    let hosts: Vec<Host> = (0..HOSTS).map(Host::at).collect();
    let fit: Vec<usize> = (0..HOSTS).filter(|&i| hosts[i].free_gb >= need_gb).collect();
    if count == 0 || count > fit.len() {
        return None;
    }
    let mut dice = Dice(seed | 1);
    let mut best: Option<(u32, Chosen)> = None;
    let mut spent = 0;
    while spent < budget {
        let mut chosen = Chosen::at_random(count, &fit, &mut dice);
        let mut cost = chosen.cost(&hosts);
        let mut in_vain = 0;
        while in_vain < PATIENCE && spent < budget {
            spent += 1;
            in_vain += 1;
            let Some(other) = chosen.swapped(&fit, &mut dice) else {
                return Some(chosen.names(&hosts)); // all that fit are in
            };
            let other_cost = other.cost(&hosts);
            if other_cost < cost {
                (chosen, cost, in_vain) = (other, other_cost, 0);
            }
        }
        if best.as_ref().is_none_or(|(lowest, _)| cost < *lowest) {
            best = Some((cost, chosen));
        }
    }
    best.map(|(_, chosen)| chosen.names(&hosts))
}

/// A host of the inventory, which is made up, but always the same.
#[derive(Clone, Copy)]
struct Host {
    index: usize,
    free_gb: u32,
    load: u32,
}

impl Host {
    fn at(index: usize) -> Host {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (index as u64 + 1));
        dice.roll(1);
        Host { index, free_gb: 8 << dice.roll(5), load: dice.roll(50) as u32 }
    }

    fn rack(self) -> usize {
        self.index / SLOTS
    }

    fn zone(self) -> usize {
        self.rack() / RACKS
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let zone = ["a", "b", "c"][self.zone()];
        write!(f, "{zone}{}-{:02}", self.rack() % RACKS + 1, self.index % SLOTS + 1)
    }
}

/// Which hosts are in a placement.
#[derive(Clone)]
struct Chosen([bool; HOSTS]);

impl Chosen {
    fn at_random(count: usize, fit: &[usize], dice: &mut Dice) -> Chosen {
        let mut left = fit.to_vec();
        let mut chosen = [false; HOSTS];
        for _ in 0..count {
            chosen[left.swap_remove(dice.roll(left.len()))] = true;
        }
        Chosen(chosen)
    }

    /// One host exchanged for one outside; none if all that fit are in.
    fn swapped(&self, fit: &[usize], dice: &mut Dice) -> Option<Chosen> {
        let pick = |dice: &mut Dice, inside: bool| {
            let from = dice.roll(fit.len());
            (0..fit.len()).map(|step| fit[(from + step) % fit.len()]).find(|&i| self.0[i] == inside)
        };
        let (out, come) = (pick(dice, true)?, pick(dice, false)?);
        let mut other = self.clone();
        other.0[out] = false;
        other.0[come] = true;
        Some(other)
    }

    /// Loaded hosts cost their load, crowded racks and zones the square of their number.
    fn cost(&self, hosts: &[Host]) -> u32 {
        let (mut load, mut racks, mut zones) = (0, [0; ZONES * RACKS], [0; ZONES]);
        for host in hosts.iter().filter(|host| self.0[host.index]) {
            load += host.load;
            racks[host.rack()] += 1;
            zones[host.zone()] += 1;
        }
        let squares = |counts: &[u32]| counts.iter().map(|n| n * n).sum::<u32>();
        load + 40 * squares(&racks) + 5 * squares(&zones)
    }

    fn names(&self, hosts: &[Host]) -> Vec<String> {
        hosts.iter().filter(|host| self.0[host.index]).map(Host::to_string).collect()
    }
}

/// Xorshift: the search must come out the same in every attempt.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

fn need_gb(image: &str) -> u32 {
    let size = image.rsplit('-').next().and_then(|last| last.strip_suffix('g'));
    size.and_then(|digits| digits.parse().ok()).unwrap_or(4)
}

/// FNV-1a: other images, other searches.
fn seed(image: &str) -> u64 {
    image.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::{need_gb, search_within, seed};
    use std::collections::BTreeSet;

    fn quick(count: usize, image: &str) -> Option<Vec<String>> {
        search_within(20_000, count, need_gb(image), seed(image))
    }

    #[test]
    fn as_many_hosts_as_asked_for_each_once() {
        for count in [1, 4, 64] {
            let names = quick(count, "train").expect("room");
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), count);
        }
    }

    #[test]
    fn the_same_answer_every_time() {
        assert_eq!(quick(8, "train"), quick(8, "train"));
    }

    #[test]
    fn a_small_pool_shares_no_rack() {
        let names = quick(8, "train").expect("room");
        let racks: BTreeSet<_> = names.iter().map(|name| &name[..2]).collect();
        assert_eq!(racks.len(), 8, "{names:?}");
    }

    #[test]
    fn an_image_too_large_for_any_host_has_no_room() {
        assert_eq!(quick(1, "train-512g"), None);
        assert!(quick(1, "train-128g").is_some());
    }

    #[test]
    fn a_pool_may_take_every_host_that_fits() {
        let large = (1..=192).rev().find_map(|count| quick(count, "train-128g"));
        assert!(large.is_some_and(|names| names.len() > 20));
    }

    #[test]
    fn no_more_hosts_than_there_are() {
        assert_eq!(quick(193, "train"), None);
        assert!(quick(192, "train").is_some());
    }
}
