//! A volume as bytes, to be damaged. Knows FAT on its own, and nothing of the
//! driver.

/// The volume's bytes and where things are.
#[derive(Clone)]
pub(crate) struct Image {
    pub(crate) bytes: Vec<u8>,
    pub(crate) bits: u32,
    pub(crate) cluster: usize,
    pub(crate) reserved: usize,
    pub(crate) fats: usize,
    /// Bytes of one FAT.
    pub(crate) fat_len: usize,
    pub(crate) root_entries: usize,
    pub(crate) root_cluster: u32,
    pub(crate) data: usize,
    pub(crate) clusters: u32,
}

/// An entry: where its slots are.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Byte offsets of the parts of its long name, in order.
    pub(crate) parts: Vec<usize>,
    /// Byte offset of its short entry.
    pub(crate) at: usize,
}

impl Image {
    /// Reads the boot sector. `None` if it makes no sense.
    pub(crate) fn new(bytes: Vec<u8>) -> Option<Self> {
        let b16 = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
        let b32 = |at: usize| b16(at) + (b16(at + 2) << 16);
        let sector = b16(11);
        let cluster = usize::from(bytes[13]) * sector;
        if bytes[510..512] != [0x55, 0xaa] || sector < 512 || cluster == 0 {
            return None;
        }
        let fat32 = b16(22) == 0;
        let fat_len = if fat32 { b32(36) } else { b16(22) } * sector;
        let total = if b16(19) == 0 { b32(32) } else { b16(19) };
        let fats = usize::from(bytes[16]);
        let reserved = b16(14) * sector;
        let root_entries = b16(17);
        let data = reserved + fats * fat_len + (root_entries * 32).next_multiple_of(sector);
        let len = (total * sector).min(bytes.len());
        let clusters = (len.checked_sub(data)? / cluster) as u32;
        let bits = match clusters {
            _ if fat32 => 32,
            0..4085 => 12,
            _ => 16,
        };
        Some(Self {
            bits,

            cluster,
            reserved,
            fats,
            fat_len,
            root_entries,
            root_cluster: if fat32 { b32(44) as u32 } else { 0 },
            data,
            clusters,
            bytes,
        })
    }

    pub(crate) fn end(&self) -> u32 {
        match self.bits {
            12 => 0xfff,
            16 => 0xffff,
            _ => 0x0fff_ffff,
        }
    }

    pub(crate) fn is_cluster(&self, n: u32) -> bool {
        (2..self.clusters + 2).contains(&n)
    }

    pub(crate) fn cluster_at(&self, n: u32) -> usize {
        self.data + (n as usize - 2) * self.cluster
    }

    /// Returns an entry of a copy of the FAT.
    pub(crate) fn fat(&self, copy: usize, n: u32) -> u32 {
        let base = self.reserved + copy * self.fat_len;
        let n = n as usize;
        let word = |at: usize| u32::from(u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]));
        match self.bits {
            12 => word(base + n + n / 2) >> (n % 2 * 4) & 0xfff,
            16 => word(base + n * 2),
            _ => (word(base + n * 4) | word(base + n * 4 + 2) << 16) & 0x0fff_ffff,
        }
    }

    /// Sets an entry in one copy.
    pub(crate) fn set_fat_copy(&mut self, copy: usize, n: u32, value: u32) {
        let base = self.reserved + copy * self.fat_len;
        let i = n as usize;
        match self.bits {
            12 => {
                let at = base + i + i / 2;
                let old = u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]);
                let shift = i % 2 * 4;
                let new = old & !(0xfff << shift) | (value as u16) << shift;
                self.bytes[at..at + 2].copy_from_slice(&new.to_le_bytes());
            }
            16 => {
                let at = base + i * 2;
                self.bytes[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes());
            }
            _ => {
                let at = base + i * 4;
                self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            }
        }
    }

    /// Sets an entry in all copies.
    pub(crate) fn set_fat(&mut self, n: u32, value: u32) {
        for copy in 0..self.fats {
            self.set_fat_copy(copy, n, value);
        }
    }

    /// Returns the sound part of a chain.
    pub(crate) fn chain(&self, start: u32) -> Vec<u32> {
        let mut all = Vec::new();
        let mut at = start;
        while self.is_cluster(at) && !all.contains(&at) {
            all.push(at);
            at = self.fat(0, at);
        }
        all
    }

    /// Byte offsets of all slots of a directory; the root's for cluster 0.
    pub(crate) fn slots(&self, dir: u32) -> Vec<usize> {
        let dir = if dir == 0 { self.root_cluster } else { dir };
        if dir == 0 {
            let base = self.reserved + self.fats * self.fat_len;
            return (0..self.root_entries).map(|i| base + i * 32).collect();
        }
        let mut all = Vec::new();
        for n in self.chain(dir) {
            let at = self.cluster_at(n);
            all.extend((0..self.cluster / 32).map(|i| at + i * 32));
        }
        all
    }

    /// Returns the entry of a path of short names as they are stored, without padding
    /// or dot: `DIR1/ATXT`.
    pub(crate) fn find(&self, path: &str) -> Place {
        let mut dir = 0;
        let mut found = None;
        for part in path.split('/') {
            let place = self.find_in(dir, part);
            let place = place.unwrap_or_else(|| panic!("{part} of {path} is not there"));
            dir = self.start(place.at);
            found = Some(place);
        }
        found.unwrap()
    }

    fn find_in(&self, dir: u32, name: &str) -> Option<Place> {
        let mut parts = Vec::new();
        for at in self.slots(dir) {
            let raw = &self.bytes[at..at + 32];
            match (raw[0], raw[11]) {
                (0, _) => return None,
                (0xe5, _) => parts.clear(),
                (_, 0x0f) => parts.push(at),
                _ => {
                    let short: String = raw[..11].iter().map(|&b| char::from(b)).collect();
                    if short.replace(' ', "") == name {
                        return Some(Place { parts, at });
                    }
                    parts.clear();
                }
            }
        }
        None
    }

    /// Returns the first cluster of the entry at a byte.
    pub(crate) fn start(&self, at: usize) -> u32 {
        let low = u16::from_le_bytes([self.bytes[at + 26], self.bytes[at + 27]]);
        let high = u16::from_le_bytes([self.bytes[at + 20], self.bytes[at + 21]]);
        let high = if self.bits == 32 { high } else { 0 };
        u32::from(low) | u32::from(high) << 16
    }

    pub(crate) fn set_start(&mut self, at: usize, n: u32) {
        let [a, b, c, d] = n.to_le_bytes();
        self.bytes[at + 26..at + 28].copy_from_slice(&[a, b]);
        if self.bits == 32 {
            self.bytes[at + 20..at + 22].copy_from_slice(&[c, d]);
        }
    }

    pub(crate) fn size(&self, at: usize) -> u32 {
        let raw = &self.bytes[at + 28..at + 32];
        u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]])
    }

    pub(crate) fn set_size(&mut self, at: usize, size: u32) {
        self.bytes[at + 28..at + 32].copy_from_slice(&size.to_le_bytes());
    }

    /// Returns the highest free cluster.
    pub(crate) fn free(&self) -> u32 {
        self.free_n(0)
    }

    /// Returns the highest free cluster but `n`.
    pub(crate) fn free_n(&self, n: usize) -> u32 {
        let mut all = (2..self.clusters + 2)
            .rev()
            .filter(|&c| self.fat(0, c) == 0);
        all.nth(n).unwrap()
    }

    /// Returns the lowest free clusters.
    pub(crate) fn free_many(&self, count: usize) -> Vec<u32> {
        let all = (2..self.clusters + 2).filter(|&n| self.fat(0, n) == 0);
        let all: Vec<u32> = all.take(count).collect();
        assert_eq!(all.len(), count, "room for it");
        all
    }

    /// Free slots at the end of a directory.
    pub(crate) fn end_slot(&self, dir: u32) -> usize {
        let slots = self.slots(dir);
        *slots.iter().find(|&&at| self.bytes[at] == 0).unwrap()
    }

    /// Returns where the tail of the boot sector is.
    pub(crate) fn tail(&self) -> usize {
        if self.bits == 32 { 64 } else { 36 }
    }
}
