//! What files are called: as the user named their source.

use std::os::unix::ffi::OsStrExt;
use volary::Source;
use volary::bulk::File;

/// What stands before the path of a file, for each source.
#[derive(Default)]
pub(super) struct Names(Vec<Before>);

enum Before {
    /// A directory of the host: files are called as programs of the host call them.
    Dir(Vec<u8>),
    /// A volume.
    Volume(Vec<u8>),
}

impl Names {
    pub(super) fn push(&mut self, source: &Source) {
        self.0.push(match source {
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

    /// What a file is called; its bytes as they are.
    pub(super) fn of(&self, file: &File<'_>) -> Vec<u8> {
        let before = self.0.get(file.source);
        match before {
            Some(Before::Dir(dir) | Before::Volume(dir)) => [dir, file.path].concat(),
            None => file.path.to_vec(),
        }
    }

    /// The same within its source, without a slash before it: as an archive calls it.
    pub(super) fn within<'a>(&self, file: &File<'a>) -> &'a [u8] {
        file.path.strip_prefix(b"/").unwrap_or(file.path)
    }
}
