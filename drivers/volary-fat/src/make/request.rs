//! What the user asked for, each part checked by itself.

use super::tables::{FLOPPIES, Floppy};
use crate::names::codepage::CodePage;
use crate::names::long::LongName;
use crate::names::short::hide_first;
use crate::options::{codepage, spec, zone};
use crate::volume::ondisk::Short;
use crate::volume::time::{Stamp, Zone};
use volary_core::{Error, Kind, Make, OptionSpec, Options, Result, escape};

/// The options that `mkfs` knows for FAT.
pub const MAKE_OPTIONS: &[OptionSpec] = &[
    spec(
        "cluster",
        "SIZE",
        "bytes in a cluster, a power of two up to 64k (default: by the volume's size)",
    ),
    spec(
        "sector",
        "SIZE",
        "bytes in a sector: 512, 1024, 2048 or 4096 (default: the device's)",
    ),
    spec("fats", "NUMBER", "copies of the FAT, 1 to 255 (default 2)"),
    spec(
        "reserved",
        "NUMBER",
        "sectors before the first FAT (default 1; 32 for fat32; more to align)",
    ),
    spec(
        "root-entries",
        "NUMBER",
        "room in the root directory of fat12 and fat16 (default 512; floppies 64 to 240)",
    ),
    spec(
        "serial",
        "HEX",
        "serial number (default: made from the seed)",
    ),
    spec(
        "media",
        "HEX",
        "media byte, f0 or f8 to ff (default f8; floppies as their size has it)",
    ),
    spec("heads", "NUMBER", "heads of the disk's geometry"),
    spec(
        "sectors-per-track",
        "NUMBER",
        "sectors per track of the disk's geometry",
    ),
    spec(
        "hidden",
        "NUMBER",
        "sectors on the disk before the volume (default 0)",
    ),
    spec(
        "backup",
        "NUMBER",
        "sector of the copy of fat32's boot sector, 0 for none (default 6)",
    ),
    spec("drive", "HEX", "BIOS drive number (default 80; floppies 0)"),
    spec(
        "align",
        "yes|no",
        "put the first cluster at a multiple of the cluster size (default yes but on floppies)",
    ),
    spec(
        "floppy",
        "SIZE",
        "a floppy's layout: 160k, 180k, 320k, 360k, 640k, 720k, 1200k, 1440k or 2880k (default: by the size)",
    ),
    spec(
        "message",
        "TEXT",
        "what the boot sector prints when it is started (default: that it starts no system)",
    ),
    spec(
        "unix",
        "",
        "make room for UNIX modes and owners, links and devices",
    ),
    spec(
        "small",
        "",
        "let fat32 have fewer clusters than the specification wants",
    ),
    spec(
        "oem",
        "TEXT",
        "name in the boot sector of what made the volume, up to 8 characters",
    ),
    spec("codepage", "NUMBER", "code page of the label (default 437)"),
    spec(
        "tz",
        "ZONE",
        "zone of the times on the disk, as UTC (default) or +HH:MM",
    ),
];

/// Returns an error for what cannot be made, in words.
pub(super) fn invalid(words: impl Into<String>) -> Error {
    Error::note(Kind::Invalid, words)
}

/// The options, checked as far as one can without the device.
pub(super) struct Request {
    pub(super) cluster_len: Option<u32>,
    pub(super) sector_len: Option<u32>,
    pub(super) fat_count: Option<u8>,
    pub(super) reserved: Option<u16>,
    pub(super) root_entries: Option<u16>,
    pub(super) serial: u32,
    pub(super) media: Option<u8>,
    pub(super) heads: Option<u16>,
    pub(super) track: Option<u16>,
    pub(super) hidden: u32,
    pub(super) backup: Option<u16>,
    pub(super) drive: Option<u8>,
    pub(super) align: Option<bool>,
    pub(super) floppy: Option<&'static Floppy>,
    pub(super) message: Vec<u8>,
    pub(super) unix: bool,
    pub(super) small: bool,
    pub(super) oem: [u8; 8],
    pub(super) label: Option<Short>,
    pub(super) stamp: Stamp,
}

const MESSAGE: &str =
    "This volume does not start a system.\nPut in one that does, then press a key.\n";

/// What the specification (page 9) recommends, because some old systems look.
const OEM: &str = "MSWIN4.1";

impl Request {
    pub(super) fn new(how: &Make) -> Result<Self> {
        let o = &how.options;
        o.check_known(MAKE_OPTIONS)?;
        let page = CodePage::new(codepage(o)?)?;
        let Zone(minutes) = zone(o)?;
        Ok(Self {
            cluster_len: cluster_len(o)?,
            sector_len: sector_len(o)?,
            fat_count: within(o, "fats", 1, 255)?.map(|n| n as u8),
            reserved: within(o, "reserved", 1, 65_535)?.map(|n| n as u16),
            root_entries: within(o, "root-entries", 1, 65_535)?.map(|n| n as u16),
            serial: hex(o, "serial", 8)?.unwrap_or_else(|| serial_of(how.seed)),
            media: media(o)?,
            heads: within(o, "heads", 1, 65_535)?.map(|n| n as u16),
            track: within(o, "sectors-per-track", 1, 65_535)?.map(|n| n as u16),
            hidden: within(o, "hidden", 0, u32::MAX)?.unwrap_or(0),
            backup: within(o, "backup", 0, 65_535)?.map(|n| n as u16),
            drive: hex(o, "drive", 2)?.map(|n| n as u8),
            align: o.get("align").map(|_| o.flag("align", true)).transpose()?,
            floppy: floppy(o)?,
            message: message(o.get("message").unwrap_or(MESSAGE))?,
            unix: o.flag("unix", false)?,
            small: o.flag("small", false)?,
            oem: oem(o.get("oem").unwrap_or(OEM))?,
            label: how.label.as_deref().map(|l| label(l, &page)).transpose()?,
            stamp: Stamp::new(how.now, Zone(minutes)),
        })
    }
}

fn within(o: &Options, key: &str, min: u32, max: u32) -> Result<Option<u32>> {
    let Some(n) = o.number(key)? else {
        return Ok(None);
    };
    match u32::try_from(n) {
        Ok(n) if (min..=max).contains(&n) => Ok(Some(n)),
        _ => Err(invalid(format!("{key} is {n}, expected {min} to {max}"))),
    }
}

fn power_of_two(o: &Options, key: &str, min: u32, max: u32) -> Result<Option<u32>> {
    match o.number(key)? {
        None => Ok(None),
        Some(n) if n.is_power_of_two() && (u64::from(min)..=u64::from(max)).contains(&n) => {
            Ok(Some(n as u32))
        }
        Some(n) => Err(invalid(format!(
            "{key} is {n}, expected a power of two from {min} to {max}"
        ))),
    }
}

fn cluster_len(o: &Options) -> Result<Option<u32>> {
    power_of_two(o, "cluster", 512, 65_536)
}

fn sector_len(o: &Options) -> Result<Option<u32>> {
    power_of_two(o, "sector", 512, 4096)
}

/// Returns a number of at most `digits` hexadecimal digits, with `-` anywhere, as
/// serial numbers are printed.
fn hex(o: &Options, key: &str, digits: usize) -> Result<Option<u32>> {
    let Some(text) = o.get(key) else {
        return Ok(None);
    };
    let plain = text.trim_start_matches("0x").replace('-', "");
    if plain.len() <= digits
        && !plain.starts_with('+')
        && let Ok(n) = u32::from_str_radix(&plain, 16)
    {
        return Ok(Some(n));
    }
    Err(invalid(format!(
        "{key} is '{text}', expected up to {digits} hexadecimal digits"
    )))
}

fn media(o: &Options) -> Result<Option<u8>> {
    match hex(o, "media", 2)? {
        None => Ok(None),
        Some(n @ (0xf0 | 0xf8..=0xff)) => Ok(Some(n as u8)),
        Some(n) => Err(invalid(format!("media is {n:x}, expected f0 or f8 to ff"))),
    }
}

fn floppy(o: &Options) -> Result<Option<&'static Floppy>> {
    let Some(size) = o.number("floppy")? else {
        return Ok(None);
    };
    let found = FLOPPIES.iter().find(|f| f.size() == size);
    found.map(Some).ok_or_else(|| {
        let all: Vec<String> = FLOPPIES
            .iter()
            .map(|f| format!("{}k", f.size() >> 10))
            .collect();
        invalid(format!(
            "no floppy of {size} bytes; there are: {}",
            all.join(", ")
        ))
    })
}

fn message(text: &str) -> Result<Vec<u8>> {
    if !text
        .bytes()
        .all(|b| b == b'\n' || (0x20..0x7f).contains(&b))
    {
        return Err(invalid("the boot message must be ASCII, in lines"));
    }
    Ok(text.replace('\n', "\r\n").into_bytes())
}

fn oem(text: &str) -> Result<[u8; 8]> {
    let mut out = [b' '; 8];
    let fits = text.len() <= out.len() && text.bytes().all(|b| (0x20..0x7f).contains(&b));
    if !fits {
        return Err(invalid(format!(
            "oem is '{text}', expected up to 8 ASCII characters"
        )));
    }
    for (to, from) in out.iter_mut().zip(text.bytes()) {
        *to = from;
    }
    Ok(out)
}

/// Returns a label as it is stored: 11 bytes, in upper case, spaces allowed.
///
/// # Errors
/// `Invalid` for an empty label, one that does not fit, or a character that
/// DOS does not allow in labels.
pub fn label(text: &str, page: &CodePage) -> Result<Short> {
    let shown = escape(text.as_bytes());
    let bad = |why: &str| invalid(format!("the label '{shown}' {why}"));
    if text.trim().is_empty() || text.starts_with(' ') {
        return Err(bad("is empty or begins with a space"));
    }
    if LongName::new(text.trim_end().as_bytes()).is_err()
        || text.contains(['.', '+', ',', ';', '=', '[', ']', '\u{7f}'])
    {
        return Err(bad("has a character that labels cannot have"));
    }
    let mut out = [b' '; 11];
    let mut len = 0;
    for c in text.chars() {
        let encoded = page.encode_upper(c).or_else(|| page.encode(c));
        let encoded = encoded.ok_or_else(|| bad("has a character that the code page lacks"))?;
        let bytes = encoded.as_bytes();
        let room = out.get_mut(len..len + bytes.len());
        room.ok_or_else(|| bad("is longer than 11 bytes"))?
            .copy_from_slice(bytes);
        len += bytes.len();
    }
    hide_first(&mut out);
    Ok(out)
}

/// Returns a number that looks random, out of a seed.
fn serial_of(seed: u64) -> u32 {
    // One step of SplitMix64 (Steele, Lea and Flood, 2014).
    let mut x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x >> 32) as u32
}
