//! What the volume claims and reports about itself.

use super::seen::{files, sample, walk};
use crate::full;
use crate::suite::{Case, case_list};
use std::collections::{BTreeMap, BTreeSet};
use volary_core::{Caps, FileKind, Kind, Place, Prefetch, Whole};

case_list! {
    about StatFs | GetXattr | ListXattr | Extents | GetAttr;
    claims_cover_what_the_volume_holds;
    the_root_is_a_directory;
    statfs_makes_sense;
    statfs_covers_what_the_volume_holds;
    extended_attributes_are_as_stated with XATTRS;
    an_extended_attribute_that_is_not_there_is_told with XATTRS;
    extents_cover_each_file_once with EXTENTS;
    extents_lead_to_the_bytes_of_files with EXTENTS;
    files_read_in_batches_are_the_same;
    hints_do_no_harm;
}

fn claims_cover_what_the_volume_holds(c: &Case) {
    let caps = c.caps();
    assert!(caps.name_max > 0, "no name is allowed");
    if caps.has(Caps::CASE_SENSITIVE) {
        assert!(caps.has(Caps::CASE_KEEPING), "who tells case keeps it");
    }
    let mut seen_nodes = BTreeMap::new();
    for seen in walk(c, c.manifest()) {
        let (_, name) = crate::manifest::split(&seen.path);
        let (len, most) = (name.len(), usize::from(caps.name_max));
        assert!(
            len <= most,
            "{}: {len} bytes of a name, {most} claimed",
            seen.shown()
        );
        assert!(
            seen.attr.size <= caps.size_max,
            "{}: larger than claimed",
            seen.shown()
        );
        let claim = match seen.attr.kind {
            FileKind::Symlink => Caps::SYMLINKS,
            FileKind::File | FileKind::Dir => 0,
            _ => Caps::DEVICES,
        };
        assert!(
            caps.has(claim),
            "{}: a {:?} is not claimed",
            seen.shown(),
            seen.attr.kind
        );
        if seen.want.kind == FileKind::File && seen_nodes.insert(seen.node, ()).is_some() {
            assert!(
                caps.has(Caps::HARD_LINKS),
                "{}: hard links are not claimed",
                seen.shown()
            );
        }
        let mtime = seen.attr.mtime;
        assert_eq!(
            mtime,
            mtime.round_down(caps.time_step),
            "{}: finer than claimed",
            seen.shown()
        );
    }
}

fn the_root_is_a_directory(c: &Case) {
    let root = c.root();
    let attr = c.attr(root);
    assert_eq!(attr.kind, FileKind::Dir);
    assert_eq!(attr.node, root);
    assert_eq!(c.root(), root, "the root stays the same");
    assert_eq!(c.fs().caps(), c.caps(), "claims stay the same");
}

fn statfs_makes_sense(c: &Case) {
    full::told(c);
}

fn statfs_covers_what_the_volume_holds(c: &Case) {
    let all = walk(c, c.manifest());
    let nodes: BTreeSet<_> = all.iter().map(|seen| seen.node).collect();
    let has_content = files(&all).any(|seen| !seen.want.content.is_empty());
    full::covers(&full::told(c), has_content.into(), nodes.len() as u64);
}

fn extended_attributes_are_as_stated(c: &Case) {
    for seen in walk(c, c.manifest()) {
        let (fs, cx) = (c.fs(), c.cx());
        let names = fs.listxattr(&cx, seen.node).expect("listxattr");
        let values = names.into_iter().map(|name| {
            let value = fs.getxattr(&cx, seen.node, &name);
            (name, value.expect("getxattr of a name that was listed"))
        });
        let values: BTreeMap<_, _> = values.collect();
        if let Some(want) = &seen.want.xattrs {
            assert_eq!(&values, want, "extended attributes of {}", seen.shown());
        }
    }
}

fn an_extended_attribute_that_is_not_there_is_told(c: &Case) {
    for seen in sample(c, c.manifest()) {
        let got = c
            .fs()
            .getxattr(&c.cx(), seen.node, b"user.no-such-attribute");
        assert_eq!(got.expect_err("a value"), Kind::NoXattr, "{}", seen.shown());
    }
}

fn extents_cover_each_file_once(c: &Case) {
    for seen in files(&sample(c, c.manifest())) {
        let open = c.open_to_read(seen.node);
        let (mut out, size) = (Vec::new(), seen.attr.size);
        c.fs()
            .extents(&c.cx(), open, 0, size, &mut out)
            .expect("extents");
        let mut at = 0;
        for extent in &out {
            assert_eq!(extent.offset, at, "{}: a gap or an overlap", seen.shown());
            at += extent.len;
            if let (Place::Hole, Some(bytes)) = (extent.place, hole(&seen.want.content, extent)) {
                assert!(
                    volary_core::is_zero(&bytes),
                    "{}: bytes in a hole",
                    seen.shown()
                );
            }
        }
        assert!(
            at >= size,
            "{}: extents end at {at} of {size}",
            seen.shown()
        );
        c.close(open);
    }
}

fn extents_lead_to_the_bytes_of_files(c: &Case) {
    let Some(device) = &c.device else {
        return c.skip("this needs the device (Fresh::on)");
    };
    for seen in files(&sample(c, c.manifest())) {
        let open = c.open_to_read(seen.node);
        let mut out = Vec::new();
        let told = c.fs().extents(&c.cx(), open, 0, seen.attr.size, &mut out);
        told.expect("extents");
        c.close(open);
        for extent in out {
            let Place::Device(at) = extent.place else {
                continue;
            };
            let len = extent.len.min(seen.attr.size - extent.offset).min(1 << 20) as usize;
            let mut there = vec![0; len];
            device.read_at(at, &mut there).expect("an extent");
            if let Some(bytes) = seen.want.content.read(extent.offset, len) {
                let (name, from) = (seen.shown(), extent.offset);
                assert!(
                    there == bytes,
                    "{name}: byte {from} on is elsewhere than at {at}"
                );
            }
        }
    }
}

fn hole(content: &crate::manifest::Content, extent: &volary_core::Extent) -> Option<Vec<u8>> {
    content.read(
        extent.offset,
        usize::try_from(extent.len.min(1 << 20)).ok()?,
    )
}

fn files_read_in_batches_are_the_same(c: &Case) {
    let all = sample(c, c.manifest());
    for seen in files(&all).take(50) {
        let len = seen.attr.size.min(70_000) as usize;
        let mut whole = [Whole {
            attr: &seen.attr,
            bytes: vec![0; len],
            read: None,
        }];
        if !c.fs().read_whole(&c.cx(), &mut whole) {
            return;
        }
        if let (Some((n, attr)), Some(want)) = (whole[0].read, seen.want.content.read(0, len)) {
            assert!(whole[0].bytes.get(..n) == Some(&want), "{}", seen.shown());
            assert_eq!(attr.size, seen.attr.size, "size of {}", seen.shown());
        }
    }
}

fn hints_do_no_harm(c: &Case) {
    let all = sample(c, c.manifest());
    let nodes: Vec<_> = all.iter().map(|seen| seen.node).collect();
    for what in [Prefetch::Attributes, Prefetch::Entries] {
        c.fs().prefetch(&c.cx(), &nodes, what);
    }
    for seen in files(&all).take(20) {
        let open = c.open_to_read(seen.node);
        c.fs().will_read(&c.cx(), open, 0, u64::MAX);
        if let Some(want) = seen.want.content.read(0, 1000) {
            assert!(
                c.read(open, 0, 1000).is_ok_and(|got| got == want),
                "{}",
                seen.shown()
            );
        }
        c.close(open);
    }
    for seen in &all {
        c.fs().forget(seen.node, 1);
    }
    for (one, other) in all.iter().zip(sample(c, c.manifest())) {
        assert_eq!(
            one.attr.kind,
            other.attr.kind,
            "{} after forget",
            one.shown()
        );
    }
}
