//! An attached volume: everything that an operation works on.

use crate::attr::Owner;
use crate::form::Form;
use crate::index::Index;
use crate::node::Node;
use crate::ondisk::{kind, number};
use crate::reparse;
use crate::state;
use crate::store::Store;
use crate::stream::{Content, Stream};
use crate::volume::Volume;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use volary_core::{
    Attach, BlockDevice, Error, FileKind, Finding, Kind, NodeId, OpenId, OptionSpec, Result,
    Severity, StatFs, Untold,
};
use volary_ondisk::SharedOpens;
use volary_ondisk::findings::finding;

/// Options of an attachment.
pub(crate) const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "show_sys_files",
        value: "",
        help: "list the volume's own files too: $MFT, $Bitmap and the like",
    },
    OptionSpec {
        name: "permissions",
        value: "",
        help: "owners and modes as security descriptors say; else all belongs to who attaches",
    },
];

/// The smallest cache that a volume can be attached with, in bytes.
const MEMORY_MIN: u64 = 1 << 20;

/// An open file or directory.
pub(crate) struct Open {
    pub(crate) what: What,
}

/// The file or directory that an open is of.
pub(crate) enum What {
    /// A directory: its index, and its record number.
    Dir(Box<Index>, u64),
    /// A file's data stream; `None` if it has none.
    File(Option<Box<Stream>>),
}

pub(crate) struct Attached {
    pub(crate) store: Store,
    pub(crate) root: NodeId,
    pub(crate) owner: Owner,
    pub(crate) shows_system: bool,
    opens: SharedOpens<Arc<Open>>,
    free: OnceLock<(u64, u64)>,
    untold: Mutex<Untold>,
    detached: AtomicBool,
}

impl Attached {
    /// # Errors
    /// `Invalid` for an option; as [`Store::open`]; of the root.
    pub(crate) fn new(dev: &Arc<dyn BlockDevice>, how: &Attach) -> Result<Self> {
        how.options.check_known(OPTIONS)?;
        let volume = Volume::read(&**dev)?;
        let store = Store::open(dev.clone(), volume, how.memory.max(MEMORY_MIN) / 2)?;
        let root = store.node_of(number::ROOT).map_err(|e| match e.kind() {
            Kind::Stale => {
                let at = store.record_at(number::ROOT).unwrap_or(0);
                Error::corrupt("root directory", at, "an unused record", "a directory")
            }
            _ => e,
        })?;
        store.directory(&root)?;
        let mut untold = Untold::default();
        if let Some(words) = state::not_clean(&store) {
            untold.add(Finding {
                code: "not-clean",
                ..finding(Severity::Note, 0, words)
            });
        }
        Ok(Self {
            root: root.id(),
            store,
            owner: Owner {
                uid: how.uid,
                gid: how.gid,
                umask: how.umask,
                by_descriptors: how.options.flag("permissions", false)?,
            },
            shows_system: how.options.flag("show_sys_files", false)?,
            opens: SharedOpens::default(),
            free: OnceLock::new(),
            untold: Mutex::new(untold),
            detached: AtomicBool::new(false),
        })
    }

    /// # Errors
    /// `Stale` once it is detached.
    pub(crate) fn alive(&self) -> Result<()> {
        match self.detached.load(Ordering::Acquire) {
            true => Err(Kind::Stale.into()),
            false => Ok(()),
        }
    }

    pub(crate) fn detach(&self) {
        self.detached.store(true, Ordering::Release);
        self.opens.clear();
    }

    pub(crate) fn findings(&self) -> Vec<Finding> {
        self.untold.lock().take()
    }

    /// Returns whether a record is one of the volume's own that are not shown.
    pub(crate) fn is_hidden(&self, number: u64) -> bool {
        number < number::FIRST_USER && number != number::ROOT && !self.shows_system
    }

    /// # Errors
    /// `Stale`, `Corrupt`, `Io`.
    pub(crate) fn load(&self, id: NodeId) -> Result<Node> {
        self.alive()?;
        let (number, _) = crate::node::number_of(id);
        if self.is_hidden(number) {
            return Err(Kind::Stale.into());
        }
        self.store.node(id)
    }

    /// Opens a node for reading.
    ///
    /// # Errors
    /// `Unsupported` for what is encrypted, and what is not in the file; `Corrupt`; `Io`.
    pub(crate) fn open(&self, id: NodeId) -> Result<OpenId> {
        let node = self.load(id)?;
        let wsl = self.store.wsl(&node)?;
        let what = match self.store.form(&node, &wsl)? {
            Form::Other(FileKind::File, tag) => {
                let words = format!("what it holds is elsewhere: it is {}", reparse::words(tag));
                return Err(Error::note(Kind::Unsupported, words));
            }
            Form::Dir | Form::Other(..) => {
                What::Dir(Box::new(self.store.directory(&node)?), node.number())
            }
            _ => What::File(self.content(&node)?),
        };
        Ok(self.opens.add(id.ino.get(), Arc::new(Open { what })))
    }

    fn content(&self, node: &Node) -> Result<Option<Box<Stream>>> {
        let stream = self.store.content(node)?;
        if let Some(stream) = &stream {
            stream.check_clear()?;
        }
        Ok(stream.map(Box::new))
    }

    /// # Errors
    /// `Stale`.
    pub(crate) fn opened(&self, open: OpenId) -> Result<Arc<Open>> {
        self.alive()?;
        self.opens.get(open)
    }

    /// # Errors
    /// `Stale`.
    pub(crate) fn close(&self, open: OpenId) -> Result<()> {
        self.alive()?;
        self.opens.remove(open).map(drop)
    }

    /// Returns how full the volume is.
    pub(crate) fn statfs(&self) -> StatFs {
        let volume = &self.store.volume;
        let (clusters, records) = *self.free.get_or_init(|| self.store.free());
        let free = clusters.min(volume.clusters).saturating_mul(volume.cluster);
        let nodes = self.store.mft.records(volume);
        StatFs {
            block_size: u32::try_from(volume.cluster).unwrap_or(4096),
            size: volume.clusters.saturating_mul(volume.cluster),
            free,
            available: free,
            nodes,
            nodes_free: records.min(nodes),
        }
    }
}

/// Called with the offset of a part in the stream, and its bytes; `None` for a hole.
type EachPart<'a> = &'a mut dyn FnMut(u64, Option<&[u8]>) -> Result<()>;

impl Store {
    /// Returns the numbers of free clusters and free records, counted in the bitmaps; 0 for a
    /// bitmap that cannot be read.
    pub(crate) fn free(&self) -> (u64, u64) {
        let of = |number: u64, kind: u32, count: u64| {
            let node = self.node_of(number)?;
            let stream = self.stream(&node, kind, &[])?;
            stream.map_or(Ok(0), |stream| self.zeros(&stream, count))
        };
        let clusters = of(number::BITMAP, kind::DATA, self.volume.clusters);
        let records = self.mft.records(&self.volume);
        let records = of(number::MFT, kind::BITMAP, records);
        (clusters.unwrap_or(0), records.unwrap_or(0))
    }

    /// Counts the zero bits among the first `count`. Bits in holes are zero.
    fn zeros(&self, stream: &Stream, count: u64) -> Result<u64> {
        let count = count.min(stream.size.saturating_mul(8));
        let mut zeros = 0u64;
        self.each_part(stream, count.div_ceil(8), &mut |at, part| {
            let Some(bytes) = part else {
                return Ok(());
            };
            for (byte, index) in bytes.iter().zip(at..) {
                let left = count.saturating_sub(index.saturating_mul(8)).min(8);
                let mask = (1u16 << left).wrapping_sub(1) as u8;
                zeros = zeros.saturating_add((!byte & mask).count_ones().into());
            }
            Ok(())
        })?;
        Ok(zeros.saturating_add(self.bits_in_holes(stream, count)?))
    }

    /// Counts how many of the first `count` bits are in holes.
    fn bits_in_holes(&self, stream: &Stream, count: u64) -> Result<u64> {
        let Content::Mapped(_) = &stream.content else {
            return Ok(0);
        };
        let cluster = self.volume.cluster;
        let end = count.div_ceil(8).div_ceil(cluster);
        let mut bits = 0u64;
        stream.each_run(self, None, (0, end), |run| {
            let scale = |clusters: u64| clusters.saturating_mul(cluster).saturating_mul(8);
            if run.place.is_none() {
                let own = scale(run.end()).min(count).saturating_sub(scale(run.first));
                bits = bits.saturating_add(own);
            }
            Ok(())
        })?;
        Ok(bits)
    }

    /// Calls `each` for the first `len` bytes of a stream, part by part, with the offset of each
    /// part in the stream.
    pub(crate) fn each_part(&self, stream: &Stream, len: u64, each: EachPart<'_>) -> Result<()> {
        const PART: u64 = 64 << 10;
        let cluster = self.volume.cluster;
        let (mut at, mut buf) = (0u64, Vec::new());
        while at < len {
            let there = match &stream.content {
                Content::Here(_) => len,
                Content::Mapped(_) => {
                    let run = stream.run(self, at / cluster)?;
                    let end = run.end().saturating_mul(cluster);
                    if run.place.is_none() {
                        each(at, None)?;
                        at = end;
                        continue;
                    }
                    end
                }
            };
            let count = (there.min(len) - at).min(PART);
            buf.resize(usize::try_from(count).unwrap_or(0), 0);
            stream.read(self, at, &mut buf)?;
            each(at, Some(&buf))?;
            at = at.saturating_add(count);
        }
        Ok(())
    }
}
