//! An attached volume: the state that operations work on.

use crate::attributes::attr::{Attributes, Owner};
use crate::attributes::form::{Form, Wsl};
use crate::attributes::reparse;
use crate::directory::dir::{Directory, Entry};
use crate::disk::ondisk::number;
use crate::disk::volume::Volume;
use crate::files::bitmap;
use crate::files::node::Node;
use crate::files::stream::Stream;
use crate::state;
use crate::store::Store;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use volary_core::{
    Attach, BlockDevice, Error, FileKind, Finding, Kind, NodeId, OpenId, OptionSpec, Result,
    Severity, StatFs, Untold,
};
use volary_ondisk::SharedOpens;
use volary_ondisk::findings::finding;

/// Options for attaching.
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

/// The least cache memory that a volume is attached with, in bytes.
const MEMORY_MIN: u64 = 1 << 20;

/// An open file or directory.
pub(crate) struct Open {
    pub(crate) what: What,
}

/// The file or directory that was opened.
pub(crate) enum What {
    Dir(Box<Directory>),
    /// A file's content: its own, or a named stream's. `None` if there is none.
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
    /// `Invalid` for an unknown option; those of [`Store::open`]; those of reading the root
    /// directory.
    pub(crate) fn new(dev: &Arc<dyn BlockDevice>, how: &Attach) -> Result<Self> {
        how.options.check_known(OPTIONS)?;
        let volume = Volume::read(&**dev)?;
        let store = Store::open(dev.clone(), volume, how.memory.max(MEMORY_MIN) / 2)?;
        let root = Node::of(store.mft(), number::ROOT).map_err(|e| match e.kind() {
            Kind::Stale => {
                let at = store.mft().record_at(number::ROOT).unwrap_or(0);
                Error::corrupt("root directory", at, "an unused record", "a directory")
            }
            _ => e,
        })?;
        Directory::of(store.mft(), &root)?;
        let mut untold = Untold::default();
        if let Some(words) = state::not_clean(store.mft()) {
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
    /// `Stale` after the volume is detached.
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

    /// Returns whether a record is one of the volume's own files, which are not shown.
    pub(crate) fn is_hidden(&self, number: u64) -> bool {
        number < number::FIRST_USER && number != number::ROOT && !self.shows_system
    }

    /// # Errors
    /// `Stale` for a node that is gone or hidden, or after the volume is detached; `Corrupt`; `Io`.
    pub(crate) fn load(&self, id: NodeId) -> Result<Node> {
        self.alive()?;
        let (number, _) = crate::files::node::number_of(id);
        if self.is_hidden(number) {
            return Err(Kind::Stale.into());
        }
        Node::read(self.store.mft(), id)
    }

    /// Returns the reader of nodes' attributes.
    pub(crate) fn attributes(&self) -> Attributes<'_> {
        self.store.attributes(&self.owner)
    }

    /// Returns the entry with a name in a directory.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn find(&self, dir: &Directory, name: &[u8]) -> Result<Option<Entry>> {
        self.store.find(dir, name)
    }

    /// Opens a node for reading.
    ///
    /// # Errors
    /// `Unsupported` for encrypted content, and for content that is not stored in the file;
    /// `Stale`; `Corrupt`; `Io`.
    pub(crate) fn open(&self, id: NodeId) -> Result<OpenId> {
        let node = self.load(id)?;
        let mft = self.store.mft();
        let wsl = Wsl::read(mft, &node)?;
        let what = match Form::of(mft, &node, &wsl)? {
            Form::Other(FileKind::File, tag) => {
                let words = format!("what it holds is elsewhere: it is {}", reparse::words(tag));
                return Err(Error::note(Kind::Unsupported, words));
            }
            Form::Dir | Form::Other(..) => What::Dir(Box::new(Directory::of(mft, &node)?)),
            _ => What::File(self.content(&node)?),
        };
        Ok(self.opens.add(id.ino.get(), Arc::new(Open { what })))
    }

    fn content(&self, node: &Node) -> Result<Option<Box<Stream>>> {
        let stream = node.content(self.store.mft())?;
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

    /// Returns the volume's size and its free space.
    pub(crate) fn statfs(&self) -> StatFs {
        let volume = self.store.volume();
        let (clusters, records) = *self.free.get_or_init(|| bitmap::free(self.store.mft()));
        let free = clusters.min(volume.clusters).saturating_mul(volume.cluster);
        let nodes = self.store.mft().count();
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
