//! Printing structures in full, as they are stored (`dump`). Works on damaged
//! volumes: what contradicts itself is printed with the contradiction.

mod fields;

use crate::directory::slots::Event;
use crate::look::info::label_words;
use crate::look::walk::{Found, Walker, Where, entry_offset};
use crate::names::codepage::CodePage;
use crate::names::long;
use crate::names::record::Record;
use crate::names::style::{Names, Style};
use crate::options::spec;
use crate::unix::owner::{OwnerTable, TABLE_LEN_MAX, TABLE_NAME};
use crate::unix::paper;
use crate::unix::today::UnixData;
use crate::volume::layout::Layout;
use crate::volume::ondisk::{DirEntry, END, ENTRY_LEN, FREE, LAST_LONG_ENTRY, LongEntry, attr};
use crate::volume::time::{Zone, write_time};
use fields::{BOOT, BOOT16, BOOT32, FSINFO, LONG, SHORT, bytes_words, print_fields};
use std::fmt::Write;
use volary_core::{BlockDevice, Error, FileKind, Kind, OptionSpec, Result, Time, escape};
use volary_ondisk::dump::{Asked, Out};
use zerocopy::transmute_ref;

/// What [`dump`] can show.
pub const DUMP_TOPICS: &[OptionSpec] = &[
    spec(
        "boot",
        "[SECTOR]",
        "the boot sector, or its copy in another sector, field by field",
    ),
    spec("fsinfo", "", "FAT32's free-space sector, field by field"),
    spec(
        "fat",
        "[FROM[-TO]]",
        "entries of the FAT, eight to a line (default: all)",
    ),
    spec("cluster", "NUMBER", "the bytes of a cluster"),
    spec(
        "dir",
        "PATH|CLUSTER",
        "every slot of a directory, free ones and orphans too",
    ),
    spec("entry", "PATH", "the slots of one entry, field by field"),
    spec(
        "chain",
        "PATH|CLUSTER",
        "where the clusters of a file or directory lie",
    ),
    spec(
        "owners",
        "",
        "the table of owners behind the UNIX extension",
    ),
];

/// Prints the structure that `what` names.
///
/// # Errors
/// `Invalid` for an unknown topic or a number that is none; `NotFound`,
/// `NotDir`; `Corrupt` where damage ends what can be printed (after what
/// could); `Io`.
pub fn dump(dev: &dyn BlockDevice, what: &[String], out: &mut dyn Write) -> Result<()> {
    let asked = Asked::new(DUMP_TOPICS, what)?;
    let mut out = Out::new(out);
    if asked.topic == "boot" {
        return boot(dev, asked.number()?.unwrap_or(0), &mut out);
    }
    let layout = Layout::read(dev)?;
    let dump = Dump {
        dev,
        layout: &layout,
        walker: Walker::new(dev, &layout),
        names: Names::new(Style::Long, CodePage::DEFAULT, false)?,
    };
    let word = asked.word().unwrap_or_default();
    match asked.topic {
        "fsinfo" => dump.fsinfo(&mut out),
        "fat" => dump.fat(asked.word(), &mut out),
        "owners" => dump.owners(&mut out),
        "cluster" => dump.cluster(asked.needed()?, &mut out),
        "dir" => dump.dir(word, &mut out),
        "entry" => dump.entry(word, &mut out),
        _ => dump.chain(word, &mut out),
    }
}

fn invalid(words: impl Into<String>) -> Error {
    Error::note(Kind::Invalid, words)
}

fn number(text: &str) -> Result<u32> {
    volary_ondisk::dump::number(text).ok_or_else(|| {
        let text = escape(text.as_bytes());
        invalid(format!("'{text}' is no cluster number"))
    })
}

/// The boot sector in sector `at`, whatever is wrong with it.
fn boot(dev: &dyn BlockDevice, at: u32, out: &mut Out<'_>) -> Result<()> {
    let sector_len = Layout::read(dev).map_or(512, |l| l.sector_len);
    let offset = u64::from(at) * u64::from(sector_len);
    let mut sector = [0; 512];
    dev.read_at(offset, &mut sector)?;
    print_fields(out, BOOT, &sector)?;
    // BPB_FATSz16 is 0 on FAT32 alone.
    let fat32 = sector.get(22..24) == Some(&[0, 0]);
    print_fields(out, if fat32 { BOOT32 } else { BOOT16 }, &sector)?;
    match Layout::parse(&sector, dev.geometry().size) {
        Ok(layout) => out.line(format_args!(
            "{}: {} clusters",
            layout.kind.name(),
            layout.cluster_count
        )),
        Err(e) => out.line(format_args!("{e}")),
    }
}

struct Dump<'a> {
    dev: &'a dyn BlockDevice,
    layout: &'a Layout,
    walker: Walker<'a>,
    names: Names,
}

impl Dump<'_> {
    fn fsinfo(&self, out: &mut Out<'_>) -> Result<()> {
        let Some(n) = self.layout.fsinfo_sector else {
            return Err(Error::note(
                Kind::NotFound,
                "this volume has no FSInfo sector",
            ));
        };
        let mut sector = [0; 512];
        self.dev.read_at(
            u64::from(n) * u64::from(self.layout.sector_len),
            &mut sector,
        )?;
        print_fields(out, FSINFO, &sector)
    }

    fn fat(&self, range: Option<&str>, out: &mut Out<'_>) -> Result<()> {
        let last = self.layout.last_cluster();
        let (from, to) = match range {
            None => (0, last),
            Some(text) => match text.split_once('-') {
                Some((from, to)) => (number(from)?, number(to)?),
                None => (number(text)?, number(text)?),
            },
        };
        if from > to || to > last {
            return Err(invalid(format!("the FAT has entries 0 to {last}")));
        }
        let digits = self.layout.kind.bits().div_ceil(4) as usize;
        let mut n = from;
        while n <= to {
            let mut line = format!("{n:10}");
            for i in n..=to.min(n + 7) {
                // Cannot fail: it is a String.
                let _ = write!(line, " {:0digits$x}", self.walker.raw_entry(i)?);
            }
            out.line(format_args!("{line}"))?;
            n += 8;
        }
        Ok(())
    }

    fn cluster(&self, n: u32, out: &mut Out<'_>) -> Result<()> {
        if !self.layout.is_cluster(n) {
            return Err(invalid(format!(
                "clusters are numbered from 2 to {}",
                self.layout.last_cluster()
            )));
        }
        let offset = self.layout.cluster_offset(n);
        let mut bytes = vec![0; self.layout.cluster_len as usize];
        self.dev.read_at(offset, &mut bytes)?;
        let entry = self.walker.raw_entry(n)?;
        let at = entry_offset(self.layout, n);
        out.line(format_args!(
            "cluster {n} at byte {offset:#x}; its FAT entry at byte {at:#x} is {entry:#x}"
        ))?;
        hex(out, offset, &bytes)
    }

    /// Returns the directory that a path or a cluster number names.
    fn dir_at(&self, place: &str) -> Result<Where> {
        match number(place) {
            Ok(0) => Ok(Where::Root),
            Ok(n) => Ok(Where::Cluster(n)),
            Err(_) => self.walker.dir_of(self.walker.find(place)?.as_ref()),
        }
    }

    fn dir(&self, place: &str, out: &mut Out<'_>) -> Result<()> {
        let dir = self.dir_at(place)?;
        let mut written = Ok(());
        let read = self.walker.events(dir, &mut |event| {
            written = self.event(&event, out);
            written.is_ok()
        });
        written.and(read)
    }

    fn event(&self, event: &Event<'_>, out: &mut Out<'_>) -> Result<()> {
        match event {
            Event::Record(r) => self.record(r, out),
            Event::Free(slot) => out.line(format_args!("{slot:6} free")),
            Event::End(slot) => out.line(format_args!("{slot:6} end")),
            Event::Orphan { first, count } => out.line(format_args!(
                "{first:6} {count} long part(s) that belong to nothing"
            )),
        }
    }

    fn record(&self, r: &Record<'_>, out: &mut Out<'_>) -> Result<()> {
        let mut name = Vec::new();
        self.names.show(r, &mut name);
        let name = if r.short.is_label() {
            label_words(r.short.DIR_Name, &self.names.page).unwrap_or_else(|| "none".into())
        } else {
            escape(&name).to_string()
        };
        let parts = r.last_slot - r.first_slot + 1;
        out.line(format_args!(
            "{:6} {parts:2} slot(s) {} cluster {:9} size {:10} {} {}{name}",
            r.first_slot,
            attr_words(r.short.DIR_Attr),
            r.short.first_cluster(self.layout.is_fat32()),
            r.short.DIR_FileSize.get(),
            time_words(write_time(&r.short, Zone(0))),
            unix_words(&r.short),
        ))
    }

    fn entry(&self, path: &str, out: &mut Out<'_>) -> Result<()> {
        let Some(found) = self.walker.find(path)? else {
            return Err(invalid("the root directory has no entry"));
        };
        let (first, last) = found.slots;
        let mut slot = 0;
        let mut written = Ok(());
        self.walker.dir_bytes(found.dir, &mut |at, bytes| {
            let (entries, _) = bytes.as_chunks::<ENTRY_LEN>();
            for (i, raw) in entries.iter().enumerate() {
                if (first..=last).contains(&slot) && written.is_ok() {
                    written = self.slot(slot, at + (i * ENTRY_LEN) as u64, raw, out);
                }
                slot += 1;
            }
            slot <= last && written.is_ok()
        })?;
        written
    }

    /// One slot, field by field.
    fn slot(&self, slot: u32, at: u64, raw: &[u8; ENTRY_LEN], out: &mut Out<'_>) -> Result<()> {
        let entry: &DirEntry = transmute_ref!(raw);
        out.line(format_args!(
            "slot {slot} at byte {at:#x}: {}",
            bytes_words(raw)
        ))?;
        match raw.first() {
            Some(&END) => return out.line(format_args!("free, as all after it")),
            Some(&FREE) => return out.line(format_args!("free")),
            _ => {}
        }
        if entry.is_long() {
            print_fields(out, LONG, raw)?;
            let part: &LongEntry = transmute_ref!(raw);
            let text = String::from_utf16_lossy(&long::part_units(part));
            let text = text.trim_end_matches('\u{ffff}').trim_end_matches('\0');
            let order = part.LDIR_Ord & !LAST_LONG_ENTRY;
            return out.line(format_args!(
                "part {order} of a long name: {}",
                escape(text.as_bytes())
            ));
        }
        print_fields(out, SHORT, raw)?;
        out.line(format_args!("attributes {}", attr_words(entry.DIR_Attr)))?;
        out.line(format_args!(
            "changed {}",
            time_words(write_time(entry, Zone(0)))
        ))?;
        out.line(format_args!(
            "long-name checksum {:#04x}",
            crate::names::short::checksum(&entry.DIR_Name)
        ))?;
        match unix_words(entry).trim_end() {
            "" => out.line(format_args!("no UNIX extension")),
            words => out.line(format_args!("UNIX extension: {words}")),
        }
    }

    fn chain(&self, place: &str, out: &mut Out<'_>) -> Result<()> {
        let fat32 = self.layout.is_fat32();
        let first = match number(place) {
            Ok(n) => n,
            Err(_) => match self.walker.find(place)? {
                Some(Found { entry, .. }) => entry.first_cluster(fat32),
                None if fat32 => self.layout.root_cluster,
                None => {
                    return Err(invalid("the root directory of FAT12 and FAT16 is no chain"));
                }
            },
        };
        if first == 0 {
            return out.line(format_args!("no clusters"));
        }
        let (mut runs, mut clusters) = (0_u64, 0_u64);
        let mut written = Ok(());
        let read = self.walker.runs(first, &mut |run| {
            let last = run.first + run.len - 1;
            let at = self.layout.cluster_offset(run.first);
            written = out.line(format_args!(
                "{clusters:10} clusters {}-{last} at byte {at:#x}",
                run.first
            ));
            runs += 1;
            clusters += u64::from(run.len);
            written.is_ok()
        });
        written.and(read)?;
        out.line(format_args!("{clusters} cluster(s) in {runs} run(s)"))
    }

    fn owners(&self, out: &mut Out<'_>) -> Result<()> {
        let mut file = None;
        self.walker.records(Where::Root, &mut |r| {
            let found = r.short.DIR_Name == TABLE_NAME && !r.short.is_dir() && !r.short.is_label();
            if found {
                file = Some(r.short);
            }
            !found
        })?;
        let Some(file) = file else {
            return Err(Error::note(
                Kind::NotFound,
                "this volume has no table of owners (VOLARY.OWN)",
            ));
        };
        let bytes = self.walker.content(&file, TABLE_LEN_MAX)?;
        let Some(table) = OwnerTable::parse(&bytes) else {
            return Err(Error::note(
                Kind::Corrupt,
                "VOLARY.OWN is no table of owners",
            ));
        };
        for index in 1..=table.len() as u16 {
            let (uid, gid) = table.get(index).unwrap_or_default();
            out.line(format_args!("{index:5} uid {uid} gid {gid}"))?;
        }
        out.line(format_args!("{} owner(s)", table.len()))
    }
}

/// Attributes as letters: read-only, hidden, system, label, directory, archive.
fn attr_words(bits: u8) -> String {
    let letters = [
        (attr::READ_ONLY, 'r'),
        (attr::HIDDEN, 'h'),
        (attr::SYSTEM, 's'),
        (attr::VOLUME_ID, 'l'),
        (attr::DIRECTORY, 'd'),
        (attr::ARCHIVE, 'a'),
        (paper::EXTENDED, 'x'),
        (paper::LONG, 't'),
    ];
    letters
        .iter()
        .map(|(bit, c)| if bits & bit != 0 { *c } else { '-' })
        .collect()
}

/// Both layouts of the UNIX extension, in words with a space after, or "".
fn unix_words(entry: &DirEntry) -> String {
    if let Some(u) = UnixData::read(entry) {
        let kind = kind_word(u.kind);
        return format!(
            "{kind} {:04o} owner {} generation {} ",
            u.mode, u.owner, u.generation
        );
    }
    match paper::Extension::read(entry) {
        Some(e) => format!(
            "{} {:04o} uid {} gid {} device {},{} ",
            kind_word(e.kind()),
            e.mode & 0o7777,
            e.uid,
            e.gid,
            e.major,
            e.minor
        ),
        None => String::new(),
    }
}

fn kind_word(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Dir => "directory",
        FileKind::Symlink => "symlink",
        FileKind::Fifo => "fifo",
        FileKind::Socket => "socket",
        FileKind::CharDevice => "character device",
        FileKind::BlockDevice => "block device",
    }
}

/// Returns a time as it stands on the disk, in no zone.
fn time_words(time: Time) -> String {
    let (year, month, day) = time.date();
    let second = time.secs.rem_euclid(86_400);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// Sixteen bytes to a line; lines like the one before are left out for a `*`.
fn hex(out: &mut Out<'_>, start: u64, bytes: &[u8]) -> Result<()> {
    let mut before: Option<&[u8]> = None;
    let mut left_out = false;
    for (i, line) in bytes.chunks(16).enumerate() {
        if before == Some(line) {
            if !left_out {
                out.line(format_args!("*"))?;
            }
            left_out = true;
            continue;
        }
        (before, left_out) = (Some(line), false);
        let text: String = line
            .iter()
            .map(|&b| {
                if (0x20..0x7f).contains(&b) {
                    b as char
                } else {
                    '.'
                }
            })
            .collect();
        out.line(format_args!(
            "{:010x}  {:47}  {text}",
            start + i as u64 * 16,
            bytes_words(line)
        ))?;
    }
    out.line(format_args!("{:010x}", start + bytes.len() as u64))
}

#[cfg(test)]
mod tests;
