//! The root and the layout, in words.

use crate::disk::volume::Layout;
use crate::recover::{How, Recovered, open};
use std::sync::Arc;
use volary_core::{BlockDevice, Fact, Result, escape};

/// Memory for a look at a volume, in bytes.
pub(crate) const LOOK_MEMORY: u64 = 16 << 20;

/// How a volume is opened for a look: nothing is written, and damage of the log
/// is passed over.
pub(crate) const LOOK: How = How {
    read_only: true,
    memory: LOOK_MEMORY,
    io_size: 256 << 10,
    salvage: true,
};

/// Returns a text that is not empty, as a terminal can show it.
fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| escape(text.as_bytes()).to_string())
}

/// Returns what the layout says.
pub(crate) fn facts(layout: &Layout) -> Vec<Fact> {
    let place = |start: u32, len: u32| format!("pages {start} to {}", start + len - 1);
    vec![
        Fact::maybe("label", some(&layout.label)),
        Fact::number("page size", u64::from(layout.page), "bytes"),
        Fact::number("pages", u64::from(layout.pages), ""),
        Fact::number("pages for files", u64::from(layout.data_pages()), ""),
        Fact::number("name table", u64::from(layout.table_len), "pages, twice"),
        Fact::word(
            "name table, first copy",
            place(layout.table_a, layout.table_len),
        ),
        Fact::word(
            "name table, second copy",
            place(layout.table_b, layout.table_len),
        ),
        Fact::word("log", place(layout.log, layout.log_len())),
        Fact::number("third of the log", u64::from(layout.third), "pages"),
        Fact::number("longest record", u64::from(layout.record_max()), "pages"),
        Fact::word(
            "saved maps",
            layout
                .maps()
                .map(|first| place(first, layout.map_len))
                .join(", "),
        ),
        Fact::word(
            "allocation map",
            match layout.logs_map {
                true => "logged",
                false => "saved when left",
            },
        ),
        Fact::word(
            "checksums of data",
            if layout.has_sums { "kept" } else { "not kept" },
        ),
        Fact::number("most pieces of a file", layout.runs_max() as u64, ""),
        Fact::maybe("remote", some(&layout.remote)),
        Fact::number("longest name", layout.name_max() as u64, "bytes"),
        Fact::word("volume number", format!("{:016x}", layout.nonce)),
    ]
}

fn state(recovered: &Recovered) -> String {
    match (&recovered.lost, recovered.records) {
        (Some(words), _) => words.clone(),
        (None, 0) => "cleanly left".into(),
        (None, n) => format!("{n} log records to be replayed"),
    }
}

/// The layout, how full the volume is, and how it was left.
///
/// # Errors
/// As [`Format::info`](volary_core::Format::info).
pub(crate) fn info(dev: Arc<dyn BlockDevice>) -> Result<Vec<Fact>> {
    let (files, recovered) = open(dev, &LOOK)?;
    let mut out = facts(&files.core.layout);
    let page = u64::from(files.core.layout.page);
    out.push(Fact::number(
        "free",
        u64::from(files.core.map.vam().free()) * page,
        "bytes",
    ));
    out.push(Fact::number(
        "free in the name table",
        u64::from(files.core.map.vam().table_free()),
        "pages",
    ));
    out.push(Fact::number("epoch", u64::from(files.core.log.epoch()), ""));
    out.push(Fact::number("last record", files.core.log.last(), ""));
    out.push(Fact::word("state", state(&recovered)));
    Ok(out)
}
