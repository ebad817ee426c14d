//! The checked boot sector: where everything lies.

use crate::volume::ondisk::{BOOT_SIGNATURE, BootTail, Bpb, Bpb32, tail_offset};
use volary_core::{BlockDevice, Error, Kind, Result};
use zerocopy::FromBytes;

/// How wide an entry of the FAT is. Told by the number of clusters alone
/// (specification, page 14).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum FatKind {
    Fat12,
    Fat16,
    Fat32,
}

/// FAT12 has fewer clusters than this, FAT16 has as many or more.
pub(crate) const FAT16_CLUSTERS_MIN: u32 = 4085;
/// FAT16 has fewer clusters than this, FAT32 has as many or more.
pub(crate) const FAT32_CLUSTERS_MIN: u32 = 65_525;
/// Most clusters that 28 bits can number, less the values with a meaning.
pub(crate) const FAT32_CLUSTERS_MAX: u32 = 0x0fff_fff5;

impl FatKind {
    /// Returns the name: `fat12`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fat12 => "fat12",
            Self::Fat16 => "fat16",
            Self::Fat32 => "fat32",
        }
    }

    /// Bits of an entry as it is stored.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Fat12 => 12,
            Self::Fat16 => 16,
            Self::Fat32 => 32,
        }
    }

    /// Returns the bits of an entry that are a value: 28 of FAT32's 32.
    pub const fn mask(self) -> u32 {
        match self {
            Self::Fat12 => 0xfff,
            Self::Fat16 => 0xffff,
            Self::Fat32 => 0x0fff_ffff,
        }
    }

    /// Marks a cluster that must not be used.
    pub const fn bad(self) -> u32 {
        self.mask() - 8
    }

    /// Returns the least value that ends a chain; [`mask`](Self::mask) is what we write.
    pub const fn end_min(self) -> u32 {
        self.mask() - 7
    }

    /// Returns the kind for a number of clusters.
    pub const fn by_clusters(count: u32) -> Self {
        if count < FAT16_CLUSTERS_MIN {
            Self::Fat12
        } else if count < FAT32_CLUSTERS_MIN {
            Self::Fat16
        } else {
            Self::Fat32
        }
    }

    /// Returns bytes that a FAT of `clusters` data clusters needs.
    pub const fn fat_len(self, clusters: u32) -> u64 {
        let entries = clusters as u64 + 2;
        (entries * self.bits() as u64).div_ceil(8)
    }
}

/// A boot sector that holds together. Everything after trusts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// FAT12, FAT16 or FAT32.
    pub kind: FatKind,
    /// Bytes in a sector: 512, 1024, 2048 or 4096.
    pub sector_len: u32,
    /// Bytes in a cluster: a power of two, up to 64 KiB.
    pub cluster_len: u32,
    /// Sectors before the first FAT.
    pub reserved_sectors: u32,
    /// How many FATs: at least 1.
    pub fat_count: u8,
    /// Sectors in each FAT.
    pub fat_sectors: u32,
    /// The FAT that counts (FAT32 with mirroring off), else 0.
    pub active_fat: u8,
    /// Whether all FATs are kept alike.
    pub mirrored: bool,
    /// Entries of the root directory of FAT12 and FAT16; 0 on FAT32.
    pub root_entries: u32,
    /// First cluster of the root directory of FAT32; 0 on the others.
    pub root_cluster: u32,
    /// Sectors of the volume.
    pub total_sectors: u32,
    /// First sector of cluster 2.
    pub data_sector: u32,
    /// Clusters, numbered from 2.
    pub cluster_count: u32,
    /// The FSInfo sector, if there is one.
    pub fsinfo_sector: Option<u32>,
    /// The boot sector's copy, if there is one.
    pub backup_sector: Option<u32>,
    /// `BPB_Media`.
    pub media: u8,
    /// Serial number, if there is one.
    pub serial: Option<u32>,
    /// Label in the boot sector, if there is one, padded with spaces.
    pub label: Option<[u8; 11]>,
    /// `BS_OEMName`.
    pub oem: [u8; 8],
    /// The dirty and error bits of `BS_Reserved1`.
    pub state: u8,
    /// Atari's: no signature, and FAT16 unless a floppy's size or its FATs say FAT12.
    pub atari: bool,
}

impl Layout {
    /// Reads and checks the boot sector.
    ///
    /// # Errors
    /// `Corrupt` with the field and its offset; `Unsupported` for a FAT32
    /// version other than 0; `Io`.
    pub fn read(dev: &dyn BlockDevice) -> Result<Self> {
        Self::read_at(dev, 0)
    }

    /// Reads and checks a copy of the boot sector, which stands at a sector of 512
    /// bytes. The volume begins at byte 0 of the device all the same.
    ///
    /// # Errors
    /// As [`read`](Self::read); `Invalid` for a sector that the device does not have.
    pub fn read_at(dev: &dyn BlockDevice, sector: u64) -> Result<Self> {
        let size = dev.geometry().size;
        if size < 512 {
            return Err(Error::corrupt(
                "boot sector",
                0,
                format!("a device of {size} bytes"),
                "at least 512",
            ));
        }
        if sector >= size / 512 {
            let words = format!(
                "boot={sector}: the device has {} sectors of 512 bytes",
                size / 512
            );
            return Err(Error::note(Kind::Invalid, words));
        }
        let mut bytes = [0; 512];
        dev.read_at(sector * 512, &mut bytes)?;
        let layout = Self::parse(&bytes, size)?;
        if layout.atari {
            layout.check_head(dev)?;
        }
        Ok(layout)
    }

    /// Sees that a FAT begins where one must, of a volume without a signature.
    fn check_head(&self, dev: &dyn BlockDevice) -> Result<()> {
        let mut head = [0; 3];
        for copy in 0..self.fat_count {
            match dev.read_at(self.fat_offset(copy), &mut head) {
                Err(e) if e == Kind::Io => {}
                done => done?,
            }
            if head == [self.media, 0xff, 0xff] {
                return Ok(());
            }
        }
        let found = format!("{head:02x?}");
        Err(Error::corrupt(
            "FAT of a volume without a signature",
            self.fat_offset(0),
            found,
            "BPB_Media, ff ff",
        ))
    }

    /// Checks a boot sector for a device of `size` bytes.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(sector: &[u8; 512], size: u64) -> Result<Self> {
        let (bpb, rest) = Bpb::ref_from_prefix(sector).map_err(|_| Error::from(Kind::Corrupt))?;
        let (b32, _) = Bpb32::ref_from_prefix(rest).map_err(|_| Error::from(Kind::Corrupt))?;
        let atari = is_atari(sector);
        if !atari {
            check_signature(sector)?;
        }
        let sector_len = check_sector_len(bpb)?;
        let cluster_len = check_cluster_len(bpb, sector_len)?;
        let sizes = Sizes::read(bpb, b32, sector_len, size)?;
        let data_sector = sizes.data_sector(bpb, sector_len)?;
        let sectors_per_cluster = cluster_len / sector_len;
        let cluster_count = (sizes.total - data_sector) / sectors_per_cluster;
        let fat32 = bpb.BPB_FATSz16.get() == 0;
        let mut kind = check_kind(cluster_count, fat32)?;
        if atari {
            kind = atari_kind(cluster_count, &sizes, sector_len);
        }
        let need = kind.fat_len(cluster_count);
        if u64::from(sizes.fat) * u64::from(sector_len) < need {
            let (what, at) = if fat32 {
                ("BPB_FATSz32", 36)
            } else {
                ("BPB_FATSz16", 22)
            };
            return Err(Error::corrupt(
                what,
                at,
                format!("{} sectors", sizes.fat),
                format!("{need} bytes, for {cluster_count} clusters"),
            ));
        }
        let mut layout = Self {
            kind,
            sector_len,
            cluster_len,
            reserved_sectors: bpb.BPB_RsvdSecCnt.get().into(),
            fat_count: bpb.BPB_NumFATs,
            fat_sectors: sizes.fat,
            active_fat: 0,
            mirrored: true,
            root_entries: bpb.BPB_RootEntCnt.get().into(),
            root_cluster: 0,
            total_sectors: sizes.total,
            data_sector,
            cluster_count,
            fsinfo_sector: None,
            backup_sector: None,
            media: bpb.BPB_Media,
            serial: None,
            label: None,
            oem: bpb.BS_OEMName,
            state: 0,
            atari,
        };
        if fat32 {
            layout.take_fat32(b32)?;
        }
        layout.take_tail(sector);
        Ok(layout)
    }

    fn take_fat32(&mut self, b32: &Bpb32) -> Result<()> {
        let version = b32.BPB_FSVer.get();
        if version != 0 {
            let words = format!(
                "FAT32 version {version:#x} (BPB_FSVer at byte 42); only version 0 is known"
            );
            return Err(Error::note(Kind::Unsupported, words));
        }
        let flags = b32.BPB_ExtFlags.get();
        if flags & 0x80 != 0 {
            self.mirrored = false;
            self.active_fat = (flags & 0xf) as u8;
            if self.active_fat >= self.fat_count {
                let expected = format!("a FAT below {}", self.fat_count);
                return Err(Error::corrupt(
                    "BPB_ExtFlags",
                    40,
                    self.active_fat.to_string(),
                    expected,
                ));
            }
        }
        self.root_cluster = b32.BPB_RootClus.get();
        if !self.is_cluster(self.root_cluster) {
            let expected = format!("a cluster from 2 to {}", self.last_cluster());
            return Err(Error::corrupt(
                "BPB_RootClus",
                44,
                self.root_cluster.to_string(),
                expected,
            ));
        }
        let inside = |n: u16| {
            (n != 0 && n != 0xffff)
                .then_some(u32::from(n))
                .filter(|&n| n < self.reserved_sectors)
        };
        self.fsinfo_sector = inside(b32.BPB_FSInfo.get());
        // A copy where FSInfo is would be overwritten by it.
        self.backup_sector = inside(b32.BPB_BkBootSec.get())
            .filter(|_| b32.BPB_BkBootSec.get() != b32.BPB_FSInfo.get());
        Ok(())
    }

    fn take_tail(&mut self, sector: &[u8; 512]) {
        let at = tail_offset(self.kind == FatKind::Fat32);
        let Some(Ok((tail, _))) = sector.get(at..).map(BootTail::ref_from_prefix) else {
            return;
        };
        if matches!(tail.BS_BootSig, 0x28 | 0x29) {
            self.serial = Some(tail.BS_VolID.get());
            self.state = tail.BS_Reserved1 & 3;
        }
        if tail.BS_BootSig == 0x29 {
            self.label = Some(tail.BS_VolLab);
        }
    }

    /// Returns the highest cluster number.
    pub fn last_cluster(&self) -> u32 {
        self.cluster_count + 1
    }

    /// Returns whether `n` numbers a cluster of the data area.
    pub fn is_cluster(&self, n: u32) -> bool {
        (2..=self.last_cluster()).contains(&n)
    }

    /// Byte offset of a cluster. For a number that is none, past the end.
    pub fn cluster_offset(&self, n: u32) -> u64 {
        let data = u64::from(self.data_sector) * u64::from(self.sector_len);
        data + u64::from(n.wrapping_sub(2)) * u64::from(self.cluster_len)
    }

    /// Byte offset of a copy of the FAT.
    pub fn fat_offset(&self, copy: u8) -> u64 {
        let sector =
            u64::from(self.reserved_sectors) + u64::from(copy) * u64::from(self.fat_sectors);
        sector * u64::from(self.sector_len)
    }

    /// Byte offsets of the FATs that are kept like the active one, it among them.
    pub(crate) fn copies(&self) -> Vec<u64> {
        let all = 0..self.fat_count;
        let alike = all.filter(|&copy| self.mirrored || copy == self.active_fat);
        alike.map(|copy| self.fat_offset(copy)).collect()
    }

    /// Length of a FAT in bytes.
    pub fn fat_len(&self) -> u64 {
        u64::from(self.fat_sectors) * u64::from(self.sector_len)
    }

    /// Byte offset of the fixed root directory of FAT12 and FAT16.
    pub fn root_offset(&self) -> u64 {
        self.fat_offset(self.fat_count)
    }

    /// Returns whether this is FAT32.
    pub fn is_fat32(&self) -> bool {
        self.kind == FatKind::Fat32
    }
}

/// First byte of an Atari's boot sector: a branch of its processor.
const ATARI_BRANCH: u8 = 0x60;

/// Returns whether a boot sector is an Atari's, which has no signature.
fn is_atari(sector: &[u8; 512]) -> bool {
    let fat16_len = sector.get(22..24);
    sector.first() == Some(&ATARI_BRANCH)
        && !sector.ends_with(&BOOT_SIGNATURE)
        && fat16_len.is_some_and(|len| len != [0, 0])
}

/// Floppies have FAT12 on an Atari and hard disks FAT16, however few their clusters,
/// as far as these find room in the FAT.
fn atari_kind(clusters: u32, sizes: &Sizes, sector_len: u32) -> FatKind {
    let bytes = u64::from(sizes.total) * u64::from(sector_len);
    let is_floppy = [360, 720, 1440].contains(&(bytes / 1024));
    let room = u64::from(sizes.fat) * u64::from(sector_len);
    match is_floppy || FatKind::Fat16.fat_len(clusters) > room {
        true => FatKind::Fat12,
        false => FatKind::Fat16,
    }
}

/// Sizes in sectors that are given in one of two fields.
struct Sizes {
    total: u32,
    fat: u32,
}

impl Sizes {
    fn read(bpb: &Bpb, b32: &Bpb32, sector_len: u32, size: u64) -> Result<Self> {
        let (fat, fat_at, fat_what) = match bpb.BPB_FATSz16.get() {
            0 => (b32.BPB_FATSz32.get(), 36, "BPB_FATSz32"),
            n => (n.into(), 22, "BPB_FATSz16"),
        };
        if fat == 0 {
            return Err(Error::corrupt(fat_what, fat_at, "0", "at least 1 sector"));
        }
        let (total, total_at, total_what) = match bpb.BPB_TotSec16.get() {
            0 => (bpb.BPB_TotSec32.get(), 32, "BPB_TotSec32"),
            n => (n.into(), 19, "BPB_TotSec16"),
        };
        let on_device = size / u64::from(sector_len);
        if total == 0 || u64::from(total) > on_device {
            let expected =
                format!("1 to {on_device}, the sectors of the device (is the image truncated?)");
            return Err(Error::corrupt(
                total_what,
                total_at,
                total.to_string(),
                expected,
            ));
        }
        Ok(Self { total, fat })
    }

    fn data_sector(&self, bpb: &Bpb, sector_len: u32) -> Result<u32> {
        let reserved = u64::from(bpb.BPB_RsvdSecCnt.get());
        if reserved == 0 {
            return Err(Error::corrupt("BPB_RsvdSecCnt", 14, "0", "at least 1"));
        }
        let fats = u64::from(bpb.BPB_NumFATs);
        if fats == 0 {
            return Err(Error::corrupt("BPB_NumFATs", 16, "0", "at least 1"));
        }
        let root_entries = u32::from(bpb.BPB_RootEntCnt.get());
        if (bpb.BPB_FATSz16.get() == 0) != (root_entries == 0) {
            let expected = if root_entries == 0 {
                "at least 1 on FAT12 and FAT16"
            } else {
                "0 on FAT32"
            };
            return Err(Error::corrupt(
                "BPB_RootEntCnt",
                17,
                root_entries.to_string(),
                expected,
            ));
        }
        let root = u64::from((root_entries * 32).div_ceil(sector_len));
        let data = reserved + fats * u64::from(self.fat) + root;
        match u32::try_from(data) {
            Ok(data) if data < self.total => Ok(data),
            _ => Err(Error::corrupt(
                "boot sector",
                0,
                format!("reserved sectors, FATs and root directory of {data} sectors together"),
                format!("fewer than the volume's {}", self.total),
            )),
        }
    }
}

fn check_signature(sector: &[u8; 512]) -> Result<()> {
    match sector.last_chunk::<2>() {
        Some(&BOOT_SIGNATURE) => Ok(()),
        found => {
            let found = found.map_or_else(String::new, |b| format!("{:02x} {:02x}", b[0], b[1]));
            Err(Error::corrupt("boot sector signature", 510, found, "55 aa"))
        }
    }
}

fn check_sector_len(bpb: &Bpb) -> Result<u32> {
    let n = bpb.BPB_BytsPerSec.get();
    if matches!(n, 512 | 1024 | 2048 | 4096) {
        return Ok(n.into());
    }
    Err(Error::corrupt(
        "BPB_BytsPerSec",
        11,
        n.to_string(),
        "512, 1024, 2048 or 4096",
    ))
}

fn check_cluster_len(bpb: &Bpb, sector_len: u32) -> Result<u32> {
    let n = bpb.BPB_SecPerClus;
    if !n.is_power_of_two() {
        return Err(Error::corrupt(
            "BPB_SecPerClus",
            13,
            n.to_string(),
            "a power of two",
        ));
    }
    let len = u32::from(n) * sector_len;
    if len > 65_536 {
        let found = format!("{n}, clusters of {len} bytes");
        return Err(Error::corrupt(
            "BPB_SecPerClus",
            13,
            found,
            "clusters of at most 65536 bytes",
        ));
    }
    Ok(len)
}

fn check_kind(cluster_count: u32, fat32: bool) -> Result<FatKind> {
    if cluster_count == 0 {
        return Err(Error::corrupt(
            "boot sector",
            0,
            "no room for a cluster",
            "at least 1 cluster",
        ));
    }
    let kind = FatKind::by_clusters(cluster_count);
    if fat32 {
        // mkfs.fat -F 32 makes small volumes that Linux, mtools and Windows
        // take as FAT32, by BPB_FATSz16 = 0, whatever the specification says.
        if cluster_count > FAT32_CLUSTERS_MAX {
            let found = format!("{cluster_count} clusters");
            return Err(Error::corrupt(
                "boot sector",
                0,
                found,
                format!("at most {FAT32_CLUSTERS_MAX}"),
            ));
        }
        return Ok(FatKind::Fat32);
    }
    if kind == FatKind::Fat32 {
        let found = format!("{cluster_count} clusters with a FAT12/16 boot sector");
        return Err(Error::corrupt(
            "boot sector",
            0,
            found,
            format!("fewer than {FAT32_CLUSTERS_MIN}"),
        ));
    }
    Ok(kind)
}
