//! A second reader of FAT, that shares no code with the driver: it walks an
//! image and says what must never be found on one.

use std::collections::{BTreeMap, HashMap};

/// An image and where its parts are.
pub(crate) struct Raw<'a> {
    image: &'a [u8],
    bits: usize,
    cluster: usize,
    clusters: usize,
    fat: usize,
    root: usize,
    root_entries: usize,
    root_cluster: usize,
    data: usize,
}

/// A file that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawFile {
    pub(crate) content: Vec<u8>,
}

/// What a walk found: files by path. Directories have a path that ends in `/`.
#[derive(Default, Debug)]
pub(crate) struct Tree {
    pub(crate) files: BTreeMap<String, RawFile>,
    /// Who holds a cluster: the first cluster of a chain.
    owner: HashMap<usize, usize>,
    /// How many entries lead to a first cluster.
    entries: HashMap<usize, usize>,
}

fn le(bytes: &[u8], at: usize, len: usize) -> usize {
    (0..len)
        .map(|i| usize::from(bytes[at + i]) << (8 * i))
        .sum()
}

impl<'a> Raw<'a> {
    pub(crate) fn new(image: &'a [u8]) -> Self {
        let sector = le(image, 11, 2);
        let cluster = usize::from(image[13]) * sector;
        let reserved = le(image, 14, 2);
        let fats = usize::from(image[16]);
        let root_entries = le(image, 17, 2);
        let total = match le(image, 19, 2) {
            0 => le(image, 32, 4),
            n => n,
        };
        let fat32 = le(image, 22, 2) == 0;
        let fat_len = if fat32 {
            le(image, 36, 4)
        } else {
            le(image, 22, 2)
        };
        let root = (reserved + fats * fat_len) * sector;
        let data = root + (root_entries * 32).div_ceil(sector) * sector;
        let clusters = (total * sector - data) / cluster;
        let bits = match clusters {
            _ if fat32 => 32,
            0..4085 => 12,
            _ => 16,
        };
        Self {
            image,
            bits,
            cluster,
            clusters,
            fat: reserved * sector,
            root,
            root_entries,
            root_cluster: if fat32 { le(image, 44, 4) } else { 0 },
            data,
        }
    }

    fn entry(&self, n: usize) -> usize {
        match self.bits {
            12 => {
                let pair = le(self.image, self.fat + n + n / 2, 2);
                if n.is_multiple_of(2) {
                    pair & 0xfff
                } else {
                    pair >> 4
                }
            }
            16 => le(self.image, self.fat + n * 2, 2),
            _ => le(self.image, self.fat + n * 4, 4) & 0x0fff_ffff,
        }
    }

    /// Returns whether a cluster is free.
    pub(crate) fn is_free(&self, n: usize) -> bool {
        self.entry(n) == 0
    }

    /// Returns the clusters of a chain.
    fn chain(&self, first: usize, whose: &str) -> Result<Vec<usize>, String> {
        let end = match self.bits {
            12 => 0xff8,
            16 => 0xfff8,
            _ => 0x0fff_fff8,
        };
        let mut all = Vec::new();
        let mut at = first;
        loop {
            if at < 2 || at > self.clusters + 1 {
                return Err(format!("{whose}: its chain leads to cluster {at}"));
            }
            if all.len() > self.clusters {
                return Err(format!("{whose}: its chain runs in a circle"));
            }
            all.push(at);
            match self.entry(at) {
                0 => return Err(format!("{whose}: cluster {at} of its chain is free")),
                n if n >= end => return Ok(all),
                n => at = n,
            }
        }
    }

    fn cluster_bytes(&self, n: usize) -> &'a [u8] {
        let at = self.data + (n - 2) * self.cluster;
        &self.image[at..at + self.cluster]
    }

    fn bytes(&self, chain: &[usize]) -> Vec<u8> {
        let mut all = Vec::with_capacity(chain.len() * self.cluster);
        for &cluster in chain {
            all.extend_from_slice(self.cluster_bytes(cluster));
        }
        all
    }

    /// Walks the volume.
    pub(crate) fn walk(&self) -> Result<Tree, String> {
        let mut tree = Tree::default();
        let root = if self.bits == 32 {
            let chain = self.chain(self.root_cluster, "/")?;
            tree.claim(self.root_cluster, &chain, "/")?;
            self.bytes(&chain)
        } else {
            self.image[self.root..self.root + self.root_entries * 32].to_vec()
        };
        self.dir(&mut tree, "/", 0, &root)?;
        Ok(tree)
    }

    fn dir(&self, tree: &mut Tree, path: &str, me: usize, bytes: &[u8]) -> Result<(), String> {
        let mut parts: Vec<&[u8]> = Vec::new();
        for (slot, raw) in bytes.chunks(32).enumerate() {
            if raw[0] == 0 {
                break;
            }
            if raw[0] == 0xe5 {
                parts.clear();
                continue;
            }
            if raw[11] & 0x3f == 0x0f {
                parts.push(raw);
                continue;
            }
            let long = long_name(&parts, &raw[..11]);
            parts.clear();
            if raw[11] & 8 != 0 {
                continue;
            }
            let mut first = le(raw, 26, 2);
            if self.bits == 32 {
                first |= le(raw, 20, 2) << 16;
            }
            if me != 0 && slot < 2 {
                let (name, ok) = if slot == 0 {
                    (".          ", first == me)
                } else {
                    ("..         ", true)
                };
                if &raw[..11] != name.as_bytes() || !ok {
                    return Err(format!("{path}: no {name} in slot {slot}"));
                }
                continue;
            }
            let name = long.unwrap_or_else(|| short_name(raw));
            self.found(tree, &format!("{path}{name}"), raw, first)?;
        }
        if me != 0 && bytes[0] != b'.' {
            return Err(format!("{path}: a directory without `.`"));
        }
        Ok(())
    }

    fn found(&self, tree: &mut Tree, path: &str, raw: &[u8], first: usize) -> Result<(), String> {
        let size = le(raw, 28, 4);
        let is_dir = raw[11] & 16 != 0;
        if first == 0 && (size > 0 || is_dir) {
            return Err(format!("{path}: no first cluster"));
        }
        let chain = if first == 0 {
            Vec::new()
        } else {
            self.chain(first, path)?
        };
        if chain.len() * self.cluster < size {
            return Err(format!("{path}: {size} bytes in {} clusters", chain.len()));
        }
        let twin = tree.claim(first, &chain, path)?;
        let mut content = self.bytes(&chain);
        if is_dir {
            if twin {
                return Ok(());
            }
            return self.dir(tree, &format!("{path}/"), first, &content);
        }
        content.truncate(size);
        let file = RawFile { content };
        tree.files.insert(path.to_owned(), file);
        Ok(())
    }

    /// Returns the offset of the first byte that a new volume has no use for.
    pub(crate) fn free_from(&self) -> usize {
        self.data + usize::from(self.bits == 32) * self.cluster
    }
}

impl Tree {
    /// Notes a chain; true if another entry leads to the same one (a renamed
    /// file may be there twice).
    fn claim(&mut self, first: usize, chain: &[usize], whose: &str) -> Result<bool, String> {
        if first == 0 {
            return Ok(false);
        }
        let entries = self.entries.entry(first).or_insert(0);
        *entries += 1;
        if *entries > 2 {
            return Err(format!(
                "{whose}: {entries} entries lead to cluster {first}"
            ));
        }
        let twin = *entries == 2;
        for &cluster in chain {
            match self.owner.insert(cluster, first) {
                None if !twin => {}
                Some(other) if other == first && twin => {}
                _ => return Err(format!("{whose}: cluster {cluster} is another's as well")),
            }
        }
        Ok(twin)
    }
}

fn short_name(raw: &[u8]) -> String {
    let text = |b: &[u8]| String::from_utf8_lossy(b).trim_end().to_owned();
    let (mut base, mut ext) = (text(&raw[..8]), text(&raw[8..11]));
    if raw[12] & 8 != 0 {
        base.make_ascii_lowercase();
    }
    if raw[12] & 16 != 0 {
        ext.make_ascii_lowercase();
    }
    if ext.is_empty() {
        base
    } else {
        format!("{base}.{ext}")
    }
}

/// Returns the long name of a set that is whole and belongs to the short name.
fn long_name(parts: &[&[u8]], short: &[u8]) -> Option<String> {
    let sum = short
        .iter()
        .fold(0u8, |s, b| s.rotate_right(1).wrapping_add(*b));
    let start = parts.iter().rposition(|p| p[0] & 0x40 != 0)?;
    let parts = &parts[start..];
    let mut units = Vec::new();
    for (i, part) in parts.iter().rev().enumerate() {
        if usize::from(part[0] & 0x1f) != i + 1 || part[13] != sum {
            return None;
        }
        let at = (1..11)
            .step_by(2)
            .chain((14..26).step_by(2))
            .chain((28..32).step_by(2));
        units.extend(at.map(|i| le(part, i, 2) as u16));
    }
    let len = units.iter().position(|&u| u == 0).unwrap_or(units.len());
    String::from_utf16(&units[..len]).ok()
}
