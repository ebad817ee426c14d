//! The paper's formulas for what a file costs on the disk, in bytes.

/// Bytes of a FAT entry per cluster on a hard disk.
pub const FAT16_ENTRY: f64 = 2.0;
/// The same on a floppy.
pub const FAT12_ENTRY: f64 = 1.5;
/// What FFS takes on a floppy before the first file: cylinder groups,
/// superblocks and inodes (the paper's figure).
pub const FFS_FIXED_FLOPPY: u64 = 104 << 10;
/// The same on a disk of 60 MB (the paper's 1.4 MB).
pub const FFS_FIXED_60MB: u64 = 1_400_000;
/// An inode.
pub const INODE: u64 = 128;
/// FFS's logical block in the figures.
pub const FFS_BLOCK: u64 = 4096;

/// Blocks that an inode points to itself.
const DIRECT: u64 = 12;
/// Pointers in an indirect block.
const POINTERS: u64 = FFS_BLOCK / 4;

/// Returns the paper's `ceil(X, Y)`: the least multiple of `unit` that is not less.
pub fn ceil(x: u64, unit: u64) -> u64 {
    x.next_multiple_of(unit)
}

/// Returns the paper's `D` of DosFs: a file's share of a directory of `files` files.
pub fn dosfs_dir(files: u64, cluster: u64) -> f64 {
    ceil(files * 32, cluster) as f64 / files as f64
}

/// Returns what DosFs pays for a file of `len` bytes beside its content: its share of
/// the directory, and its entries in the FAT of `entry` bytes each.
pub fn dosfs_metadata(len: u64, cluster: u64, files: u64, entry: f64) -> f64 {
    dosfs_dir(files, cluster) + entry * len.div_ceil(cluster) as f64
}

/// Returns the paper's `DosFsCost`.
pub fn dosfs_cost(len: u64, cluster: u64, files: u64, entry: f64) -> f64 {
    dosfs_metadata(len, cluster, files, entry) + ceil(len, cluster) as f64
}

/// Returns the paper's `D` of FFS, with names of `name_len` bytes.
pub fn ffs_dir(files: u64, fragment: u64, name_len: u64) -> f64 {
    let entry = (8 + name_len).max(12);
    ceil(files * entry, fragment) as f64 / files as f64
}

/// A volume that FFS's formula is about.
#[derive(Clone, Copy, Debug)]
pub struct Ffs {
    /// Bytes in a fragment.
    pub fragment: u64,
    /// Files in a directory.
    pub files_in_dir: u64,
    /// Bytes in a name.
    pub name_len: u64,
    /// Files on the volume.
    pub files: u64,
    /// What the volume takes before the first file.
    pub fixed: u64,
}

impl Ffs {
    /// Returns what FFS pays for a file of `len` bytes beside its content: its share
    /// of the directory and of the fixed cost, its inode, its bits in the
    /// map, and the blocks that list its blocks.
    pub fn metadata(&self, len: u64) -> f64 {
        let bitmap = len.div_ceil(8 * self.fragment);
        ffs_dir(self.files_in_dir, self.fragment, self.name_len)
            + (INODE + bitmap + indirect(len)) as f64
            + self.fixed as f64 / self.files as f64
    }

    /// Returns the paper's `FFSCost`, with the indirect blocks that it leaves to the
    /// reader.
    pub fn cost(&self, len: u64) -> f64 {
        self.metadata(len) + ceil(len, self.fragment) as f64
    }
}

/// Returns bytes of single and double indirect blocks of a file.
pub fn indirect(len: u64) -> u64 {
    let beyond = len.div_ceil(FFS_BLOCK).saturating_sub(DIRECT);
    let double = beyond.saturating_sub(POINTERS);
    let blocks = u64::from(beyond > 0) + u64::from(double > 0) + double.div_ceil(POINTERS);
    blocks * FFS_BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_in_one_directory_takes_two_blocks() {
        // The paper's example, less the FAT's entry.
        assert_eq!(dosfs_cost(1, 512, 1, 0.0), 1024.0);
    }

    #[test]
    fn the_share_of_a_directory_tends_to_the_entry() {
        assert_eq!(dosfs_dir(1, 512), 512.0);
        assert_eq!(dosfs_dir(16, 512), 32.0);
        assert_eq!(dosfs_dir(17, 512), 1024.0 / 17.0);
        assert_eq!(ffs_dir(1, 512, 12), 512.0);
        assert_eq!(ffs_dir(128, 512, 12), 20.0);
        assert_eq!(ffs_dir(128, 512, 1), 12.0);
    }

    #[test]
    fn indirect_blocks_come_after_twelve_and_after_1036() {
        assert_eq!(indirect(12 * 4096), 0);
        assert_eq!(indirect(12 * 4096 + 1), 4096);
        assert_eq!(indirect((12 + 1024) * 4096), 4096);
        assert_eq!(indirect((12 + 1024) * 4096 + 1), 3 * 4096);
        assert_eq!(indirect((12 + 1024 + 1025) * 4096), 4 * 4096);
    }

    #[test]
    fn ffs_pays_the_inode_and_its_share_of_what_is_fixed() {
        let ffs = Ffs {
            fragment: 512,
            files_in_dir: 128,
            name_len: 12,
            files: 1000,
            fixed: 1000,
        };
        assert_eq!(ffs.cost(512), 20.0 + 128.0 + 1.0 + 1.0 + 512.0);
        assert_eq!(ffs.metadata(4097), 20.0 + 128.0 + 2.0 + 1.0);
    }
}
