//! What a seed's world is like: how often what goes wrong, how busy it is, how time passes.

use crate::machines::KINDS;
use crate::moods::{Mood, Moods};
use crate::receiver::Whim;
use crate::wire::Turn;
use interlock_conformance::Random;
use interlock_kernel::ids::EntityId;
use std::sync::Arc;

/// See the module. Chances are per mille.
#[derive(Clone, Debug)]
pub(crate) struct Weather {
    pub(crate) slots: usize,
    pub(crate) entities: Vec<EntityId>,
    pub(crate) bad_moods: u64,
    /// What many of its guests are up to.
    pub(crate) fashion: Option<Mood>,
    pub(crate) batch_max: u64,
    /// Of a batch: that the store fails it.
    pub(crate) store_fails: u64,
    /// Of a batch: that the host dies over it.
    pub(crate) dies: u64,
    /// Of a step: that the store stalls for a while.
    pub(crate) stalls: u64,
    /// Of an answer: that it is late.
    pub(crate) late_answers: u64,
    /// Of a request on its way: that something happens to it; that its receiver is in a bad mood.
    pub(crate) network: u64,
    pub(crate) receivers: u64,
    /// Of a hundred requests of clients: how many are for a lease.
    pub(crate) leases: u64,
    pub(crate) slow_queries: bool,
    pub(crate) reconcile: bool,
    /// Weights of what the scheduler does next.
    pub(crate) clients: u64,
    pub(crate) clock: u64,
    pub(crate) jumps: u64,
    pub(crate) crashes: u64,
    pub(crate) stops: u64,
}

fn pick<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[usize::try_from(random.below(of.len() as u64)).unwrap_or(0)]
}

impl Weather {
    /// The weather of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x7765_6174_6865_7200);
        let mut kinds: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        // Of every nine seeds three are about requests alone.
        let about = random.below(9);
        match about {
            0 => kinds.retain(|kind| *kind == "mail"),
            1 => kinds.retain(|kind| *kind == "crane"),
            2 => kinds.retain(|kind| ["mail", "crane"].contains(kind)),
            _ => {
                let keep = 2 + random.below(4);
                while kinds.len() as u64 > keep {
                    let gone = random.below(kinds.len() as u64);
                    kinds.remove(usize::try_from(gone).unwrap_or(0));
                }
            }
        }
        let keys = 1 + random.below(3);
        let entities = kinds.iter().flat_map(|kind| (0..keys).map(move |key| format!("{kind}/{key}")));
        let calm = random.below(5) == 0 && about > 2;
        let leases = if kinds.contains(&"crane") { pick(&mut random, &[8, 20, 35]) } else { 3 };
        let weather = Self {
            slots: pick(&mut random, &[1, 2, 3, 6, 16]),
            entities: entities.filter_map(|id| parse_id(&id)).collect(),
            bad_moods: if calm { 0 } else { pick(&mut random, &[50, 200, 400, 700]) },
            fashion: (!calm && random.below(2) == 0).then(|| pick(&mut random, &Mood::BAD)),
            batch_max: pick(&mut random, &[1, 2, 4, 8]),
            store_fails: if calm { 0 } else { pick(&mut random, &[0, 20, 80]) },
            dies: if calm { 0 } else { pick(&mut random, &[0, 8, 30]) },
            stalls: pick(&mut random, &[0, 5, 20]),
            late_answers: pick(&mut random, &[0, 200, 500]),
            network: if calm { 0 } else { pick(&mut random, &[0, 80, 250, 500]) },
            receivers: if calm { 0 } else { pick(&mut random, &[0, 100, 300, 700]) },
            leases,
            slow_queries: random.below(3) == 0,
            reconcile: random.below(4) > 0,
            clients: pick(&mut random, &[10, 25, 45]),
            clock: pick(&mut random, &[4, 10, 25]),
            jumps: pick(&mut random, &[0, 1, 3]),
            crashes: if calm { 0 } else { pick(&mut random, &[0, 0, 1, 2, 6]) },
            stops: pick(&mut random, &[0, 0, 1]),
        };
        if about < 3 { weather.about_requests(&mut random) } else { weather }
    }

    /// The same with little trouble but in the network, so that much of what is asked for comes to be sent.
    fn about_requests(self, random: &mut Random) -> Self {
        Self {
            entities: self.entities.into_iter().filter(|id| id.key.as_str() < "2").collect(),
            bad_moods: pick(random, &[0, 50, 200]),
            fashion: None,
            batch_max: pick(random, &[4, 8]),
            stalls: 0,
            network: pick(random, &[100, 300, 500]),
            receivers: pick(random, &[0, 100, 400]),
            slow_queries: false,
            clients: pick(random, &[6, 12]),
            clock: pick(random, &[10, 25]),
            crashes: pick(random, &[0, 0, 1]),
            ..self
        }
    }

    /// What becomes of a request on its way.
    pub(crate) fn turn(&self, random: &mut Random) -> Turn {
        let whim = Whim::of(random, self.receivers);
        match (random.below(1_000) < self.network, random.below(12)) {
            (false, _) => Turn::Arrives(whim),
            (true, 0..3) => Turn::Unheard(whim),
            (true, 3..5) => Turn::Unreached,
            (true, 5..8) => Turn::Lost,
            (true, 8) => Turn::Denied,
            (true, 9) => Turn::Doubled,
            (true, _) => Turn::Slow,
        }
    }

    /// The moods of its guests.
    pub(crate) fn moods(&self) -> Moods {
        let (bad, fashion) = (self.bad_moods, self.fashion);
        Arc::new(move |_, random| match (random.below(1_000) < bad, fashion, random.below(4)) {
            (_, Some(fashion), 0..3) => fashion,
            (true, ..) => pick(random, &Mood::BAD),
            (false, ..) => Mood::Good,
        })
    }
}

fn parse_id(text: &str) -> Option<EntityId> {
    let (machine, key) = text.split_once('/')?;
    Some(EntityId { machine: machine.parse().ok()?, key: key.parse().ok()? })
}
