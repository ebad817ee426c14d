//! Keeps names, symlinks and content encrypted.

mod blocks;
mod content;
mod dirs;
mod keys;
mod names;
mod ops;

pub use keys::CryptCost;

use crate::Outside;
use content::{Cipher, Content};
use dirs::Dirs;
use keys::Keys;
use names::DirId;
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::sync::Arc;
use volary_core::{
    Attr, Cancel, Caps, Cookie, Cred, Ctx, DirBuf, Entry, Error, FileKind, Fs, Kind, Mode, Name,
    NodeId, OpenId, Result, SetAttr,
};

/// Keeps names, targets of symlinks and the content of files encrypted on the volume below.
///
/// A random master key is made when the layer is first put over an empty volume. It is stored there
/// in `.volary-crypt`, sealed under a passphrase (Argon2id). Content is sealed in blocks of 4096
/// bytes by XChaCha20-Poly1305, under a separate key for each file. Names are sealed by AES-256-SIV
/// and bound to their directory, whose id is in its file `.volary-dir`. `keys`, `blocks` and
/// `names` describe the layout.
///
/// # What is detected
/// Any changed bit of a sealed name, target or block (`Corrupt`; such a name is not shown). A block
/// that was moved, within a file or to another. A file that was cut to a length that it never had.
///
/// # What is not detected
/// Anybody who can write below can restore an earlier state (a block of the same file, a file, a
/// volume), remove files, and exchange whole files under their names. They can also blank whole
/// blocks, since zeros are a hole. Anybody who can read below sees the shape of the tree, sizes,
/// times, owners and modes. They also see which blocks change, and when a name in one directory
/// appears again.
///
/// # What it changes
/// Adds [`Caps::CASE_SENSITIVE`], [`Caps::CASE_KEEPING`] and [`Caps::ANY_NAME`]. Takes away
/// [`Caps::EXTENTS`], [`Caps::PREALLOCATE`], [`Caps::XATTRS`] and [`Caps::CRASH_SAFE`]: a crash may
/// leave blocks unreadable that were being written. Names may be as long as fits in base 32 (143
/// bytes of 255). Making, removing and renaming run one at a time, and so do changes to one file.
/// Files must be readable below to be written.
///
/// Put it low: above `subtree`, `idmap` and `munge=below`, and below every layer that looks at
/// names or content. A cache of directories belongs above it.
pub struct Crypt {
    below: Fs,
    keys: Keys,
    outside: Arc<dyn Outside>,
    dirs: Dirs,
    /// Read-locked while a name is looked up, write-locked while one changes.
    changing: RwLock<()>,
    files: Mutex<Files>,
}

/// The open nodes; bounded by the opens below.
#[derive(Default)]
struct Files {
    opens: HashMap<OpenId, NodeId>,
    ciphers: HashMap<NodeId, (Arc<Cipher>, usize)>,
}

impl Files {
    /// Returns a file's cipher. It is kept until `let_go` was called as often as this.
    fn hold(&mut self, node: NodeId) -> Arc<Cipher> {
        let held = self.ciphers.entry(node).or_default();
        held.1 += 1;
        held.0.clone()
    }

    fn let_go(&mut self, node: NodeId) {
        if let Some(held) = self.ciphers.get_mut(&node) {
            held.1 -= 1;
            if held.1 == 0 {
                self.ciphers.remove(&node);
            }
        }
    }
}

impl Crypt {
    /// Puts the layer over a volume that is encrypted, or over an empty one, which it makes
    /// encrypted. Each later try of a passphrase for that costs `cost`.
    ///
    /// # Errors
    /// `Invalid` over a volume that is neither encrypted nor empty; `ReadOnly` over an empty one
    /// that takes no changes; `Unsupported` for a header of another version, or a cost out of
    /// range; `NotPermitted` for a wrong passphrase; `Corrupt`; those of `outside`.
    pub fn new(
        below: Fs,
        outside: Arc<dyn Outside>,
        passphrase: &[u8],
        cost: CryptCost,
    ) -> Result<Self> {
        let (cred, cancel) = (Cred::root(), Cancel::new());
        let cx = Ctx {
            cred: &cred,
            now: below_now(&below, &cred, &cancel)?,
            cancel: &cancel,
        };
        let root = below.root();
        let found = dirs::read_file(&below, &cx, root, dirs::HEADER_NAME, keys::HEADER_LEN + 1)?;
        let keys = match found {
            Some(header) => Keys::open(&*outside, passphrase, &header)?,
            None => make(&below, &cx, &*outside, passphrase, cost)?,
        };
        Ok(Self {
            below,
            keys,
            outside,
            dirs: Dirs::new(),
            changing: RwLock::default(),
            files: Mutex::default(),
        })
    }

    /// Returns whether the volume below is encrypted already.
    ///
    /// # Errors
    /// Those of the volume below.
    pub(crate) fn is_made(below: &Fs) -> Result<bool> {
        let (cred, cancel) = (Cred::root(), Cancel::new());
        let cx = Ctx {
            cred: &cred,
            now: below_now(below, &cred, &cancel)?,
            cancel: &cancel,
        };
        let found = dirs::read_file(
            below,
            &cx,
            below.root(),
            dirs::HEADER_NAME,
            keys::HEADER_LEN + 1,
        )?;
        Ok(found.is_some())
    }

    fn id(&self, cx: &Ctx<'_>, dir: NodeId) -> Result<Option<DirId>> {
        self.dirs.find(&self.below, cx, dir)
    }

    /// Returns a name as it is stored below.
    ///
    /// # Errors
    /// `NotFound` if the directory has no id, and so no entries.
    fn sealed(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Vec<u8>> {
        let id = self.id(cx, dir)?.ok_or(Kind::NotFound)?;
        names::seal(&self.keys, &id, name.as_bytes())
    }

    /// Returns the stored form of a name for a new entry; a directory without an id gets one.
    ///
    /// # Errors
    /// `NameTooLong`.
    fn to_make(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Vec<u8>> {
        let id = match self.id(cx, dir)? {
            Some(id) => id,
            None => self.give_id(cx, dir)?,
        };
        let sealed = names::seal(&self.keys, &id, name.as_bytes())?;
        if sealed.len() > usize::from(self.below.caps().name_max) {
            return Err(Kind::NameTooLong.into());
        }
        Ok(sealed)
    }

    fn give_id(&self, cx: &Ctx<'_>, dir: NodeId) -> Result<DirId> {
        let mut id = [0; 16];
        self.outside.random(&mut id)?;
        self.put_id(cx, dir, id)?;
        Ok(id)
    }

    /// Stores a directory's id in a file of the directory's owner, readable by all.
    fn put_id(&self, cx: &Ctx<'_>, dir: NodeId, id: DirId) -> Result<()> {
        let set = if self.below.caps().has(Caps::MODES) {
            let attr = self.below.getattr(cx, dir)?;
            SetAttr::owned(0o644, attr.uid, attr.gid)
        } else {
            SetAttr::default()
        };
        self.dirs.give(&self.below, cx, dir, id, &set)
    }

    fn shown(&self, mut attr: Attr) -> Attr {
        match attr.kind {
            FileKind::File => attr.size = blocks::size_of(attr.size),
            FileKind::Symlink => attr.size = names::target_len(attr.size),
            _ => {}
        }
        attr
    }

    fn shown_entry(&self, entry: Entry) -> Entry {
        Entry {
            attr: self.shown(entry.attr),
            ..entry
        }
    }

    fn opened(&self, open: OpenId, node: NodeId) {
        let mut files = self.files.lock();
        files.opens.insert(open, node);
        files.hold(node);
    }

    /// # Errors
    /// `Stale` for an open that was not made through this layer.
    fn node_of(&self, open: OpenId) -> Result<NodeId> {
        let node = self.files.lock().opens.get(&open).copied();
        node.ok_or_else(|| Kind::Stale.into())
    }

    /// Calls `act` on the content of an open file.
    fn with_open<T>(
        &self,
        cx: &Ctx<'_>,
        open: OpenId,
        act: impl FnOnce(&Content<'_>) -> Result<T>,
    ) -> Result<T> {
        let node = self.node_of(open)?;
        let cipher = self.files.lock().hold(node);
        let done = act(&Content {
            fs: &self.below,
            keys: &self.keys,
            cx,
            node,
            open,
            cipher: &cipher,
        });
        self.files.lock().let_go(node);
        done
    }

    /// Calls `act` on a file's content, through an open of its own.
    fn with_node<T>(
        &self,
        cx: &Ctx<'_>,
        node: NodeId,
        act: impl FnOnce(&Content<'_>) -> Result<T>,
    ) -> Result<T> {
        let open = self.below.open(cx, node, Mode::ReadWrite)?;
        self.opened(open, node);
        let done = self.with_open(cx, open, act);
        let closed = self.close_open(cx, open);
        let done = done?;
        closed.map(|()| done)
    }

    fn close_open(&self, cx: &Ctx<'_>, open: OpenId) -> Result<()> {
        let answer = self.below.close(cx, open);
        let mut files = self.files.lock();
        if let Some(node) = files.opens.remove(&open) {
            files.let_go(node);
        }
        answer
    }

    /// Makes a call that removes or replaces a directory. If the volume answers `NotEmpty`, repeats
    /// the call with the directory's id file removed, in case that is all it holds.
    fn without_id(&self, cx: &Ctx<'_>, dir: NodeId, call: impl Fn() -> Result<()>) -> Result<()> {
        match call() {
            Err(e) if e == Kind::NotEmpty => {}
            answer => return answer,
        }
        let id = self.dirs.take(&self.below, cx, dir)?;
        let answer = call();
        if answer.is_err() {
            self.put_id(cx, dir, id)?;
        }
        answer
    }

    fn list(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        let id = self.id(cx, self.node_of(dir)?)?;
        volary_core::map_listing(&self.below, cx, dir, from, out, |entry| {
            let name = id.and_then(|id| names::open(&self.keys, &id, entry.name));
            let name = name.filter(|name| Name::new(name).is_ok());
            Ok(name.map(|name| {
                let mut shown = volary_core::Shown::renamed(entry, name);
                shown.attr = shown.attr.map(|attr| self.shown(attr));
                shown
            }))
        })
    }
}

/// Turns an empty volume into an encrypted one.
fn make(
    below: &Fs,
    cx: &Ctx<'_>,
    outside: &dyn Outside,
    passphrase: &[u8],
    cost: CryptCost,
) -> Result<Keys> {
    let root = below.root();
    let open = below.open(cx, root, Mode::Read)?;
    let mut out = DirBuf::new(4, 4096, false);
    let end = below.readdir(cx, open, Cookie::START, &mut out);
    below.close(cx, open)?;
    let mut names = out.iter().map(|entry| entry.name);
    // An id file left by an interrupted first attachment does not count as content.
    if !end? || names.any(|name| name != dirs::ID_NAME && name != b"lost+found") {
        let words = "layer crypt: the volume is not encrypted; it can be made so while it is empty";
        return Err(Error::note(Kind::Invalid, words));
    }
    if !below.caps().has(Caps::WRITE) {
        return Err(Kind::ReadOnly.into());
    }
    let set = if below.caps().has(Caps::MODES) {
        SetAttr::owned(0o644, 0, 0)
    } else {
        SetAttr::default()
    };
    let (keys, header) = Keys::make(outside, passphrase, cost)?;
    let mut id = [0; 16];
    outside.random(&mut id)?;
    let dirs = Dirs::new();
    if dirs.find(below, cx, root)?.is_none() {
        dirs.give(below, cx, root, id, &set)?;
    }
    dirs::write_file(below, cx, root, dirs::HEADER_NAME, &header, &set)?;
    below.sync(cx)?;
    Ok(keys)
}

/// Returns a time for what the layer makes by itself: the root's last change, since no
/// caller has given one yet.
fn below_now(below: &Fs, cred: &Cred, cancel: &Cancel) -> Result<volary_core::Time> {
    let cx = Ctx {
        cred,
        now: volary_core::Time::EPOCH,
        cancel,
    };
    Ok(below.getattr(&cx, below.root())?.mtime)
}
