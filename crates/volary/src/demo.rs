//! A small volume in memory with a few files in it, so that every command can be
//! tried at once.

use crate::block::MemDevice;
use std::sync::Arc;
use volary_core::{Attach, BlockDevice, Cred, Result, SetAttr, Time};
use volary_core::{Create, Format, Make, Mode, Options};
use volary_fat::FAT;
use volary_session::{Session, Volume, VolumeOptions};

/// Size of the small volume, in bytes.
pub const DEMO_SIZE: u64 = 64 << 20;

/// Returns a device in memory with a small FAT32 volume that holds a few files.
///
/// # Errors
/// Only if volary has a bug.
pub fn demo(now: Time) -> Result<Arc<dyn BlockDevice>> {
    let dev: Arc<dyn BlockDevice> = Arc::new(MemDevice::new(DEMO_SIZE));
    let how = Make {
        label: Some("DEMO".into()),
        now,
        seed: 0,
        options: Options::parse("unix"),
    };
    FAT.make(Arc::clone(&dev), "fat32", &how)?;
    let fs = FAT.attach(Arc::clone(&dev), &Attach::default())?;
    let options = VolumeOptions {
        trust: true,
        ..VolumeOptions::new("mem:", || Time::EPOCH)
    };
    let volume = Volume::new(fs, options);
    fill(&volume.session(Cred::root()), now)?;
    volume.detach()?;
    Ok(dev)
}

const README: &str = "\
This is a FAT volume in memory. It lasts as long as the command that uses it.

  volary ls -l mem:/            what is in it
  volary tree mem:
  volary cat mem:/docs/words.txt
  volary map mem:               what lies where
  volary cp -r mem:/docs .      a copy for you
  volary mount mem: DIR         as a directory, until it is unmounted

A volume that stays: volary mkfs --size 64M disk.img
";

const WORDS: &str = "\
node     a file of any kind
entry    a name in a directory
volume   one attached file system
format   a kind of volume
device   bytes that can be read, written and flushed
driver   code that attaches volumes of a format
layer    a file system over a file system
session  one caller on one volume
";

const SCRIPT: &str = "#!/bin/sh\necho \"hello from $0\"\n";

fn fill(session: &Session, now: Time) -> Result<()> {
    let root = session.root();
    file(session, root, "README.txt", README, 0o644, now)?;
    let docs = session
        .mkdir(root, b"docs", &SetAttr::owned(0o755, 0, 0))?
        .node;
    file(session, docs, "words.txt", WORDS, 0o644, now)?;
    file(
        session,
        docs,
        "a name that is longer than eleven bytes.txt",
        "It is.\n",
        0o600,
        now,
    )?;
    let bin = session
        .mkdir(root, b"bin", &SetAttr::owned(0o755, 0, 0))?
        .node;
    file(session, bin, "hello", SCRIPT, 0o755, now)?;
    session.symlink(root, b"hello", b"bin/hello", &SetAttr::owned(0o777, 0, 0))?;
    Ok(())
}

fn file(
    session: &Session,
    dir: volary_core::NodeId,
    name: &str,
    text: &str,
    mode: u32,
    now: Time,
) -> Result<()> {
    let set = SetAttr::owned(mode, 0, 0);
    let (entry, open) = session.create(dir, name.as_bytes(), Create::New, Mode::Write, &set)?;
    let written = session.write(open, Some(0), text.as_bytes());
    session.close(open)?;
    written?;
    let time = Some(volary_core::SetTime::To(now));
    let times = SetAttr {
        atime: time,
        mtime: time,
        ..SetAttr::default()
    };
    session.setattr(entry.node, &times).map(drop)
}
