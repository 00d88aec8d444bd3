//! What a seed's world is like: how often what goes wrong, how busy it is, how time passes.

use crate::guests::{Mood, Moods};
use crate::machines::KINDS;
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
        let keep = 2 + random.below(3);
        while kinds.len() as u64 > keep {
            let gone = random.below(kinds.len() as u64);
            kinds.remove(usize::try_from(gone).unwrap_or(0));
        }
        let keys = 1 + random.below(3);
        let entities = kinds.iter().flat_map(|kind| (0..keys).map(move |key| format!("{kind}/{key}")));
        let calm = random.below(5) == 0;
        Self {
            slots: pick(&mut random, &[1, 2, 3, 6, 16]),
            entities: entities.filter_map(|id| parse_id(&id)).collect(),
            bad_moods: if calm { 0 } else { pick(&mut random, &[50, 200, 400, 700]) },
            fashion: (!calm && random.below(2) == 0).then(|| pick(&mut random, &Mood::BAD)),
            batch_max: pick(&mut random, &[1, 2, 4, 8]),
            store_fails: if calm { 0 } else { pick(&mut random, &[0, 20, 80]) },
            dies: if calm { 0 } else { pick(&mut random, &[0, 8, 30]) },
            stalls: pick(&mut random, &[0, 5, 20]),
            late_answers: pick(&mut random, &[0, 200, 500]),
            slow_queries: random.below(3) == 0,
            reconcile: random.below(4) > 0,
            clients: pick(&mut random, &[10, 25, 45]),
            clock: pick(&mut random, &[4, 10, 25]),
            jumps: pick(&mut random, &[0, 1, 3]),
            crashes: if calm { 0 } else { pick(&mut random, &[0, 0, 1, 2, 6]) },
            stops: pick(&mut random, &[0, 0, 1]),
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
