//! What can happen next, and how it is written down so that it can be played again.

use std::fmt;
use std::str::FromStr;

/// One thing that happens. Entities and acts are named by their place in the scenario, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Choice {
    /// A held call of an entity goes on; of several attempts (a late one among them) the n-th, from 0.
    Go(usize, usize),
    /// A client's act arrives.
    Act(usize),
    /// Time moves to the next thing that it brings.
    Tick,
    /// A client's act arrives once more.
    Again(usize),
    /// The host is killed and boots again at once.
    Crash,
    /// A held call's write is taken, and the host killed before anybody hears of it; it boots again at once.
    CrashBehind(usize, usize),
    /// The host is killed, and boots again when the next timer is due.
    Down,
    /// The store does not take the write of a held call.
    Unavailable(usize, usize),
    /// The write of a held call is taken, and its answer lost.
    AnswerLost(usize, usize),
    /// The write of a held call is lost, and nobody can say so.
    WriteLost(usize, usize),
    /// The host stalls before a held call until a lease of its execution is over.
    LeaseLost(usize, usize),
    /// A request of an entity is replied to as the scenario says; of several under way the n-th, from 0.
    Reply(usize, usize),
    /// It is, and the answer is lost.
    ReplyLost(usize, usize),
    /// It is, and the host killed before it hears of that; it boots again at once.
    ReplyUnheard(usize, usize),
    /// Nobody replies to it until its target's timeout.
    Silence(usize, usize),
}

impl Choice {
    /// The entity it concerns alone; none if it may concern all.
    pub(super) fn concerns(self, of_act: &[usize]) -> Option<usize> {
        match self {
            Self::Go(entity, _) => Some(entity),
            Self::Act(act) | Self::Again(act) => of_act.get(act).copied(),
            // Faults of the store are about the next write, whoever makes it.
            _ => None,
        }
    }

    /// Whether two of them give the same in either order.
    pub(super) fn commutes(self, other: Self, of_act: &[usize]) -> bool {
        match (self.concerns(of_act), other.concerns(of_act)) {
            (Some(one), Some(two)) => one != two,
            _ => false,
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = |f: &mut fmt::Formatter<'_>, letter: char, entity: usize, nth: usize| {
            write!(f, "{letter}{}", entity.saturating_add(1))?;
            if nth > 0 { write!(f, ".{}", nth.saturating_add(1)) } else { Ok(()) }
        };
        match *self {
            Self::Go(entity, nth) => held(f, 'g', entity, nth),
            Self::Act(act) => write!(f, "a{}", act.saturating_add(1)),
            Self::Tick => f.write_str("t"),
            Self::Again(act) => write!(f, "d{}", act.saturating_add(1)),
            Self::Crash => f.write_str("x"),
            Self::CrashBehind(entity, nth) => held(f, 'z', entity, nth),
            Self::Down => f.write_str("y"),
            Self::Unavailable(entity, nth) => held(f, 'u', entity, nth),
            Self::AnswerLost(entity, nth) => held(f, 'k', entity, nth),
            Self::WriteLost(entity, nth) => held(f, 'l', entity, nth),
            Self::LeaseLost(entity, nth) => held(f, 's', entity, nth),
            Self::Reply(entity, nth) => held(f, 'r', entity, nth),
            Self::ReplyLost(entity, nth) => held(f, 'o', entity, nth),
            Self::ReplyUnheard(entity, nth) => held(f, 'v', entity, nth),
            Self::Silence(entity, nth) => held(f, 'n', entity, nth),
        }
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!(
                "expected one of g1, a1, t, d1, x, y, z1, u1, k1, l1, s1, r1, o1, v1, n1 and the like, got {text:?}"
            )
        };
        let mut letters = text.chars();
        let letter = letters.next().ok_or_else(bad)?;
        let rest = letters.as_str();
        let place = |text: &str| text.parse::<usize>().ok().and_then(|n| n.checked_sub(1)).ok_or_else(bad);
        let held = || -> Result<(usize, usize), String> {
            match rest.split_once('.') {
                Some((entity, nth)) => Ok((place(entity)?, place(nth)?)),
                None => Ok((place(rest)?, 0)),
            }
        };
        Ok(match letter {
            'a' => Self::Act(place(rest)?),
            'd' => Self::Again(place(rest)?),
            'g' => held().map(|(entity, nth)| Self::Go(entity, nth))?,
            'u' => held().map(|(entity, nth)| Self::Unavailable(entity, nth))?,
            'k' => held().map(|(entity, nth)| Self::AnswerLost(entity, nth))?,
            'l' => held().map(|(entity, nth)| Self::WriteLost(entity, nth))?,
            's' => held().map(|(entity, nth)| Self::LeaseLost(entity, nth))?,
            'r' => held().map(|(entity, nth)| Self::Reply(entity, nth))?,
            'o' => held().map(|(entity, nth)| Self::ReplyLost(entity, nth))?,
            'v' => held().map(|(entity, nth)| Self::ReplyUnheard(entity, nth))?,
            'n' => held().map(|(entity, nth)| Self::Silence(entity, nth))?,
            'z' => held().map(|(entity, nth)| Self::CrashBehind(entity, nth))?,
            't' if rest.is_empty() => Self::Tick,
            'x' if rest.is_empty() => Self::Crash,
            'y' if rest.is_empty() => Self::Down,
            _ => return Err(bad()),
        })
    }
}

/// A sequence of choices as one word: `a1-g1-x-g1-t`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(pub Vec<Choice>);

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, choice) in self.0.iter().enumerate() {
            write!(f, "{}{choice}", if nth > 0 { "-" } else { "" })?;
        }
        Ok(())
    }
}

impl FromStr for Path {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split('-').filter(|word| !word.is_empty()).map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::{Choice, Path};

    #[test]
    fn a_path_is_read_as_it_is_written() {
        let path = Path(vec![
            Choice::Act(0),
            Choice::Go(1, 0),
            Choice::Go(0, 2),
            Choice::Tick,
            Choice::Again(11),
            Choice::Crash,
            Choice::Down,
            Choice::Unavailable(0, 0),
            Choice::AnswerLost(0, 1),
            Choice::WriteLost(2, 0),
            Choice::CrashBehind(0, 0),
            Choice::LeaseLost(1, 0),
            Choice::Reply(0, 1),
            Choice::ReplyLost(0, 0),
            Choice::ReplyUnheard(1, 0),
            Choice::Silence(0, 0),
        ]);
        assert_eq!(path.to_string(), "a1-g2-g1.3-t-d12-x-y-u1-k1.2-l3-z1-s2-r1.2-o1-v2-n1");
        assert_eq!(path.to_string().parse(), Ok(path));
        for bad in ["q", "a0", "a", "g1.0", "t1", "x2", "a1-zz"] {
            assert!(bad.parse::<Path>().is_err(), "{bad}");
        }
    }
}
