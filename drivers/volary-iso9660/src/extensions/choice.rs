//! The choice of names: Rock Ridge's, Joliet's or plain ones.

use crate::disk::descriptors::Descriptors;
use crate::disk::record::Record;
use crate::disk::volume::{Tree, Volume};
use crate::extensions::rockridge::Rock;
use crate::extensions::susp::{Areas, each_field};
use volary_block::Cache;
use volary_core::{Error, Kind, Result};

/// Which names are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// The best ones available: Rock Ridge's, otherwise Joliet's, otherwise plain ones.
    Auto,
    RockRidge,
    Joliet,
    /// Plain ones in lower case, without versions.
    Plain,
    /// Plain ones as stored.
    Iso,
}

impl Volume {
    /// Checks the descriptors and chooses the names.
    ///
    /// # Errors
    /// `Corrupt`, naming the first field that is out of its range; `Invalid` for names that the
    /// volume does not have; `Io`.
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
}

/// The evidence that a volume has Rock Ridge.
pub(crate) struct RockRidge {
    pub(crate) skip: usize,
    /// The identifier of the extension (`ER`), if there is one.
    pub(crate) version: Option<String>,
}

/// Looks for Rock Ridge behind the root directory's record of itself. `SP` must come first. Also,
/// `ER` must name Rock Ridge, or its fields must be there.
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
    let (at, area) = (record.at, &record.system_use);
    let read = each_field(cache, volume, at, area, &mut areas, |field| {
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
