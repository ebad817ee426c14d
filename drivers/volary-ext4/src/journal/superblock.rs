//! Where the journal is, and what its superblock says (journal.rst, "Super Block").

use crate::disk::csum;
use crate::disk::ondisk::{
    FC_BLOCKS, JOURNAL_MAGIC, JOURNAL_SUPER, JOURNAL_SUPER_CHECKSUM, JournalSuper, compat,
    incompat, jblock, jfeature,
};
use crate::disk::run::{Run, Spot};
use crate::inodes::inode::Inode;
use crate::store::Store;
use volary_core::{Error, Kind, Result};
use volary_ondisk::Ranges;
use zerocopy::FromBytes;

/// The journal, checked.
pub(crate) struct Journal {
    pub(crate) raw: JournalSuper,
    inode: Inode,
    /// The first block after the log; those of fast commits follow.
    pub(crate) log_end: u64,
    pub(crate) end: u64,
    /// What checksums begin with.
    pub(crate) seed: u32,
}

impl Journal {
    /// Returns the journal, if there is one and it has to be replayed.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) fn of(store: &Store) -> Result<Option<Self>> {
        let volume = store.volume();
        let is_wanted =
            volume.has_incompat(incompat::RECOVER) && volume.has_compat(compat::HAS_JOURNAL);
        match is_wanted {
            true => Self::read(store).map(Some),
            false => Ok(None),
        }
    }

    /// Reads its superblock.
    ///
    /// # Errors
    /// `Unsupported` for one on another device, and for unknown features; `Corrupt`; `Io`.
    pub(crate) fn read(store: &Store) -> Result<Self> {
        let volume = store.volume();
        let ino = volume.raw.s_journal_inum.get();
        if ino == 0 {
            let words = "the journal is on another device; mount with -o noload to read the volume \
                         as it was before";
            return Err(Error::note(Kind::Unsupported, words));
        }
        let inode = store.inodes().inode(ino).map_err(|e| match e.kind() {
            Kind::Stale => {
                Error::corrupt("s_journal_inum", 1024 + 0xe0, ino.to_string(), "an inode")
            }
            _ => e,
        })?;
        let at = place(store, &inode, 0)?;
        let bytes = store.blocks().bytes(at, volume.block as usize)?;
        let (raw, _) = JournalSuper::read_from_prefix(&bytes)
            .map_err(|_| Error::corrupt("journal superblock", at, "too little", "1024 bytes"))?;
        let head = bytes.get(..JOURNAL_SUPER).unwrap_or_default();
        let journal = Self {
            seed: csum::crc32c(!0, &raw.s_uuid),
            log_end: 0,
            end: raw.s_maxlen.get().into(),
            raw,
            inode,
        };
        journal.checked(store, at, head)
    }

    fn checked(mut self, store: &Store, at: u64, bytes: &[u8]) -> Result<Self> {
        let raw = &self.raw;
        let bad = |what, found: u64, expected: &str| {
            Error::corrupt(what, at, format!("{found:#x}"), expected)
        };
        let kind = raw.header.h_blocktype.get();
        let is_new = kind == jblock::SUPER_V2;
        if raw.header.h_magic.get() != JOURNAL_MAGIC || !is_new && kind != jblock::SUPER_V1 {
            return Err(bad(
                "journal superblock",
                kind.into(),
                "magic and type of one",
            ));
        }
        let features = self.incompat();
        let unknown = features & !jfeature::KNOWN;
        if unknown != 0 {
            let words = format!(
                "the journal has features that are not read here: {unknown:#x}; mount with -o noload \
                 to read the volume as it was before"
            );
            return Err(Error::note(Kind::Unsupported, words));
        }
        if self.has_sums() {
            let stored = raw.s_checksum.get();
            let is_right = csum::holds(!0, bytes, JOURNAL_SUPER_CHECKSUM, stored);
            if store.volume().is_verified && !is_right {
                return Err(bad("journal s_checksum", stored.into(), "the superblock's"));
            }
        }
        let size = u64::from(raw.s_blocksize.get());
        if size != store.volume().block {
            return Err(bad("journal s_blocksize", size, "the volume's"));
        }
        let room = self.inode.size / size;
        if self.end > room.min(store.volume().there()) {
            return Err(bad("journal s_maxlen", self.end, "what the journal has"));
        }
        self.check_blocks(store)?;
        let fast = match (features & jfeature::FAST_COMMIT, raw.s_num_fc_blks.get()) {
            (0, _) => 0,
            (_, 0) => FC_BLOCKS,
            (_, count) => count,
        };
        let first = u64::from(raw.s_first.get());
        let log_end = self.end.checked_sub(fast.into());
        let log_end = log_end.filter(|end| first >= 1 && *end > first);
        self.log_end =
            log_end.ok_or_else(|| bad("journal s_first", first, "before the log's end"))?;
        let start = u64::from(raw.s_start.get());
        if start != 0 && !(first..self.log_end).contains(&start) {
            return Err(bad("journal s_start", start, "inside of the log"));
        }
        Ok(self)
    }

    /// Checks that the journal has blocks of its own, so that what it holds is no more than what there
    /// is of them.
    ///
    /// # Errors
    /// `Corrupt` for a hole and for a block that is mapped twice; `Io`.
    fn check_blocks(&self, store: &Store) -> Result<()> {
        let (mut taken, mut next) = (Ranges::default(), 0);
        while next < self.end {
            let run = store.map(&self.inode).run(next)?;
            let number = data_of(&self.inode, &run)?;
            let count = run.len.min(self.end - next);
            if !taken.take(number, count) {
                let found = format!("block {number} twice");
                let expected = "each block once";
                return Err(Error::corrupt("journal", self.inode.at, found, expected));
            }
            next += count;
        }
        Ok(())
    }

    /// Features that a reader must know. The first version of the superblock has none.
    pub(crate) fn incompat(&self) -> u32 {
        match self.raw.header.h_blocktype.get() {
            jblock::SUPER_V2 => self.raw.s_feature_incompat.get(),
            _ => 0,
        }
    }

    pub(crate) fn has(&self, flag: u32) -> bool {
        self.incompat() & flag != 0
    }

    /// Returns whether blocks of the journal have CRC-32C.
    pub(crate) fn has_sums(&self) -> bool {
        self.has(jfeature::CSUM_V2 | jfeature::CSUM_V3)
    }

    /// Returns whether commits have the CRC-32 of their transactions.
    pub(crate) fn has_old_sums(&self) -> bool {
        let is_new = self.raw.header.h_blocktype.get() == jblock::SUPER_V2;
        is_new && self.raw.s_feature_compat.get() & jfeature::COMPAT_CHECKSUM != 0
    }

    /// Returns whether there is nothing to replay.
    pub(crate) fn is_empty(&self) -> bool {
        self.raw.s_start.get() == 0
    }

    /// Returns where a block of the journal stands, in bytes.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn place(&self, store: &Store, block: u64) -> Result<u64> {
        place(store, &self.inode, block)
    }

    /// Returns a block of the journal.
    ///
    /// # Errors
    /// As [`place`](Self::place).
    pub(crate) fn block(&self, store: &Store, block: u64) -> Result<Vec<u8>> {
        let at = self.place(store, block)?;
        store.blocks().bytes(at, store.volume().block as usize)
    }

    /// Returns the block after this one in the log, which is a ring.
    pub(crate) fn after(&self, block: u64) -> u64 {
        match block + 1 < self.log_end {
            true => block + 1,
            false => self.raw.s_first.get().into(),
        }
    }
}

fn place(store: &Store, inode: &Inode, block: u64) -> Result<u64> {
    let run = store.map(inode).run(block)?;
    Ok(data_of(inode, &run)? * store.volume().block)
}

/// Returns the first block of a run of the journal.
fn data_of(inode: &Inode, run: &Run) -> Result<u64> {
    if let Spot::Data(number) = run.spot {
        return Ok(number);
    }
    let found = format!("no block {}", run.first);
    let expected = "a journal without holes";
    Err(Error::corrupt("journal", inode.at, found, expected))
}
