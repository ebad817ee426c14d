//! Replacing an entry by a new node, where one call cannot do it.

use crate::session::Session;
use volary_core::{Error, FileKind, Kind, NodeId, RenameFlags, Result};

/// How many spare names are tried.
const SPARES_MAX: u32 = 100;

impl Session {
    /// Replaces an entry that is not a directory by what `make` makes under its name. The old entry is
    /// renamed first, to `~` and a number; it is removed when `make` succeeds and renamed back when it
    /// fails. A crash may leave it under the spare name. Calls only `make` if the name is free.
    ///
    /// # Errors
    /// `IsDir`; those of [`rename`](Self::rename); `Exists` if all spare names are taken; those of
    /// `make`; those of [`unlink`](Self::unlink).
    pub fn replacing<T, E: From<Error>>(
        &self,
        dir: NodeId,
        name: &[u8],
        make: impl FnOnce() -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        match self.lookup(dir, name) {
            Ok(there) if there.attr.kind == FileKind::Dir => Err(Error::from(Kind::IsDir).into()),
            _ => self.replacing_any(dir, name, make),
        }
    }

    /// As [`replacing`](Self::replacing), of an empty directory as well.
    ///
    /// # Errors
    /// As [`replacing`](Self::replacing), but `NotEmpty` for a directory that is not empty, in place of
    /// `IsDir`.
    pub fn replacing_any<T, E: From<Error>>(
        &self,
        dir: NodeId,
        name: &[u8],
        make: impl FnOnce() -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let spare = match self.put_aside(dir, name) {
            Ok(spare) => spare,
            Err(e) if e == Kind::NotFound => return make(),
            Err(e) => return Err(e.into()),
        };
        let made = make().and_then(|made| {
            let removed = self.remove_any(dir, &spare);
            let undone = |e| self.remove_any(dir, name).and(Err(e));
            removed.or_else(undone).map(|()| made).map_err(E::from)
        });
        if made.is_err() {
            self.rename(dir, &spare, dir, name, RenameFlags::KEEP)?;
        }
        made
    }

    /// Renames an entry to a free spare name, and returns that.
    fn put_aside(&self, dir: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        for number in 0..SPARES_MAX {
            let spare = format!("~{number}").into_bytes();
            match self.rename(dir, name, dir, &spare, RenameFlags::KEEP) {
                Ok(()) => return Ok(spare),
                Err(e) if e == Kind::Exists => {}
                Err(e) => return Err(e),
            }
        }
        Err(Kind::Exists.into())
    }

    fn remove_any(&self, dir: NodeId, name: &[u8]) -> Result<()> {
        match self.lookup(dir, name)?.attr.kind {
            FileKind::Dir => self.rmdir(dir, name),
            _ => self.unlink(dir, name),
        }
    }
}
