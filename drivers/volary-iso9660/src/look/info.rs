//! Describes the descriptors in words.

use crate::disk::cache::{LOOK_MEMORY, cache};
use crate::disk::date;
use crate::disk::descriptors::Descriptors;
use crate::disk::names::text;
use crate::disk::ondisk::VolumeDescriptor;
use crate::disk::volume::Volume;
use crate::extensions::boot::Catalog;
use crate::extensions::choice::{Names, rock_ridge};
use std::sync::Arc;
use volary_core::{BlockDevice, Fact, Result, Time};

/// Returns facts about the volume.
///
/// # Errors
/// As [`Volume::new`].
pub(crate) fn info(dev: Arc<dyn BlockDevice>) -> Result<Vec<Fact>> {
    let size = dev.geometry().size;
    let descriptors = Descriptors::read(&*dev)?;
    let cache = cache(dev, LOOK_MEMORY);
    let volume = Volume::new(&cache, &descriptors, Names::Plain)?;
    let primary = &descriptors.primary;
    let mut facts = vec![Fact::word("format", "iso9660")];
    facts.extend(identifiers(primary));
    facts.push(Fact::number("block size", volume.block, "bytes"));
    facts.push(Fact::number("volume size", volume.space, "bytes"));
    if volume.space > size {
        facts.push(Fact::number(
            "missing at the end",
            volume.space - size,
            "bytes",
        ));
    }
    let rock = rock_ridge(&cache, &volume)?;
    facts.push(Fact::word(
        "Rock Ridge",
        match rock.map(|rock| rock.version) {
            None => "no".into(),
            Some(None) => "yes, without its identifier".into(),
            Some(Some(version)) => version,
        },
    ));
    facts.push(Fact::word(
        "Joliet",
        match &descriptors.joliet {
            None => "no".into(),
            Some((_, level)) => format!("level {level}"),
        },
    ));
    let dates = [
        ("created", primary.volume_creation),
        ("changed", primary.volume_modification),
    ];
    for (key, date) in dates {
        if let Some(time) = date::long(date) {
            facts.push(Fact::word(key, show(time)));
        }
    }
    facts.extend(boot(&cache, &descriptors)?);
    Ok(facts)
}

fn identifiers(primary: &VolumeDescriptor) -> impl Iterator<Item = Fact> {
    let all = [
        ("label", text(&primary.volume_identifier)),
        ("system", text(&primary.system_identifier)),
        ("volume set", text(&primary.volume_set_identifier)),
        ("publisher", text(&primary.publisher_identifier)),
        ("preparer", text(&primary.data_preparer_identifier)),
        ("application", text(&primary.application_identifier)),
    ];
    let all = all.into_iter().filter(|(_, text)| !text.is_empty());
    all.map(|(key, text)| Fact::word(key, text))
}

fn boot(cache: &volary_block::Cache, descriptors: &Descriptors) -> Result<Vec<Fact>> {
    let Some(sector) = descriptors.boot_catalog else {
        return Ok(Vec::new());
    };
    let Some(catalog) = Catalog::read(cache, sector)? else {
        return Ok(vec![Fact::word("El Torito", "a catalog past the end")]);
    };
    let valid = if catalog.is_valid { "" } else { ", damaged" };
    let words = format!("catalog at sector {sector}{valid}");
    let mut facts = vec![Fact::word("El Torito", words)];
    if !catalog.id.is_empty() {
        facts.push(Fact::word("boot maker", catalog.id));
    }
    let images = catalog.images.iter();
    facts.extend(images.map(|image| Fact::word("boot image", image.words())));
    Ok(facts)
}

/// Formats a time in UTC.
fn show(time: Time) -> String {
    let (year, month, day) = time.date();
    let second = time.secs.rem_euclid(86_400);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}
