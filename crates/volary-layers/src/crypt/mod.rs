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

/// Keeps names, targets of symlinks and the content of files encrypted on what is
/// below.
///
/// The master key is made by chance when the layer is put over an empty volume
/// for the first time, and kept there in `.volary-crypt`, sealed under a
/// passphrase (Argon2id). Content is sealed in blocks of 4096 bytes by
/// XChaCha20-Poly1305 under a key of each file's own; names by AES-256-SIV, bound
/// to their directory, whose id is in its file `.volary-dir`. `keys`, `blocks`
/// and `names` have the layout.
///
/// # What is found out
/// Any changed bit of a sealed name, target or block (`Corrupt`; a name is not
/// shown); a block that was moved, within a file or to another; a file that was
/// cut to a length that it never had.
///
/// # What is not
/// Whoever can write below can put back what was there before (a block of the
/// same file, a file, a volume), take files away, exchange whole files under
/// their names, and blank whole blocks: zeros are a hole. Whoever can read below
/// sees the shape of the tree, sizes, times, owners and modes, which blocks change,
/// and which names in one directory are the same over time.
///
/// # What it changes
/// Adds [`Caps::CASE_SENSITIVE`], [`Caps::CASE_KEEPING`] and [`Caps::ANY_NAME`];
/// takes away [`Caps::EXTENTS`], [`Caps::PREALLOCATE`], [`Caps::XATTRS`] and
/// [`Caps::CRASH_SAFE`]: a crash may leave the blocks that were being
/// written unreadable. Names may be as long as fits in base 32 (143 bytes of
/// 255). Making, removing and renaming run one at a time, changes to one file too.
/// To write, the volume must let a file be read.
///
/// Put it low: above `subtree`, `idmap` and `munge=below`, below everything that
/// looks at names or content. A cache of directories belongs above it.
pub struct Crypt {
    below: Fs,
    keys: Keys,
    outside: Arc<dyn Outside>,
    dirs: Dirs,
    /// Held for reading while a name is looked up, for writing while one changes.
    changing: RwLock<()>,
    files: Mutex<Files>,
}

/// What is open; bounded by the opens below.
#[derive(Default)]
struct Files {
    opens: HashMap<OpenId, NodeId>,
    ciphers: HashMap<NodeId, (Arc<Cipher>, usize)>,
}

impl Files {
    /// Returns a file's cipher, which is kept until it was let go as often.
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
    /// Over a volume that is encrypted, or empty and then made so; trying a
    /// passphrase for it will cost `cost`.
    ///
    /// # Errors
    /// `Invalid` over a volume that holds something and is not encrypted;
    /// `ReadOnly` over an empty one that takes no changes; `NotPermitted` for a
    /// wrong passphrase; `Corrupt`; of the world outside.
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

    /// Returns whether what is below is encrypted already.
    ///
    /// # Errors
    /// Those of what is below.
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

    /// Returns a name as it is below, if the directory has an id.
    ///
    /// # Errors
    /// `NotFound`.
    fn sealed(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Vec<u8>> {
        let id = self.id(cx, dir)?.ok_or(Kind::NotFound)?;
        names::seal(&self.keys, &id, name.as_bytes())
    }

    /// Returns a name that is to be made; a directory without an id gets one.
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

    /// The id's file belongs to whom the directory does, and all may read it.
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
    /// `Stale` for an open that did not come from here.
    fn node_of(&self, open: OpenId) -> Result<NodeId> {
        let node = self.files.lock().opens.get(&open).copied();
        node.ok_or_else(|| Kind::Stale.into())
    }

    /// Does something with the content of an open file.
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

    /// Does something with a file's content through an open of its own.
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

    /// Does what the volume refuses with `NotEmpty` because of a directory's id
    /// alone, once more without it.
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

/// Makes an empty volume an encrypted one.
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
    // What was begun and not ended is no reason against it.
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
