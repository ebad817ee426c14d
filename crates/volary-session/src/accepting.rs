//! For servers that accept clients: what to do when none could be accepted, and who gives way.

use rustix::io::Errno;
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;

/// What a server that listens does after an error of `accept`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterAccept {
    /// It was about one client: accept the next.
    GoOn,
    /// Something is short (descriptors, memory), or the network is down: try again in a while.
    Rest,
    /// The socket does not listen: it never will again.
    End,
}

impl AfterAccept {
    /// Returns what this error asks for. An error that is not known passes, so that no
    /// client can end a server by one.
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

/// Returns which of the connections `silent` gives way to a new one: the first, of the address
/// that has most of them. They are those on which nobody is known yet, the oldest first.
pub fn gives_way<T: Clone>(silent: &[T], address: impl Fn(&T) -> IpAddr) -> Option<T> {
    let mut counts = HashMap::new();
    for conn in silent {
        let count: &mut usize = counts.entry(address(conn)).or_default();
        *count = count.saturating_add(1);
    }
    let most = counts.values().max()?;
    let mut oldest = silent.iter();
    let found = oldest.find(|conn| counts.get(&address(conn)) == Some(most));
    found.cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_the_address_with_most_gives_way() {
        let at = |last| IpAddr::from([10, 0, 0, last]);
        let all = [(1, at(1)), (2, at(2)), (3, at(2)), (4, at(1)), (5, at(2))];
        assert_eq!(gives_way(&all, |(_, address)| *address), Some((2, at(2))));
        assert_eq!(gives_way(&[], |(_, address): &(u8, IpAddr)| *address), None);
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
