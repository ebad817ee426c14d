//! The file name table: a B-tree in a file of its own, whose pages are written in place.
//!
//! A page has two sectors, each of which is transferred by itself: a crash in between leaves half a page, as the
//! paper says. An update of more than one page is not atomic either. Pages that are taken get their labels then,
//! by which the tree knows the file's end.

use super::disk::{Disk, Label, Type};
use anyhow::{Context, Result, bail, ensure};
use std::collections::VecDeque;
use volary_sim::SECTOR;

/// Sectors of a page.
const SECTORS: usize = 2;
const SIZE: usize = SECTORS * SECTOR;
/// Pages that are kept in memory.
const KEPT: usize = 256;
/// The uid of the table's file.
pub(super) const UID: u32 = 1;
/// Levels, at most.
const LEVELS: usize = 16;

type Entry = (Vec<u8>, Vec<u8>);

/// A page: of names, or of pages and the least key in each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Page {
    is_leaf: bool,
    entries: Vec<Entry>,
}

impl Page {
    fn len(&self) -> usize {
        let each = |(key, value): &Entry| 2 + key.len() + value.len();
        3 + self.entries.iter().map(each).sum::<usize>()
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.is_leaf)];
        bytes.extend((self.entries.len() as u16).to_le_bytes());
        for (key, value) in &self.entries {
            bytes.extend([key.len() as u8, value.len() as u8]);
            bytes.extend(key);
            bytes.extend(value);
        }
        bytes.resize(SIZE, 0);
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        let (&[leaf, low, high], mut rest) = bytes.split_first_chunk().context("half a page")?;
        let mut entries = Vec::new();
        for _ in 0..u16::from_le_bytes([low, high]) {
            let (&[key, value], after) = rest.split_first_chunk().context("half a page")?;
            let (key, after) = cut(after, key)?;
            let (value, after) = cut(after, value)?;
            entries.push((key.to_vec(), value.to_vec()));
            rest = after;
        }
        let is_leaf = leaf == 1;
        Ok(Self { is_leaf, entries })
    }

    /// Returns where in an inner page the way to a key goes on.
    fn way(&self, key: &[u8]) -> usize {
        let after = self.entries.partition_point(|(k, _)| k.as_slice() <= key);
        after.saturating_sub(1)
    }

    fn below(&self, at: usize) -> Result<u32> {
        let value = self.entries.get(at).map(|(_, value)| value.as_slice());
        let bytes = value.and_then(|v| v.try_into().ok());
        Ok(u32::from_le_bytes(bytes.context("no way on in a page")?))
    }

    /// Moves the later half of the bytes into a new page.
    fn split(&mut self) -> Self {
        let (half, mut sum) = (self.len() / 2, 0);
        let each = |(key, value): &Entry| 2 + key.len() + value.len();
        let before = self.entries.iter().take_while(|entry| {
            sum += each(entry);
            sum <= half
        });
        let at = before.count().clamp(1, self.entries.len() - 1);
        Self {
            is_leaf: self.is_leaf,
            entries: self.entries.split_off(at),
        }
    }
}

fn cut(bytes: &[u8], len: u8) -> Result<(&[u8], &[u8])> {
    bytes.split_at_checked(len.into()).context("half a page")
}

/// The tree.
pub(super) struct Table {
    /// Where its file lies, and the sectors that it may have.
    first: u64,
    room: usize,
    /// Pages that it has: the root is the first.
    pages: u32,
    /// Those in memory, the one used last at the end.
    kept: VecDeque<(u32, Page)>,
}

impl Table {
    /// Makes an empty tree. What was there goes.
    pub(super) fn make(disk: &mut Disk, first: u64, room: usize) -> Result<Self> {
        disk.write_labels(first, Label::FREE, room)?;
        let mut table = Self {
            first,
            room,
            pages: 0,
            kept: VecDeque::new(),
        };
        let root = table.take(disk)?;
        let page = Page {
            is_leaf: true,
            entries: Vec::new(),
        };
        table.write(disk, root, page)?;
        Ok(table)
    }

    /// Opens a tree that is there.
    pub(super) fn open(disk: &mut Disk, first: u64, room: usize) -> Result<Self> {
        let labels = disk.labels(first, room)?;
        let used = labels.iter().filter(|label| label.uid == UID).count();
        Ok(Self {
            first,
            room,
            pages: (used / SECTORS) as u32,
            kept: VecDeque::new(),
        })
    }

    fn place(&self, page: u32) -> (u64, Label) {
        let number = page * SECTORS as u32;
        let label = Label {
            uid: UID,
            page: number,
            of: Type::Data,
        };
        (self.first + u64::from(number), label)
    }

    /// Takes the next page: its labels must be free, and are written.
    fn take(&mut self, disk: &mut Disk) -> Result<u32> {
        ensure!(
            (self.pages as usize + 1) * SECTORS <= self.room,
            "the name table is full"
        );
        let (at, label) = self.place(self.pages);
        let labels = disk.labels(at, SECTORS)?;
        ensure!(labels.iter().all(|l| *l == Label::FREE), "a page is in use");
        disk.write_labels(at, label, SECTORS)?;
        self.pages += 1;
        Ok(self.pages - 1)
    }

    fn keep(&mut self, number: u32, page: Page) {
        self.kept.retain(|(kept, _)| *kept != number);
        if self.kept.len() >= KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back((number, page));
    }

    fn read(&mut self, disk: &mut Disk, number: u32) -> Result<Page> {
        if let Some(at) = self.kept.iter().position(|(kept, _)| *kept == number) {
            let kept = self.kept.remove(at).context("a page that was kept")?;
            let page = kept.1.clone();
            self.kept.push_back(kept);
            return Ok(page);
        }
        ensure!(number < self.pages, "a way to no page");
        let (at, label) = self.place(number);
        let mut bytes = vec![0; SIZE];
        for (i, bytes) in bytes.chunks_exact_mut(SECTOR).enumerate() {
            let page = label.page + i as u32;
            disk.read(at + i as u64, Label { page, ..label }, bytes)?;
        }
        let page = Page::decode(&bytes)?;
        self.keep(number, page.clone());
        Ok(page)
    }

    fn write(&mut self, disk: &mut Disk, number: u32, page: Page) -> Result<()> {
        let (at, label) = self.place(number);
        for (i, bytes) in page.encode().chunks_exact(SECTOR).enumerate() {
            let page = label.page + i as u32;
            disk.write(at + i as u64, Label { page, ..label }, bytes)?;
        }
        self.keep(number, page);
        Ok(())
    }

    /// Returns the pages on the way to a key, the leaf last.
    fn way(&mut self, disk: &mut Disk, key: &[u8]) -> Result<Vec<(u32, Page)>> {
        let (mut all, mut number) = (Vec::new(), 0);
        while all.len() < LEVELS {
            let page = self.read(disk, number)?;
            let is_leaf = page.is_leaf;
            let next = match is_leaf {
                true => 0,
                false => page.below(page.way(key))?,
            };
            all.push((number, page));
            if is_leaf {
                return Ok(all);
            }
            number = next;
        }
        bail!("the name table has a circle")
    }

    /// Puts an entry in, or another value into it.
    pub(super) fn put(&mut self, disk: &mut Disk, key: &[u8], value: &[u8]) -> Result<()> {
        ensure!(
            key.len() + value.len() <= SIZE / 4,
            "a name that is too long"
        );
        let mut way = self.way(disk, key)?;
        let (mut key, mut value) = (key.to_vec(), value.to_vec());
        while let Some((number, mut page)) = way.pop() {
            let at = page.entries.partition_point(|(k, _)| *k < key);
            match page.entries.get_mut(at).filter(|(k, _)| *k == key) {
                Some(entry) => entry.1 = value,
                None => page.entries.insert(at, (key, value)),
            }
            if page.len() <= SIZE {
                return self.write(disk, number, page);
            }
            let later = page.split();
            let least = |page: &Page| page.entries.first().map(|(k, _)| k.clone());
            key = least(&later).context("an empty half")?;
            let new = self.take(disk)?;
            self.write(disk, new, later)?;
            if number > 0 {
                self.write(disk, number, page)?;
                value = new.to_le_bytes().to_vec();
                continue;
            }
            // The root stays where it is: both halves go below it.
            let first = self.take(disk)?;
            self.write(disk, first, page)?;
            let ways = [(Vec::new(), first), (key, new)];
            let entries = ways.map(|(key, to)| (key, to.to_le_bytes().to_vec()));
            let root = Page {
                is_leaf: false,
                entries: entries.to_vec(),
            };
            return self.write(disk, 0, root);
        }
        Ok(())
    }

    /// Takes an entry out. A page that gets empty stays, for names that come.
    pub(super) fn remove(&mut self, disk: &mut Disk, key: &[u8]) -> Result<()> {
        let mut way = self.way(disk, key)?;
        let (number, mut page) = way.pop().context("a tree without a leaf")?;
        page.entries.retain(|(k, _)| k != key);
        self.write(disk, number, page)
    }

    /// Returns the entries whose keys begin with `prefix`, in order.
    pub(super) fn all(&mut self, disk: &mut Disk, prefix: &[u8]) -> Result<Vec<Entry>> {
        let mut found = Vec::new();
        self.gather(disk, 0, LEVELS, prefix, &mut found)?;
        Ok(found)
    }

    fn gather(
        &mut self,
        disk: &mut Disk,
        number: u32,
        levels: usize,
        prefix: &[u8],
        found: &mut Vec<Entry>,
    ) -> Result<()> {
        ensure!(levels > 0, "the name table has a circle");
        let page = self.read(disk, number)?;
        if page.is_leaf {
            let entries = page.entries.into_iter();
            found.extend(entries.filter(|(key, _)| key.starts_with(prefix)));
            return Ok(());
        }
        let first = page.way(prefix);
        for at in first..page.entries.len() {
            let key = &page.entries[at].0;
            if at > first && key.as_slice() > prefix && !key.starts_with(prefix) {
                break;
            }
            self.gather(disk, page.below(at)?, levels - 1, prefix, found)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use volary_sim::Preset;
    use volary_sim::rng::Rng;

    #[test]
    fn it_holds_what_a_map_holds_through_splits_and_opens() {
        let mut disk = Disk::new(&Preset::T300);
        let mut table = Table::make(&mut disk, 4, 2000).unwrap();
        let (mut rng, mut model) = (Rng::new(1), BTreeMap::new());
        for round in 0..3000_u32 {
            let key = format!("<dir{}>file{:05}", rng.below(3), rng.below(900)).into_bytes();
            match rng.below(3) {
                0 => {
                    table.remove(&mut disk, &key).unwrap();
                    model.remove(&key);
                }
                _ => {
                    let value = round.to_le_bytes().to_vec();
                    table.put(&mut disk, &key, &value).unwrap();
                    model.insert(key.clone(), value);
                }
            }
            let found = table.all(&mut disk, &key).unwrap().pop();
            assert_eq!(found.map(|(_, value)| value).as_ref(), model.get(&key));
        }
        let mut table = Table::open(&mut disk, 4, 2000).unwrap();
        assert!(table.pages > 20, "{} pages", table.pages);
        for prefix in ["", "<dir1>", "<dir1>file004", "<dir2>file00899", "x"] {
            let of = |key: &Vec<u8>| key.starts_with(prefix.as_bytes());
            let held: Vec<Entry> = model.clone().into_iter().filter(|(k, _)| of(k)).collect();
            assert_eq!(table.all(&mut disk, prefix.as_bytes()).unwrap(), held);
        }
    }
}
