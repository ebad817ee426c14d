//! The ids of directories: each is in a small hidden file in its directory.

use super::names::DirId;
use crate::bounded::Bounded;
use parking_lot::Mutex;
use volary_core::{
    Cookie, Create, Ctx, DirBuf, Error, FileKind, Fs, Kind, Mode, Name, NodeId, OpenId, Result,
    SetAttr,
};

/// The file that holds a directory's id. No sealed name holds a dot.
pub(super) const ID_NAME: &[u8] = b".volary-dir";
/// The file in the root that holds the volume's header.
pub(super) const HEADER_NAME: &[u8] = b".volary-crypt";

/// How many ids are cached.
const IDS_MAX: usize = 1 << 16;

/// The cached ids.
pub(super) struct Dirs(Mutex<Bounded<NodeId, DirId>>);

impl Dirs {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Bounded::new(IDS_MAX, |_| 1)))
    }

    /// Returns the id of a directory, or `None` if it has none.
    ///
    /// # Errors
    /// `Corrupt` for an id of a wrong length.
    pub(super) fn find(&self, fs: &Fs, cx: &Ctx<'_>, dir: NodeId) -> Result<Option<DirId>> {
        if let Some(id) = self.0.lock().get(&dir) {
            return Ok(Some(*id));
        }
        let Some(bytes) = read_file(fs, cx, dir, ID_NAME, 17)? else {
            return Ok(None);
        };
        let id: DirId = bytes.as_slice().try_into().map_err(|_| {
            let found = format!("{} bytes", bytes.len());
            Error::corrupt("directory id", 0, found, "16 bytes")
        })?;
        self.0.lock().insert(dir, id);
        Ok(Some(id))
    }

    /// Stores an id in a directory.
    pub(super) fn give(
        &self,
        fs: &Fs,
        cx: &Ctx<'_>,
        dir: NodeId,
        id: DirId,
        set: &SetAttr,
    ) -> Result<()> {
        write_file(fs, cx, dir, ID_NAME, &id, set)?;
        self.0.lock().insert(dir, id);
        Ok(())
    }

    /// Removes the id of a directory that holds nothing else, so that the volume finds it empty.
    /// Returns the id, so that it can be restored.
    ///
    /// # Errors
    /// `NotEmpty` if there are other entries, or no id.
    pub(super) fn take(&self, fs: &Fs, cx: &Ctx<'_>, dir: NodeId) -> Result<DirId> {
        let not_empty = || Error::from(Kind::NotEmpty);
        let id = self.find(fs, cx, dir)?.ok_or_else(not_empty)?;
        if !holds_only_id(fs, cx, dir)? {
            return Err(not_empty());
        }
        fs.unlink(cx, dir, Name::new(ID_NAME)?)?;
        self.0.lock().remove(&dir);
        Ok(id)
    }
}

fn holds_only_id(fs: &Fs, cx: &Ctx<'_>, dir: NodeId) -> Result<bool> {
    let open = fs.open(cx, dir, Mode::Read)?;
    let mut out = DirBuf::new(3, 4096, false);
    let end = fs.readdir(cx, open, Cookie::START, &mut out);
    fs.close(cx, open)?;
    Ok(end? && out.len() == 1 && out.iter().all(|entry| entry.name == ID_NAME))
}

/// Returns the content of a small file, at most `max` bytes, or `None` if it does not exist.
pub(super) fn read_file(
    fs: &Fs,
    cx: &Ctx<'_>,
    dir: NodeId,
    name: &[u8],
    max: usize,
) -> Result<Option<Vec<u8>>> {
    let found = match fs.lookup(cx, dir, Name::new(name)?) {
        Err(e) if e == Kind::NotFound => return Ok(None),
        found => found?,
    };
    if found.attr.kind != FileKind::File {
        return Ok(None);
    }
    let open = fs.open(cx, found.node, Mode::Read)?;
    let mut bytes = vec![0; max];
    let got = fs.read(cx, open, 0, &mut bytes);
    fs.close(cx, open)?;
    bytes.truncate(got?);
    Ok(Some(bytes))
}

/// Makes a small file, and removes it again if that fails.
pub(super) fn write_file(
    fs: &Fs,
    cx: &Ctx<'_>,
    dir: NodeId,
    name: &[u8],
    bytes: &[u8],
    set: &SetAttr,
) -> Result<()> {
    let name = Name::new(name)?;
    let (_, open) = fs.create(cx, dir, name, Create::New, set)?;
    let written = fs.write(cx, open, Some(0), bytes);
    let done = written.and_then(|_| fs.fsync(cx, open, false));
    let done = end(fs, cx, open, done);
    if done.is_err() {
        let _ = fs.unlink(cx, dir, name);
    }
    done
}

fn end(fs: &Fs, cx: &Ctx<'_>, open: OpenId, done: Result<()>) -> Result<()> {
    let closed = fs.close(cx, open);
    done.and(closed)
}
