//! The in-memory driver, everywhere.

use std::sync::Arc;
use volary_core::{Caps, FileKind, Fs, Time};
use volary_mem::{Mem, MemOptions};
use volary_test::manifest::{Content, Node};
use volary_test::{Everywhere, Manifest, Within, everywhere, reference};

const START: Time = Time::from_secs(1_700_000_000);

fn mem() -> Fs {
    Mem::attach(MemOptions::default(), START).expect("memory")
}

#[test]
fn what_takes_changes_holds_everywhere() {
    everywhere("mem", mem);
}

/// All that the reference tree has, of which SMB is shown a part.
#[test]
fn what_only_reads_holds_everywhere() {
    let caps = MemOptions::default().caps;
    holds_everywhere(caps, &reference::tree().fitting(&caps));
}

/// SMB shows such files as read-only, for which it refuses changes of its own where no extended
/// attribute says otherwise.
#[test]
fn what_nobody_may_write_holds_everywhere() {
    let mut manifest = Manifest::default();
    for mode in [0o000, 0o400, 0o444] {
        let mut node = Node::new(FileKind::File);
        (node.mode, node.content) = (mode, Content::Bytes(Arc::from(*b"content")));
        manifest.add(format!("mode {mode:03o}"), node);
    }
    let caps = MemOptions::default().caps.without(Caps::XATTRS);
    holds_everywhere(caps, &manifest.fitting(&caps));
}

/// Holds a volume that takes no changes to a manifest.
fn holds_everywhere(caps: Caps, manifest: &Manifest) {
    let held = manifest.clone();
    let make = move || {
        let options = MemOptions {
            caps,
            ..MemOptions::default()
        };
        let fs = Mem::attach(options, START).expect("memory");
        held.fill(&fs).expect("the tree");
        let root = fs.root();
        Arc::new(Within::new(fs, root).only_read()) as Fs
    };
    Everywhere::reading("mem", make, manifest).run();
}
