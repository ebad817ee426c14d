//! Making a volume.

use crate::change::files::Files;
use crate::change::nodes::Nodes;
use crate::commit::core::{Core, Takes};
use crate::commit::log_state::LogState;
use crate::disk::ondisk::{LABEL_MAX, PAGE_MAX, PAGE_MIN, REMOTE_MAX};
use crate::disk::volume::{
    LOGGED_MIN, Layout, RECORD_OVERHEAD, RECORDS_IN_THIRD, TABLE_MIN, Wanted,
};
use crate::log::{Anchor, write_anchors};
use crate::name_table::table::Table;
use crate::remote::link::Links;
use crate::space::vam::Vam;
use siphasher::sip::SipHasher24;
use std::hash::Hasher;
use std::sync::Arc;
use volary_block::{Cache, CacheOptions};
use volary_core::{BlockDevice, Error, Fact, Kind, Make, OptionSpec, Result};

/// What making knows.
pub(crate) const MAKE_OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "page",
        value: "SIZE",
        help: "Bytes in a page: a power of two, at least a sector (4096, or a sector)",
    },
    OptionSpec {
        name: "log",
        value: "SIZE",
        help: "Bytes of the log (a 32nd of the volume, within 1.4 to 6 MiB)",
    },
    OptionSpec {
        name: "name-table",
        value: "SIZE",
        help: "Bytes of each copy of the name table: about 200 for each file (a 16th to a 64th of the volume)",
    },
    OptionSpec {
        name: "map",
        value: "logged|saved",
        help: "Whether the log has what changes in the allocation map, or the map is only saved when the volume is left, as in the paper and in releases before (logged)",
    },
    OptionSpec {
        name: "checksums",
        value: "",
        help: "Keep checksums of data, and hold what is read to them (no)",
    },
    OptionSpec {
        name: "cache",
        value: "VOLUME",
        help: "Make a read-only cache of another volume, an NFS export say: its root is that volume's",
    },
    OptionSpec {
        name: "remote",
        value: "VOLUME",
        help: "Let files and directories be links to those of another volume (volary ln --remote)",
    },
    OptionSpec {
        name: "mode",
        value: "MODE",
        help: "Mode of the root, in octal (755)",
    },
    OptionSpec {
        name: "owner",
        value: "UID",
        help: "Owner of the root (0)",
    },
    OptionSpec {
        name: "group",
        value: "GID",
        help: "Group of the root (0)",
    },
];

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn invalid(words: String) -> Error {
    Error::note(Kind::Invalid, words)
}

/// Returns bytes in a page.
fn page_size(dev: &dyn BlockDevice, how: &Make) -> Result<u32> {
    let sector = u64::from(dev.geometry().sector);
    let page = how.options.number("page")?.unwrap_or(sector.max(4 * KIB));
    let known = (PAGE_MIN as u64..=PAGE_MAX as u64).contains(&page) && page.is_power_of_two();
    if !known || page < sector {
        return Err(invalid(format!(
            "option 'page' is {page}, expected a power of two from {} to {PAGE_MAX}",
            sector.max(PAGE_MIN as u64)
        )));
    }
    Ok(page as u32)
}

/// Pages of the name table and of a third of the log.
fn sizes(page: u32, pages: u32, how: &Make) -> Result<(u32, u32)> {
    let size = u64::from(page);
    let whole = |bytes: u64| u32::try_from(bytes / size).unwrap_or(u32::MAX);
    let table = match how.options.number("name-table")? {
        Some(bytes) => whole(bytes),
        None if u64::from(pages) * size <= 64 * MIB => pages / 16,
        None => (pages / 64).max(whole(4 * MIB)),
    };
    let least = RECORDS_IN_THIRD * (RECORD_OVERHEAD + 2 * (LOGGED_MIN + 1));
    let most = whole(2 * MIB).max(least);
    let third = match how.options.number("log")? {
        Some(bytes) => whole(bytes / 3),
        None => (pages / 96).clamp(least, most),
    };
    Ok((table.max(TABLE_MIN), third.clamp(1, u32::MAX / 8)))
}

/// Returns the layout that the options ask for.
fn plan(dev: &dyn BlockDevice, how: &Make) -> Result<Layout> {
    how.options.check_known(MAKE_OPTIONS)?;
    let page = page_size(dev, how)?;
    let size = dev.geometry().size;
    let pages = u32::try_from(size / u64::from(page)).map_err(|_| {
        invalid(format!(
            "too large: {size} bytes in pages of {page}; larger pages hold more"
        ))
    })?;
    let label = how.label.clone().unwrap_or_default();
    if label.len() > LABEL_MAX {
        return Err(invalid(format!(
            "a label of {} bytes, at most {LABEL_MAX}",
            label.len()
        )));
    }
    let (table, third) = sizes(page, pages, how)?;
    let mut hasher = SipHasher24::new_with_keys(how.seed, how.now.secs as u64);
    hasher.write_u64(size);
    let wanted = Wanted {
        page,
        pages,
        table,
        third,
        logs_map: how
            .options
            .choice("map", &[("logged", true), ("saved", false)])?
            .unwrap_or(true),
    };
    let mut layout = Layout::plan(wanted, hasher.finish(), how.now.secs as u64, &label)?;
    layout.has_sums = how.options.flag("checksums", false)?;
    // Releases that know no logged map know no chains either.
    layout.has_chains = layout.logs_map;
    layout.remote = remote(how)?.0;
    Ok(layout)
}

/// The remote's name, and whether the volume is a cache of it.
fn remote(how: &Make) -> Result<(String, bool)> {
    let (name, is_cache) = match (how.options.get("cache"), how.options.get("remote")) {
        (None, None) => return Ok((String::new(), false)),
        (Some(_), Some(_)) => {
            let words = "options 'cache' and 'remote' exclude each other";
            return Err(invalid(words.into()));
        }
        (Some(name), None) => (name, true),
        (None, Some(name)) => (name, false),
    };
    match (1..=REMOTE_MAX).contains(&name.len()) {
        true => Ok((name.to_owned(), is_cache)),
        false => Err(invalid(format!(
            "the name of a remote has {} bytes, expected 1 to {REMOTE_MAX}",
            name.len()
        ))),
    }
}

/// Makes a new, empty volume over the whole device.
///
/// # Errors
/// As [`Format::make`](volary_core::Format::make).
pub(crate) fn make(dev: &Arc<dyn BlockDevice>, how: &Make) -> Result<Vec<Fact>> {
    let layout = plan(&**dev, how)?;
    let mode = how.options.octal("mode")?.unwrap_or(0o755);
    let id = |key| how.options.number(key).map(|n| n.unwrap_or(0) as u32);
    let (owner, group) = (id("owner")?, id("group")?);
    let (_, is_cache) = remote(how)?;
    // No root until all else is there; and nothing of an older volume.
    for page in layout.roots() {
        dev.zero(layout.offset(page), u64::from(layout.page))?;
    }
    let middle = layout.offset(layout.table_a)..layout.offset(layout.middle_end());
    dev.zero(middle.start, middle.end - middle.start)?;
    dev.flush()?;
    let anchor = Anchor {
        stamp: 1,
        epoch: 0,
        position: 0,
        seq: 1,
        durable: 0,
    };
    write_anchors(&**dev, &layout, &anchor, [0, 1])?;
    let log = LogState::new(anchor, 0, 0, 1);
    let table = Table::new(4 * MIB, &layout);
    let mut vam = Vam::empty(&layout);
    vam.mark_table(0, true);
    let cache = Cache::new(dev.clone(), CacheOptions::default());
    let facts = crate::look::info::facts(&layout);
    let mut files = Files::new(Core::new(layout, cache, table, vam, log));
    files.core.takes = Takes::Unopened;
    files.core.map.all_due();
    start_table(&mut files.core);
    files.change(how.now, |c| {
        Nodes::of(c).make_root(how.now, mode, owner, group)
    })?;
    if is_cache {
        files.change(how.now, |c| Links::of(c).link_root_far(how.now))?;
    }
    files.core.leave(how.now)?;
    for page in files.core.layout.roots() {
        dev.write_at(
            files.core.layout.offset(page),
            &files.core.layout.encode(page),
        )?;
    }
    dev.flush()?;
    Ok(facts)
}

/// Begins the table of a volume that has none: its root is an empty leaf.
fn start_table(core: &mut Core) {
    let root = crate::name_table::page::build(0, 0, core.layout.nonce, core.layout.page_len(), &[]);
    core.table.change(0, root);
}
