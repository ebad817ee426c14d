//! An attached volume: the state that operations work on.

use crate::disk::cache::cache;
use crate::disk::descriptors::Descriptors;
use crate::disk::volume::{Stretch, Volume};
use crate::extensions::choice::Names;
use crate::extensions::susp::Areas;
use crate::tree::dir::{Found, Reader};
use crate::tree::links::Links;
use crate::tree::node::{Entry, Node, Nodes, Owner};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use volary_block::Cache;
use volary_core::{
    Attach, BlockDevice, Ctx, Error, Extent, FileKind, Kind, NodeId, OpenId, OptionSpec, Place,
    Prefetch, Result,
};
use volary_ondisk::SharedOpens;
use volary_ondisk::ahead::AHEAD_MAX;

/// Options for attaching.
pub(crate) const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "names",
        value: "auto|rock|joliet|plain|iso",
        help: "which names are shown: the best there are (the default), Rock Ridge's, Joliet's, \
               plain ones in lower case, or as they are stored",
    },
    OptionSpec {
        name: "uid",
        value: "UID",
        help: "owner of what has none of its own (default: who opens it)",
    },
    OptionSpec {
        name: "gid",
        value: "GID",
        help: "its group",
    },
];

const NAMES: &[(&str, Names)] = &[
    ("auto", Names::Auto),
    ("rock", Names::RockRidge),
    ("joliet", Names::Joliet),
    ("plain", Names::Plain),
    ("iso", Names::Iso),
];

/// The smallest cache that a volume can be attached with, in bytes.
const MEMORY_MIN: u64 = 1 << 20;

pub(crate) struct Attached {
    pub(crate) volume: Volume,
    cache: Cache,
    owner: Owner,
    links: Links,
    opens: SharedOpens<Arc<Node>>,
    detached: AtomicBool,
}

impl Attached {
    /// Attaches a volume.
    ///
    /// # Errors
    /// `Invalid` for an option; `Corrupt` for invalid descriptors; `Io`.
    pub(crate) fn new(dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Self> {
        let options = &how.options;
        options.check_known(OPTIONS)?;
        let names = options.choice("names", NAMES)?.unwrap_or(Names::Auto);
        let id = |key, default| match options.number(key)? {
            None => Ok(default),
            Some(id) => u32::try_from(id).map_err(|_| {
                let words = format!("option {key}={id}: at most {}", u32::MAX);
                Error::note(Kind::Invalid, words)
            }),
        };
        let owner = Owner {
            uid: id("uid", how.uid)?,
            gid: id("gid", how.gid)?,
            ..Owner::default()
        };
        let descriptors = Descriptors::read(&*dev)?;
        let memory = how.memory.max(MEMORY_MIN);
        let cache = cache(dev, memory / 2);
        let volume = Volume::new(&cache, &descriptors, names)?;
        let fs = Self {
            volume,
            cache,
            owner,
            links: Links::new(memory / 4),
            opens: SharedOpens::default(),
            detached: AtomicBool::new(false),
        };
        fs.makes().dir(fs.volume.root)?;
        Ok(fs)
    }

    /// Checks that the volume is still attached.
    ///
    /// # Errors
    /// `Stale` once it is detached.
    pub(crate) fn alive(&self) -> Result<()> {
        if self.detached.load(Ordering::Acquire) {
            return Err(Kind::Stale.into());
        }
        Ok(())
    }

    pub(crate) fn detach(&self) {
        self.detached.store(true, Ordering::Release);
        self.opens.clear();
    }

    /// Returns the maker of nodes.
    fn makes(&self) -> Nodes<'_> {
        Nodes {
            reader: Reader {
                cache: &self.cache,
                volume: &self.volume,
            },
            owner: self.owner,
            cancel: None,
        }
    }

    /// Returns the maker of nodes for a call, while the volume is attached.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn nodes<'a>(&'a self, cx: &'a Ctx<'_>) -> Result<Nodes<'a>> {
        self.alive()?;
        Ok(Nodes {
            cancel: Some(cx.cancel),
            ..self.makes()
        })
    }

    /// Returns the entry for a record, with the id of its file's lowest record. Returns `None` if
    /// the entry belongs elsewhere. Continuation areas that it reads count against `areas`.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn entry(
        &self,
        nodes: &Nodes<'_>,
        found: &Found,
        areas: &mut Areas,
    ) -> Result<Option<Entry>> {
        let mut entry = nodes.entry(found, areas)?;
        if let Some(entry) = &mut entry {
            self.links.unite(nodes, entry)?;
        }
        Ok(entry)
    }

    /// Returns a node.
    ///
    /// # Errors
    /// `Stale`, `Corrupt`, `Io`.
    pub(crate) fn load(&self, id: NodeId) -> Result<Node> {
        self.alive()?;
        self.makes().load(id)
    }

    /// Returns where a directory lies on the device.
    ///
    /// # Errors
    /// `NotDir`; as [`load`](Self::load).
    pub(crate) fn dir(&self, id: NodeId) -> Result<Stretch> {
        stretch_of(&self.load(id)?)
    }

    /// Reads directories into the cache, in their order on the device. If only attributes are
    /// wanted, reads just their first blocks. Files need nothing more, because their attributes are
    /// in their directories.
    pub(crate) fn prefetch(&self, cx: &Ctx<'_>, nodes: &[NodeId], what: Prefetch) {
        let goes_on = || cx.check_cancel().is_ok();
        let block = self.volume.block;
        let starts = nodes.iter().map(|node| node.ino.get());
        // A file's number is the place of its record, which is never at the start of a block.
        let starts: Vec<u64> = starts.filter(|at| at.is_multiple_of(block)).collect();
        let firsts = starts.iter().map(|start| (*start, block));
        self.cache.prefetch_all(firsts.collect(), &goes_on);
        if what != Prefetch::Entries {
            return;
        }
        // Damage is reported when the directory is listed.
        let nodes = self.makes();
        let all = starts.iter().filter_map(|start| nodes.dir(*start).ok());
        let all = all.filter_map(|dir| stretch_of(&dir).ok());
        let all = all.map(|dir| (dir.start, dir.len.min(AHEAD_MAX)));
        self.cache.prefetch_all(all.collect(), &goes_on);
    }

    pub(crate) fn open(&self, node: Node) -> OpenId {
        self.opens.add(node.attr.node.ino.get(), Arc::new(node))
    }

    /// Returns the node of an open.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn opened(&self, open: OpenId) -> Result<Arc<Node>> {
        self.alive()?;
        self.opens.get(open)
    }

    /// Closes an open.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn close(&self, open: OpenId) -> Result<()> {
        self.alive()?;
        self.opens.remove(open).map(drop)
    }

    /// Reads bytes of a file.
    ///
    /// # Errors
    /// `Corrupt` if the device ends before the file; `Io`.
    pub(crate) fn read(&self, node: &Node, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        let len = buf.len() as u64;
        each_piece(node, offset, len, |piece| {
            let at = node.attr.node.ino.get();
            self.makes().reader.check("extent", at, piece)?;
            let part = buf.get_mut(done..done + piece.len as usize);
            let part = part.unwrap_or_default();
            self.cache.read(piece.start, part)?;
            done += part.len();
            Ok(())
        })?;
        Ok(done)
    }

    /// Returns where a file's bytes lie.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) fn extents(
        &self,
        node: &Node,
        offset: u64,
        len: u64,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        let mut at = offset;
        each_piece(node, offset, len, |piece| {
            let record = node.attr.node.ino.get();
            self.makes().reader.check("extent", record, piece)?;
            out.push(Extent {
                offset: at,
                len: piece.len,
                place: Place::Device(piece.start),
            });
            at += piece.len;
            Ok(())
        })
    }
}

/// Returns where a directory lies on the device.
///
/// # Errors
/// `NotDir`.
pub(crate) fn stretch_of(node: &Node) -> Result<Stretch> {
    let stretch = node.sections.first().copied();
    stretch
        .filter(|_| node.attr.kind == FileKind::Dir)
        .ok_or_else(|| Kind::NotDir.into())
}

/// Calls `each` for the parts of the file's sections that make up a range, in order.
fn each_piece(
    node: &Node,
    offset: u64,
    len: u64,
    mut each: impl FnMut(Stretch) -> Result<()>,
) -> Result<()> {
    let (mut skip, mut left) = (offset, len);
    for section in &node.sections {
        if skip >= section.len {
            skip -= section.len;
            continue;
        }
        let len = (section.len - skip).min(left);
        if len == 0 {
            break;
        }
        each(Stretch {
            start: section.start.saturating_add(skip),
            len,
        })?;
        left -= len;
        skip = 0;
    }
    Ok(())
}

impl Default for Owner {
    fn default() -> Self {
        Self {
            uid: 0,
            gid: 0,
            file_mode: 0o555,
            dir_mode: 0o555,
        }
    }
}
