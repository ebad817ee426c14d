//! What an in-memory volume can do.

use crate::node::Node;
use volary_core::{Caps, FileKind, Kind, Name, Result, SetAttr, SetTime, Time};

/// What a volume is to be like. The default has every ability that the driver
/// knows, and room for 1 GiB.
#[derive(Clone, Debug)]
pub struct MemOptions {
    /// Abilities and limits. Without one of the bits the volume behaves as a
    /// format that lacks it; `EXTENTS`, `CHECKS_ACCESS`, `SHARED_LOCKS`,
    /// `WATCH`, `STABLE_IDS`, `STABLE_COOKIES` and `CRASH_SAFE` are not to be had.
    pub caps: Caps,
    /// Room for content, symlinks and extended attributes, in bytes.
    pub size: u64,
    /// How many nodes there can be.
    pub nodes_max: u64,
    /// How many names a node can have, and how many directories another.
    pub link_max: u32,
    /// Who owns the root, and everything without [`Caps::MODES`].
    pub uid: u32,
    /// Their group.
    pub gid: u32,
    /// Permission bits of files without [`Caps::MODES`], and of those made
    /// without saying.
    pub file_mode: u32,
    /// The same for directories.
    pub dir_mode: u32,
    /// Steps of the time of last access, in nanoseconds.
    pub atime_step: u64,
    /// Steps of the time of birth, in nanoseconds.
    pub btime_step: u64,
    /// Without [`Caps::CASE_SENSITIVE`], names are the same if this makes the
    /// same of them; without [`Caps::CASE_KEEPING`], they are kept as it makes
    /// them.
    pub fold: fn(&[u8]) -> Vec<u8>,
    /// Without [`Caps::ANY_NAME`], whether a name is refused with `Invalid`.
    pub refuses: fn(&[u8]) -> bool,
}

/// Abilities that the driver does not have whatever the options say.
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

    /// Returns the capabilities that were asked for, without those that this driver never has.
    pub(crate) fn true_caps(&self) -> Caps {
        self.caps.without(NEVER)
    }

    pub(crate) fn has(&self, bits: u32) -> bool {
        self.caps.has(bits)
    }

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

    /// Sets times, as finely as the volume keeps them.
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

    /// # Errors
    /// `TooBig`.
    pub(crate) fn check_size(&self, size: u64) -> Result<()> {
        if size > self.caps.size_max {
            return Err(Kind::TooBig.into());
        }
        Ok(())
    }

    /// Returns what stands for a name when names are compared.
    pub(crate) fn key(&self, name: Name<'_>) -> Vec<u8> {
        if self.has(Caps::CASE_SENSITIVE) {
            name.as_bytes().to_vec()
        } else {
            (self.fold)(name.as_bytes())
        }
    }

    /// Returns a name as it is kept.
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
