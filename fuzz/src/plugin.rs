//! The targets for plug-ins: what comes over the wire from a plug-in's process, what a host asks of it,
//! and tables whose answers are the input, of nodes and of paths.

use crate::heap;
use std::sync::OnceLock;
use volary_core::{
    Access, Cancel, Cookie, Create, Cred, Ctx, DirBuf, FileSystem, Fs, Kind, Mode, Name, NodeId,
    OpenId, RenameFlags, SetAttr, Time,
};
use volary_mem::{Mem, MemOptions};
use volary_plugin::fuzzing;

/// Growth of the heap that a run may cause.
const HEAP: usize = 4 << 20;

/// Reads and answers frames.
pub fn wire(input: &[u8]) {
    static VOLUME: OnceLock<Fs> = OnceLock::new();
    let attach = || Mem::attach(MemOptions::sized(1 << 20), Time::EPOCH).expect("memory");
    let volume = VOLUME.get_or_init(attach);
    heap::limit(HEAP);
    fuzzing::wire(input);
    fuzzing::serve(&**volume, input);
    heap::limit(usize::MAX);
}

/// Asks a table that lies. What it says is refused, or harms nobody.
pub fn table(input: &[u8]) {
    heap::limit(HEAP);
    if let Ok(fs) = fuzzing::liar(input) {
        let cx = Ctx {
            cred: &Cred::root(),
            now: Time::EPOCH,
            cancel: &Cancel::new(),
        };
        for _ in 0..4 {
            ask(&fs, &cx);
        }
    }
    heap::limit(usize::MAX);
}

/// Asks a table of paths that lies, and has names come and go.
pub fn paths(input: &[u8]) {
    heap::limit(HEAP);
    if let Ok(fs) = fuzzing::path_liar(input) {
        let cx = Ctx {
            cred: &Cred::root(),
            now: Time::EPOCH,
            cancel: &Cancel::new(),
        };
        let mut open = Vec::new();
        for turn in 0..6 {
            come_and_go(&fs, &cx, turn, &mut open);
            ask(&fs, &cx);
        }
        for open in open {
            // The plug-in may say what it likes of it: the open has ended.
            let _ = fs.close(&cx, open);
            assert_eq!(fs.close(&cx, open).unwrap_err(), Kind::Stale);
        }
        let _ = fs.detach(&cx);
        assert_eq!(fs.getattr(&cx, fs.root()).unwrap_err(), Kind::Stale);
    }
    heap::limit(usize::MAX);
}

fn come_and_go(fs: &dyn FileSystem, cx: &Ctx<'_>, turn: u8, open: &mut Vec<OpenId>) {
    let names = [&b"name"[..], b"other", b"third"].map(|name| Name::new(name).expect("a name"));
    let at = |n: u8| names[usize::from(n) % names.len()];
    let set = SetAttr::default();
    let root = fs.root();
    let dir = fs.mkdir(cx, root, at(turn), &set);
    let dir = dir.map_or(root, |entry| entry.node);
    if let Ok(parent) = fs.parent(cx, dir) {
        assert_eq!(parent.node, root);
    }
    if let Ok((entry, id)) = fs.create(cx, dir, at(turn + 1), Create::Open, &set) {
        open.push(id);
        // Two nodes are never one: what is linked is what was there.
        if let Ok(linked) = fs.link(cx, entry.node, root, at(turn + 2)) {
            assert_eq!(linked.node, entry.node);
        }
    }
    for flags in [RenameFlags::REPLACE, RenameFlags::KEEP, RenameFlags::SWAP] {
        let _ = fs.rename(cx, dir, at(turn + 1), root, at(turn), flags);
    }
    let _ = (
        fs.unlink(cx, root, at(turn)),
        fs.rmdir(cx, root, at(turn + 1)),
    );
}

fn ask(fs: &dyn FileSystem, cx: &Ctx<'_>) {
    let caps = fs.caps();
    let name = Name::new(b"name").expect("a name");
    let node = match fs.lookup(cx, fs.root(), name) {
        Ok(entry) => {
            assert!(entry.attr.mode <= 0o7777 && entry.attr.mtime.nanos < 1_000_000_000);
            entry.node
        }
        Err(_) => NodeId::new(2, 0).expect("a node"),
    };
    if let Ok(attr) = fs.getattr(cx, node) {
        assert_eq!(attr.node, node);
    }
    if let Ok(may) = fs.access(cx, node, Access::READ) {
        assert!(Access::READ.has(may));
    }
    // Nothing is known of what they hold, but that it is bounded.
    let _ = (fs.readlink(cx, node), fs.listxattr(cx, node));
    if let Ok(open) = fs.open(cx, node, Mode::Read) {
        let mut buf = [0; 100];
        if let Ok(read) = fs.read(cx, open, 0, &mut buf) {
            assert!(read <= buf.len());
        }
        if let Ok(end) = fs.write(cx, open, Some(10), b"data") {
            assert_eq!(end, 14);
        }
        let mut out = DirBuf::new(8, 100, true);
        if let Ok(is_end) = fs.readdir(cx, open, Cookie::START, &mut out) {
            assert!(is_end || !out.is_empty());
        }
        for entry in out.iter() {
            assert!(Name::new(entry.name).is_ok() && entry.name.len() <= caps.name_max.into());
        }
        let _ = fs.close(cx, open);
        assert_eq!(fs.read(cx, open, 0, &mut buf).unwrap_err(), Kind::Stale);
    }
}
