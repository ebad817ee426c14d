//! What files are called: as the user named their source.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use volary::Source;
use volary::bulk::File;

/// What stands before the path of a file, for each source.
#[derive(Default)]
pub(super) struct Names {
    before: Vec<Before>,
    /// The directory of each source in an archive.
    dirs: Vec<Vec<u8>>,
}

enum Before {
    /// A directory of the host: files are called as programs of the host call them.
    Dir(Vec<u8>),
    /// A volume.
    Volume(Vec<u8>),
}

impl Names {
    pub(super) fn push(&mut self, source: &Source) {
        self.dirs.push(self.new_dir(source));
        self.before.push(match source {
            Source::Host { path } => {
                let mut dir = path.as_os_str().as_bytes();
                while let Some(rest) = dir.strip_suffix(b"/") {
                    dir = rest;
                }
                Before::Dir(dir.to_vec())
            }
            source => Before::Volume(format!("{source}:").into_bytes()),
        });
    }

    /// Returns what a file is called; its bytes as they are.
    pub(super) fn of(&self, file: &File<'_>) -> Vec<u8> {
        let before = self.before.get(file.source);
        match before {
            Some(Before::Dir(dir) | Before::Volume(dir)) => [dir, file.path].concat(),
            None => file.path.to_vec(),
        }
    }

    /// Returns the path on the host, if the source is a directory of the host.
    pub(super) fn on_host(&self, file: &File<'_>) -> Option<PathBuf> {
        let is_of_host = matches!(self.before.get(file.source), Some(Before::Dir(_)));
        is_of_host.then(|| OsString::from_vec(self.of(file)).into())
    }

    /// Returns the name in an archive: the path within the source, without a leading slash. With several
    /// sources, the directory of the source comes before it.
    pub(super) fn within(&self, file: &File<'_>) -> Vec<u8> {
        let path = file.path.strip_prefix(b"/").unwrap_or(file.path);
        match self.dirs.get(file.source) {
            Some(dir) if self.dirs.len() > 1 && path.is_empty() => dir.clone(),
            Some(dir) if self.dirs.len() > 1 => [dir, &b"/"[..], path].concat(),
            _ => path.to_vec(),
        }
    }

    /// Returns a directory that no other source has: the name of the image or directory, with a number if
    /// that is taken.
    fn new_dir(&self, source: &Source) -> Vec<u8> {
        let path = match source {
            Source::Host { path } | Source::Image { path, .. } => path.file_name(),
            _ => None,
        };
        let name = path.map_or(&b"source"[..], |name| name.as_bytes());
        let mut dir = name.to_vec();
        let mut number = 1;
        while self.dirs.contains(&dir) {
            number += 1;
            dir = [name, format!(".{number}").as_bytes()].concat();
        }
        dir
    }
}
