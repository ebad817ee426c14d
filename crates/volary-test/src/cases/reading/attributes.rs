//! Kinds and attributes of nodes, and targets of symlinks.

use super::seen::{Seen, dirs, of_kind, walk};
use crate::suite::{Case, case_list};
use std::collections::HashMap;
use volary_core::{FileKind, Kind};

case_list! {
    about GetAttr | ReadLink | Lookup;
    kinds_and_sizes_are_as_stated;
    getattr_says_what_lookup_said;
    permission_bits_and_owners_are_as_stated;
    times_are_as_stated;
    every_name_of_a_node_is_counted;
    directories_count_their_links_in_one_way;
    names_of_one_node_lead_to_one_node_and_others_to_others;
    devices_have_their_numbers;
    a_symlink_reads_whole;
    readlink_of_what_is_no_symlink_is_invalid;
}

fn kinds_and_sizes_are_as_stated(c: &Case) {
    for seen in walk(c, c.manifest()) {
        assert_eq!(seen.attr.kind, seen.want.kind, "kind of {}", seen.shown());
        if seen.want.kind == FileKind::File {
            let want = seen.want.content.len();
            assert_eq!(seen.attr.size, want, "size of {}", seen.shown());
        }
        assert!(seen.attr.io_size > 0, "io_size of {}", seen.shown());
        assert_eq!(
            seen.attr.mode & !0o7777,
            0,
            "mode of {}: more than 12 bits",
            seen.shown()
        );
    }
}

fn getattr_says_what_lookup_said(c: &Case) {
    for seen in walk(c, c.manifest()) {
        let attr = c.attr(seen.node);
        assert_eq!(
            attr.node,
            seen.node,
            "node in attributes of {}",
            seen.shown()
        );
        assert_eq!(
            seen.attr.node,
            seen.node,
            "node in the entry of {}",
            seen.shown()
        );
        let mut before = seen.attr;
        // The access time may have been changed by a read.
        before.atime = attr.atime;
        assert_eq!(attr, before, "attributes of {}", seen.shown());
    }
}

fn permission_bits_and_owners_are_as_stated(c: &Case) {
    let keeps = c.manifest().keeps();
    if !keeps.modes && !keeps.owners {
        return c.skip("the manifest states no permission bits and no owners");
    }
    for seen in stated(&walk(c, c.manifest())) {
        if keeps.modes && seen.want.kind != FileKind::Symlink {
            let (got, want) = (seen.attr.mode, seen.want.mode);
            assert_eq!(got, want, "{}: mode {got:o}, not {want:o}", seen.shown());
        }
        if keeps.owners {
            let (got, want) = (
                (seen.attr.uid, seen.attr.gid),
                (seen.want.uid, seen.want.gid),
            );
            assert_eq!(got, want, "owner and group of {}", seen.shown());
        }
    }
}

fn times_are_as_stated(c: &Case) {
    let Some(step) = c.manifest().keeps().times else {
        return c.skip("the manifest states no times");
    };
    let step = step.max(c.caps().time_step);
    for seen in stated(&walk(c, c.manifest())) {
        let (got, want) = (seen.attr.mtime, seen.want.mtime);
        assert!(
            got.round_down(step) == want.round_down(step),
            "{}: changed at {got:?}, not {want:?}",
            seen.shown()
        );
    }
}

fn stated<'a, 'b>(all: &'a [Seen<'b>]) -> impl Iterator<Item = &'a Seen<'b>> {
    all.iter().filter(|seen| seen.want.stated)
}

fn every_name_of_a_node_is_counted(c: &Case) {
    let manifest = c.manifest();
    if !manifest.keeps().links {
        return c.skip("the manifest states no counts of names");
    }
    for seen in walk(c, manifest) {
        if seen.want.kind != FileKind::Dir {
            let want = manifest.links(&seen.path, seen.number);
            assert_eq!(seen.attr.nlink as usize, want, "names of {}", seen.shown());
        }
    }
}

fn directories_count_their_links_in_one_way(c: &Case) {
    let manifest = c.manifest();
    if !manifest.keeps().links {
        return c.skip("the manifest states no counts of names");
    }
    let all = walk(c, manifest);
    // If every directory has a link count of 1, the volume counts only names, as one without hard
    // links does.
    let by_names = dirs(&all).all(|seen| seen.attr.nlink == 1);
    for seen in dirs(&all).filter(|_| !by_names) {
        let want = manifest.links(&seen.path, seen.number);
        assert_eq!(
            seen.attr.nlink as usize,
            want,
            "{}: its name, its `.` and a `..` of each directory in it",
            seen.shown()
        );
    }
}

fn names_of_one_node_lead_to_one_node_and_others_to_others(c: &Case) {
    let mut numbers = HashMap::new();
    let mut nodes = HashMap::new();
    for seen in walk(c, c.manifest()) {
        let node = *numbers.entry(seen.number).or_insert(seen.node);
        assert_eq!(
            seen.node,
            node,
            "{} is another name of a node",
            seen.shown()
        );
        let number = *nodes.entry(seen.node.ino).or_insert(seen.number);
        assert_eq!(
            seen.number,
            number,
            "{} has the number of another node",
            seen.shown()
        );
    }
}

fn devices_have_their_numbers(c: &Case) {
    let all = walk(c, c.manifest());
    for kind in [FileKind::CharDevice, FileKind::BlockDevice] {
        for seen in of_kind(&all, kind) {
            assert_eq!(seen.attr.rdev, seen.want.rdev, "{}", seen.shown());
        }
    }
}

fn a_symlink_reads_whole(c: &Case) {
    for seen in of_kind(&walk(c, c.manifest()), FileKind::Symlink) {
        let got = c.fs().readlink(&c.cx(), seen.node);
        let got = got.unwrap_or_else(|e| panic!("readlink of {}: {e}", seen.shown()));
        assert!(
            got == seen.want.target,
            "{} holds '{}', not '{}'",
            seen.shown(),
            volary_core::escape(&got),
            volary_core::escape(&seen.want.target)
        );
        assert_eq!(seen.attr.size, got.len() as u64, "size of {}", seen.shown());
    }
}

fn readlink_of_what_is_no_symlink_is_invalid(c: &Case) {
    let all = walk(c, c.manifest());
    for kind in [FileKind::Dir, FileKind::File, FileKind::Fifo] {
        for seen in of_kind(&all, kind).take(5) {
            let got = c.fs().readlink(&c.cx(), seen.node);
            let got = got.expect_err("readlink of what is no symlink");
            assert_eq!(got, Kind::Invalid, "readlink of {}", seen.shown());
        }
    }
}
