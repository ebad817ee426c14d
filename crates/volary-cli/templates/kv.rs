//! A key-value store as a volume: `driver-name:FILE` shows the key `a/b` as the file `a/b`. Adapt
//! [`Store`].
//!
//! The store of this template is a file with a line `KEY=VALUE` for each key. The volume follows it
//! as it changes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use volary::{Attach, Error, Fs, Kind, Needs, Result, Scheme, Time};
use volary_driver::readonly::{self, Entries, Item, Lazy};

/// Returns the scheme: `Registry::default().with(scheme())`.
pub fn scheme() -> Scheme {
    let needs = |file: &[u8]| Needs {
        reads: vec![OsStr::from_bytes(file).into()],
        ..Needs::default()
    };
    Scheme::new("driver-name", open)
        .help("FILE", "the keys of a file")
        .needs(needs)
}

fn open(file: &[u8], how: &Attach, _: Time) -> Result<Fs> {
    let store = Store(OsStr::from_bytes(file).into());
    // A store that is not there is told at once.
    store.all()?;
    Ok(readonly::attach_lazy("driver-name", store, how))
}

struct Store(PathBuf);

impl Store {
    /// Returns all keys with their values.
    fn all(&self) -> Result<Vec<(String, String)>> {
        let text = std::fs::read_to_string(&self.0).map_err(|e| {
            let kind = match e.kind() {
                std::io::ErrorKind::NotFound => Kind::NotFound,
                _ => Kind::Io,
            };
            Error::note(kind, e.to_string())
        })?;
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        Ok(pairs
            .map(|(key, value)| (key.into(), value.into()))
            .collect())
    }
}

impl Lazy for Store {
    /// The value, as it was when the file was opened.
    type File = String;

    fn list(&self, dir: &[u8]) -> Result<Entries<String>> {
        let dir = match dir {
            b"" => String::new(),
            dir => format!("{}/", String::from_utf8_lossy(dir)),
        };
        let mut found = Vec::new();
        for (key, value) in self.all()? {
            match key
                .strip_prefix(&dir)
                .map(|rest| rest.split_once('/').ok_or(rest))
            {
                Some(Ok((name, _))) => found.push((name.into(), Item::dir())),
                Some(Err(name)) => found.push((name.into(), Item::file(value.len() as u64, value))),
                None => {}
            }
        }
        match found.is_empty() && !dir.is_empty() {
            true => Err(Kind::NotFound.into()),
            false => Ok(found),
        }
    }

    fn read(&self, value: &String, offset: u64, buf: &mut [u8]) -> Result<()> {
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|at| value.as_bytes().get(at..));
        buf.copy_from_slice(
            rest.and_then(|rest| rest.get(..buf.len()))
                .ok_or(Kind::Stale)?,
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volary::{Cred, Follow, Mode, Registry, Volume, VolumeOptions};

    #[test]
    fn a_key_is_a_file() {
        let file = std::env::temp_dir().join(format!("driver-name-{}", std::process::id()));
        std::fs::write(&file, "a/b=some text\n").unwrap();
        let registry = Registry::default().with(scheme());
        let source = registry
            .source(format!("driver-name:{}", file.display()).as_bytes())
            .unwrap();
        let opened = registry
            .open_volume(&source, &Attach::default(), Time::EPOCH)
            .unwrap();
        let volume = Volume::new(opened.fs, VolumeOptions::new("test", || Time::EPOCH));
        let session = volume.session(Cred::root());
        let entry = session.walk(b"/a/b", Follow::Yes).unwrap();
        let open = session.open(entry.node, Mode::Read).unwrap();
        let mut buf = [0; 9];
        session.read(open, 0, &mut buf).unwrap();
        session.close(open).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(&buf, b"some text");
        assert!(
            registry
                .open_volume(&source, &Attach::default(), Time::EPOCH)
                .is_err()
        );
    }
}
