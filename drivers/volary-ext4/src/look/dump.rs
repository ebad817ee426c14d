//! Structures as they are stored.

use crate::attached::open::{How, open};
use crate::directory::dir::{Chunk, Directory};
use crate::directory::htree;
use crate::disk::features;
use crate::disk::ondisk::{ROOT_INO, SuperBlock, iflag};
use crate::disk::run::{Run, Spot};
use crate::inodes::inode::Inode;
use crate::journal::log::Log;
use crate::journal::superblock::Journal;
use crate::look::info::{LOOK_MEMORY, text, uuid};
use crate::store::Store;
use std::fmt::Write;
use std::sync::Arc;
use volary_core::{BlockDevice, Error, Kind, OptionSpec, Result, escape};
use volary_ondisk::dump::{Asked, Out};

pub(crate) const TOPICS: &[OptionSpec] = &[
    OptionSpec {
        name: "superblock",
        value: "",
        help: "the superblock",
    },
    OptionSpec {
        name: "group",
        value: "N",
        help: "a group's descriptor",
    },
    OptionSpec {
        name: "inode",
        value: "[N]",
        help: "an inode, with its extended attributes; the root directory's without a number",
    },
    OptionSpec {
        name: "blocks",
        value: "N",
        help: "where the blocks of an inode lie",
    },
    OptionSpec {
        name: "directory",
        value: "[N]",
        help: "the entries of a directory, by its inode; the root's without a number",
    },
    OptionSpec {
        name: "htree",
        value: "N",
        help: "the hash tree over a directory, by its inode",
    },
    OptionSpec {
        name: "journal",
        value: "",
        help: "the journal's superblock, and what its log holds",
    },
];

/// Lines that one dump prints at most.
const LINES_MAX: usize = 1 << 20;

/// Prints one structure. Checksums are not looked at, and what is in the journal is not replayed.
///
/// # Errors
/// `Invalid` for an unknown topic; `NotFound`; `Corrupt`; `Io`.
pub(crate) fn dump(dev: &Arc<dyn BlockDevice>, what: &[String], out: &mut dyn Write) -> Result<()> {
    let how = How {
        replays: false,
        is_verified: false,
    };
    let asked = Asked::new(TOPICS, what)?;
    let store = open(dev, how, LOOK_MEMORY)?;
    let lines = match asked.topic {
        "superblock" => superblock(&store),
        "group" => group(&store, asked.needed()?)?,
        "inode" => inode(&store, asked.number()?.unwrap_or(ROOT_INO))?,
        "blocks" => blocks(&store, asked.needed()?)?,
        "directory" => directory(&store, asked.number()?.unwrap_or(ROOT_INO))?,
        "htree" => tree(&store, asked.needed()?)?,
        _ => journal(&store)?,
    };
    Out::new(out).lines(&lines)
}

fn line(key: &str, value: impl std::fmt::Display) -> String {
    format!("  {key:<24} {value}")
}

/// Fields of 32 bits.
fn words(raw: &SuperBlock) -> Vec<String> {
    let numbers = [
        ("s_inodes_count", raw.s_inodes_count),
        ("s_blocks_count_lo", raw.s_blocks_count_lo),
        ("s_blocks_count_hi", raw.s_blocks_count_hi),
        ("s_r_blocks_count_lo", raw.s_r_blocks_count_lo),
        ("s_free_blocks_count_lo", raw.s_free_blocks_count_lo),
        ("s_free_inodes_count", raw.s_free_inodes_count),
        ("s_first_data_block", raw.s_first_data_block),
        ("s_log_block_size", raw.s_log_block_size),
        ("s_log_cluster_size", raw.s_log_cluster_size),
        ("s_blocks_per_group", raw.s_blocks_per_group),
        ("s_clusters_per_group", raw.s_clusters_per_group),
        ("s_inodes_per_group", raw.s_inodes_per_group),
        ("s_mkfs_time", raw.s_mkfs_time),
        ("s_mtime", raw.s_mtime),
        ("s_wtime", raw.s_wtime),
        ("s_lastcheck", raw.s_lastcheck),
        ("s_checkinterval", raw.s_checkinterval),
        ("s_creator_os", raw.s_creator_os),
        ("s_rev_level", raw.s_rev_level),
        ("s_first_ino", raw.s_first_ino),
        ("s_journal_inum", raw.s_journal_inum),
        ("s_journal_dev", raw.s_journal_dev),
        ("s_last_orphan", raw.s_last_orphan),
        ("s_first_meta_bg", raw.s_first_meta_bg),
        ("s_flags", raw.s_flags),
        ("s_error_count", raw.s_error_count),
        ("s_overhead_blocks", raw.s_overhead_blocks),
        ("s_usr_quota_inum", raw.s_usr_quota_inum),
        ("s_grp_quota_inum", raw.s_grp_quota_inum),
        ("s_prj_quota_inum", raw.s_prj_quota_inum),
        ("s_orphan_file_inum", raw.s_orphan_file_inum),
    ];
    numbers
        .map(|(key, number)| line(key, number.get()))
        .to_vec()
}

/// Fields of 16 bits.
fn short_words(raw: &SuperBlock) -> Vec<String> {
    let shorts = [
        ("s_mnt_count", raw.s_mnt_count),
        ("s_max_mnt_count", raw.s_max_mnt_count),
        ("s_state", raw.s_state),
        ("s_errors", raw.s_errors),
        ("s_minor_rev_level", raw.s_minor_rev_level),
        ("s_def_resuid", raw.s_def_resuid),
        ("s_def_resgid", raw.s_def_resgid),
        ("s_inode_size", raw.s_inode_size),
        ("s_block_group_nr", raw.s_block_group_nr),
        ("s_desc_size", raw.s_desc_size),
        ("s_reserved_gdt_blocks", raw.s_reserved_gdt_blocks),
        ("s_encoding", raw.s_encoding),
    ];
    shorts.map(|(key, number)| line(key, number.get())).to_vec()
}

fn superblock(store: &Store) -> Vec<String> {
    let raw = &store.volume().raw;
    let mut lines = vec![
        line("s_uuid", uuid(&raw.s_uuid)),
        line("s_volume_name", text(&raw.s_volume_name)),
        line("s_last_mounted", text(&raw.s_last_mounted)),
        line(
            "s_feature_compat",
            features::compat(raw.s_feature_compat.get()),
        ),
        line(
            "s_feature_incompat",
            features::incompat(raw.s_feature_incompat.get()),
        ),
        line(
            "s_feature_ro_compat",
            features::ro_compat(raw.s_feature_ro_compat.get()),
        ),
    ];
    lines.extend(words(raw));
    lines.extend(short_words(raw));
    let seed = raw.s_hash_seed.map(|word| format!("{:08x}", word.get()));
    lines.push(line("s_hash_seed", seed.join(" ")));
    lines.push(line("s_def_hash_version", raw.s_def_hash_version));
    lines.push(line("s_log_groups_per_flex", raw.s_log_groups_per_flex));
    lines.push(line("s_checksum_type", raw.s_checksum_type));
    lines.push(line("s_kbytes_written", raw.s_kbytes_written.get()));
    lines.push(line("s_mmp_block", raw.s_mmp_block.get()));
    lines.push(line(
        "s_checksum_seed",
        format!("{:#010x}", raw.s_checksum_seed.get()),
    ));
    lines.push(line(
        "s_checksum",
        format!("{:#010x}", raw.s_checksum.get()),
    ));
    lines
}

fn group(store: &Store, number: u32) -> Result<Vec<String>> {
    if number >= store.volume().groups {
        let words = format!("there are {} groups", store.volume().groups);
        return Err(Error::note(Kind::NotFound, words));
    }
    let (group, bytes) = store.groups().group_unchecked(number)?;
    let first = store.volume().group_start(number);
    let last = first + store.volume().group_len(number).saturating_sub(1);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(vec![
        format!(
            "group {number}, blocks {first} to {last}, descriptor at byte {}",
            group.at
        ),
        line("bg_block_bitmap", group.block_bitmap),
        line("bg_inode_bitmap", group.inode_bitmap),
        line("bg_inode_table", group.inode_table),
        line("bg_free_blocks_count", group.free_clusters),
        line("bg_free_inodes_count", group.free_inodes),
        line("bg_used_dirs_count", group.dirs),
        line("bg_flags", format!("{:#x}", group.flags)),
        line("bg_itable_unused", group.unused),
        line(
            "bg_block_bitmap_csum",
            format!("{:#x}", group.block_bitmap_csum),
        ),
        line(
            "bg_inode_bitmap_csum",
            format!("{:#x}", group.inode_bitmap_csum),
        ),
        line("bytes", hex),
    ])
}

fn known(store: &Store, ino: u32) -> Result<Inode> {
    store.inodes().inode(ino).map_err(|e| match e.kind() {
        Kind::Stale => Error::note(
            Kind::NotFound,
            format!("there are inodes 1 to {}", store.volume().inodes),
        ),
        _ => e,
    })
}

fn inode(store: &Store, ino: u32) -> Result<Vec<String>> {
    let inode = known(store, ino)?;
    let (head, extra) = (&inode.head, &inode.extra);
    let two = |low: u16, high: u16| u32::from(high) << 16 | u32::from(low);
    let time = |secs: u32, extra: u32| format!("{} extra {extra:#x}", secs.cast_signed());
    let mut lines = vec![
        format!("inode {ino}, at byte {}", inode.at),
        line("i_mode", format!("{:o}", head.i_mode.get())),
        line("i_uid", two(head.i_uid.get(), head.l_i_uid_high.get())),
        line("i_gid", two(head.i_gid.get(), head.l_i_gid_high.get())),
        line("i_size", inode.size),
        line("i_links_count", head.i_links_count.get()),
        line("i_blocks", format!("{} of 512 bytes", inode.sectors)),
        line("i_flags", features::inode(inode.flags())),
        line("i_generation", head.i_generation.get()),
        line("i_file_acl", inode.file_acl),
        line(
            "i_atime",
            time(head.i_atime.get(), extra.i_atime_extra.get()),
        ),
        line(
            "i_ctime",
            time(head.i_ctime.get(), extra.i_ctime_extra.get()),
        ),
        line(
            "i_mtime",
            time(head.i_mtime.get(), extra.i_mtime_extra.get()),
        ),
        line(
            "i_crtime",
            time(extra.i_crtime.get(), extra.i_crtime_extra.get()),
        ),
        line("i_dtime", head.i_dtime.get()),
        line("i_extra_isize", extra.i_extra_isize.get()),
        line("i_projid", extra.i_projid.get()),
    ];
    if store.volume().has_sums() {
        let (stored, sum) = inode.sums();
        let words = match stored == sum {
            true => format!("{stored:#010x}"),
            false => format!("{stored:#010x}, should be {sum:#010x}"),
        };
        lines.push(line("i_checksum", words));
    }
    let hex = head.i_block.map(|byte| format!("{byte:02x}")).concat();
    lines.push(line("i_block", hex));
    let xattrs = store.xattrs(&inode);
    for xattr in xattrs.all()? {
        let name = xattr.shown().unwrap_or_else(|| b"(not shown)".to_vec());
        let value = match xattrs.value(&xattr) {
            Ok(value) => format!("\"{}\"", escape(&value)),
            Err(e) => e.to_string(),
        };
        lines.push(line(
            "extended attribute",
            format!("{} = {value}", escape(&name)),
        ));
    }
    Ok(lines)
}

fn words_of(run: &Run) -> String {
    let last = run.end().saturating_sub(1);
    let range = format!("{:>10} to {last:<10}", run.first);
    match run.spot {
        Spot::Data(at) => format!("{range} at {at}"),
        Spot::Unwritten(at) => format!("{range} at {at}, never written"),
        Spot::Hole => format!("{range} hole"),
    }
}

fn blocks(store: &Store, ino: u32) -> Result<Vec<String>> {
    let inode = known(store, ino)?;
    if inode.has(iflag::INLINE_DATA) || inode.is_short_link(store.volume()) {
        return Ok(vec!["the data is in the inode".into()]);
    }
    let mut lines = Vec::new();
    let end = inode.size.div_ceil(store.volume().block);
    store.map(&inode).each_run(0, end, |run| {
        push(&mut lines, words_of(&run));
        Ok(())
    })?;
    Ok(lines)
}

fn push(lines: &mut Vec<String>, line: String) {
    match lines.len().cmp(&LINES_MAX) {
        std::cmp::Ordering::Less => lines.push(line),
        std::cmp::Ordering::Equal => lines.push("and more".into()),
        std::cmp::Ordering::Greater => {}
    }
}

fn directory(store: &Store, ino: u32) -> Result<Vec<String>> {
    let inode = known(store, ino)?;
    inode.check_dir()?;
    let dir = store.directory(&inode);
    let (mut lines, mut start) = (Vec::new(), 0);
    while let Some(chunk) = dir.chunk(start)? {
        push(&mut lines, format!("at {start}, byte {}", chunk.at));
        entries(dir, &chunk, &mut lines)?;
        start = chunk.end();
    }
    Ok(lines)
}

fn entries(dir: Directory<'_>, chunk: &Chunk, lines: &mut Vec<String>) -> Result<()> {
    let mut place = chunk.start;
    while let Some((raw, name, end)) = dir.raw_entry(chunk, place)? {
        let words = format!(
            "  {place:>8} inode {:<10} rec_len {:<5} type {} \"{}\"",
            raw.inode.get(),
            end - place,
            raw.file_type,
            escape(name)
        );
        push(lines, words);
        place = end;
    }
    Ok(())
}

fn tree(store: &Store, ino: u32) -> Result<Vec<String>> {
    let inode = known(store, ino)?;
    inode.check_dir()?;
    let dir = store.directory(&inode);
    let none = || Error::note(Kind::NotFound, "the directory has no hash tree");
    let has_tree = inode.has(iflag::INDEX) && !inode.has(iflag::INLINE_DATA);
    let chunk = dir.chunk(0)?.filter(|_| has_tree).ok_or_else(none)?;
    let root = htree::Root::of(&chunk.bytes).ok_or_else(none)?;
    let mut lines = vec![format!(
        "hash {}, {} levels below the root",
        root.hash_version, root.levels
    )];
    let mut todo = vec![(0u64, 0u8)];
    while let Some((block, depth)) = todo.pop() {
        if lines.len() >= LINES_MAX {
            break;
        }
        let start = block.saturating_mul(store.volume().block);
        let Some(chunk) = dir.chunk(start)? else {
            continue;
        };
        let Some(node) = htree::Node::of(&chunk.bytes, block == 0) else {
            lines.push(format!("block {block}: no node"));
            continue;
        };
        lines.push(format!(
            "block {block}: {} of {} entries",
            node.count, node.limit
        ));
        for (hash, below) in node.entries(&chunk.bytes) {
            push(&mut lines, format!("  {hash:#010x} block {below}"));
            if depth < root.levels {
                todo.push((below.into(), depth + 1));
            }
        }
    }
    Ok(lines)
}

fn journal(store: &Store) -> Result<Vec<String>> {
    let journal = Journal::read(store)?;
    let raw = &journal.raw;
    let mut lines = vec![
        line("s_blocksize", raw.s_blocksize.get()),
        line("s_maxlen", raw.s_maxlen.get()),
        line("s_first", raw.s_first.get()),
        line("s_sequence", raw.s_sequence.get()),
        line("s_start", raw.s_start.get()),
        line("s_errno", raw.s_errno.get().cast_signed()),
        line(
            "s_feature_compat",
            format!("{:#x}", raw.s_feature_compat.get()),
        ),
        line(
            "s_feature_incompat",
            format!("{:#x}", raw.s_feature_incompat.get()),
        ),
        line(
            "s_feature_ro_compat",
            format!("{:#x}", raw.s_feature_ro_compat.get()),
        ),
        line("s_uuid", uuid(&raw.s_uuid)),
        line("s_nr_users", raw.s_nr_users.get()),
        line("s_checksum_type", raw.s_checksum_type),
        line("s_num_fc_blks", raw.s_num_fc_blks.get()),
        line("s_checksum", format!("{:#010x}", raw.s_checksum.get())),
    ];
    if journal.is_empty() {
        lines.push("the log is empty".into());
        return Ok(lines);
    }
    let log = Log::read(store, &journal)?;
    lines.push(format!(
        "{} transactions, the next is {}",
        log.transactions, log.next
    ));
    for written in &log.written {
        let words = format!(
            "  transaction {}: block {} at journal block {}",
            written.sequence, written.block, written.at
        );
        push(&mut lines, words);
    }
    let fast = crate::journal::fast::read(store, &journal, log.next)?;
    for (tag, value) in fast {
        push(
            &mut lines,
            format!("  fast commit: tag {tag}, {} bytes", value.len()),
        );
    }
    Ok(lines)
}
