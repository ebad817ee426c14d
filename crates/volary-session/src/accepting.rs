//! [`AfterAccept`]: for servers, what to do when no client could be accepted.

use rustix::io::Errno;
use std::io;

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

#[cfg(test)]
mod tests {
    use super::*;

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
