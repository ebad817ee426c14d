//! The volume's descriptors, checked, and the choice of names.

use crate::dir::Stretch;
use crate::ondisk::{BootRecord, DESCRIPTORS, SECTOR, STANDARD_ID, VolumeDescriptor, kind};
use crate::record::Record;
use crate::rockridge::Rock;
use crate::susp::{Areas, each_field};
use volary_block::Cache;
use volary_core::{BlockDevice, Error, Kind, Result};
use zerocopy::FromBytes;

/// How many descriptors are looked at.
const DESCRIPTORS_MAX: u64 = 64;

/// The descriptors of a volume.
pub(crate) struct Descriptors {
    pub(crate) primary: VolumeDescriptor,
    /// The supplementary one with Unicode names, and its level.
    pub(crate) joliet: Option<(VolumeDescriptor, u8)>,
    /// Where El Torito's boot catalog is, by its sector.
    pub(crate) boot_catalog: Option<u32>,
    /// All that were found: sector and type.
    pub(crate) found: Vec<(u64, u8)>,
}

impl Descriptors {
    /// Reads them.
    ///
    /// # Errors
    /// `Corrupt` without a primary one; `Io`.
    pub(crate) fn read(dev: &dyn BlockDevice) -> Result<Self> {
        let (mut primary, mut joliet, mut boot_catalog) = (None, None, None);
        let mut found = Vec::new();
        for sector in DESCRIPTORS..DESCRIPTORS + DESCRIPTORS_MAX {
            let Some(bytes) = sector_of(dev, sector)? else {
                break;
            };
            let Ok(descriptor) = VolumeDescriptor::read_from_bytes(&bytes) else {
                break;
            };
            if descriptor.standard_identifier != STANDARD_ID {
                break;
            }
            found.push((sector, descriptor.kind));
            match descriptor.kind {
                kind::PRIMARY if primary.is_none() => primary = Some(descriptor),
                kind::SUPPLEMENTARY => {
                    let level = joliet_level(&descriptor.escape_sequences);
                    joliet = joliet.or(level.map(|level| (descriptor, level)));
                }
                kind::BOOT => boot_catalog = boot_catalog.or(catalog(&bytes)),
                kind::TERMINATOR => break,
                _ => {}
            }
        }
        let missing = || {
            let at = DESCRIPTORS * SECTOR;
            Error::corrupt("volume descriptors", at, "none", "a primary one")
        };
        Ok(Self {
            primary: primary.ok_or_else(missing)?,
            joliet,
            boot_catalog,
            found,
        })
    }
}

/// A sector, if the device has all of it.
fn sector_of(dev: &dyn BlockDevice, sector: u64) -> Result<Option<Vec<u8>>> {
    let at = sector * SECTOR;
    if at + SECTOR > dev.geometry().size {
        return Ok(None);
    }
    let mut bytes = vec![0; SECTOR as usize];
    dev.read_at(at, &mut bytes)?;
    Ok(Some(bytes))
}

/// Whether a primary volume descriptor stands where it should.
pub(crate) fn looks_like(dev: &dyn BlockDevice) -> Result<Option<VolumeDescriptor>> {
    match Descriptors::read(dev) {
        Ok(descriptors) => Ok(Some(descriptors.primary)),
        Err(e) if e == Kind::Corrupt => Ok(None),
        Err(e) => Err(e),
    }
}

/// Joliet's escape sequences: UCS-2 in levels 1 to 3.
fn joliet_level(escapes: &[u8; 32]) -> Option<u8> {
    match escapes {
        [0x25, 0x2f, 0x40, ..] => Some(1),
        [0x25, 0x2f, 0x43, ..] => Some(2),
        [0x25, 0x2f, 0x45, ..] => Some(3),
        _ => None,
    }
}

fn catalog(bytes: &[u8]) -> Option<u32> {
    let record = BootRecord::read_from_bytes(bytes).ok()?;
    let is_el_torito = record
        .boot_system_identifier
        .starts_with(b"EL TORITO SPECIFICATION");
    is_el_torito.then(|| record.boot_catalog.get())
}

/// Which names are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// The best there are: Rock Ridge's, Joliet's, plain ones.
    Auto,
    RockRidge,
    Joliet,
    /// Plain ones in lower case, without versions.
    Plain,
    /// Plain ones as they are stored.
    Iso,
}

/// What the tree is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tree {
    /// `skip`: bytes before the first field of each system use area (`SP`).
    RockRidge {
        skip: usize,
    },
    Joliet,
    Plain,
    Iso,
}

/// A volume: what was checked once, and is believed from then on.
#[derive(Clone, Debug)]
pub(crate) struct Volume {
    /// Bytes of a logical block.
    pub(crate) block: u64,
    /// Bytes of the volume, as it says itself.
    pub(crate) space: u64,
    /// Where the root directory begins, in bytes on the device.
    pub(crate) root: u64,
    /// Its length, as its descriptor says.
    pub(crate) root_len: u64,
    /// Where its path table lies, in the little byte order.
    pub(crate) path_table: Stretch,
    pub(crate) tree: Tree,
}

impl Volume {
    /// Checks the descriptors and chooses the names.
    ///
    /// # Errors
    /// `Corrupt` naming the first field out of its range; `Invalid` for names that
    /// the volume does not have; `Io`.
    pub(crate) fn new(cache: &Cache, descriptors: &Descriptors, names: Names) -> Result<Self> {
        let primary = Self::of(cache, &descriptors.primary)?;
        let joliet = match &descriptors.joliet {
            Some((descriptor, _)) => Some(Self::of(cache, descriptor)?),
            None => None,
        };
        let lacking = |what: &str| {
            let words = format!("the volume has no {what} names");
            Err(Error::note(Kind::Invalid, words))
        };
        let as_tree = |volume: Self, tree| Ok(Self { tree, ..volume });
        match names {
            Names::Iso => as_tree(primary, Tree::Iso),
            Names::Plain => as_tree(primary, Tree::Plain),
            Names::Joliet => match joliet {
                Some(joliet) => as_tree(joliet, Tree::Joliet),
                None => lacking("Joliet"),
            },
            Names::RockRidge | Names::Auto => match (rock_ridge(cache, &primary)?, joliet) {
                (Some(rock), _) => as_tree(primary, Tree::RockRidge { skip: rock.skip }),
                (None, _) if names == Names::RockRidge => lacking("Rock Ridge"),
                (None, Some(joliet)) => as_tree(joliet, Tree::Joliet),
                (None, None) => as_tree(primary, Tree::Plain),
            },
        }
    }

    fn of(cache: &Cache, descriptor: &VolumeDescriptor) -> Result<Self> {
        let at = DESCRIPTORS * SECTOR;
        let block = u64::from(descriptor.logical_block_size.get());
        if !matches!(block, 512 | 1024 | 2048) {
            let expected = "512, 1024 or 2048";
            return Err(Error::corrupt(
                "logical block size",
                at + 128,
                block.to_string(),
                expected,
            ));
        }
        let root = Record::parse(at + 156, &descriptor.root_directory_record)?;
        let no_root = || Error::corrupt("root directory record", at + 156, "none", "a directory's");
        let root = root.filter(Record::is_dir).ok_or_else(no_root)?;
        let mut volume = Self {
            block,
            space: u64::from(descriptor.volume_space_size.get()) * block,
            root: 0,
            root_len: root.size(),
            path_table: Stretch {
                start: u64::from(descriptor.type_l_path_table.get()) * block,
                len: descriptor.path_table_size.get().into(),
            },
            tree: Tree::Plain,
        };
        volume.root = root.start(&volume);
        let room = cache.size().saturating_sub(volume.root);
        if volume.root < at || room < volume.root_len || volume.root_len == 0 {
            let found = format!("{} bytes at {}", volume.root_len, volume.root);
            let expected = format!("inside of the device's {} bytes", cache.size());
            return Err(Error::corrupt("root directory", at + 156, found, expected));
        }
        Ok(volume)
    }
}

/// What says that a volume has Rock Ridge.
pub(crate) struct RockRidge {
    pub(crate) skip: usize,
    /// The identifier of the extension (`ER`), if there is one.
    pub(crate) version: Option<String>,
}

/// Looks behind the root directory's record of itself: `SP` stands first, and
/// either `ER` names Rock Ridge, or its fields are there.
///
/// # Errors
/// `Io`.
pub(crate) fn rock_ridge(cache: &Cache, volume: &Volume) -> Result<Option<RockRidge>> {
    let mut bytes = vec![0; volume.block.min(volume.root_len) as usize];
    cache.read(volume.root, &mut bytes)?;
    let Ok(Some(record)) = Record::parse(volume.root, &bytes) else {
        return Ok(None);
    };
    let (mut skip, mut version, mut first) = (None, None, true);
    let mut areas = Areas::of_all(cache);
    let all = (record.at, &*record.system_use);
    let read = each_field(cache, volume, all, &mut areas, |field| {
        match (&field.signature, field.data) {
            (b"SP", &[0xbe, 0xef, n, ..]) if first => skip = Some(usize::from(n)),
            (b"ER", &[len, _, _, _, ref text @ ..]) => {
                let id = text.get(..usize::from(len)).unwrap_or(text);
                let id = String::from_utf8_lossy(id).into_owned();
                let known = ["RRIP_1991A", "IEEE_P1282", "IEEE_1282"].contains(&id.as_str());
                version = version.take().or(known.then_some(id));
            }
            _ => {}
        }
        first = false;
        Ok(())
    });
    let Some(skip) = skip else { return Ok(None) };
    match read.and_then(|()| Rock::read(cache, volume, &record, 0, &mut Areas::of_all(cache))) {
        Ok(rock) if rock.posix.is_some() || version.is_some() => {
            Ok(Some(RockRidge { skip, version }))
        }
        Err(e) if e == Kind::Io => Err(e),
        _ => Ok(None),
    }
}
