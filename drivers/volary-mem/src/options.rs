//! The options of an in-memory volume.

use crate::node::Node;
use volary_core::{Caps, FileKind, Kind, Name, Result, SetAttr, SetTime, Time};

/// The properties of a volume. The default has every ability that the driver knows, and room for 1
/// GiB.
#[derive(Clone, Debug)]
pub struct MemOptions {
    /// Abilities and limits. Without one of the bits, the volume behaves as a format that lacks the
    /// ability. These are never available: `EXTENTS`, `CHECKS_ACCESS`, `SHARED_LOCKS`, `WATCH`,
    /// `STABLE_IDS`, `STABLE_COOKIES` and `CRASH_SAFE`.
    pub caps: Caps,
    /// Room for content, symlinks and extended attributes, in bytes.
    pub size: u64,
    /// The most nodes that the volume can have.
    pub nodes_max: u64,
    /// The highest link count of a node. It bounds the names of a file, and the subdirectories of a
    /// directory.
    pub link_max: u32,
    /// The owner of the root, and of everything without [`Caps::MODES`].
    pub uid: u32,
    /// The group of the root, and of everything without [`Caps::MODES`].
    pub gid: u32,
    /// Permission bits of files without [`Caps::MODES`], and of new files for which none are given.
    pub file_mode: u32,
    /// The same for directories.
    pub dir_mode: u32,
    /// The resolution of the time of last access, in nanoseconds.
    pub atime_step: u64,
    /// The resolution of the time of birth, in nanoseconds.
    pub btime_step: u64,
    /// Folds a name. Without [`Caps::CASE_SENSITIVE`], names with the same result are the same.
    /// Without [`Caps::CASE_KEEPING`], the result is what is stored.
    pub fold: fn(&[u8]) -> Vec<u8>,
    /// Returns whether a name is refused with `Invalid`, without [`Caps::ANY_NAME`].
    pub refuses: fn(&[u8]) -> bool,
}

/// Abilities that the driver never has, whatever the options say.
const NEVER: u32 = Caps::STABLE_IDS
    | Caps::STABLE_COOKIES
    | Caps::CRASH_SAFE
    | Caps::EXTENTS
    | Caps::CHECKS_ACCESS
    | Caps::SHARED_LOCKS
    | Caps::WATCH;

impl Default for MemOptions {
    fn default() -> Self {
        Self {
            caps: Caps {
                bits: Caps::WRITE
                    | Caps::MODES
                    | Caps::SYMLINKS
                    | Caps::HARD_LINKS
                    | Caps::DEVICES
                    | Caps::XATTRS
                    | Caps::HOLES
                    | Caps::PREALLOCATE
                    | Caps::CASE_SENSITIVE
                    | Caps::CASE_KEEPING
                    | Caps::SWAP
                    | Caps::ANY_NAME,
                name_max: 255,
                size_max: i64::MAX as u64,
                time_step: 1,
            },
            size: 1 << 30,
            nodes_max: 1 << 20,
            link_max: 65_000,
            uid: 0,
            gid: 0,
            file_mode: 0o644,
            dir_mode: 0o755,
            atime_step: 1,
            btime_step: 1,
            fold: volary_core::fold,
            refuses: has_control,
        }
    }
}

impl MemOptions {
    /// Returns a volume of `size` bytes, with a node for each KiB.
    pub fn sized(size: u64) -> Self {
        Self {
            size,
            nodes_max: (size >> 10).max(16),
            ..Self::default()
        }
    }

    /// Returns the requested capabilities, without those that this driver never has.
    pub(crate) fn true_caps(&self) -> Caps {
        self.caps.without(NEVER)
    }

    pub(crate) fn has(&self, bits: u32) -> bool {
        self.caps.has(bits)
    }

    /// Checks that the volume has these abilities.
    ///
    /// # Errors
    /// `Unsupported`.
    pub(crate) fn check_has(&self, bits: u32) -> Result<()> {
        if self.has(bits) {
            Ok(())
        } else {
            Err(Kind::Unsupported.into())
        }
    }

    /// Returns the mode of a node for which none is set.
    pub(crate) fn default_mode(&self, kind: FileKind) -> u32 {
        match kind {
            FileKind::Dir => self.dir_mode,
            FileKind::Symlink => 0o777,
            _ => self.file_mode,
        }
    }

    /// Sets times, in the volume's resolution.
    pub(crate) fn set_times(&self, node: &mut Node, set: &SetAttr, now: Time) {
        let new = |time: Option<SetTime>, old: Time, step: u64| match time {
            None => old,
            Some(SetTime::Now) => now.round_down(step),
            Some(SetTime::To(time)) => time.round_down(step),
        };
        node.atime = new(set.atime, node.atime, self.atime_step);
        node.mtime = new(set.mtime, node.mtime, self.caps.time_step);
        node.btime = new(set.btime, node.btime, self.btime_step);
    }

    /// Checks that a file can have this size.
    ///
    /// # Errors
    /// `TooBig`.
    pub(crate) fn check_size(&self, size: u64) -> Result<()> {
        if size > self.caps.size_max {
            return Err(Kind::TooBig.into());
        }
        Ok(())
    }

    /// Returns the form of a name that is used to compare names.
    pub(crate) fn key(&self, name: Name<'_>) -> Vec<u8> {
        if self.has(Caps::CASE_SENSITIVE) {
            name.as_bytes().to_vec()
        } else {
            (self.fold)(name.as_bytes())
        }
    }

    /// Returns a name as stored.
    pub(crate) fn spelling(&self, name: Name<'_>) -> Vec<u8> {
        if self.has(Caps::CASE_KEEPING) {
            name.as_bytes().to_vec()
        } else {
            (self.fold)(name.as_bytes())
        }
    }
}

fn has_control(name: &[u8]) -> bool {
    name.iter().any(u8::is_ascii_control)
}
