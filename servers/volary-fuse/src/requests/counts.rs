//! Counts the kernel's requests of each kind.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! requests {
    ($($request:ident $name:literal),* $(,)?) => {
        /// A kind of request, named as in the FUSE protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "the protocol's names")]
        pub enum RequestKind { $($request),* }

        impl RequestKind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$request),*];

            /// Returns its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$request => $name),* }
            }
        }
    };
}

requests! {
    Lookup "lookup", Forget "forget", GetAttr "getattr", SetAttr "setattr", ReadLink "readlink",
    MkNod "mknod", MkDir "mkdir", Unlink "unlink", RmDir "rmdir", Symlink "symlink",
    Rename "rename", Link "link", Open "open", Read "read", Write "write", Flush "flush",
    Release "release", FSync "fsync", OpenDir "opendir", ReadDir "readdir",
    ReadDirPlus "readdirplus", ReleaseDir "releasedir", FSyncDir "fsyncdir", StatFs "statfs",
    SetXattr "setxattr", GetXattr "getxattr", ListXattr "listxattr", RemoveXattr "removexattr",
    Access "access", Create "create", GetLk "getlk", SetLk "setlk", Ioctl "ioctl",
    FAllocate "fallocate", LSeek "lseek", CopyFileRange "copy_file_range",
}

/// Counters, one for each kind. They only grow.
#[derive(Debug)]
pub struct Counts([AtomicU64; RequestKind::ALL.len()]);

impl Default for Counts {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; RequestKind::ALL.len()])
    }
}

impl Counts {
    pub(crate) fn add(&self, kind: RequestKind) {
        self.0[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of requests of this kind so far.
    pub fn of(&self, kind: RequestKind) -> u64 {
        self.0[kind as usize].load(Ordering::Relaxed)
    }

    /// Returns the number of requests that a caller waits for: all but `forget`.
    pub fn waited_for(&self) -> u64 {
        let all = RequestKind::ALL
            .iter()
            .filter(|kind| **kind != RequestKind::Forget);
        all.map(|kind| self.of(*kind)).sum()
    }

    /// Returns the kinds that have occurred, with their counts.
    pub fn seen(&self) -> Vec<(RequestKind, u64)> {
        let all = RequestKind::ALL.iter().map(|kind| (*kind, self.of(*kind)));
        all.filter(|(_, count)| *count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_seen_under_its_name() {
        let counts = Counts::default();
        counts.add(RequestKind::Write);
        counts.add(RequestKind::Write);
        counts.add(RequestKind::Forget);
        let seen = [(RequestKind::Forget, 1), (RequestKind::Write, 2)];
        assert_eq!(counts.seen(), seen);
        assert_eq!(counts.waited_for(), 2);
        assert_eq!(RequestKind::Write.name(), "write");
    }
}
