//! Functions that make attributes, to change in a line: `Attr { mtime, ..attr::file(node, size) }`.

use volary_core::{Attr, FileKind, NodeId, Time};

/// The default for the preferred size of reads, in bytes.
const IO_SIZE: u32 = 64 << 10;

/// Returns attributes of a file: `rw-r--r--`, one name, owned by root, without times.
pub fn file(node: NodeId, size: u64) -> Attr {
    of(node, FileKind::File, 0o644, size)
}

/// Returns attributes of a directory without subdirectories: `rwxr-xr-x`, owned by root, without
/// times.
pub fn dir(node: NodeId) -> Attr {
    Attr {
        nlink: 2,
        ..of(node, FileKind::Dir, 0o755, 0)
    }
}

/// Returns attributes of a symlink whose target has `len` bytes.
pub fn symlink(node: NodeId, len: u64) -> Attr {
    of(node, FileKind::Symlink, 0o777, len)
}

/// Returns attributes of a fifo, socket, or device with the number `rdev`: `rw-r--r--`.
pub fn special(node: NodeId, kind: FileKind, rdev: u64) -> Attr {
    Attr {
        rdev,
        ..of(node, kind, 0o644, 0)
    }
}

fn of(node: NodeId, kind: FileKind, mode: u32, size: u64) -> Attr {
    Attr {
        node,
        kind,
        mode,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        size,
        allocated: size,
        io_size: IO_SIZE,
        atime: Time::EPOCH,
        mtime: Time::EPOCH,
        ctime: Time::EPOCH,
        btime: None,
        change: 0,
        dos: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_builder_gives_its_kind() {
        let node = NodeId::new(7, 0).unwrap();
        let made = Attr {
            mtime: Time::from_secs(5),
            ..file(node, 10)
        };
        assert_eq!((made.kind, made.size, made.nlink), (FileKind::File, 10, 1));
        assert_eq!(made.mtime, Time::from_secs(5));
        assert_eq!((dir(node).kind, dir(node).nlink), (FileKind::Dir, 2));
        assert_eq!(symlink(node, 3).size, 3);
        let device = special(node, FileKind::CharDevice, 1 << 32 | 3);
        assert_eq!(device.rdev, 1 << 32 | 3);
    }
}
