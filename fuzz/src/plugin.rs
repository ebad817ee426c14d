//! The targets for plug-ins: what comes over the wire from a plug-in's process, what a host asks of it,
//! and a table whose answers are the input.

use crate::heap;
use std::sync::OnceLock;
use volary_core::{
    Access, Cancel, Cookie, Cred, Ctx, DirBuf, FileSystem, Fs, Kind, Mode, Name, NodeId, Time,
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
