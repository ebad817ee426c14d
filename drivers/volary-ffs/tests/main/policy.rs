//! The layout policies of section 3.3 of the paper, by where things land.

use crate::laid::{Laid, name};
use crate::volumes::shape;
use volary_core::{Mode, NodeId};
use volary_testkit::rng::Rng;
use volary_testkit::volumes::as_root;

const MIB: u64 = 1 << 20;

#[test]
fn inodes_of_a_directory_are_in_its_group_and_directories_are_spread() {
    let shape = shape("ffs1", 32 * MIB).made("block=4096,fragment=512,group=8192");
    as_root(|cx| {
        let laid = Laid::new(&shape, cx);
        let dirs: Vec<_> = (0..7)
            .map(|i| laid.dir(laid.fs.root(), &format!("{i}")))
            .collect();
        let mut groups: Vec<_> = dirs.iter().map(|&dir| laid.group_of_inode(dir)).collect();
        for &dir in &dirs {
            let own = laid.group_of_inode(dir);
            for i in 0..20 {
                let file = laid.file(dir, &format!("{i}"), 5000).expect("a file");
                assert_eq!(laid.group_of_inode(file), own);
                let beside = laid.groups(file).iter().all(|&group| group == own);
                assert!(beside, "data is beside its inode");
            }
        }
        groups.sort_unstable();
        assert_eq!(
            groups,
            [1, 2, 3, 4, 5, 6, 7],
            "each in a group without directories"
        );
    });
}

#[test]
fn a_directory_goes_where_more_inodes_than_the_average_are_free() {
    let sizes = "block=4096,fragment=512,group=8192,density=65536";
    let shape = shape("ffs1", 32 * MIB).made(sizes);
    as_root(|cx| {
        let laid = Laid::new(&shape, cx);
        let first = laid.dir(laid.fs.root(), "first");
        let full = laid.group_of_inode(first);
        for i in 0..laid.ipg * 3 / 4 {
            laid.file(first, &format!("{i}"), 0).expect("a file");
        }
        for i in 0..24 {
            let dir = laid.dir(laid.fs.root(), &format!("dir {i}"));
            assert_ne!(laid.group_of_inode(dir), full);
        }
    });
}

#[test]
fn a_large_file_is_redirected_at_48_kb_and_at_each_megabyte() {
    let shape = shape("ffs1", 64 * MIB).made("block=4096,fragment=512,group=8192,maxbpg=256");
    as_root(|cx| {
        let laid = Laid::new(&shape, cx);
        let file = laid.file(laid.fs.root(), "file", 10 * MIB).expect("a file");
        let runs = laid.runs(file);
        let own = laid.group_of_inode(file);
        let direct = 12 * 4096;
        // Twelve blocks beside the inode, and then a megabyte in each of the next groups, but for
        // the indirect blocks between.
        let mut last = None;
        let mut sections = Vec::new();
        for (offset, fragment, _) in runs {
            let group = fragment / laid.fpg;
            if offset < direct {
                assert_eq!(group, own);
            } else if last != Some(group) {
                sections.push((offset - direct, group));
            }
            last = Some(group);
        }
        let at: Vec<_> = sections.iter().map(|(offset, _)| *offset).collect();
        let wanted: Vec<_> = (0..10).map(|i| i * MIB).collect();
        assert_eq!(at, wanted, "{sections:?}");
        assert!(
            sections.iter().take(4).all(|(_, group)| *group != own),
            "{sections:?}"
        );
    });
}

#[test]
fn full_groups_are_left_by_quadratic_rehash() {
    let sizes = "block=4096,fragment=512,group=4096,density=512";
    // Eight groups: blocks go to those behind at 1, 3 and 7, then to all that are left.
    let shape = shape("ffs1", 16 * MIB).made(sizes);
    as_root(|cx| {
        let laid = Laid::new(&shape, cx);
        let dir = laid.dir(laid.fs.root(), "dir");
        let own = laid.group_of_inode(dir);
        let mut met = Vec::new();
        for i in 0.. {
            let Some(file) = laid.file(dir, &format!("{i}"), 4096) else {
                break;
            };
            for group in laid.groups(file) {
                if !met.contains(&group) {
                    met.push(group);
                }
            }
        }
        let wanted = [0, 1, 3, 7, 2, 4, 5, 6].map(|steps| (own + steps) % 8);
        assert_eq!(met, wanted, "the directory is in group {own}");
    });
}

/// Returns where the piece of a file goes that cannot grow where it is: the fragments of two files.
fn grown(optim: &str) -> (u64, u64) {
    let made: &'static str = match optim {
        "time" => "block=4096,fragment=512,optim=time",
        _ => "block=4096,fragment=512,optim=space",
    };
    as_root(|cx| {
        let laid = Laid::new(&shape("ffs1", 8 * MIB).made(made), cx);
        let root = laid.fs.root();
        let first = laid.file(root, "first", 512).expect("a file");
        let next = laid.file(root, "next", 512).expect("a file");
        let (start, _) = (laid.runs(first)[0].1, laid.runs(next)[0].1);
        assert_eq!(laid.runs(next)[0].1, start + 1, "pieces share a block");
        let open = laid.fs.open(cx, first, Mode::ReadWrite).expect("open");
        let done = laid.fs.write(cx, open, Some(512), &[1; 512]);
        done.expect("write");
        laid.fs.close(cx, open).expect("close");
        (start, laid.runs(first)[0].1)
    })
}

#[test]
fn a_piece_that_grows_goes_where_it_fits_or_where_it_can_grow() {
    let (before, after) = grown("space");
    assert_eq!(before / 8, after / 8, "for space: in the same block");
    let (before, after) = grown("time");
    assert_ne!(before / 8, after / 8, "for time: in a block of its own");
    assert_eq!(after % 8, 0);
}

#[test]
fn a_volume_that_aged_at_nine_tenths_keeps_files_together() {
    let shape = shape("ffs2", 32 * MIB).made("block=4096,fragment=512,group=8192");
    as_root(|cx| {
        let laid = Laid::new(&shape, cx);
        let mut rng = Rng::new(5);
        let dirs: Vec<_> = (0..8)
            .map(|i| laid.dir(laid.fs.root(), &format!("{i}")))
            .collect();
        let mut files: Vec<(NodeId, String, NodeId)> = Vec::new();
        for step in 0..6000 {
            let stat = laid.fs.statfs(cx).expect("statfs");
            if stat.free < stat.size / 10 && !files.is_empty() {
                let (dir, text, _) = files.swap_remove(rng.index(files.len()));
                laid.fs.unlink(cx, dir, name(&text)).expect("unlink");
                continue;
            }
            let (dir, text) = (*rng.pick(&dirs), format!("file {step}"));
            let most = if rng.one_in(10) { 200_000 } else { 12_000 };
            let len = 1 + rng.below(most);
            let file = laid.file(dir, &text, len).expect("a file");
            files.push((dir, text, file));
        }
        let (mut blocks, mut runs) = (0, 0);
        for (_, _, file) in &files {
            let all = laid.runs(*file);
            blocks += all
                .iter()
                .map(|(_, _, len)| len.div_ceil(4096))
                .sum::<u64>();
            runs += all.len() as u64;
        }
        println!("{} files, {blocks} blocks in {runs} runs", files.len());
        assert!(files.len() > 500);
        // Laid out by chance, most runs would be of one block.
        assert!(blocks * 10 >= runs * 18, "{blocks} blocks in {runs} runs");
    });
}
