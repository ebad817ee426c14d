//! Prints structures as stored.

use crate::disk::cache::{LOOK_MEMORY, cache};
use crate::disk::descriptors::Descriptors;
use crate::disk::names::text;
use crate::disk::ondisk::{VolumeDescriptor, kind};
use crate::disk::record::Record;
use crate::disk::volume::{Stretch, Volume};
use crate::extensions::boot::Catalog;
use crate::extensions::choice::Names;
use crate::extensions::susp::{Areas, each_field};
use crate::tree::dir::Reader;
use crate::tree::path;
use std::fmt;
use std::sync::Arc;
use volary_block::Cache;
use volary_core::{BlockDevice, Error, Kind, OptionSpec, Result, escape};
use volary_ondisk::dump::{Asked, is_written};

pub(crate) const TOPICS: &[OptionSpec] = &[
    OptionSpec {
        name: "descriptors",
        value: "",
        help: "the volume descriptors",
    },
    OptionSpec {
        name: "directory",
        value: "[BLOCK]",
        help: "the records of the directory that begins at a block, with their system use fields; \
               the root's without a block",
    },
    OptionSpec {
        name: "path-table",
        value: "",
        help: "the path table in the little byte order",
    },
    OptionSpec {
        name: "boot",
        value: "",
        help: "El Torito's boot catalog",
    },
];

/// Prints one structure.
///
/// # Errors
/// `Invalid` for an unknown topic; `NotFound`; `Corrupt`; `Io`.
pub(crate) fn dump(
    dev: Arc<dyn BlockDevice>,
    what: &[String],
    out: &mut dyn fmt::Write,
) -> Result<()> {
    let asked = Asked::new(TOPICS, what)?;
    let descriptors = Descriptors::read(&*dev)?;
    let cache = cache(dev, LOOK_MEMORY);
    let volume = || Volume::new(&cache, &descriptors, Names::Plain);
    is_written(match asked.topic {
        "descriptors" => dump_descriptors(&descriptors, out),
        "directory" => {
            let volume = volume()?;
            let root = volume.root / volume.block;
            let block = asked.number::<u64>()?.unwrap_or(root);
            let start = block.saturating_mul(volume.block);
            dump_directory(&cache, &volume, start, out)?
        }
        "path-table" => dump_path_table(&cache, &volume()?, out)?,
        _ => dump_boot(&cache, &descriptors, out)?,
    })
}

fn dump_descriptors(all: &Descriptors, out: &mut dyn fmt::Write) -> fmt::Result {
    for &(sector, kind) in &all.found {
        let what = match kind {
            kind::BOOT => "boot record",
            kind::PRIMARY => "primary",
            kind::SUPPLEMENTARY => "supplementary",
            kind::PARTITION => "partition",
            kind::TERMINATOR => "terminator",
            _ => "of an unknown type",
        };
        writeln!(out, "sector {sector}: type {kind}, {what}")?;
    }
    writeln!(out, "\nprimary volume descriptor")?;
    fields(&all.primary, out)?;
    if let Some((joliet, level)) = &all.joliet {
        writeln!(
            out,
            "\nsupplementary volume descriptor, Joliet level {level}"
        )?;
        fields(joliet, out)?;
    }
    Ok(())
}

fn fields(d: &VolumeDescriptor, out: &mut dyn fmt::Write) -> fmt::Result {
    let texts = [
        ("system identifier", text(&d.system_identifier)),
        ("volume identifier", text(&d.volume_identifier)),
        ("volume set identifier", text(&d.volume_set_identifier)),
        ("publisher identifier", text(&d.publisher_identifier)),
        (
            "data preparer identifier",
            text(&d.data_preparer_identifier),
        ),
        ("application identifier", text(&d.application_identifier)),
        (
            "copyright file identifier",
            text(&d.copyright_file_identifier),
        ),
        (
            "abstract file identifier",
            text(&d.abstract_file_identifier),
        ),
        (
            "bibliographic file identifier",
            text(&d.bibliographic_file_identifier),
        ),
        ("volume creation", text(&d.volume_creation)),
        ("volume modification", text(&d.volume_modification)),
        ("volume expiration", text(&d.volume_expiration)),
        ("volume effective", text(&d.volume_effective)),
    ];
    for (key, value) in texts {
        writeln!(out, "  {key:<30} {value}")?;
    }
    let numbers = [
        ("version", u64::from(d.version)),
        ("volume flags", d.volume_flags.into()),
        ("volume space size", d.volume_space_size.get().into()),
        ("volume set size", d.volume_set_size.get().into()),
        (
            "volume sequence number",
            d.volume_sequence_number.get().into(),
        ),
        ("logical block size", d.logical_block_size.get().into()),
        ("path table size", d.path_table_size.get().into()),
        ("type L path table", d.type_l_path_table.get().into()),
        (
            "optional type L path table",
            d.optional_type_l_path_table.get().into(),
        ),
        ("type M path table", d.type_m_path_table.get().into()),
        (
            "optional type M path table",
            d.optional_type_m_path_table.get().into(),
        ),
        ("file structure version", d.file_structure_version.into()),
    ];
    for (key, value) in numbers {
        writeln!(out, "  {key:<30} {value}")?;
    }
    Ok(())
}

fn dump_directory(
    cache: &Cache,
    volume: &Volume,
    start: u64,
    out: &mut dyn fmt::Write,
) -> Result<fmt::Result> {
    let reader = Reader { cache, volume };
    let first = Stretch {
        start,
        len: volume.block,
    };
    let first = reader.check("directory", start, first)?;
    let own = reader.record(first, &mut 0)?;
    let none = || Error::note(Kind::NotFound, "no directory begins there");
    let own = own.filter(|r| r.is_self() && r.is_dir()).ok_or_else(none)?;
    let len = own.size();
    let dir = reader.check("directory", start, Stretch { start, len })?;
    let (mut at, mut areas) = (0, Areas::of_all(cache));
    while let Some(record) = reader.record(dir, &mut at)? {
        if let Err(e) = dump_record(&reader, &record, &mut areas, out)? {
            return Ok(Err(e));
        }
    }
    Ok(Ok(()))
}

fn dump_record(
    reader: &Reader<'_>,
    record: &Record,
    areas: &mut Areas,
    out: &mut dyn fmt::Write,
) -> Result<fmt::Result> {
    let raw = &record.raw;
    let head = writeln!(
        out,
        "{:#010x} length {} extent {} size {} flags {:#04x} \"{}\"",
        record.at,
        raw.length,
        raw.extent_location.get(),
        raw.data_length.get(),
        raw.file_flags,
        escape(&record.name)
    );
    if head.is_err() {
        return Ok(head);
    }
    let mut done = Ok(());
    // `SP` may say that the first bytes are to be skipped. Bytes that are not a field end the area.
    let (at, area) = (record.at, &record.system_use);
    each_field(reader.cache, reader.volume, at, area, areas, |field| {
        let signature = escape(&field.signature);
        let hex: String = field.data.iter().map(|b| format!("{b:02x}")).collect();
        done = done.and_then(|()| writeln!(out, "           {signature} {hex}"));
        Ok(())
    })?;
    Ok(done)
}

fn dump_path_table(
    cache: &Cache,
    volume: &Volume,
    out: &mut dyn fmt::Write,
) -> Result<fmt::Result> {
    let bytes = path::table(&Reader { cache, volume })?;
    for (number, (raw, name)) in path::records(&bytes).enumerate() {
        let written = writeln!(
            out,
            "{:>6} extent {} parent {} \"{}\"",
            number + 1,
            raw.extent_location.get(),
            raw.parent_directory_number.get(),
            escape(name)
        );
        if written.is_err() {
            return Ok(written);
        }
    }
    Ok(Ok(()))
}

fn dump_boot(
    cache: &Cache,
    descriptors: &Descriptors,
    out: &mut dyn fmt::Write,
) -> Result<fmt::Result> {
    let none = || Error::note(Kind::NotFound, "the volume has no boot catalog");
    let sector = descriptors.boot_catalog.ok_or_else(none)?;
    let catalog = Catalog::read(cache, sector)?.ok_or_else(none)?;
    let valid = if catalog.is_valid { "valid" } else { "damaged" };
    let mut lines = vec![format!(
        "catalog at sector {sector}, {valid}, id \"{}\"",
        catalog.id
    )];
    lines.extend(catalog.images.iter().map(|image| image.words()));
    Ok(lines.iter().try_for_each(|line| writeln!(out, "{line}")))
}
