//! Where everything will lie.

use super::program;
use super::request::{Request, invalid};
use super::tables::{FLOPPIES, Floppy, cluster_len, geometry};
use crate::unix::owner::HEAD_LEN;
use crate::volume::layout::{FAT16_CLUSTERS_MIN, FAT32_CLUSTERS_MAX, FAT32_CLUSTERS_MIN, FatKind};
use volary_core::{Geometry, Result};

/// A volume that can be made. Sizes in sectors unless said.
pub(super) struct Plan<'a> {
    pub(super) request: &'a Request,
    pub(super) kind: FatKind,
    /// In bytes.
    pub(super) sector_len: u32,
    /// In sectors: a power of two up to 128.
    pub(super) cluster: u32,
    pub(super) reserved: u16,
    pub(super) fat_count: u8,
    pub(super) fat_sectors: u32,
    pub(super) root_entries: u16,
    pub(super) total: u32,
    pub(super) clusters: u32,
    pub(super) media: u8,
    pub(super) heads: u16,
    pub(super) track: u16,
    pub(super) drive: u8,
    /// 0 for none.
    pub(super) backup: u16,
    /// In bytes.
    pub(super) device_len: u64,
}

/// What is decided before the cluster size.
struct Frame {
    sector_len: u32,
    total: u32,
    reserved: u16,
    fat_count: u8,
    root_entries: u16,
}

impl Frame {
    fn root_sectors(&self) -> u32 {
        (u32::from(self.root_entries) * 32).div_ceil(self.sector_len)
    }

    /// Clusters of `cluster` sectors, with FATs of `fat` sectors.
    fn clusters(&self, cluster: u32, reserved: u16, fat: u32) -> u32 {
        let fats = u64::from(self.fat_count) * u64::from(fat);
        let before = u64::from(reserved) + fats + u64::from(self.root_sectors());
        let rest = u64::from(self.total).saturating_sub(before);
        // No more than `total`.
        (rest / u64::from(cluster)) as u32
    }

    /// Returns whether FATs of `fat` sectors are long enough.
    fn enough(&self, kind: FatKind, cluster: u32, reserved: u16, fat: u32) -> bool {
        let need = kind.fat_len(self.clusters(cluster, reserved, fat));
        need <= u64::from(fat) * u64::from(self.sector_len)
    }

    /// The fewest sectors for each FAT, and the clusters there are then.
    fn fit(&self, kind: FatKind, cluster: u32, reserved: u16) -> (u32, u32) {
        let (mut low, mut high) = (1, self.total);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.enough(kind, cluster, reserved, middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        (low, self.clusters(cluster, reserved, low))
    }
}

impl<'a> Plan<'a> {
    /// Plans a volume over a device.
    ///
    /// # Errors
    /// `Invalid` with what does not fit.
    pub(super) fn new(device: &Geometry, kind: FatKind, request: &'a Request) -> Result<Self> {
        let floppy = floppy(device, kind, request)?;
        let frame = frame(device, kind, request, floppy)?;
        let align = request.align.unwrap_or(floppy.is_none());
        let align = align && request.reserved.is_none();
        let mut plan = Self {
            request,
            kind,
            sector_len: frame.sector_len,
            cluster: 0,
            reserved: frame.reserved,
            fat_count: frame.fat_count,
            fat_sectors: 0,
            root_entries: frame.root_entries,
            total: frame.total,
            clusters: 0,
            media: request.media.unwrap_or(floppy.map_or(0xf8, |f| f.media)),
            heads: 0,
            track: 0,
            drive: 0,
            backup: 0,
            device_len: device.size,
        };
        plan.choose_cluster(&frame, floppy, align)?;
        plan.choose_geometry(floppy);
        plan.choose_backup()?;
        plan.check_room()?;
        Ok(plan)
    }

    fn choose_cluster(
        &mut self,
        frame: &Frame,
        floppy: Option<&Floppy>,
        align: bool,
    ) -> Result<()> {
        let asked = self.request.cluster_len.or(floppy.map(|f| f.cluster_len));
        if let Some(len) = asked {
            if len < frame.sector_len {
                let words = format!(
                    "a cluster of {len} bytes is less than a sector of {}",
                    frame.sector_len
                );
                return Err(invalid(words));
            }
            self.take_cluster(frame, len / frame.sector_len, align);
            return self.check_count(true);
        }
        let size = u64::from(frame.total) * u64::from(frame.sector_len);
        let mut cluster = (cluster_len(self.kind, size) / frame.sector_len).max(1);
        let most = (65_536 / frame.sector_len).min(128);
        self.take_cluster(frame, cluster, align);
        while self.clusters > max_clusters(self.kind) && cluster < most {
            cluster *= 2;
            self.take_cluster(frame, cluster, align);
        }
        while self.clusters < self.min_clusters() && cluster > 1 {
            cluster /= 2;
            self.take_cluster(frame, cluster, align);
        }
        self.check_count(false)
    }

    /// Lays the volume out with clusters of so many sectors.
    fn take_cluster(&mut self, frame: &Frame, cluster: u32, align: bool) {
        self.cluster = cluster;
        self.reserved = frame.reserved;
        (self.fat_sectors, self.clusters) = frame.fit(self.kind, cluster, self.reserved);
        if !align {
            return;
        }
        let data = u64::from(self.reserved)
            + u64::from(self.fat_count) * u64::from(self.fat_sectors)
            + u64::from(frame.root_sectors());
        // A cluster has at most 128 sectors.
        let gap = (data.next_multiple_of(cluster.into()) - data) as u16;
        if let Some(reserved) = self.reserved.checked_add(gap) {
            self.reserved = reserved;
            // The FATs stay as long: the clusters are no more than before.
            self.clusters = frame.clusters(cluster, reserved, self.fat_sectors);
        }
    }

    fn min_clusters(&self) -> u32 {
        match self.kind {
            FatKind::Fat12 => 1,
            FatKind::Fat16 => FAT16_CLUSTERS_MIN,
            FatKind::Fat32 if self.request.small => 1,
            FatKind::Fat32 => FAT32_CLUSTERS_MIN,
        }
    }

    fn check_count(&self, asked: bool) -> Result<()> {
        let (min, max) = (self.min_clusters(), max_clusters(self.kind));
        if (min..=max).contains(&self.clusters) {
            return Ok(());
        }
        let small = self.clusters < min;
        let advice = match (small, asked, self.kind) {
            (true, true, _) => "smaller clusters",
            (false, true, _) => "larger clusters",
            (true, _, FatKind::Fat32) => "fat16, or the option small",
            (true, _, FatKind::Fat12) => "a larger volume",
            (true, _, FatKind::Fat16) => "fat12",
            (false, _, FatKind::Fat12) => "fat16",
            (false, ..) => "fat32",
        };
        Err(invalid(format!(
            "the volume is too {} for {}: it would have {} clusters of {} bytes, and needs {min} to {max}; try {advice}",
            if small { "small" } else { "large" },
            self.kind.name(),
            self.clusters,
            self.cluster * self.sector_len,
        )))
    }

    fn choose_geometry(&mut self, floppy: Option<&Floppy>) {
        let (heads, track) = match floppy {
            Some(f) => (f.heads, f.track),
            None => geometry(self.total),
        };
        self.heads = self.request.heads.unwrap_or(heads);
        self.track = self.request.track.unwrap_or(track);
        let drive = if self.media == 0xf8 { 0x80 } else { 0 };
        self.drive = self.request.drive.unwrap_or(drive);
    }

    fn choose_backup(&mut self) -> Result<()> {
        if self.kind != FatKind::Fat32 {
            return match self.request.backup {
                Some(1..) => Err(invalid("only fat32 has a copy of the boot sector")),
                _ => Ok(()),
            };
        }
        let fits = |n: u16| n >= 2 && n.checked_add(1).is_some_and(|next| next < self.reserved);
        self.backup = match self.request.backup {
            None if fits(6) => 6,
            None => 0,
            Some(n) if n == 0 || fits(n) => n,
            Some(n) => {
                let words = format!(
                    "the copy of the boot sector and of FSInfo cannot be at sector {n} of {} reserved ones; the first two are taken",
                    self.reserved
                );
                return Err(invalid(words));
            }
        };
        if self.reserved < 2 {
            return Err(invalid(
                "fat32 needs at least 2 reserved sectors, for FSInfo",
            ));
        }
        Ok(())
    }

    fn check_room(&self) -> Result<()> {
        if self.used_clusters() > self.clusters {
            return Err(invalid("the volume is too small for the table of owners"));
        }
        if self.request.unix && HEAD_LEN as u32 > self.cluster * self.sector_len {
            return Err(invalid("a cluster is too small for the table of owners"));
        }
        let entries = u16::from(self.request.label.is_some()) + u16::from(self.request.unix);
        if self.kind != FatKind::Fat32 && entries > self.root_entries {
            return Err(invalid(
                "the root directory is too small for what is put there",
            ));
        }
        let room = program::message_room(self.kind == FatKind::Fat32);
        if self.request.message.len() > room {
            let len = self.request.message.len();
            return Err(invalid(format!(
                "the boot message has {len} bytes, {room} fit"
            )));
        }
        Ok(())
    }

    /// Clusters that are in use from the start.
    pub(super) fn used_clusters(&self) -> u32 {
        u32::from(self.kind == FatKind::Fat32) + u32::from(self.request.unix)
    }
}

fn max_clusters(kind: FatKind) -> u32 {
    match kind {
        FatKind::Fat12 => FAT16_CLUSTERS_MIN - 1,
        FatKind::Fat16 => FAT32_CLUSTERS_MIN - 1,
        FatKind::Fat32 => FAT32_CLUSTERS_MAX,
    }
}

/// Returns the floppy that was asked for, or that has exactly the device's size.
fn floppy(device: &Geometry, kind: FatKind, request: &Request) -> Result<Option<&'static Floppy>> {
    if let Some(asked) = request.floppy {
        if kind != FatKind::Fat12 {
            return Err(invalid("floppies are fat12"));
        }
        if asked.size() > device.size {
            let words = format!(
                "the device has {} bytes, the floppy {}",
                device.size,
                asked.size()
            );
            return Err(invalid(words));
        }
        return Ok(Some(asked));
    }
    let plain = kind == FatKind::Fat12
        && request.sector_len.is_none_or(|n| n == 512)
        && request.hidden == 0
        && request.media.is_none_or(|m| m != 0xf8);
    Ok(FLOPPIES.iter().find(|f| plain && f.size() == device.size))
}

fn frame(
    device: &Geometry,
    kind: FatKind,
    request: &Request,
    floppy: Option<&Floppy>,
) -> Result<Frame> {
    let sector_len = request.sector_len.unwrap_or(device.sector.clamp(512, 4096));
    if sector_len < device.sector {
        let words = format!(
            "a sector of {sector_len} bytes is less than the device's of {}",
            device.sector
        );
        return Err(invalid(words));
    }
    let size = floppy.map_or(device.size, Floppy::size);
    let default_root = floppy.map_or(512, |f| f.root_entries);
    let root_entries = match (kind, request.root_entries) {
        (FatKind::Fat32, Some(_)) => {
            return Err(invalid(
                "the root directory of fat32 grows by itself: root-entries is of no use",
            ));
        }
        (FatKind::Fat32, None) => 0,
        // Whole sectors, as the specification wants (page 10).
        (_, asked) => whole_sectors(asked.unwrap_or(default_root), sector_len),
    };
    let default_reserved = if kind == FatKind::Fat32 { 32 } else { 1 };
    Ok(Frame {
        sector_len,
        total: total_sectors(size, sector_len)?,
        reserved: request.reserved.unwrap_or(default_reserved),
        fat_count: request.fat_count.unwrap_or(2),
        root_entries,
    })
}

fn whole_sectors(entries: u16, sector_len: u32) -> u16 {
    let per_sector = (sector_len / 32) as u16;
    let up = entries.checked_next_multiple_of(per_sector);
    up.unwrap_or(u16::MAX / per_sector * per_sector)
}

fn total_sectors(size: u64, sector_len: u32) -> Result<u32> {
    let sectors = size / u64::from(sector_len);
    // 2 TiB are one sector more than can be counted.
    if sectors == 1 << 32 {
        return Ok(u32::MAX);
    }
    u32::try_from(sectors).map_err(|_| {
        let words = format!(
            "{size} bytes are more sectors of {sector_len} than FAT can count; try larger ones"
        );
        invalid(words)
    })
}
