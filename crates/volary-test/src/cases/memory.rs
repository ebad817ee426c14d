//! Memory that is given back.

use crate::memory::{Used, takes_no_more};
use crate::suite::{Case, case_list};
use volary_core::{Caps, FileKind};

case_list! {
    about Close;
    using_the_same_again_and_again_takes_no_more_memory with WRITE;
}

fn using_the_same_again_and_again_takes_no_more_memory(c: &Case) {
    let root = c.root();
    let used = |name: &str, kind| Used {
        dir: root,
        name: name.into(),
        kind,
    };
    let mut all = Vec::new();
    for i in 0..20 {
        let name = format!("f{i}");
        c.file(root, &name, &vec![i; 5000]);
        all.push(used(&name, FileKind::File));
    }
    let dir = c.dir(root, "d");
    for i in 0..30 {
        c.touch(dir, format!("entry {i}"));
    }
    all.push(used("d", FileKind::Dir));
    if c.caps().has(Caps::SYMLINKS) {
        c.symlink(root, "s", b"target").expect("symlink");
        all.push(used("s", FileKind::Symlink));
    }
    takes_no_more(c, &all);
}
