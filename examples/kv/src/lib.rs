//! The keys of a file as a volume: `kv:config` shows the line `a/b=text` of the file `config` as the file `a/b`. The
//! volume follows the file as it changes.
#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use volary::{Attach, Error, Fs, Kind, Needs, Result, Scheme, Time};
use volary_driver::readonly::{self, Entries, Item, Lazy};

/// Returns the scheme.
pub fn scheme() -> Scheme {
    let needs = |file: &[u8]| Needs {
        reads: vec![path(file)],
        ..Needs::default()
    };
    Scheme::new("kv", open)
        .help("FILE", "the lines KEY=VALUE of a file")
        .needs(needs)
}

fn path(file: &[u8]) -> PathBuf {
    OsStr::from_bytes(file).into()
}

fn open(file: &[u8], how: &Attach, _: Time) -> Result<Fs> {
    let keys = Keys(path(file));
    keys.lines()?;
    Ok(readonly::attach_lazy("kv", keys, how))
}

/// A file with a key and a value in each line.
struct Keys(PathBuf);

impl Keys {
    /// Returns the file's text.
    fn lines(&self) -> Result<String> {
        std::fs::read_to_string(&self.0).map_err(|e| {
            let kind = match e.kind() {
                std::io::ErrorKind::NotFound => Kind::NotFound,
                std::io::ErrorKind::PermissionDenied => Kind::Access,
                _ => Kind::Io,
            };
            Error::note(kind, e.to_string())
        })
    }
}

impl Lazy for Keys {
    /// The value as it was when the file was opened.
    type File = Box<[u8]>;

    fn list(&self, dir: &[u8]) -> Result<Entries<Self::File>> {
        let text = self.lines()?;
        let mut all = Vec::new();
        for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
            let below = match dir {
                b"" => Some(key.as_bytes()),
                dir => key
                    .as_bytes()
                    .strip_prefix(dir)
                    .and_then(|rest| rest.strip_prefix(b"/")),
            };
            let Some(below) = below else { continue };
            all.push(match below.iter().position(|&b| b == b'/') {
                Some(end) => (below[..end].to_vec(), Item::dir()),
                None => (
                    below.to_vec(),
                    Item::file(value.len() as u64, value.as_bytes().into()),
                ),
            });
        }
        match all.is_empty() && !dir.is_empty() {
            true => Err(Kind::NotFound.into()),
            false => Ok(all),
        }
    }

    fn read(&self, value: &Self::File, offset: u64, buf: &mut [u8]) -> Result<()> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = value.get(from..).and_then(|rest| rest.get(..buf.len()));
        buf.copy_from_slice(bytes.ok_or(Kind::Stale)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volary::Registry;
    use volary_testkit::{Fresh, Suite};

    #[test]
    fn the_keys_of_a_file_are_a_volume() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config");
        std::fs::write(&file, "a/b=deep\na/c=\nno key\nname=value\n").unwrap();
        let registry = Registry::default().with(scheme());
        let text = format!("kv:{}", file.display());
        let make = move || {
            let source = registry.source(text.as_bytes()).unwrap();
            let opened = registry.open_volume(&source, &Attach::default(), Time::EPOCH);
            Fresh::new(opened.unwrap().fs)
        };
        assert!(Suite::new("kv", make).run().passed.len() > 10);
    }

    #[test]
    fn a_file_that_is_not_there_is_told() {
        let e = open(b"/no/such/file", &Attach::default(), Time::EPOCH)
            .err()
            .unwrap();
        assert_eq!(e, Kind::NotFound);
    }
}
