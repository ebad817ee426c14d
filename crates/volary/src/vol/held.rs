//! [`Held`]: the attached volume that the clones of a [`Vol`](crate::Vol) share.

use super::error::{VolError, VolResult};
use super::options::VolOptions;
use crate::Source;
use std::fmt;
use std::sync::Arc;
use volary_core::{
    Attr, BlockDevice, Cred, Entry, Error, FileKind, Fs, Kind, Mode, NodeId, Result, SetAttr,
    escape,
};
use volary_session::{Follow, Session, Volume, VolumeOptions};

/// The most memory reserved at once for a file: the size that a damaged volume claims can be
/// anything.
const RESERVED_MAX: u64 = 16 << 20;

/// An attached volume, with its holder's session. Dropping it detaches the volume.
pub(super) struct Held {
    pub(super) source: Source,
    /// The file system below the session.
    #[cfg_attr(not(feature = "layers"), expect(dead_code, reason = "for layers"))]
    pub(super) fs: Fs,
    pub(super) volume: Arc<Volume>,
    pub(super) session: Session,
    /// The device to which its extents refer; `None` under layers.
    #[cfg_attr(
        not(any(feature = "bulk", feature = "copy")),
        expect(dead_code, reason = "for bulk reads and copies")
    )]
    pub(super) device: Option<Arc<dyn BlockDevice>>,
    pub(super) options: VolOptions,
    /// Another `Held` will detach the volume.
    is_passed_on: bool,
}

impl Held {
    pub(super) fn new(
        source: Source,
        fs: Fs,
        device: Option<Arc<dyn BlockDevice>>,
        options: VolOptions,
    ) -> Self {
        let how = VolumeOptions {
            commit: options.commit,
            ..VolumeOptions::new(source.to_string(), options.clock)
        };
        let volume = Volume::new(fs.clone(), how);
        let session = volume.trusted_session(Cred::root());
        Self {
            session: session.with_umask(options.umask),
            source,
            fs,
            volume,
            device,
            options,
            is_passed_on: false,
        }
    }

    /// Returns an error of the volume as a whole.
    pub(super) fn failed(&self, doing: &'static str, e: Error) -> VolError {
        VolError::new(doing, &self.source, e)
    }

    /// Returns an error at a path.
    pub(super) fn failed_at(&self, doing: &'static str, path: &[u8], e: Error) -> VolError {
        let slash = if path.starts_with(b"/") { "" } else { "/" };
        let place = format!("{}:{slash}{}", self.source, escape(path));
        VolError::new(doing, place, e)
    }

    /// Runs `work` on the node at a path; adds the place to an error.
    pub(super) fn at<T>(
        &self,
        doing: &'static str,
        path: &[u8],
        work: impl Fn() -> Result<T>,
    ) -> VolResult<T> {
        whatever_goes_meanwhile(work).map_err(|e| self.failed_at(doing, path, e))
    }

    /// Returns the attributes of the node at a path.
    pub(super) fn look(&self, path: &[u8], follow: Follow) -> VolResult<Attr> {
        self.at("find", path, || Ok(self.walk(path, follow)?.attr))
    }

    /// Returns the node at a path. The empty path is the root.
    ///
    /// # Errors
    /// As [`Session::walk`].
    pub(super) fn walk(&self, path: &[u8], follow: Follow) -> Result<Entry> {
        let path = if path.is_empty() { b"/" } else { path };
        self.session.walk(path, follow)
    }

    /// Returns the directory of a path's last name, and that name.
    ///
    /// # Errors
    /// As [`Session::walk_parent`]; `Busy` for the root, which has no name.
    pub(super) fn parent(&self, path: &[u8]) -> Result<(NodeId, Vec<u8>)> {
        if path.iter().all(|&b| b == b'/') {
            let words = "this is the root of the volume";
            return Err(Error::note(Kind::Busy, words));
        }
        self.session.walk_parent(path)
    }

    /// Returns the attributes of new files. The session clears the umask's bits.
    pub(super) fn new_file(&self) -> SetAttr {
        self.owned(0o666)
    }

    pub(super) fn new_dir(&self) -> SetAttr {
        self.owned(0o777)
    }

    pub(super) fn new_symlink(&self) -> SetAttr {
        self.owned(0o777)
    }

    fn owned(&self, mode: u32) -> SetAttr {
        SetAttr::owned(mode, self.options.uid, self.options.gid)
    }

    /// Returns the content of a file.
    ///
    /// # Errors
    /// `NotFound`, `IsDir`, `TooBig`; the driver's.
    pub(super) fn read_whole(&self, path: &[u8]) -> Result<Vec<u8>> {
        let attr = self.walk(path, Follow::Yes)?.attr;
        if attr.kind == FileKind::Dir {
            return Err(Kind::IsDir.into());
        }
        let open = self.session.open_seen(&attr, None, Mode::Read)?;
        let read = self.read_to_end(open, attr.size);
        self.session.close(open)?;
        read
    }

    /// Reads to the end. Allocates memory as bytes come, as a damaged volume may claim any size.
    fn read_to_end(&self, open: volary_core::OpenId, size: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut have = 0;
        loop {
            let step = (size.saturating_sub(have as u64)).clamp(1, RESERVED_MAX.max(have as u64));
            let step = usize::try_from(step).unwrap_or(usize::MAX);
            let room = bytes.try_reserve_exact(step);
            room.map_err(|_| Error::note(Kind::TooBig, "memory does not suffice for all of it"))?;
            bytes.resize(have + step, 0);
            let part = bytes.get_mut(have..).unwrap_or_default();
            let read = self.session.read(open, have as u64, part)?;
            have += read;
            if read < step {
                bytes.truncate(have);
                return Ok(bytes);
            }
        }
    }

    /// Puts the layers from the options over the volume.
    ///
    /// # Errors
    /// As [`Vol::layer`](crate::Vol::layer); the volume is then detached.
    #[cfg(feature = "layers")]
    pub(super) fn under_all(mut self) -> Result<Self> {
        let options = self.options.clone();
        let mut fs = self.fs.clone();
        for spec in options.layers() {
            fs = options.under(fs, spec)?;
        }
        if options.layers().is_empty() {
            return Ok(self);
        }
        self.is_passed_on = true;
        Ok(Self::new(self.source.clone(), fs, None, options))
    }

    #[cfg(not(feature = "layers"))]
    pub(super) fn under_all(self) -> Result<Self> {
        match self.options.layers().is_empty() {
            true => Ok(self),
            false => Err(crate::absent("a layer", "layers")),
        }
    }

    /// Puts a layer over the volume, which has no other handle.
    ///
    /// # Errors
    /// As [`Vol::layer`](crate::Vol::layer).
    #[cfg(feature = "layers")]
    pub(super) fn layered(mut self, spec: &str) -> VolResult<Self> {
        let fs = self.options.under(self.fs.clone(), spec);
        let fs = fs.map_err(|e| self.failed("layer", e))?;
        // The volume stays attached, under the layer.
        self.is_passed_on = true;
        Ok(Self::new(
            self.source.clone(),
            fs,
            None,
            self.options.clone(),
        ))
    }
}

/// How often a path is walked at most.
const WALKS_MAX: u32 = 16;

/// Runs `work` on the node at a path. Repeats it if another thread removed or replaced the node
/// meanwhile.
///
/// # Errors
/// Those of `work`; `Stale` if the volume is closed.
pub(super) fn whatever_goes_meanwhile<T>(work: impl Fn() -> Result<T>) -> Result<T> {
    for _ in 1..WALKS_MAX {
        match work() {
            Err(e) if e.kind() == Kind::Stale => {}
            done => return done,
        }
    }
    work()
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.is_passed_on {
            // To see this error, a program calls `close`.
            let _ = self.volume.detach();
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Vol")
            .field(&self.source.to_string())
            .finish()
    }
}
