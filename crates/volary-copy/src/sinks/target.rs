//! Where copied nodes go: into an existing directory, or to a new name.

use crate::nodes::ids::{Id, Ids};
use crate::nodes::place::At;
use crate::told::failure::{Done, Failure, Why};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use volary_core::{FileKind, Kind, NodeId};
use volary_session::{Follow, PATH_MAX, Session};

/// Why a node that is there already is not written over: it is an open image.
pub(super) const OWN_IMAGE_WORDS: &str = "is the volume that is copied from; left as it is";

/// The same: it is what is to be copied.
pub(super) const ITSELF_WORDS: &str = "would be copied over itself";

/// The same: it is a symlink, which may lead out of the target.
pub(super) const SYMLINK_WORDS: &str = "is a symlink; not followed";

/// A directory of the host to write into. `name` is the name to write as, if the target is not an
/// existing directory.
pub(crate) struct HostTarget {
    pub(crate) dir: PathBuf,
    pub(crate) name: Option<Vec<u8>>,
    /// The path ends in a slash, so that the new name is only for a directory.
    pub(crate) is_for_dir: bool,
}

impl HostTarget {
    /// Returns the target for `count` origins that are copied to `path`.
    ///
    /// # Errors
    /// If several origins go elsewhere than into a directory, or if the path has no last name.
    pub(crate) fn of(path: &Path, count: usize) -> Done<Self> {
        if path.is_dir() {
            return Ok(Self {
                dir: path.into(),
                name: None,
                is_for_dir: false,
            });
        }
        let place = || path.display().to_string();
        if count > 1 {
            return Err(Failure::new(place(), Why::NoDirectory));
        }
        let Some(name) = path.file_name() else {
            return Err(Failure::host(place(), rustix::io::Errno::NOENT));
        };
        let bytes = path.as_os_str().as_bytes();
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
        Ok(Self {
            dir: parent.unwrap_or(Path::new(".")).into(),
            name: Some(name.as_bytes().to_vec()),
            is_for_dir: bytes.ends_with(b"/") || bytes.ends_with(b"/."),
        })
    }
}

/// A directory of a volume to write into, its place, and the name to write as.
pub(crate) struct VolumeTarget {
    pub(crate) dir: NodeId,
    pub(crate) at: At,
    pub(crate) name: Option<Vec<u8>>,
    /// The path ends in a slash, so that the new name is only for a directory.
    pub(crate) is_for_dir: bool,
}

impl VolumeTarget {
    /// Returns the target for `count` origins that are copied to `at`.
    ///
    /// # Errors
    /// If several origins go elsewhere than into a directory; errors of the volume.
    pub(crate) fn of(session: &Session, at: &At, count: usize) -> Done<Self> {
        let fail = |e| Failure::at(at, e);
        match session.walk(&at.path, Follow::Yes) {
            Ok(found) if found.attr.kind == FileKind::Dir => Ok(Self {
                dir: found.node,
                at: at.clone(),
                name: None,
                is_for_dir: false,
            }),
            Ok(_) if count > 1 => Err(fail(Kind::NotDir.into())),
            Err(e) if e.kind() != Kind::NotFound => Err(fail(e)),
            Err(_) if count > 1 => Err(Failure::new(at.to_string(), Why::NoDirectory)),
            _ => {
                let (dir, name) = session.walk_parent(&at.path).map_err(fail)?;
                let end = at.path.iter().rposition(|b| *b != b'/');
                let end = end.map_or(0, |i| i + 1);
                let parent = at.path.get(..end - name.len().min(end)).unwrap_or_default();
                Ok(Self {
                    dir,
                    at: at.with_path(parent.to_vec()),
                    name: Some(name),
                    is_for_dir: at.path.ends_with(b"/"),
                })
            }
        }
    }

    /// Returns the directory and those above it in the volume.
    ///
    /// # Errors
    /// The volume's.
    pub(crate) fn dirs(&self, session: &Session, ids: Ids) -> Done<Vec<Id>> {
        let mut dir = self.dir;
        let mut found = vec![ids.of(dir)];
        // A path has at most this many steps.
        for _ in 0..PATH_MAX {
            let up = session.lookup(dir, b"..");
            let up = up.map_err(|e| Failure::at(&self.at, e))?.node;
            if up == dir {
                break;
            }
            dir = up;
            found.push(ids.of(dir));
        }
        Ok(found)
    }
}

/// Returns the name for a copy of a path of the host. `None` if only the directory's entries are
/// copied.
pub(crate) fn own_name(path: &Path) -> Option<Vec<u8>> {
    match path.as_os_str().as_bytes() {
        bytes if bytes.ends_with(b"/.") || bytes == b"." => None,
        _ => path.file_name().map(|n| n.as_bytes().to_vec()),
    }
}
