//! Whether the volume was left cleanly, by its flags and its log.

use crate::disk::ondisk::{VolumeInformation, kind, number, vflag};
use crate::files::node::Node;
use crate::mft::records::Mft;
use volary_core::Result;
use zerocopy::FromBytes;

/// The content of `$Volume`.
pub(crate) struct About {
    pub(crate) label: Vec<u8>,
    pub(crate) version: (u8, u8),
    pub(crate) flags: u16,
}

/// The longest label, in bytes.
const LABEL_MAX: u64 = 512;

/// The offset in a restart page of the log at which the restart area's offset is stored.
const RESTART_OFFSET: usize = 24;
/// Offsets in the restart area, and values of its fields.
const CLIENT_IN_USE: usize = 12;
const RESTART_FLAGS: usize = 14;
const CLEAN: u16 = 2;
const NO_CLIENT: u16 = 0xffff;

impl About {
    /// Reads the content of `$Volume`.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn read(mft: &Mft) -> Result<Self> {
        let node = Node::of(mft, number::VOLUME)?;
        let label = node.value(mft, kind::VOLUME_NAME, "$VOLUME_NAME", LABEL_MAX)?;
        let told = node.value(
            mft,
            kind::VOLUME_INFORMATION,
            "$VOLUME_INFORMATION",
            LABEL_MAX,
        )?;
        let told = told.unwrap_or_default();
        let raw = VolumeInformation::read_from_prefix(&told).ok();
        let (version, flags) = raw.map_or(((0, 0), 0), |(raw, _)| {
            ((raw.major, raw.minor), raw.flags.get())
        });
        Ok(Self {
            label: crate::disk::names::wtf8(&crate::disk::names::units(&label.unwrap_or_default())),
            version,
            flags,
        })
    }
}

/// The state of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Log {
    /// The log holds no records.
    Empty,
    /// All logged operations have reached the volume.
    Clean,
    /// Some logged operations may be missing on the volume. The log would have to be replayed.
    Open,
    /// The log is invalid.
    Unknown,
}

impl Log {
    /// Reads the state of the log.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn read(mft: &Mft) -> Result<Self> {
        let node = Node::of(mft, number::LOG)?;
        let Some(stream) = node.stream(mft, kind::DATA, &[])? else {
            return Ok(Self::Unknown);
        };
        let mut page = vec![0; 4096];
        let len = stream.read(mft, 0, &mut page)?;
        page.truncate(len);
        Ok(log_of(&page))
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Clean => "clean",
            Self::Open => "in use",
            Self::Unknown => "damaged",
        }
    }
}

/// Returns the state of a log, by its first page.
fn log_of(page: &[u8]) -> Log {
    let word = |at: usize| match page.get(at..) {
        Some(&[low, high, ..]) => u16::from_le_bytes([low, high]),
        _ => 0,
    };
    if page.iter().all(|byte| *byte == 0xff) {
        return Log::Empty;
    }
    if !page.starts_with(b"RSTR") {
        return Log::Unknown;
    }
    let area = usize::from(word(RESTART_OFFSET));
    let is_clean = word(area + RESTART_FLAGS) & CLEAN != 0;
    match is_clean || word(area + CLIENT_IN_USE) == NO_CLIENT {
        true => Log::Clean,
        false => Log::Open,
    }
}

/// Returns why the volume counts as not cleanly left, or `None` if it was left cleanly.
pub(crate) fn not_clean(mft: &Mft) -> Option<String> {
    let is_dirty = About::read(mft).is_ok_and(|about| about.flags & vflag::DIRTY != 0);
    let log = Log::read(mft).unwrap_or(Log::Unknown);
    let words = match (is_dirty, log) {
        (true, _) => "the volume is marked as one that has to be checked",
        (false, Log::Open) => {
            "the volume was not cleanly left: its log is in use, and was not replayed"
        }
        (false, Log::Unknown) => "the volume's log makes no sense, and was not replayed",
        (false, Log::Clean | Log::Empty) => return None,
    };
    Some(words.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_tells_its_state() {
        let page = |flags: u8, client: [u8; 2]| {
            let mut page = vec![0; 4096];
            page[..4].copy_from_slice(b"RSTR");
            page[RESTART_OFFSET] = 0x30;
            page[0x30 + RESTART_FLAGS] = flags;
            page[0x30 + CLIENT_IN_USE..0x30 + CLIENT_IN_USE + 2].copy_from_slice(&client);
            page
        };
        assert_eq!(log_of(&page(2, [0, 0])), Log::Clean);
        assert_eq!(log_of(&page(0, [0xff, 0xff])), Log::Clean);
        assert_eq!(log_of(&page(0, [0, 0])), Log::Open);
        assert_eq!(log_of(&[0xff; 4096]), Log::Empty);
        assert_eq!(log_of(&[7; 4096]), Log::Unknown);
        assert_eq!(log_of(b"RSTR"), Log::Open);
    }
}
