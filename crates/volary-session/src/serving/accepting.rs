//! For servers that accept clients: what to do after an error of `accept`, and which connection is
//! closed for a new one.

use crate::serving::party::Party;
use rustix::io::Errno;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

/// What a listening server does after an error of `accept`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterAccept {
    /// The error concerns one client: accept the next.
    GoOn,
    /// A resource is short (descriptors, memory), or the network is down: try again later.
    Rest,
    /// The socket does not listen, and never will again.
    End,
}

impl AfterAccept {
    /// Returns the reaction to this error. Unknown errors count as temporary, so that no client can
    /// end a server by causing one.
    pub fn of(error: &io::Error) -> Self {
        match Errno::from_io_error(error) {
            Some(
                Errno::AGAIN
                | Errno::INTR
                | Errno::CONNABORTED
                | Errno::CONNRESET
                | Errno::PROTO
                | Errno::PERM,
            ) => Self::GoOn,
            Some(Errno::BADF | Errno::INVAL | Errno::NOTSOCK | Errno::OPNOTSUPP) => Self::End,
            _ => Self::Rest,
        }
    }
}

/// A connection that competes with others for a seat.
pub trait Guest {
    /// Returns the party to whose share the connection counts.
    fn party(&self) -> Party;
    /// Returns whether its client has proved itself: by a logon, or by an accepted call.
    fn is_known(&self) -> bool;
    /// Returns whether no request is in progress, and nothing is lost if it is closed.
    fn is_idle(&self) -> bool;
}

/// How many connections may be open at a time.
#[derive(Clone, Copy, Debug)]
pub struct Seats {
    /// In all.
    pub all: usize,
    /// Of one party.
    pub of_party: usize,
    /// Of one party, unproved ones: their client has not yet logged on or made an accepted call.
    pub silent_of_party: usize,
}

/// Where a new connection finds room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seat<T> {
    /// There is room.
    Free,
    /// This connection must be closed to make room.
    InsteadOf(T),
    /// There is no room.
    Nowhere,
}

impl<T> From<Option<T>> for Seat<T> {
    fn from(gives_way: Option<T>) -> Self {
        gives_way.map_or(Self::Nowhere, Self::InsteadOf)
    }
}

impl Seats {
    /// Finds room for a new connection of a party beside the `open` ones, which are sorted from
    /// oldest to newest.
    ///
    /// A connection is *unproved* until its client has logged on or made an accepted call. A party at
    /// its own bound gives up its oldest unproved connection. At the bound of all, the party with the
    /// most unproved connections gives up its oldest. If all are proved, the party with the most
    /// connections gives up its newest idle one, or its newest if none is idle. That party must
    /// have at least two more than the party of the new connection.
    pub fn find<T: Guest>(&self, open: &[Arc<T>], party: Party) -> Seat<Arc<T>> {
        let theirs = open.iter().filter(|conn| conn.party() == party);
        let mut silent = theirs.clone().filter(|conn| !conn.is_known());
        let many = silent.clone().count() >= self.silent_of_party;
        if many || theirs.count() >= self.of_party {
            silent.next().cloned().into()
        } else if open.len() >= self.all {
            longest_silent(open)
                .or_else(|| greediest(open, party))
                .into()
        } else {
            Seat::Free
        }
    }
}

/// Returns the oldest unproved connection of the party that has the most unproved ones.
pub fn longest_silent<T: Guest>(open: &[Arc<T>]) -> Option<Arc<T>> {
    let silent = || open.iter().filter(|conn| !conn.is_known());
    let counts = counts(silent());
    let most = counts.values().max()?;
    let found = silent().find(|conn| counts.get(&conn.party()) == Some(most));
    found.cloned()
}

/// Returns the connection that is closed for one of `party` if all are proved.
fn greediest<T: Guest>(open: &[Arc<T>], party: Party) -> Option<Arc<T>> {
    let counts = counts(open.iter());
    let most = counts.values().copied().max()?;
    let theirs = counts.get(&party).copied().unwrap_or(0);
    if most < theirs.saturating_add(2) {
        return None;
    }
    let mut newest = open.iter().rev();
    let greedy = newest.find(|conn| counts.get(&conn.party()) == Some(&most))?;
    let mut theirs = open.iter().filter(|conn| conn.party() == greedy.party());
    let idle = theirs.rfind(|conn| conn.is_idle());
    Some(Arc::clone(idle.unwrap_or(greedy)))
}

fn counts<'a, T: Guest + 'a>(conns: impl Iterator<Item = &'a Arc<T>>) -> HashMap<Party, usize> {
    let mut counts = HashMap::new();
    for conn in conns {
        let count: &mut usize = counts.entry(conn.party()).or_default();
        *count = count.saturating_add(1);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Conn(u32, Party, bool, bool);

    impl Guest for Conn {
        fn party(&self) -> Party {
            self.1
        }
        fn is_known(&self) -> bool {
            self.2
        }
        fn is_idle(&self) -> bool {
            self.3
        }
    }

    const SEATS: Seats = Seats {
        all: 6,
        of_party: 5,
        silent_of_party: 3,
    };

    /// Connections of these users; a negative number stands for an unproved one.
    fn conns(users: &[i32]) -> Vec<Arc<Conn>> {
        let conn = |(at, user): (usize, &i32)| {
            let party = Party::User(user.unsigned_abs());
            Arc::new(Conn(at as u32, party, *user >= 0, true))
        };
        users.iter().enumerate().map(conn).collect()
    }

    /// Returns the connection that is closed for one of this user.
    fn seat(open: &[Arc<Conn>], user: u32) -> Seat<u32> {
        match SEATS.find(open, Party::User(user)) {
            Seat::Free => Seat::Free,
            Seat::InsteadOf(conn) => Seat::InsteadOf(conn.0),
            Seat::Nowhere => Seat::Nowhere,
        }
    }

    #[test]
    fn who_says_nothing_gives_way() {
        assert_eq!(seat(&conns(&[1, 2, -2, -2, 3]), 1), Seat::Free);
        assert_eq!(
            seat(&conns(&[-2, 2, -2, -2]), 2),
            Seat::InsteadOf(0),
            "too many silent"
        );
        assert_eq!(
            seat(&conns(&[2, 2, 2, -2, 2]), 2),
            Seat::InsteadOf(3),
            "too many"
        );
        assert_eq!(seat(&conns(&[2, 2, 2, 2, 2]), 2), Seat::Nowhere);
        assert_eq!(seat(&conns(&[-1, 1, -2, 2, 2, -2]), 3), Seat::InsteadOf(2));
        assert!(longest_silent(&conns(&[])).is_none());
    }

    #[test]
    fn who_has_most_gives_way_where_all_are_known() {
        let mut open = conns(&[1, 2, 2, 2, 2, 1]);
        assert_eq!(seat(&open, 3), Seat::InsteadOf(4), "the newest");
        assert_eq!(seat(&open, 1), Seat::InsteadOf(4));
        assert_eq!(seat(&open, 2), Seat::Nowhere);
        open[4] = Arc::new(Conn(4, Party::User(2), true, false));
        assert_eq!(seat(&open, 3), Seat::InsteadOf(3), "the newest idle one");
        let shared = conns(&[1, 2, 3, 1, 2, 3]);
        assert_eq!(seat(&shared, 1), Seat::Nowhere);
        assert_eq!(seat(&shared, 4), Seat::InsteadOf(5));
        assert_eq!(seat(&conns(&[1, 2, 3, 4, 5, 6]), 7), Seat::Nowhere);
    }

    #[test]
    fn only_a_socket_that_does_not_listen_ends_a_server() {
        let after = |errno: Errno| AfterAccept::of(&errno.into());
        for errno in [Errno::CONNABORTED, Errno::INTR, Errno::PROTO, Errno::AGAIN] {
            assert_eq!(after(errno), AfterAccept::GoOn, "{errno:?}");
        }
        let short = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS];
        for errno in short.into_iter().chain([Errno::NETDOWN, Errno::IO]) {
            assert_eq!(after(errno), AfterAccept::Rest, "{errno:?}");
        }
        assert_eq!(after(Errno::INVAL), AfterAccept::End);
        assert_eq!(AfterAccept::of(&io::Error::other("?")), AfterAccept::Rest);
    }
}
