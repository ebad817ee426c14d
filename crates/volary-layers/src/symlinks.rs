//! Follows symlinks for clients that cannot.

use parking_lot::Mutex;
use std::collections::HashMap;
use volary_core::{
    Access, Attr, Caps, Cookie, Create, Ctx, DirBuf, Entry, Error, FileKind, Fs, Kind, Layer, Mode,
    Name, NodeId, OpenId, Result, SetAttr, Shown, map_listing,
};

/// Shows the target of each symlink in its place, for servers and clients that do not support
/// symlinks.
///
/// A look-up follows symlinks to their end: at most [`LINKS_MAX`] (`SymlinkLoop`), and only within
/// the volume. An absolute target begins at the volume's root, and `..` does not leave it. The
/// caller needs search access on every directory on the way (`Access`). A dangling symlink is left
/// out of listings, and looking it up answers `NotFound`; its name is taken all the same.
///
/// Removing and renaming act on the symlink, never on its target: `rmdir` removes a symlink to a
/// directory, `unlink` any other. Opening by `create` opens the target. A symlink to a parent
/// directory makes an endless tree, limited only by the length of paths.
///
/// Takes away [`Caps::SYMLINKS`]. Best on top; a `subtree` below limits what symlinks can reach.
pub struct Symlinks {
    below: Fs,
    /// The node of each open; bounded by the opens below.
    opens: Mutex<HashMap<OpenId, NodeId>>,
}

/// How many symlinks one look-up follows.
pub const LINKS_MAX: u32 = 40;

/// The longest target that is followed, in bytes.
const TARGET_MAX: usize = 4095;

impl Symlinks {
    /// Puts the layer over `below`.
    ///
    /// # Errors
    /// `Invalid` over a volume without symlinks.
    pub fn new(below: Fs) -> Result<Self> {
        if !below.caps().has(Caps::SYMLINKS) {
            let words = "layer symlinks: the volume has none to follow";
            return Err(Error::note(Kind::Invalid, words));
        }
        let opens = Mutex::default();
        Ok(Self { below, opens })
    }

    /// Returns the final target of an entry of `dir`.
    ///
    /// # Errors
    /// `NotFound`, `NotDir`, `Access`, `SymlinkLoop`, `NameTooLong`.
    fn follow(&self, cx: &Ctx<'_>, dir: NodeId, entry: Entry) -> Result<Entry> {
        if entry.attr.kind != FileKind::Symlink {
            return Ok(entry);
        }
        let mut walk = Walk {
            fs: &self.below,
            at: dir,
            links: 0,
            left: Vec::new(),
        };
        walk.enter(cx, entry.node)?;
        walk.run(cx)
    }

    /// Follows an entry as `follow` does; `None` if that fails.
    fn leads_to(&self, cx: &Ctx<'_>, dir: NodeId, entry: Entry) -> Option<Entry> {
        self.follow(cx, dir, entry).ok()
    }

    /// Returns the entry itself, if it is a symlink.
    fn link_at(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Option<Entry>> {
        match self.below.lookup(cx, dir, name) {
            Ok(entry) => Ok(Some(entry).filter(|e| e.attr.kind == FileKind::Symlink)),
            Err(e) if e == Kind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Opens the target of a symlink, as `create` does for an existing file.
    fn create_there(&self, cx: &Ctx<'_>, found: Entry, how: Create) -> Result<(Entry, OpenId)> {
        match (how, found.attr.kind) {
            (Create::New, _) => return Err(Kind::Exists.into()),
            (_, FileKind::Dir) => return Err(Kind::IsDir.into()),
            (_, FileKind::File) => {}
            _ => return Err(Kind::Invalid.into()),
        }
        let open = self.below.open(cx, found.node, Mode::ReadWrite)?;
        let attr = match how {
            Create::Truncate => self.below.setattr(cx, found.node, &SetAttr::size(0)),
            _ => self.below.getattr(cx, found.node),
        };
        match attr {
            Ok(attr) => Ok((Entry { attr, ..found }, open)),
            Err(e) => {
                self.below.close(cx, open)?;
                Err(e)
            }
        }
    }
}

/// A walk along symlinks.
struct Walk<'a> {
    fs: &'a Fs,
    at: NodeId,
    links: u32,
    /// Components still to be walked, the next one last.
    left: Vec<Vec<u8>>,
}

impl Walk<'_> {
    /// Continues the walk with the target of a symlink in the current directory.
    fn enter(&mut self, cx: &Ctx<'_>, link: NodeId) -> Result<()> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(Kind::SymlinkLoop.into());
        }
        let target = self.fs.readlink(cx, link)?;
        match target.first() {
            None => return Err(Kind::NotFound.into()),
            Some(b'/') => self.at = self.fs.root(),
            Some(_) => {}
        }
        if target.len() > TARGET_MAX {
            return Err(Kind::NameTooLong.into());
        }
        // A slash at the end requires a directory, which a final `.` checks.
        let parts = target.split(|&b| b == b'/').enumerate();
        let last = target.iter().filter(|&&b| b == b'/').count();
        let parts = parts.filter_map(|(n, part)| match part {
            [] if n < last || last == 0 => None,
            [] => Some(b".".to_vec()),
            part => Some(part.to_vec()),
        });
        let parts: Vec<_> = parts.collect();
        self.left.extend(parts.into_iter().rev());
        Ok(())
    }

    fn run(&mut self, cx: &Ctx<'_>) -> Result<Entry> {
        while let Some(part) = self.left.pop() {
            cx.check_cancel()?;
            let dir = self.searchable(cx)?;
            match part.as_slice() {
                b"." => {}
                b".." => self.at = self.fs.parent(cx, dir)?.node,
                name => {
                    let found = self.fs.lookup(cx, dir, Name::new(name)?)?;
                    match found.attr.kind {
                        FileKind::Symlink => self.enter(cx, found.node)?,
                        FileKind::Dir => self.at = found.node,
                        _ if self.left.is_empty() => return Ok(found),
                        _ => return Err(Kind::NotDir.into()),
                    }
                }
            }
        }
        let attr = self.fs.getattr(cx, self.at)?;
        Ok(Entry {
            node: self.at,
            attr,
        })
    }

    /// # Errors
    /// `Access`, which the session cannot check on the directories along a target.
    fn searchable(&self, cx: &Ctx<'_>) -> Result<NodeId> {
        let caps = self.fs.caps();
        if caps.has(Caps::CHECKS_ACCESS) {
            return Ok(self.at);
        }
        let attr: Attr = self.fs.getattr(cx, self.at)?;
        if volary_core::permits(&**self.fs, cx, &attr, Access::EXEC)? {
            Ok(self.at)
        } else {
            Err(Kind::Access.into())
        }
    }
}

impl Layer for Symlinks {
    fn below(&self) -> &Fs {
        &self.below
    }

    fn caps(&self) -> Caps {
        self.below.caps().without(Caps::SYMLINKS)
    }

    fn lookup(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let found = self.below.lookup(cx, dir, name)?;
        match self.follow(cx, dir, found) {
            Err(e) if e == Kind::NotDir => Err(Kind::NotFound.into()),
            found => found,
        }
    }

    fn readdir(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        let node = self.opens.lock().get(&dir).copied();
        let node = node.ok_or(Kind::Stale)?;
        map_listing(&self.below, cx, dir, from, out, |entry| {
            let mut shown = Shown::renamed(entry, entry.name.to_vec());
            if entry.kind != FileKind::Symlink {
                return Ok(Some(shown));
            }
            let Ok(attr) = self.below.getattr(cx, entry.node) else {
                return Ok(None);
            };
            let link = Entry {
                node: entry.node,
                attr,
            };
            Ok(self.leads_to(cx, node, link).map(|found| {
                (shown.node, shown.kind) = (found.node, found.attr.kind);
                shown.attr = Some(found.attr);
                shown
            }))
        })
    }

    fn create(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        let (entry, open) = match self.link_at(cx, dir, name)? {
            None => self.below.create(cx, dir, name, how, set)?,
            // The name is taken, even if its target does not exist.
            Some(_) if how == Create::New => return Err(Kind::Exists.into()),
            Some(link) => self.create_there(cx, self.follow(cx, dir, link)?, how)?,
        };
        self.opens.lock().insert(open, entry.node);
        Ok((entry, open))
    }

    fn symlink(&self, _: &Ctx<'_>, _: NodeId, _: Name<'_>, _: &[u8], _: &SetAttr) -> Result<Entry> {
        Err(Kind::Unsupported.into())
    }

    fn unlink(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        if let Some(link) = self.link_at(cx, dir, name)? {
            let target = self.leads_to(cx, dir, link);
            if target.is_some_and(|t| t.attr.kind == FileKind::Dir) {
                return Err(Kind::IsDir.into());
            }
        }
        self.below.unlink(cx, dir, name)
    }

    fn rmdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        let Some(link) = self.link_at(cx, dir, name)? else {
            return self.below.rmdir(cx, dir, name);
        };
        match self.leads_to(cx, dir, link) {
            Some(target) if target.attr.kind == FileKind::Dir => self.below.unlink(cx, dir, name),
            _ => Err(Kind::NotDir.into()),
        }
    }

    fn open(&self, cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        let open = self.below.open(cx, node, mode)?;
        self.opens.lock().insert(open, node);
        Ok(open)
    }

    fn close(&self, cx: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.opens.lock().remove(&open);
        self.below.close(cx, open)
    }
}
