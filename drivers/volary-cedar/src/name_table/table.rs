//! The pages of the file name table: read in two copies, kept in memory, written
//! home when the log is about to lose their newest image (paper, section 5.1
//! and 5.3).

use crate::disk::ondisk::{Header, PageType};
use crate::disk::volume::Layout;
use crate::mistakes::{Mistake, made};
use crate::name_table::page::{self, Image};
use std::collections::BTreeMap;
use volary_block::Cache;
use volary_core::{BlockDevice, Error, Result};

/// Pages that are read at a time.
const READ_AHEAD: u32 = 64;

/// The pages in memory.
pub(crate) struct Table {
    slots: BTreeMap<u32, Slot>,
    /// Most clean pages.
    clean_max: usize,
    /// Pages of which one copy was bad or old.
    pub(crate) mended: u64,
}

struct Slot {
    /// As operations see it.
    now: Image,
    /// As it was last logged, and the third in which that record began, while
    /// the log holds the only newest image.
    logged: Option<(Image, u8)>,
    /// Whether it was changed since it was last logged.
    dirty: bool,
}

/// A page as its two copies have it.
pub(crate) enum Pair {
    /// Both are whole and alike.
    Good(Image),
    /// The other copy, which is bad or older, is to be written.
    Half(Image, usize),
    /// Neither is whole, or both are and contradict each other: in words.
    Bad(&'static str),
}

impl Table {
    pub(crate) fn new(memory: u64, layout: &Layout) -> Self {
        let pages = memory / u64::from(layout.page);
        Self {
            slots: BTreeMap::new(),
            clean_max: usize::try_from(pages).unwrap_or(usize::MAX).max(64),
            mended: 0,
        }
    }

    /// Returns a page that is in memory.
    pub(crate) fn get(&self, index: u32) -> Option<Image> {
        self.slots.get(&index).map(|s| s.now.clone())
    }

    /// Changes a page in memory; it is to be logged.
    pub(crate) fn change(&mut self, index: u32, image: Image) {
        let slot = self.slots.entry(index).or_insert_with(|| Slot {
            now: image.clone(),
            logged: None,
            dirty: true,
        });
        slot.now = image;
        slot.dirty = true;
    }

    /// Forgets a page that is no longer part of the table; what the log has of
    /// it stays due.
    pub(crate) fn forget(&mut self, index: u32) {
        match self.slots.get_mut(&index) {
            Some(slot) if slot.logged.is_some() => slot.dirty = false,
            Some(_) => drop(self.slots.remove(&index)),
            None => {}
        }
    }

    /// Notes that a page was logged as `image`, by a record that begins in `third`.
    pub(crate) fn logged(&mut self, index: u32, image: Image, third: u8) {
        let slot = Slot {
            now: image.clone(),
            logged: Some((image, third)),
            dirty: false,
        };
        self.slots.insert(index, slot);
    }

    /// Returns the committed images whose newest copy in the log begins in `third`.
    pub(crate) fn due(&self, third: u8) -> Vec<(u32, Image)> {
        let due = self.slots.iter().filter_map(|(index, slot)| {
            let (image, at) = slot.logged.as_ref()?;
            (*at == third).then(|| (*index, image.clone()))
        });
        due.collect()
    }

    /// Notes that what was [`due`](Self::due) is home.
    pub(crate) fn came_home(&mut self, third: u8) {
        for slot in self.slots.values_mut() {
            if slot.logged.as_ref().is_some_and(|(_, at)| *at == third) {
                slot.logged = None;
            }
        }
    }

    /// Keeps pages that were read; forgets clean ones when there are too many.
    fn keep(&mut self, index: u32, image: Image) {
        if self.slots.len() >= self.clean_max {
            self.slots.retain(|_, s| s.dirty || s.logged.is_some());
        }
        self.slots.entry(index).or_insert(Slot {
            now: image,
            logged: None,
            dirty: false,
        });
    }

    /// Reads a page that is not in memory, and those around it.
    ///
    /// # Errors
    /// `Corrupt` if neither copy is whole, or both contradict each other.
    pub(crate) fn read(
        &mut self,
        dev: &dyn BlockDevice,
        layout: &Layout,
        index: u32,
        mend: bool,
    ) -> Result<Image> {
        let first = index / READ_AHEAD * READ_AHEAD;
        let end = (first + READ_AHEAD).min(layout.table_len);
        let len = layout.page_len();
        let copies = [layout.table_a, layout.table_b]
            .map(|start| read_pages(dev, layout, start + first, end - first));
        for i in first..end {
            if i == index || self.slots.contains_key(&i) {
                continue;
            }
            let at = (i - first) as usize * len;
            let part = |c: usize| {
                copies
                    .get(c)
                    .and_then(|b| b.get(at..at + len))
                    .unwrap_or_default()
            };
            if part(0) == part(1)
                && get_u32_magic(part(0))
                && let Pair::Good(image) = judge(part(0), part(1), layout, i)
            {
                self.keep(i, image);
            }
        }
        let at = (index - first) as usize * len;
        let [a, b] = copies
            .each_ref()
            .map(|c| c.get(at..at + len).unwrap_or_default());
        match judge(a, b, layout, index) {
            Pair::Good(image) => {
                self.keep(index, image.clone());
                Ok(image)
            }
            Pair::Half(image, bad) => {
                self.mended += 1;
                if mend {
                    write_copy(dev, layout, bad, index, &image)?;
                }
                self.keep(index, image.clone());
                Ok(image)
            }
            Pair::Bad(words) => Err(Error::corrupt(
                "name table page",
                layout.offset(layout.table_a + index),
                words,
                "a page of the name table in one of two copies",
            )),
        }
    }
}

fn get_u32_magic(bytes: &[u8]) -> bool {
    crate::disk::ondisk::get_u32(bytes, 0) == crate::disk::ondisk::MAGIC
}

/// Reads pages; those that cannot be read are zeros.
pub(crate) fn read_pages(
    dev: &dyn BlockDevice,
    layout: &Layout,
    first: u32,
    count: u32,
) -> Vec<u8> {
    let mut bytes = vec![0; count as usize * layout.page_len()];
    if dev.read_at(layout.offset(first), &mut bytes).is_err() {
        for (i, page) in bytes.chunks_mut(layout.page_len()).enumerate() {
            if dev.read_at(layout.offset(first + i as u32), page).is_err() {
                page.fill(0);
            }
        }
    }
    bytes
}

/// Writes one copy of a page.
///
/// # Errors
/// `Io`.
pub(crate) fn write_copy(
    dev: &dyn BlockDevice,
    layout: &Layout,
    copy: usize,
    index: u32,
    image: &[u8],
) -> Result<()> {
    let start = if copy == 0 {
        layout.table_a
    } else {
        layout.table_b
    };
    dev.write_at(layout.offset(start + index), image)
}

/// Judges the two copies of a page.
pub(crate) fn judge(a: &[u8], b: &[u8], layout: &Layout, index: u32) -> Pair {
    let header = |bytes: &[u8]| {
        let own =
            |h: &Header| h.kind == PageType::Table && h.nonce == layout.nonce && h.page == index;
        Header::read(bytes).filter(own).map(|h| (h.epoch, h.seq))
    };
    let sound = |bytes: &[u8]| page::check(bytes, layout.table_len);
    match (header(a), header(b)) {
        (None, None) => Pair::Bad("nothing that is whole"),
        (Some(_), None) => sound(a).map_or_else(Pair::Bad, |()| Pair::Half(a.into(), 1)),
        (None, Some(_)) => sound(b).map_or_else(Pair::Bad, |()| Pair::Half(b.into(), 0)),
        (Some(x), Some(y)) if x == y && a != b => Pair::Bad("two copies of one age that differ"),
        (Some(x), Some(y)) if x > y => {
            sound(a).map_or_else(Pair::Bad, |()| Pair::Half(a.into(), 1))
        }
        (Some(x), Some(y)) if x < y => {
            sound(b).map_or_else(Pair::Bad, |()| Pair::Half(b.into(), 0))
        }
        _ => sound(a).map_or_else(Pair::Bad, |()| Pair::Good(a.into())),
    }
}

/// Writes pages home: all of the first copy, then all of the second,
/// neighbours together. Not flushed.
///
/// # Errors
/// `Io`.
pub(crate) fn write_home(cache: &Cache, layout: &Layout, pages: &[(u32, Image)]) -> Result<()> {
    let dev = cache.device();
    let copies = if made(Mistake::OneCopyHome) { 1 } else { 2 };
    for start in [layout.table_a, layout.table_b].into_iter().take(copies) {
        for run in pages.chunk_by(|a, b| a.0 + 1 == b.0) {
            let Some((first, _)) = run.first() else {
                continue;
            };
            let parts: Vec<&[u8]> = run.iter().map(|(_, image)| &**image).collect();
            dev.write_gather(layout.offset(start + first), &parts)?;
        }
    }
    Ok(())
}

/// Reads pages back from both copies, neighbours together.
///
/// # Errors
/// `Io` if any is not what was written.
pub(crate) fn read_back(
    dev: &dyn BlockDevice,
    layout: &Layout,
    pages: &[(u32, Image)],
) -> Result<()> {
    let page = layout.page_len();
    for start in [layout.table_a, layout.table_b] {
        for run in pages.chunk_by(|a, b| a.0 + 1 == b.0) {
            let Some((first, _)) = run.first() else {
                continue;
            };
            let mut bytes = vec![0; page * run.len()];
            dev.read_at(layout.offset(start + first), &mut bytes)?;
            for ((index, image), found) in run.iter().zip(bytes.chunks_exact(page)) {
                if *found != **image && !made(Mistake::OneCopyHome) {
                    let offset = layout.offset(start + index);
                    return Err(Error::io("write", offset, page as u64, "it is not there"));
                }
            }
        }
    }
    Ok(())
}
