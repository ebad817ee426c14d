//! The log: transactions, each of which counts once its commit block is there.

use crate::disk::csum;
use crate::disk::ondisk::{
    BlockTag, BlockTag3, COMMIT_CHECKSUM, CommitHeader, JOURNAL_HEADER, JOURNAL_MAGIC,
    JournalHeader, jblock, jfeature, tflag,
};
use crate::disk::replayed::{Copy, Replayed};
use crate::journal::superblock::Journal;
use crate::store::Store;
use std::collections::{HashMap, HashSet};
use volary_core::{Error, Result};
use zerocopy::FromBytes;

/// The only kind of checksum that commits of the first version have.
const CRC32: (u8, u8) = (1, 4);

/// A block that a transaction wrote.
#[derive(Clone, Copy)]
pub(crate) struct Written {
    /// Where it belongs.
    pub(crate) block: u64,
    /// The block of the journal that it stands in.
    pub(crate) at: u64,
    pub(crate) sequence: u32,
    flags: u32,
    checksum: u32,
}

/// What the log holds.
pub(crate) struct Log {
    pub(crate) written: Vec<Written>,
    /// By block, the last transaction that revoked it.
    revoked: HashMap<u64, u32>,
    pub(crate) transactions: u64,
    /// The sequence number after the last transaction.
    pub(crate) next: u32,
}

/// A transaction that is being read.
#[derive(Default)]
struct Open {
    written: Vec<Written>,
    revoked: HashSet<u64>,
    /// CRC-32 of its blocks, in journals of the first version.
    sum: u32,
    /// Whether a descriptor's checksum was wrong: it may be of an older log.
    is_doubtful: bool,
}

impl Open {
    fn new() -> Self {
        Self {
            sum: !0,
            ..Self::default()
        }
    }
}

impl Log {
    /// Reads the log from its start to its last commit.
    ///
    /// # Errors
    /// `Corrupt` for a transaction that was committed and has a wrong checksum, or makes no sense;
    /// `Io`.
    pub(crate) fn read(store: &Store, journal: &Journal) -> Result<Self> {
        let mut log = Self {
            written: Vec::new(),
            revoked: HashMap::new(),
            transactions: 0,
            next: journal.raw.s_sequence.get(),
        };
        let mut reader = Reader {
            store,
            journal,
            at: journal.raw.s_start.get().into(),
            left: journal.log_end,
        };
        let mut last_commit = 0;
        let mut open = Open::new();
        // A log that fills its ring ends where it began.
        while let Some(at) = reader.step() {
            let bytes = journal.block(store, at)?;
            let Some(kind) = kind_of(&bytes, log.next) else {
                break;
            };
            match kind {
                jblock::DESCRIPTOR => {
                    open.is_doubtful |= !reader.tail_holds(&bytes);
                    reader.descriptor(&bytes, log.next, &mut open)?;
                }
                jblock::REVOKE => {
                    open.is_doubtful |= !reader.tail_holds(&bytes);
                    reader.revoke(&bytes, &mut open);
                }
                jblock::COMMIT => {
                    let done = std::mem::replace(&mut open, Open::new());
                    match reader.commit(at, &bytes, &done, last_commit)? {
                        Some(time) => last_commit = time,
                        None => break,
                    }
                    log.take(done);
                }
                _ => break,
            }
        }
        Ok(log)
    }

    fn take(&mut self, done: Open) {
        self.written.extend(done.written);
        for block in done.revoked {
            self.revoked.insert(block, self.next);
        }
        self.transactions += 1;
        self.next = self.next.wrapping_add(1);
    }

    /// Returns where each block has its newest contents, without those that were revoked since.
    ///
    /// # Errors
    /// `Corrupt` for a block whose checksum is wrong, or that the volume does not have; `Io`.
    pub(crate) fn replay(&self, store: &Store, journal: &Journal) -> Result<Replayed> {
        let mut newest: HashMap<u64, Written> = HashMap::new();
        for written in &self.written {
            let revoked = self.revoked.get(&written.block);
            let is_gone = revoked.is_some_and(|by| is_not_before(*by, written.sequence));
            if !is_gone {
                newest.insert(written.block, *written);
            }
        }
        let mut replayed = Replayed {
            block: store.volume().block,
            transactions: self.transactions,
            ..Replayed::default()
        };
        for (block, written) in newest {
            let at = journal.place(store, written.at)?;
            verify(store, journal, &written, at)?;
            if block >= store.volume().there() {
                let expected = format!("less than {}", store.volume().there());
                return Err(Error::corrupt("t_blocknr", at, block.to_string(), expected));
            }
            let is_escaped = written.flags & tflag::ESCAPE != 0;
            replayed.copies.insert(block, Copy { at, is_escaped });
        }
        Ok(replayed)
    }
}

/// Returns whether a sequence number is not before another; they go round.
fn is_not_before(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() >= 0
}

/// Returns the type of a block, if it is the journal's and of this transaction.
pub(crate) fn kind_of(bytes: &[u8], sequence: u32) -> Option<u32> {
    let (head, _) = JournalHeader::read_from_prefix(bytes).ok()?;
    let is_it = head.h_magic.get() == JOURNAL_MAGIC && head.h_sequence.get() == sequence;
    is_it.then(|| head.h_blocktype.get())
}

/// The checksum of a block in the journal, which its tag has.
fn verify(store: &Store, journal: &Journal, written: &Written, at: u64) -> Result<()> {
    if !journal.has_sums() || !store.volume().is_verified {
        return Ok(());
    }
    let mut bytes = vec![0; store.volume().block as usize];
    store.blocks().read_once(at, &mut bytes)?;
    let sum = csum::crc32c(journal.seed, &written.sequence.to_be_bytes());
    let sum = csum::crc32c(sum, &bytes);
    let sum = match journal.has(jfeature::CSUM_V3) {
        true => sum,
        false => sum & 0xffff,
    };
    store
        .blocks()
        .verify("t_checksum", at, written.checksum, sum)
}

struct Reader<'a> {
    store: &'a Store,
    journal: &'a Journal,
    /// The next block of the journal.
    at: u64,
    /// Blocks that were not read yet.
    left: u64,
}

impl Reader<'_> {
    /// Returns the next block, if the log has one.
    fn step(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        let at = self.at;
        self.at = self.journal.after(at);
        Some(at)
    }

    /// Returns whether the checksum at the end of a descriptor or revocation block is right.
    fn tail_holds(&self, bytes: &[u8]) -> bool {
        if !self.journal.has_sums() || !self.store.volume().is_verified {
            return true;
        }
        let at = bytes.len().saturating_sub(4);
        let stored = bytes.get(at..).and_then(|tail| tail.first_chunk());
        let stored = stored.map_or(0, |tail| u32::from_be_bytes(*tail));
        csum::holds(self.journal.seed, bytes, at, stored)
    }

    /// Takes the tags of a descriptor block, and passes over the blocks that they are of.
    fn descriptor(&mut self, bytes: &[u8], sequence: u32, open: &mut Open) -> Result<()> {
        if self.journal.has_old_sums() {
            open.sum = csum::crc32_be(open.sum, bytes);
        }
        let tail = if self.journal.has_sums() { 4 } else { 0 };
        let area = bytes.get(JOURNAL_HEADER..bytes.len().saturating_sub(tail));
        let mut rest = area.unwrap_or_default();
        while let Some((block, flags, checksum, len)) = self.tag(rest) {
            let Some(at) = self.step() else { break };
            if self.journal.has_old_sums() {
                let data = self.journal.block(self.store, at)?;
                open.sum = csum::crc32_be(open.sum, &data);
            }
            open.written.push(Written {
                block,
                at,
                sequence,
                flags,
                checksum,
            });
            let uuid = if flags & tflag::SAME_UUID == 0 { 16 } else { 0 };
            rest = rest.get(len + uuid..).unwrap_or_default();
            if flags & tflag::LAST != 0 {
                break;
            }
        }
        Ok(())
    }

    /// Returns a tag: the block, flags, checksum, and its own length.
    fn tag(&self, bytes: &[u8]) -> Option<(u64, u32, u32, usize)> {
        let is_wide = self.journal.has(jfeature::BITS64);
        let wide = |low: u32, high: u32| match is_wide {
            true => u64::from(high) << 32 | u64::from(low),
            false => low.into(),
        };
        if self.journal.has(jfeature::CSUM_V3) {
            let (raw, _) = BlockTag3::read_from_prefix(bytes).ok()?;
            let block = wide(raw.t_blocknr.get(), raw.t_blocknr_high.get());
            return Some((block, raw.t_flags.get(), raw.t_checksum.get(), 16));
        }
        let (raw, rest) = BlockTag::read_from_prefix(bytes).ok()?;
        let high = match is_wide {
            true => u32::from_be_bytes(*rest.first_chunk()?),
            false => 0,
        };
        // With version 2 two more bytes follow, which nothing uses.
        let more = if self.journal.has(jfeature::CSUM_V2) {
            2
        } else {
            0
        };
        let len = size_of::<BlockTag>() + if is_wide { 4 } else { 0 } + more;
        let block = wide(raw.t_blocknr.get(), high);
        let checksum = raw.t_checksum.get().into();
        (len <= bytes.len()).then(|| (block, raw.t_flags.get().into(), checksum, len))
    }

    /// Takes the blocks that a revocation block names.
    fn revoke(&self, bytes: &[u8], open: &mut Open) {
        let len = bytes
            .get(JOURNAL_HEADER..)
            .and_then(|rest| rest.first_chunk());
        let len = len.map_or(0, |len| u32::from_be_bytes(*len));
        let len = usize::try_from(len).unwrap_or(usize::MAX).min(bytes.len());
        let area = bytes.get(JOURNAL_HEADER + 4..len).unwrap_or_default();
        match self.journal.has(jfeature::BITS64) {
            true => {
                let numbers = area.as_chunks::<8>().0.iter();
                open.revoked.extend(numbers.map(|n| u64::from_be_bytes(*n)));
            }
            false => {
                let numbers = area.as_chunks::<4>().0.iter();
                open.revoked
                    .extend(numbers.map(|n| u64::from(u32::from_be_bytes(*n))));
            }
        }
    }

    /// Judges a commit block. Its time, in seconds; `None` if it is of an older log.
    fn commit(&self, at: u64, bytes: &[u8], done: &Open, last: u64) -> Result<Option<u64>> {
        let place = self.journal.place(self.store, at)?;
        let short = |_| Error::corrupt("commit block", place, "too little", "60 bytes");
        let (raw, _) = CommitHeader::read_from_prefix(bytes).map_err(short)?;
        let [sum, ..] = raw.h_chksum.map(|sum| sum.get());
        let time = raw.h_commit_sec.get();
        let is_right = if !self.store.volume().is_verified {
            true
        } else if self.journal.has_sums() {
            !done.is_doubtful && csum::holds(self.journal.seed, bytes, COMMIT_CHECKSUM, sum)
        } else if self.journal.has_old_sums() {
            let kind = (raw.h_chksum_type, raw.h_chksum_size);
            kind == CRC32 && sum == done.sum || kind == (0, 0) && sum == 0
        } else {
            true
        };
        match is_right {
            true => Ok(Some(time)),
            // What was written later than the last commit belongs to this log, and is damaged.
            false if time >= last => Err(Error::corrupt(
                "h_chksum",
                place,
                format!("{sum:#010x}"),
                "the transaction's; mount with -o noload to read the volume as it was before",
            )),
            false => Ok(None),
        }
    }
}
