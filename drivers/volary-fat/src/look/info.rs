//! The boot sector and the layout in words (`info`).

use crate::look::walk::{Walker, Where};
use crate::names::codepage::CodePage;
use crate::names::short::TrimSpaces;
use crate::unix::owner::{OwnerTable, TABLE_LEN_MAX, TABLE_NAME};
use crate::volume::layout::Layout;
use crate::volume::ondisk::{FSI_LEAD, FSI_STRUC, FsInfo, STATE_DIRTY, STATE_ERROR, Short};
use volary_core::{BlockDevice, Fact, Result, escape};
use zerocopy::FromBytes;

/// Returns what the boot sector, FSInfo and the root directory say of a volume. The
/// FAT is not read, so that it takes no longer on a large volume.
///
/// # Errors
/// As [`Layout::read`].
pub fn info(dev: &dyn BlockDevice) -> Result<Vec<Fact>> {
    let layout = Layout::read(dev)?;
    let mut facts = layout_facts(&layout);
    facts.extend(fsinfo_facts(dev, &layout));
    facts.extend(root_facts(dev, &layout)?);
    Ok(facts)
}

/// Returns what the boot sector says.
pub(crate) fn layout_facts(layout: &Layout) -> Vec<Fact> {
    let sector = u64::from(layout.sector_len);
    let size = u64::from(layout.total_sectors) * sector;
    let mut facts = vec![
        Fact::word("kind", layout.kind.name()),
        Fact::number("size", size, "bytes"),
        Fact::number("sector size", sector, "bytes"),
        Fact::number("cluster size", layout.cluster_len.into(), "bytes"),
        Fact::number("clusters", layout.cluster_count.into(), ""),
        Fact::number("sectors", layout.total_sectors.into(), ""),
        Fact::number("reserved sectors", layout.reserved_sectors.into(), ""),
        Fact::number("FATs", layout.fat_count.into(), ""),
        Fact::number("FAT size", layout.fat_sectors.into(), "sectors"),
        Fact::number("first data sector", layout.data_sector.into(), ""),
    ];
    if layout.is_fat32() {
        facts.push(Fact::number("root cluster", layout.root_cluster.into(), ""));
        if !layout.mirrored {
            facts.push(Fact::number("active FAT", layout.active_fat.into(), ""));
        }
        let backup = layout.backup_sector.map_or(0, u64::from);
        facts.push(Fact::number("backup boot sector", backup, ""));
    } else {
        facts.push(Fact::number("root entries", layout.root_entries.into(), ""));
    }
    if layout.atari {
        facts.push(Fact::word("boot sector", "Atari's, without a signature"));
    }
    facts.push(Fact::word("media", format!("{:#04x}", layout.media)));
    facts.push(Fact::word(
        "made by",
        escape(layout.oem.trim_spaces()).to_string(),
    ));
    if let Some(serial) = layout.serial {
        facts.push(Fact::word("serial", serial_words(serial)));
    }
    facts.push(Fact::word("state", state_words(layout.state)));
    facts
}

/// Returns a serial number as DOS prints it: `1234-ABCD`.
pub(crate) fn serial_words(serial: u32) -> String {
    format!("{:04X}-{:04X}", serial >> 16, serial & 0xffff)
}

fn state_words(state: u8) -> &'static str {
    match (state & STATE_DIRTY != 0, state & STATE_ERROR != 0) {
        (false, false) => "clean",
        (true, false) => "not cleanly left",
        (false, true) => "the disk failed",
        (true, true) => "not cleanly left, the disk failed",
    }
}

fn fsinfo_facts(dev: &dyn BlockDevice, layout: &Layout) -> Vec<Fact> {
    let words = match layout.fsinfo_sector {
        None => return Vec::new(),
        Some(n) => read_fsinfo(dev, u64::from(n) * u64::from(layout.sector_len)),
    };
    let Some(fsinfo) = words else {
        return vec![Fact::word("FSInfo", "not readable, or not one")];
    };
    let number = |key, n: u32| match n {
        u32::MAX => Fact::word(key, "not known"),
        n => Fact::number(key, n.into(), ""),
    };
    vec![
        number("free clusters (FSInfo)", fsinfo.FSI_Free_Count.get()),
        number("next free (FSInfo)", fsinfo.FSI_Nxt_Free.get()),
    ]
}

/// Returns the FSInfo sector at a byte offset, if it is one.
pub(crate) fn read_fsinfo(dev: &dyn BlockDevice, offset: u64) -> Option<FsInfo> {
    let mut bytes = [0; 512];
    dev.read_at(offset, &mut bytes).ok()?;
    let fsinfo = FsInfo::read_from_bytes(&bytes).ok()?;
    let real = fsinfo.FSI_LeadSig.get() == FSI_LEAD && fsinfo.FSI_StrucSig.get() == FSI_STRUC;
    real.then_some(fsinfo)
}

/// Label and UNIX extension, as the root directory has them.
fn root_facts(dev: &dyn BlockDevice, layout: &Layout) -> Result<Vec<Fact>> {
    let page = CodePage::new(CodePage::DEFAULT)?;
    let walker = Walker::new(dev, layout);
    let mut label: Option<Short> = None;
    let mut owners = None;
    let mut entries = 0;
    let damage = walker.records(Where::Root, &mut |record| {
        let short = &record.short;
        if short.is_label() {
            label = label.or(Some(short.DIR_Name));
        } else if short.DIR_Name == TABLE_NAME && !short.is_dir() {
            owners = Some(*short);
        } else {
            entries += 1;
        }
        true
    });
    let label = label.or(layout.label);
    let label = label.and_then(|label| label_words(label, &page));
    let mut facts = vec![Fact::maybe("label", label)];
    facts.push(Fact::number("entries in the root directory", entries, ""));
    if let Err(e) = damage {
        facts.push(Fact::word("root directory", e.to_string()));
    }
    let table = owners.and_then(|entry| {
        let bytes = walker.content(&entry, TABLE_LEN_MAX).ok()?;
        OwnerTable::parse(&bytes)
    });
    facts.push(match table {
        Some(table) => Fact::number("UNIX extension", table.len() as u64, "owners"),
        None if !layout.is_fat32() && crate::unix::paper::is_used(dev, layout)? => {
            Fact::word("UNIX extension", "in DosFs's own layout")
        }
        None => Fact::none("UNIX extension"),
    });
    Ok(facts)
}

/// Returns a label for people; `None` where it stands for none.
pub(crate) fn label_words(label: Short, page: &CodePage) -> Option<String> {
    let text = label_text(label, page)?;
    Some(escape(text.as_bytes()).to_string())
}

/// Returns a label as it was given; `None` where it stands for none.
pub(crate) fn label_text(label: Short, page: &CodePage) -> Option<String> {
    if label == *b"NO NAME    " || label.trim_spaces().is_empty() {
        return None;
    }
    let mut real = label;
    crate::names::short::unhide_first(&mut real);
    let mut out = Vec::new();
    page.decode(real.trim_spaces(), false, &mut out);
    Some(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::make::make;
    use crate::volume::layout::FatKind;
    use volary_block::MemDevice;
    use volary_core::{Kind, Make, Options};

    fn value(facts: &[Fact], key: &str) -> String {
        let fact = facts.iter().find(|f| f.key == key);
        fact.unwrap_or_else(|| panic!("{key}")).value.clone()
    }

    #[test]
    fn a_new_volume_is_described() {
        let dev = MemDevice::new(64 << 20);
        let how = Make {
            label: Some("Grün 1".into()),
            options: Options::parse("unix,serial=1234-abcd"),
            ..Make::default()
        };
        make(&dev, FatKind::Fat32, &how).unwrap();
        let facts = info(&dev).unwrap();
        assert_eq!(value(&facts, "kind"), "fat32");
        assert_eq!(value(&facts, "label"), "GRÜN 1");
        assert_eq!(value(&facts, "serial"), "1234-ABCD");
        assert_eq!(value(&facts, "state"), "clean");
        assert_eq!(value(&facts, "UNIX extension"), "0 owners");
        let clusters = facts
            .iter()
            .find(|f| f.key == "clusters")
            .unwrap()
            .number
            .unwrap();
        assert_eq!(
            value(&facts, "free clusters (FSInfo)"),
            (clusters - 2).to_string()
        );
    }

    #[test]
    fn what_is_no_volume_is_told_with_its_offset() {
        let e = info(&MemDevice::new(1 << 20)).unwrap_err();
        assert_eq!(e, Kind::Corrupt);
        assert_eq!(e.as_corrupt().unwrap().offset, 510);
    }
}
