//! The target for encrypted volumes: the header, and what is stored below.

use crate::heap;
use crate::input::Input;
use crate::volume::{name, operate, walk, with_ctx};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use volary_core::{Create, Ctx, FileKind, Fs, Mode, NodeId, RenameFlags, Result, SetAttr, Time};
use volary_layers::{Crypt, CryptCost, Outside};
use volary_mem::{Mem, MemOptions};

const HEAP: usize = 32 << 20;
const CHANGES_MAX: usize = 16;
/// The least that there is, so that a run costs little.
const COST: CryptCost = CryptCost {
    memory: 8,
    passes: 1,
    lanes: 1,
};
const HEADER: &[u8] = b".volary-crypt";

/// Numbers that anybody can guess.
struct Dice(AtomicU64);

impl Outside for Dice {
    fn random(&self, bytes: &mut [u8]) -> Result<()> {
        for byte in bytes {
            let count = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
            *byte = (count ^ count >> 29).to_le_bytes()[4];
        }
        Ok(())
    }
}

fn crypt(below: &Fs) -> Result<Fs> {
    let dice = Arc::new(Dice(AtomicU64::new(1)));
    Ok(Arc::new(Crypt::new(
        Arc::clone(below),
        dice,
        b"pass",
        COST,
    )?))
}

/// Damages what an encrypted volume is stored as, puts the layer on, and uses what it shows.
pub fn attach(input: &[u8]) {
    let mut input = Input::new(input);
    heap::limit(HEAP);
    let options = MemOptions {
        size: 4 << 20,
        ..MemOptions::default()
    };
    let below = Mem::attach(options, Time::EPOCH).expect("a volume in memory");
    with_ctx(|cx| {
        fill(&crypt(&below).expect("an encrypted volume"), cx);
        let nodes = walk(&below, cx);
        for _ in 0..CHANGES_MAX {
            if input.is_empty() {
                break;
            }
            damage(&below, cx, &nodes, &mut input);
        }
        cheapen(&below, cx);
        if let Ok(fs) = crypt(&below) {
            let nodes = walk(&fs, cx);
            operate(&fs, cx, &nodes, &mut input);
            let _ = fs.detach(cx);
        }
    });
    drop(below);
    heap::limit(usize::MAX);
}

fn fill(fs: &Fs, cx: &Ctx<'_>) {
    let set = SetAttr::default();
    let root = fs.root();
    let dir = fs.mkdir(cx, root, name(b"d1"), &set).expect("mkdir").node;
    for (dir, file) in [(root, &b"FILE"[..]), (dir, b"file 0")] {
        let made = fs.create(cx, dir, name(file), Create::Open, &set);
        let (_, open) = made.expect("create");
        fs.write(cx, open, Some(0), &[7; 10_000]).expect("write");
        fs.close(cx, open).expect("close");
    }
    fs.symlink(cx, root, name(b"x.y"), b"d1/file 0", &set)
        .expect("symlink");
}

fn damage(below: &Fs, cx: &Ctx<'_>, nodes: &[(NodeId, FileKind)], input: &mut Input<'_>) {
    let (node, kind) = nodes[usize::from(input.byte()) % nodes.len()];
    let header = below.lookup(cx, below.root(), name(HEADER));
    let header = header.map(|entry| entry.node).unwrap_or(node);
    match (input.byte() % 6, kind) {
        (0 | 1, _) => poke(
            below,
            cx,
            header,
            u64::from(input.byte() % 128),
            input.bytes(4),
        ),
        (2, FileKind::File) => {
            poke(
                below,
                cx,
                node,
                u64::from(input.short() % 12_000),
                input.bytes(8),
            );
        }
        (3, FileKind::File) => {
            let size = SetAttr::size(u64::from(input.short()));
            drop(below.setattr(cx, node, &size));
        }
        (4, FileKind::Dir) => {
            let target = input.bytes(24);
            let link = SetAttr::default();
            drop(below.symlink(cx, node, name(b"link"), target, &link));
        }
        (_, FileKind::Dir) => rename(below, cx, node, input),
        _ => {}
    }
}

fn poke(below: &Fs, cx: &Ctx<'_>, node: NodeId, at: u64, bytes: &[u8]) {
    if let Ok(open) = below.open(cx, node, Mode::Write) {
        let _ = below.write(cx, open, Some(at), bytes);
        let _ = below.close(cx, open);
    }
}

/// Gives the first name of a directory another byte.
fn rename(below: &Fs, cx: &Ctx<'_>, dir: NodeId, input: &mut Input<'_>) {
    let Ok(open) = below.open(cx, dir, Mode::Read) else {
        return;
    };
    let mut names = volary_core::DirBuf::new(8, 4096, false);
    let _ = below.readdir(cx, open, volary_core::Cookie::START, &mut names);
    let _ = below.close(cx, open);
    let at = usize::from(input.byte());
    let Some(old) = names.iter().nth(at % 8).map(|e| e.name.to_vec()) else {
        return;
    };
    let mut new = old.clone();
    let at = usize::from(input.byte()) % new.len();
    new[at] = input.byte().max(1);
    if let Ok(new) = volary_core::Name::new(&new) {
        let flags = RenameFlags::REPLACE;
        drop(below.rename(cx, dir, name(&old), dir, new, flags));
    }
}

/// A header that asks for what it may costs little all the same.
fn cheapen(below: &Fs, cx: &Ctx<'_>) {
    let Ok(header) = below.lookup(cx, below.root(), name(HEADER)) else {
        return;
    };
    let Ok(open) = below.open(cx, header.node, Mode::ReadWrite) else {
        return;
    };
    let mut cost = [0; 12];
    let read = below.read(cx, open, 12, &mut cost);
    let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| cost[at + i]));
    let is_dear = |at: usize, least: u32, max: u32| (least..=max).contains(&number(at));
    if read.is_ok() && is_dear(0, 1025, 256 << 10) {
        let _ = below.write(cx, open, Some(12), &1024_u32.to_le_bytes());
    }
    let _ = below.close(cx, open);
}
