//! Runs a script on a mounted volume, and kills its server.

use super::moment::killed_midway;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use volary_core::{BlockDevice, Error, Kind, Result, Time};
use volary_fuse::{MountOptions, Stop};
use volary_session::VolumeOptions;
use volary_sim::{Op, Ops, Progress, Volume};

type Words<T> = std::result::Result<T, String>;

/// The line that a server prints once its volume is mounted.
const MOUNTED: &str = "mounted";

/// The least size of a page of the kernel, in bytes.
pub(super) const PAGE: u64 = 4096;

/// Does what the killed process has to do: serves a volume on a directory. Calls `say` once it is
/// mounted.
///
/// # Errors
/// In words.
pub(super) fn serve(
    volume: &Volume,
    dev: Arc<dyn BlockDevice>,
    dir: &Path,
    say: &mut dyn FnMut(&str),
) -> Words<()> {
    let now = || Time::from_secs(1_700_000_000);
    let options = VolumeOptions::new(volume.name, now);
    let served = volary_session::Volume::new(volume.attach(dev)?, options);
    let mounted = volary_fuse::serve(served, dir, &MountOptions::default(), Stop::Call);
    let mounted = mounted.map_err(|e| e.to_string())?;
    say(MOUNTED);
    mounted.wait().map_err(|e| e.to_string())
}

/// Runs a script in the directory on which a process serves the volume. Kills the process at some
/// moment, at the end at the latest. Changes `script` to what was really done: a write that ran out
/// of space may have been done in part.
///
/// # Errors
/// Those of operations before that moment, in words.
pub(super) fn driven(
    volume: &Volume,
    process: &mut Child,
    dir: &Path,
    script: &mut Ops,
    seed: u64,
) -> Words<Progress> {
    let said = process.stdout.take().ok_or("it says nothing")?;
    let mut lines = BufReader::new(said).lines();
    if lines.next().and_then(io::Result::ok).as_deref() != Some(MOUNTED) {
        return Err("the volume could not be mounted".into());
    }
    let asked = script.clone();
    let act = |i, op: &Op, tag, _: &mut Progress| {
        let done = perform(dir, op, tag)?;
        if let (Some(part), Some(op)) = (done, script.0.get_mut(i)) {
            *op = part;
        }
        Ok(())
    };
    killed_midway(volume, process, &asked, seed, act, || ())
}

/// Does an operation as a program does; `tag` is that of the file concerned. Returns the part that
/// was done, if not all of it was.
fn perform(root: &Path, op: &Op, tag: u32) -> Result<Option<Op>> {
    let place = |path: &str| -> PathBuf { root.join(path.trim_start_matches('/')) };
    let write = |path: &str| OpenOptions::new().write(true).open(place(path));
    let done = match op {
        Op::Create(path) => File::create_new(place(path)).map(drop),
        Op::Mkdir(path) => fs::create_dir(place(path)),
        Op::Unlink(path) => fs::remove_file(place(path)),
        Op::Rmdir(path) => fs::remove_dir(place(path)),
        Op::Rename(from, to) => fs::rename(place(from), place(to)),
        Op::Write(path, at, len) => {
            let bytes = volary_sim::tree::content(tag, *len);
            let written = write(path).and_then(|file| written(&file, &bytes, *at));
            let written = written.map_err(|e| error(&e))?;
            return Ok((written < *len).then(|| Op::Write(path.clone(), *at, written)));
        }
        Op::Truncate(path, len) => write(path).and_then(|file| file.set_len(*len)),
        Op::Fsync(path) => File::open(place(path)).and_then(|file| file.sync_all()),
        // The kernel passes no other sync to a FUSE server.
        Op::Sync | Op::Detach => File::open(root).and_then(|dir| dir.sync_all()),
    };
    done.map(|()| None).map_err(|e| error(&e))
}

/// Writes bytes. If space runs out after some of them, returns how many were written.
fn written(file: &File, bytes: &[u8], at: u64) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
        match file.write_at(rest, at + done as u64) {
            Ok(0) => break,
            Ok(more) => done += more,
            Err(e) if done > 0 && e.kind() == io::ErrorKind::StorageFull => break,
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

fn error(e: &io::Error) -> Error {
    let kind = match e.kind() {
        io::ErrorKind::StorageFull => Kind::NoSpace,
        _ => Kind::Io,
    };
    Error::note(kind, e.to_string())
}
