//! Chains by several copies of the FAT.
//!
//! Where the copies differ, a chain can go on in more than one way. The ways are
//! tried in turn, the first copy's word first if it leads on, until one is what the
//! file's size says; then the same with the last copy's word first. Else the one that
//! leads to most is taken.

use crate::table::fat::Link;
use std::collections::HashSet;
use volary_core::Result;

/// Ways that are tried.
const WAYS_MAX: u32 = 256;

/// Clusters that are passed on the way, for each that can be expected.
const STEPS: u64 = 64;

/// What the copies say.
pub(crate) trait Copies {
    /// Fills `out` with what the copies say of a cluster: the first one's word,
    /// and what others say that differs from it.
    ///
    /// # Errors
    /// `Io`.
    fn words(&mut self, cluster: u32, out: &mut Vec<Link>) -> Result<()>;

    /// Returns whether the chain can come to this cluster.
    ///
    /// # Errors
    /// `Io`.
    fn may_come(&mut self, cluster: u32) -> Result<bool>;
}

/// What a chain is to be like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal {
    /// Clusters that a file's size takes; `None` for a directory.
    pub(crate) need: Option<u32>,
    /// The highest cluster number.
    pub(crate) last: u32,
    /// The volume was cleanly left: the copies are of the same time. Else the first
    /// is believed where it can be right, as it may be the newer one.
    pub(crate) clean: bool,
}

/// How good a way is, the larger the better.
type Rank = (u8, u32, bool);

/// A chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Way {
    /// Its clusters.
    pub(crate) clusters: Vec<u32>,
    /// Its last cluster is marked as the end.
    pub(crate) whole: bool,
    /// It is that of the first copy.
    pub(crate) first: bool,
    /// Clusters that the first copy alone leads to.
    pub(crate) by_first: u32,
}

impl Goal {
    fn rank(self, count: u32, whole: bool) -> Rank {
        match self.need {
            Some(need) if whole && count == need => (3, need, whole),
            Some(need) if count >= need => (2, need, false),
            _ => (0, count, whole),
        }
    }

    /// Returns whether no better way need be looked for.
    fn is_enough(self, rank: Rank) -> bool {
        match self.need {
            Some(_) => rank.0 >= if self.clean { 3 } else { 2 },
            None => !self.clean && rank.2,
        }
    }

    /// So many clusters are enough to tell.
    fn most(self) -> u32 {
        self.need.map_or(self.last, |need| need.saturating_add(1))
    }
}

/// A place where the chain can go on in other ways.
struct Fork {
    /// Clusters before this one.
    before: usize,
    at: u32,
    words: Vec<Link>,
}

/// A search under way.
struct Search<'a, C> {
    copies: &'a mut C,
    goal: Goal,
    way: Vec<u32>,
    passed: HashSet<u32>,
    forks: Vec<Fork>,
    steps: u64,
    preferred: Preferred,
    /// Clusters before the place where the first copy alone does not lead on, once the
    /// way has passed one.
    strayed: Option<u32>,
}

/// Whose word is tried first of those that lead on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Preferred {
    First,
    Last,
}

/// Returns the best way on from cluster `start`, which must be one.
///
/// # Errors
/// What `copies` answers.
pub(crate) fn best_way(copies: &mut impl Copies, start: u32, goal: Goal) -> Result<Way> {
    let (rank, best) = best_of(copies, start, goal, Preferred::First)?;
    if goal.is_enough(rank) {
        return Ok(best);
    }
    let (other, way) = best_of(copies, start, goal, Preferred::Last)?;
    match other > rank {
        true => Ok(Way {
            first: false,
            by_first: best.by_first,
            ..way
        }),
        false => Ok(best),
    }
}

/// Returns the best way of those that are tried with this preference.
///
/// # Errors
/// What `copies` answers.
fn best_of(
    copies: &mut impl Copies,
    start: u32,
    goal: Goal,
    preferred: Preferred,
) -> Result<(Rank, Way)> {
    let mut search = Search {
        copies,
        goal,
        way: Vec::new(),
        passed: HashSet::new(),
        forks: Vec::new(),
        steps: STEPS * (u64::from(goal.most()) + 64),
        preferred,
        strayed: None,
    };
    let mut best: Option<(Rank, Way)> = None;
    let mut word = Link::Next(start);
    let mut by_first = 0;
    for turn in 0..WAYS_MAX {
        let whole = search.follow(word)?;
        let count = search.way.len() as u32;
        if turn == 0 {
            by_first = search.strayed.unwrap_or(count);
        }
        let rank = goal.rank(count, whole);
        if best.as_ref().is_none_or(|(most, _)| rank > *most) {
            let way = Way {
                clusters: search.way.clone(),
                whole,
                first: turn == 0 && search.strayed.is_none(),
                by_first,
            };
            best = Some((rank, way));
        }
        if goal.is_enough(rank) || search.steps == 0 {
            break;
        }
        match search.back() {
            Some(next) => word = next,
            None => break,
        }
    }
    Ok(best.unwrap_or_default())
}

/// Returns whether a chain can go on, or end, by this word.
fn is_live(word: &Link) -> bool {
    matches!(word, Link::Next(_) | Link::End)
}

impl<C: Copies> Search<'_, C> {
    /// Follows the first words from here on; whether it comes to an end.
    fn follow(&mut self, word: Link) -> Result<bool> {
        let mut word = word;
        let mut words = Vec::new();
        loop {
            let at = match word {
                Link::Next(at) => at,
                Link::End => return Ok(true),
                Link::Free | Link::Bad => {
                    // Its last cluster is not in use: it does not belong to it.
                    self.way.pop().map(|last| self.passed.remove(&last));
                    return Ok(false);
                }
                Link::Wrong(_) => return Ok(false),
            };
            let full = self.way.len() as u32 >= self.goal.most();
            if full || self.steps == 0 || !self.copies.may_come(at)? || !self.passed.insert(at) {
                return Ok(false);
            }
            self.steps -= 1;
            self.way.push(at);
            self.copies.words(at, &mut words)?;
            self.choose(&mut words);
            word = words.first().copied().unwrap_or(Link::End);
            if words.len() > 1 {
                self.forks.push(Fork {
                    before: self.way.len() - 1,
                    at,
                    words: words.split_off(1),
                });
            }
        }
    }

    /// Puts the word that is tried first in front: one that leads on, if there is any.
    fn choose(&mut self, words: &mut [Link]) {
        if self.preferred == Preferred::Last {
            words.reverse();
        }
        let Some(live) = words.iter().position(is_live).filter(|&live| live > 0) else {
            return;
        };
        let before = self.way.len() as u32;
        let kept = match words.first() {
            // A cluster that is not in use does not belong to the chain.
            Some(Link::Free | Link::Bad) => before.saturating_sub(1),
            _ => before,
        };
        self.strayed.get_or_insert(kept);
        words.swap(0, live);
    }

    /// Goes back to the last place with another word, and takes that.
    fn back(&mut self) -> Option<Link> {
        let fork = self.forks.last_mut()?;
        let word = fork.words.remove(0);
        let (before, at) = (fork.before, fork.at);
        if fork.words.is_empty() {
            self.forks.pop();
        }
        while self.way.len() > before {
            self.way.pop().map(|last| self.passed.remove(&last));
        }
        self.way.push(at);
        self.passed.insert(at);
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::fat::meaning;
    use crate::volume::layout::FatKind;

    const END: u32 = 0xffff;

    struct Two([Vec<u32>; 2]);

    impl Copies for Two {
        fn words(&mut self, cluster: u32, out: &mut Vec<Link>) -> Result<()> {
            let [a, b] = &self.0;
            let say = |copy: &[u32]| {
                meaning(
                    FatKind::Fat16,
                    copy.len() as u32 - 1,
                    copy[cluster as usize],
                )
            };
            out.clear();
            out.extend([say(a), say(b)]);
            out.dedup();
            Ok(())
        }

        fn may_come(&mut self, _cluster: u32) -> Result<bool> {
            Ok(true)
        }
    }

    /// Returns the way from cluster 10 on in two copies with these chains, where entries
    /// of one or the other were changed.
    fn way(need: Option<u32>, clean: bool, harm: &[(usize, usize, u32)]) -> Way {
        let mut copy = vec![0; 100];
        for chain in [10..16, 30..36] {
            chain.clone().for_each(|n| copy[n] = n as u32 + 1);
            copy[chain.end - 1] = END;
        }
        let mut two = Two([copy.clone(), copy]);
        for &(which, at, value) in harm {
            two.0[which][at] = value;
        }
        let goal = Goal {
            need,
            last: 99,
            clean,
        };
        best_way(&mut two, 10, goal).unwrap()
    }

    #[test]
    fn each_copy_has_what_the_other_lacks() {
        let whole: Vec<u32> = (10..16).collect();
        for value in [0, 1, 0xfff7, 5000, 10, 30, END] {
            for harm in [
                &[(0, 12, value)][..],
                &[(1, 12, value)],
                &[(0, 11, value), (1, 13, value)],
                &[(0, 10, value), (1, 12, value), (0, 14, value)],
            ] {
                let way = way(Some(6), true, harm);
                assert_eq!(way.clusters, whole, "{harm:?}");
                assert!(way.whole, "{harm:?}");
                let first = harm.iter().all(|(copy, _, _)| *copy == 1);
                assert_eq!(way.first, first, "{harm:?}");
            }
        }
    }

    #[test]
    fn what_leads_to_more_is_kept_where_neither_leads_to_all() {
        let way = way(Some(6), true, &[(0, 12, 0), (1, 12, 5000)]);
        assert_eq!((way.clusters.len(), way.whole), (3, false));
    }

    #[test]
    fn after_a_power_cut_the_first_copy_is_believed_where_it_can_be() {
        let grown = [(0, 13, 30), (1, 13, END)];
        let by = |need, clean| way(Some(need), clean, &grown);
        assert!(by(4, false).first && by(5, false).first && by(10, false).first);
        assert_eq!(by(4, true).clusters, [10, 11, 12, 13]);
        let dir = |clean| way(None, clean, &[(0, 12, END)]);
        assert!(dir(false).first);
        assert_eq!(dir(true).clusters.len(), 6);
        assert!(way(None, false, &[(0, 12, 0)]).clusters.len() == 6);
    }

    #[test]
    fn however_much_one_copy_lacks_the_other_has_it() {
        let whole: Vec<u32> = (0..2000).map(|n| n + 10).collect();
        let mut copy: Vec<u32> = (0..3000).map(|n| n + 1).collect();
        copy[2009] = END;
        let goal = Goal {
            need: Some(2000),
            last: 2999,
            clean: true,
        };
        let zeros = vec![0; 3000];
        // Links that seem right, and lead elsewhere.
        let elsewhere: Vec<u32> = (0..3000).map(|n| 3000 - n).collect();
        for lacking in [zeros, elsewhere] {
            for copies in [[lacking.clone(), copy.clone()], [copy.clone(), lacking]] {
                let is_first = copies[0] == copy;
                let way = best_way(&mut Two(copies), 10, goal).unwrap();
                assert!(way.whole && way.clusters == whole);
                assert_eq!(way.first, is_first);
            }
        }
    }

    #[test]
    fn chains_entangled_by_hand_end_in_time() {
        let harm: Vec<_> = (10..16).flat_map(|n| [(0, n, 10), (1, n, 11)]).collect();
        assert!(!way(Some(6), true, &harm).whole);
    }
}
