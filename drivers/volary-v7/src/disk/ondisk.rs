//! Structures as they are stored, with the names that the sources give them: see `FORMAT.md`.

/// Bytes before the superblock.
pub(crate) const SUPER_AT: u64 = 512;
/// Bytes of the superblock.
pub(crate) const SUPER_LEN: usize = 512;
/// The block that the inodes begin with.
pub(crate) const INODES_FROM: u64 = 2;

/// Bytes of an inode.
pub(crate) const INODE_LEN: usize = 64;
/// The inode of the blocks that are bad.
pub(crate) const BAD_INO: u32 = 1;
/// The root's.
pub(crate) const ROOT_INO: u32 = 2;

/// Addresses in an inode.
pub(crate) const ADDRESSES: usize = 13;
/// Of these, the ones that lead to data.
pub(crate) const DIRECT: usize = 10;

/// Bytes of a name at most.
pub(crate) const NAME_MAX: usize = 14;
/// Bytes of an entry of a directory.
pub(crate) const ENTRY_LEN: usize = 16;

/// Most entries of `s_free` and of each block of the free list.
pub(crate) const NICFREE: usize = 50;
/// Most entries of `s_inode`.
pub(crate) const NICINOD: usize = 100;
/// Addresses have three bytes.
pub(crate) const BLOCKS_MAX: u64 = 0xff_ffff;
/// A size is a signed number of 32 bits.
pub(crate) const SIZE_MAX: u64 = 0x7fff_ffff;

/// Longest target of a symlink that is believed, in bytes: Linux reads no longer ones.
pub(crate) const TARGET_MAX: u64 = 4095;

/// `s_magic` of System V.
pub(crate) const FS_MAGIC: u32 = 0xfd18_7e20;
/// `s_state` and `s_time` of a System V volume that was cleanly left add up to this.
pub(crate) const FS_OKAY: u32 = 0x7c26_9d38;
/// `s_state` of one that is in use.
pub(crate) const FS_ACTIVE: u32 = 0x5e72_d81a;

/// The order of bytes in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The PDP-11's: a word has its low byte first, a long has its high word first.
    Pdp,
    Little,
    Big,
}

impl Order {
    /// Returns what users call it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Pdp => "pdp",
            Self::Little => "little",
            Self::Big => "big",
        }
    }

    /// Returns its description in words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Pdp => "PDP-11",
            Self::Little => "little-endian",
            Self::Big => "big-endian",
        }
    }

    /// Returns a number of 16 bits. What lies past the end reads as zeros.
    pub(crate) fn get16(self, bytes: &[u8], at: usize) -> u16 {
        let raw: [u8; 2] = read(bytes, at);
        match self {
            Self::Big => u16::from_be_bytes(raw),
            _ => u16::from_le_bytes(raw),
        }
    }

    /// Returns a number of 32 bits.
    pub(crate) fn get32(self, bytes: &[u8], at: usize) -> u32 {
        let [a, b, c, d]: [u8; 4] = read(bytes, at);
        match self {
            Self::Pdp => u32::from_le_bytes([c, d, a, b]),
            Self::Little => u32::from_le_bytes([a, b, c, d]),
            Self::Big => u32::from_be_bytes([a, b, c, d]),
        }
    }

    /// Returns an address in an inode: three bytes of a number of 32 bits, without the highest.
    pub(crate) fn get24(self, bytes: &[u8], at: usize) -> u32 {
        let [a, b, c]: [u8; 3] = read(bytes, at);
        match self {
            Self::Pdp => u32::from_le_bytes([b, c, a, 0]),
            Self::Little => u32::from_le_bytes([a, b, c, 0]),
            Self::Big => u32::from_be_bytes([0, a, b, c]),
        }
    }

    /// Stores a number of 16 bits.
    pub(crate) fn put16(self, bytes: &mut [u8], at: usize, n: u16) {
        let raw = match self {
            Self::Big => n.to_be_bytes(),
            _ => n.to_le_bytes(),
        };
        write(bytes, at, &raw);
    }

    /// Returns the bytes of a number of 32 bits.
    pub(crate) fn bytes32(self, n: u32) -> [u8; 4] {
        let [a, b, c, d] = n.to_le_bytes();
        match self {
            Self::Pdp => [c, d, a, b],
            Self::Little => [a, b, c, d],
            Self::Big => [d, c, b, a],
        }
    }

    /// Stores a number of 32 bits.
    pub(crate) fn put32(self, bytes: &mut [u8], at: usize, n: u32) {
        write(bytes, at, &self.bytes32(n));
    }

    /// Stores an address in an inode.
    pub(crate) fn put24(self, bytes: &mut [u8], at: usize, n: u32) {
        let [a, b, c, _] = n.to_le_bytes();
        let raw = match self {
            Self::Pdp => [c, a, b],
            Self::Little => [a, b, c],
            Self::Big => [c, b, a],
        };
        write(bytes, at, &raw);
    }
}

fn read<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.copied().unwrap_or([0; N])
}

fn write(bytes: &mut [u8], at: usize, raw: &[u8]) {
    if let Some(room) = bytes.get_mut(at..at + raw.len()) {
        room.copy_from_slice(raw);
    }
}

/// Which superblock and free list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// The Seventh Edition's: numbers follow each other without room between them.
    V7,
    /// System V's, Release 4, on machines that align numbers of 32 bits.
    SysV,
}

/// Where the fields of a superblock lie.
pub(crate) struct Fields {
    pub(crate) fsize: usize,
    pub(crate) nfree: usize,
    pub(crate) free: usize,
    pub(crate) ninode: usize,
    pub(crate) inode: usize,
    /// `s_flock`; `s_ilock`, `s_fmod` and `s_ronly` follow.
    pub(crate) flags: usize,
    pub(crate) time: usize,
    pub(crate) tfree: usize,
    pub(crate) tinode: usize,
    /// `s_m` and `s_n`; `s_dinfo` on System V.
    pub(crate) interleave: usize,
    pub(crate) fname: usize,
    pub(crate) fpack: usize,
}

/// Where `s_isize` lies.
pub(crate) const ISIZE: usize = 0;
/// Where `s_state`, `s_magic` and `s_type` of System V lie.
pub(crate) const STATE: usize = 500;
pub(crate) const MAGIC: usize = 504;
pub(crate) const TYPE: usize = 508;

impl Variant {
    /// Returns where the fields of its superblock lie.
    pub(crate) fn fields(self) -> &'static Fields {
        match self {
            Self::V7 => &Fields {
                fsize: 2,
                nfree: 6,
                free: 8,
                ninode: 208,
                inode: 210,
                flags: 410,
                time: 414,
                tfree: 418,
                tinode: 422,
                interleave: 424,
                fname: 428,
                fpack: 434,
            },
            Self::SysV => &Fields {
                fsize: 4,
                nfree: 8,
                free: 12,
                ninode: 212,
                inode: 216,
                flags: 416,
                time: 420,
                tfree: 432,
                tinode: 436,
                interleave: 424,
                fname: 440,
                fpack: 446,
            },
        }
    }

    /// Returns where the addresses of a block of the free list begin; their number is at its start.
    pub(crate) fn chunk_free(self) -> usize {
        match self {
            Self::V7 => 2,
            Self::SysV => 4,
        }
    }
}

/// Fields of an inode.
pub(crate) mod di {
    pub(crate) const MODE: usize = 0;
    pub(crate) const NLINK: usize = 2;
    pub(crate) const UID: usize = 4;
    pub(crate) const GID: usize = 6;
    pub(crate) const SIZE: usize = 8;
    pub(crate) const ADDR: usize = 12;
    /// The byte behind the addresses.
    pub(crate) const GEN: usize = 51;
    pub(crate) const ATIME: usize = 52;
    pub(crate) const MTIME: usize = 56;
    pub(crate) const CTIME: usize = 60;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_in_each_order() {
        let mut bytes = [0; 12];
        let shown = [
            (Order::Pdp, [0x34, 0x12, 0x78, 0x56], [0x34, 0x78, 0x56]),
            (Order::Little, [0x78, 0x56, 0x34, 0x12], [0x78, 0x56, 0x34]),
            (Order::Big, [0x12, 0x34, 0x56, 0x78], [0x34, 0x56, 0x78]),
        ];
        for (order, long, address) in shown {
            order.put32(&mut bytes, 0, 0x1234_5678);
            order.put24(&mut bytes, 4, 0x34_5678);
            order.put16(&mut bytes, 8, 0xabcd);
            assert_eq!((&bytes[..4], &bytes[4..7]), (&long[..], &address[..]));
            assert_eq!(order.get32(&bytes, 0), 0x1234_5678);
            assert_eq!(order.get24(&bytes, 4), 0x34_5678);
            assert_eq!(order.get16(&bytes, 8), 0xabcd);
            assert_eq!(order.get32(&bytes, 10), 0);
        }
    }
}
