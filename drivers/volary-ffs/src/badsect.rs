//! Sets bad sectors aside (`badsect`). Each fragment with a bad sector becomes a file in the
//! directory `BAD`, so that nothing else is stored there. The file's name is the fragment's first
//! sector.

use crate::attached::operations::Attached;
use crate::change::edit::Step;
use crate::disk::volume::Volume;
use crate::groups::alloc::Run;
use crate::groups::cg::Group;
use crate::groups::scan::{Visitor, scan};
use crate::inodes::blocks::Reader;
use crate::inodes::inode::Inode;
use crate::tree::names::{New, Tree};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use volary_core::{
    Attach, BlockDevice, Cancel, Cred, Ctx, Error, Fact, Kind, Name, Result, SetAttr, Time,
};

/// The directory that the files are in.
const DIRECTORY: &[u8] = b"BAD";
/// Bytes of the sectors that the user names.
const SECTOR: u64 = 512;

/// Sets aside the fragments that hold these sectors, counted from the start of the volume.
///
/// # Errors
/// `Invalid` for a sector that is not on the volume, or is in the format's own structures; `Busy`
/// for one whose fragment a file uses. Nothing is done in these cases. `ReadOnly`, with the reason,
/// for a volume that takes no changes; `NoSpace`; `Corrupt`; `Io`.
pub(crate) fn mark(dev: Arc<dyn BlockDevice>, sectors: &[u64]) -> Result<Vec<Fact>> {
    let attached = Attached::new(dev, &Attach::default())?;
    let (cred, cancel) = (Cred::root(), Cancel::new());
    let cx = Ctx {
        cred: &cred,
        now: Time::EPOCH,
        cancel: &cancel,
    };
    let mut wanted = BTreeMap::new();
    for &sector in sectors {
        wanted.insert(fragment(&attached.volume, sector)?, sector);
    }
    let known = wanted.len();
    let aside = attached.look(|_, reader| owned(&reader, &wanted))?;
    wanted.retain(|fragment, _| !aside.contains(fragment));
    if !wanted.is_empty() {
        attached.change(&cx, |tree| put_aside(tree, &wanted))?;
    }
    attached.detach(&cx)?;
    Ok(vec![
        Fact::number("sectors given", sectors.len() as u64, ""),
        Fact::number("fragments put aside in /BAD", wanted.len() as u64, ""),
        Fact::number("there before", (known - wanted.len()) as u64, ""),
    ])
}

/// Returns the fragment that a sector is in, if the fragment can hold data.
fn fragment(volume: &Volume, sector: u64) -> Result<u64> {
    let refuse = |words: String| Err(Error::note(Kind::Invalid, words));
    let fragment = sector / (volume.fsize / SECTOR);
    if fragment >= volume.size {
        let last = volume.size * (volume.fsize / SECTOR) - 1;
        return refuse(format!("sector {sector} is not on the volume: 0 to {last}"));
    }
    let group = volume.group_of(fragment);
    let (first, end) = volume.reserved(group);
    let summaries = volume.csaddr..volume.csaddr + volume.cssize.div_ceil(volume.fsize);
    if (first..end).contains(&fragment) || summaries.contains(&fragment) {
        return refuse(format!(
            "sector {sector} is of cylinder group {group}'s own structures, which can lie nowhere else"
        ));
    }
    Ok(fragment)
}

/// Returns which of the fragments are set aside already. Each of these is the only fragment of a
/// file that root owns.
///
/// # Errors
/// `Busy` for one that another file has; `Corrupt`; `Io`.
fn owned(reader: &Reader<'_>, wanted: &BTreeMap<u64, u64>) -> Result<BTreeSet<u64>> {
    let mut owners = Owners {
        reader: *reader,
        wanted,
        aside: BTreeSet::new(),
    };
    scan(reader, &mut owners)?;
    Ok(owners.aside)
}

struct Owners<'a> {
    reader: Reader<'a>,
    wanted: &'a BTreeMap<u64, u64>,
    aside: BTreeSet<u64>,
}

impl Owners<'_> {
    /// Returns whether an inode holds a fragment that was set aside.
    fn is_aside(&self, inode: &Inode) -> bool {
        let volume = self.reader.volume;
        let is_one = inode.size == volume.fsize && inode.mode & 0o7777 == 0;
        is_one && inode.uid == 0
    }
}

impl Visitor for Owners<'_> {
    fn group(&mut self, _: u64, _: &Result<Group>) -> Result<()> {
        Ok(())
    }

    fn inode(&mut self, inode: Inode, _: Option<bool>) -> Result<()> {
        if inode.kind().is_none() {
            return Ok(());
        }
        let is_aside = self.is_aside(&inode);
        let (wanted, aside) = (self.wanted, &mut self.aside);
        self.reader.blocks(&inode, &mut |block| {
            let its = block.first..block.first + block.fragments;
            for (&fragment, sector) in wanted.range(its) {
                if !is_aside {
                    let words = format!(
                        "sector {sector} is of the file with inode {}; move or delete it first",
                        inode.ino
                    );
                    return Err(Error::note(Kind::Busy, words));
                }
                aside.insert(fragment);
            }
            Ok(())
        })
    }
}

/// Creates the files.
fn put_aside(tree: &mut Tree<'_>, wanted: &BTreeMap<u64, u64>) -> Step<()> {
    let volume = tree.files.edit.reader.volume;
    // Take the fragments first, so that blocks of the `BAD` directory are not put there.
    for (&fragment, sector) in wanted {
        let run = Run {
            first: fragment,
            count: 1,
        };
        if !tree.files.room.take_exactly(run)? {
            let words =
                format!("sector {sector} is not free, and nobody's: run volary fsck -p first");
            return Err(Error::note(Kind::Busy, words).into());
        }
    }
    let into = tree.directory_of_root(DIRECTORY)?;
    for &fragment in wanted.keys() {
        let text = (fragment * (volume.fsize / SECTOR)).to_string();
        let name = Name::new(text.as_bytes()).map_err(|_| Kind::Invalid)?;
        let set = SetAttr {
            uid: Some(0),
            gid: Some(0),
            ..SetAttr::mode(0)
        };
        let ino = tree.make(into.id()?, name, &New::File, &set)?.ino;
        let mem = &mut tree.files.edit.node(ino)?.mem;
        mem.size = volume.fsize;
        mem.blocks = volume.fsize / SECTOR;
        if let Some(first) = mem.db.first_mut() {
            *first = fragment;
        }
    }
    Ok(())
}
