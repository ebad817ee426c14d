//! Room that is short: a script with so many free blocks, from none on. What has no
//! room is told and does nothing; once all is deleted, all is free again.

use crate::faults::script;
use crate::plans::count;
use std::sync::Arc;
use volary::block::MemDevice;
use volary::torture::{Ops, Volume, volume};
use volary::{Attach, BlockDevice, Fs, Kind, Name, Options, SetAttr};
use volary_sim::{Moment, Recovered, Subject, tree};
use volary_testkit::volumes::as_root;

const FILLER: &str = "filler";

fn attach(volume: &Volume, dev: &Arc<dyn BlockDevice>) -> Fs {
    let how = Attach {
        options: Options::parse(volume.attach),
        ..Attach::default()
    };
    volume.format.attach(dev.clone(), &how).unwrap()
}

/// Free bytes, with all durable.
fn free(volume: &Volume, dev: &Arc<dyn BlockDevice>) -> u64 {
    let fs = attach(volume, dev);
    as_root(|cx| {
        let free = fs.statfs(cx).unwrap().free;
        fs.detach(cx).unwrap();
        free
    })
}

/// Fills a volume up but for `left` bytes, more or less.
fn fill(volume: &Volume, dev: &Arc<dyn BlockDevice>, left: u64) {
    let fs = attach(volume, dev);
    as_root(|cx| {
        let name = Name::new(FILLER.as_bytes()).unwrap();
        let made = fs.create(
            cx,
            fs.root(),
            name,
            volary::Create::New,
            &SetAttr::default(),
        );
        let (entry, open) = made.unwrap();
        let mut size = fs.statfs(cx).unwrap().free.saturating_sub(left);
        while let Err(e) = fs.setattr(cx, entry.node, &SetAttr::size(size)) {
            assert_eq!(e, Kind::NoSpace);
            size = size.saturating_sub(512);
        }
        fs.close(cx, open).unwrap();
        fs.detach(cx).unwrap();
    });
}

/// Deletes all, children before the directories that they are in.
fn empty(volume: &Volume, dev: &Arc<dyn BlockDevice>) {
    let fs = attach(volume, dev);
    as_root(|cx| {
        let found = tree::read(&fs, cx).unwrap();
        let walk = |dir: &str| {
            let names = dir.split('/').filter(|name| !name.is_empty());
            names.fold(fs.root(), |at, name| {
                fs.lookup(cx, at, Name::new(name.as_bytes()).unwrap())
                    .unwrap()
                    .node
            })
        };
        for (path, node) in found.iter().rev() {
            let (dir, name) = tree::split(path);
            let (dir, name) = (walk(dir), Name::new(name.as_bytes()).unwrap());
            match node {
                tree::Node::Dir(_) => fs.rmdir(cx, dir, name).unwrap(),
                tree::Node::File(..) => fs.unlink(cx, dir, name).unwrap(),
            }
        }
        fs.sync(cx).unwrap();
        fs.detach(cx).unwrap();
    });
}

/// Runs a script with little room, and deletes all; the free bytes then.
fn run(volume: &Volume, base: &[u8], script: &Ops, left: u64) -> Result<u64, String> {
    let dev: Arc<dyn BlockDevice> = Arc::new(MemDevice::from_vec(base.to_vec()));
    fill(volume, &dev, left);
    let endured = volume.endure(script, dev.clone())?;
    if let Some(e) = endured.errors.iter().find(|e| **e != Kind::NoSpace) {
        return Err(format!("an operation answers {e:?}"));
    }
    let mended = volume.recover(dev.clone())?;
    if !mended.is_empty() {
        return Err(format!("fsck -p finds {mended:?}"));
    }
    let mut found = volume.look(dev.clone())?;
    found.remove(&format!("/{FILLER}"));
    let steps = endured.history.after.len();
    let at = Moment {
        began: steps,
        ended: steps,
    };
    volume.judge(&Recovered::new(mended, found), &endured.history, at)?;
    empty(volume, &dev);
    volume.recover(dev.clone())?;
    volume.look(dev.clone())?;
    Ok(free(volume, &dev))
}

fn every_block_is_the_last(name: &str, block: u64, blocks: u64) {
    let volume = volume(name).unwrap();
    let base = volume.make().unwrap().to_vec();
    for seed in 0..count(3) {
        let script = script(volume, seed, 25);
        // With room enough: what the root's directory has taken then it keeps.
        let all = run(volume, &base, &script, u64::MAX).unwrap();
        for left in 0..blocks {
            let what = format!("{name}, script {seed}: '{script}', {left} blocks");
            let now = run(volume, &base, &script, left * block);
            let now = now.unwrap_or_else(|e| panic!("{what}: {e}"));
            assert!(now >= all, "{what}: {now} bytes are free, not {all}");
        }
    }
}

#[test]
fn every_page_of_cedar_may_be_the_last() {
    every_block_is_the_last("cedar", 512, 80);
    every_block_is_the_last("cedar-each", 512, 40);
}

#[test]
fn every_cluster_of_fat_may_be_the_last() {
    every_block_is_the_last("fat12", 512, 40);
    every_block_is_the_last("fat32", 512, 40);
}

#[test]
fn every_fragment_of_ffs_may_be_the_last() {
    every_block_is_the_last("ffs1", 512, 60);
    every_block_is_the_last("ffs2", 512, 60);
}
