//! Where copied nodes go: into an existing directory, or to a new name.

use crate::nodes::place::{At, VolumePlace};
use crate::told::failure::{Done, Failure, Why};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use volary_core::{FileKind, Kind, NodeId};
use volary_session::{Follow, PATH_MAX, Session};

/// A directory of the host to write into. `name` is the name to write as, if the target is not an
/// existing directory.
pub(crate) struct HostTarget {
    pub(crate) dir: PathBuf,
    pub(crate) name: Option<Vec<u8>>,
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
            });
        }
        let place = || path.display().to_string();
        if count > 1 {
            return Err(Failure::new(place(), Why::NoDirectory));
        }
        let Some(name) = path.file_name() else {
            return Err(Failure::host(place(), rustix::io::Errno::NOENT));
        };
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
        Ok(Self {
            dir: parent.unwrap_or(Path::new(".")).into(),
            name: Some(name.as_bytes().to_vec()),
        })
    }
}

/// A directory of a volume to write into, its place, and the name to write as.
pub(crate) struct VolumeTarget {
    pub(crate) dir: NodeId,
    pub(crate) at: At,
    pub(crate) name: Option<Vec<u8>>,
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
                })
            }
        }
    }

    /// Refuses to copy a directory into itself, as that would never end.
    ///
    /// # Errors
    /// `IntoItself`, or the volume's.
    pub(crate) fn refuse(&self, from: &VolumePlace, session: &Session) -> Done {
        let at = from.at();
        let Ok(source) = session.walk(&at.path, Follow::Yes) else {
            return Ok(());
        };
        let mut dir = self.dir;
        // A path has at most this many steps.
        for _ in 0..PATH_MAX {
            if dir == source.node {
                return Err(Failure::new(at.to_string(), Why::IntoItself));
            }
            let up = session.lookup(dir, b"..");
            let up = up.map_err(|e| Failure::at(&at, e))?.node;
            if up == dir {
                break;
            }
            dir = up;
        }
        Ok(())
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
