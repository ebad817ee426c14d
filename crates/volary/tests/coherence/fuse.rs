//! The mount's process: this one.

use crate::op::{Answer, Name, No, PATHS, Seen};
use crate::world::dir_of;
use rustix::fs::{FlockOperation, fcntl_lock};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use volary::Volume;
use volary::fuse::{Checks, Locks, MountOptions, Mounted, Stop};

/// Returns whether this host can mount; says so if not.
pub(crate) fn can_mount() -> bool {
    let able = Path::new("/dev/fuse").exists() && rustix::process::geteuid().is_root();
    if !able {
        assert!(
            std::env::var_os("CI").is_none(),
            "no /dev/fuse, or no right to mount"
        );
        eprintln!("SKIPPED: no /dev/fuse, or no right to mount");
    }
    able
}

pub(crate) struct Fuse {
    held: BTreeMap<u64, File>,
    mounted: Mounted,
    _dir: TempDir,
}

fn no(error: &io::Error) -> No {
    match error
        .raw_os_error()
        .map(rustix::io::Errno::from_raw_os_error)
    {
        Some(rustix::io::Errno::NOENT) => No::NotFound,
        Some(rustix::io::Errno::EXIST) => No::Exists,
        Some(rustix::io::Errno::BUSY) => No::Sharing,
        Some(rustix::io::Errno::AGAIN) => No::Locked,
        Some(rustix::io::Errno::IO | rustix::io::Errno::ROFS) => No::Io,
        _ => panic!("through the mount: {error}"),
    }
}

fn done(result: io::Result<()>) -> Answer {
    result.map(|()| Seen::Nothing).map_err(|e| no(&e))
}

impl Fuse {
    pub(crate) fn new(volume: &Arc<Volume>, locks: Locks) -> Self {
        let options = MountOptions {
            checks: Checks::Session,
            locks,
            ..MountOptions::default()
        };
        let dir = TempDir::new().unwrap();
        let mounted = volary::fuse::serve(Arc::clone(volume), dir.path(), &options, Stop::Call);
        Self {
            held: BTreeMap::new(),
            mounted: mounted.unwrap(),
            _dir: dir,
        }
    }

    pub(crate) fn at(&self, name: Name) -> PathBuf {
        self.mounted.path().join(PATHS[name])
    }

    /// Returns the number of the node and its size, if there is one.
    pub(crate) fn seen(&self, name: Name) -> Option<(u64, u64)> {
        match fs::symlink_metadata(self.at(name)) {
            Ok(meta) => Some((meta.ino(), meta.size())),
            Err(e) => {
                assert_eq!(no(&e), No::NotFound, "looking at {}", PATHS[name]);
                None
            }
        }
    }

    fn open(&self, name: Name, how: &mut OpenOptions) -> Result<File, No> {
        how.open(self.at(name)).map_err(|e| no(&e))
    }

    pub(crate) fn create(&self, name: Name) -> Answer {
        let how = &mut OpenOptions::new();
        self.open(name, how.write(true).create_new(true))
            .map(|_| Seen::Nothing)
    }

    pub(crate) fn write(&self, name: Name, offset: u64, data: &[u8]) -> Answer {
        let file = self.open(name, OpenOptions::new().write(true))?;
        done(file.write_all_at(data, offset))
    }

    pub(crate) fn read(&self, name: Name) -> Answer {
        let file = self.open(name, OpenOptions::new().read(true))?;
        whole(&file)
    }

    pub(crate) fn resize(&self, name: Name, size: u64) -> Answer {
        let file = self.open(name, OpenOptions::new().write(true))?;
        done(file.set_len(size))
    }

    pub(crate) fn rename(&self, from: Name, to: Name) -> Answer {
        done(fs::rename(self.at(from), self.at(to)))
    }

    pub(crate) fn remove(&self, name: Name) -> Answer {
        done(fs::remove_file(self.at(name)))
    }

    pub(crate) fn list(&self, name: Name) -> Answer {
        let dir = self.mounted.path().join(dir_of(name));
        let entries = fs::read_dir(dir).map_err(|e| no(&e))?;
        let names = entries.map(|entry| {
            let entry = entry.map_err(|e| no(&e))?;
            Ok(entry.file_name().into_string().expect("UTF-8"))
        });
        let mut names = names.collect::<Result<Vec<String>, No>>()?;
        names.sort();
        Ok(Seen::Names(names))
    }

    pub(crate) fn hold(&mut self, name: Name, number: u64) -> Answer {
        let file = self.open(name, OpenOptions::new().read(true).write(true))?;
        self.held.insert(number, file);
        Ok(Seen::Nothing)
    }

    pub(crate) fn close(&mut self, number: u64) -> Answer {
        drop(self.held.remove(&number).expect("held"));
        Ok(Seen::Nothing)
    }

    pub(crate) fn held_read(&self, number: u64) -> Answer {
        whole(&self.held[&number])
    }

    pub(crate) fn held_write(&self, number: u64, offset: u64, data: &[u8]) -> Answer {
        done(self.held[&number].write_all_at(data, offset))
    }

    /// Returns all of the file.
    pub(crate) fn lock(&self, number: u64, alone: bool) -> Answer {
        let how = if alone {
            FlockOperation::NonBlockingLockExclusive
        } else {
            FlockOperation::NonBlockingLockShared
        };
        done(fcntl_lock(&self.held[&number], how).map_err(io::Error::from))
    }

    /// Waits for it, alone.
    pub(crate) fn lock_waiting(&self, number: u64) -> Answer {
        let how = FlockOperation::LockExclusive;
        done(fcntl_lock(&self.held[&number], how).map_err(io::Error::from))
    }

    pub(crate) fn unlock(&self, number: u64) -> Answer {
        let how = FlockOperation::NonBlockingUnlock;
        done(fcntl_lock(&self.held[&number], how).map_err(io::Error::from))
    }
}

fn whole(file: &File) -> Answer {
    let mut data = vec![0; 1 << 20];
    let mut len = 0;
    loop {
        match file.read_at(&mut data[len..], len as u64) {
            Ok(0) => break,
            Ok(count) => len += count,
            Err(e) => return Err(no(&e)),
        }
    }
    data.truncate(len);
    Ok(Seen::Data(data))
}
