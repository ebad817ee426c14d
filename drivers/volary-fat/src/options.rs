//! The options of a mount, checked.

use crate::names::codepage::CodePage;
use crate::names::style::Style;
use crate::unix::owner::Ownership;
use crate::volume::time::Zone;
use volary_core::{Attach, Error, Kind, OptionSpec, Options, Result};

/// Largest request, unless the user says otherwise: where reading and writing
/// stop getting faster on today's devices.
pub(crate) const IO_SIZE: u32 = 256 << 10;
/// The least is what the cache asks for at once.
const IO_SIZES: std::ops::RangeInclusive<u64> = volary_block::PAGE as u64..=16 << 20;

/// Which UNIX extension a mount uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnixMode {
    /// Whichever the volume has.
    Auto,
    /// Today's; a volume without it gets it.
    On,
    /// None.
    Off,
    /// The paper's, of FAT12 and FAT16.
    Dosfs,
}

/// The options of a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MountOptions {
    /// Who owns what has no owner of its own.
    pub own: Ownership,
    /// How names are shown and made.
    pub names: Style,
    /// The UNIX extension.
    pub unix: UnixMode,
    /// Largest request for a contiguous stretch of a file, in bytes: a power
    /// of two.
    pub io_size: u32,
    /// Number of the code page of short names; there is one of that number.
    pub codepage: u16,
    /// What local time is.
    pub zone: Zone,
    /// Changes of mode and owner that cannot be kept succeed without effect.
    pub quiet: bool,
    /// Where the copy of the boot sector is that is gone by, in sectors of 512 bytes.
    pub boot: Option<u64>,
}

/// The option that names a copy of the boot sector.
pub(crate) const BOOT: OptionSpec = spec(
    "boot",
    "SECTOR",
    "go by the copy of the boot sector at this sector of 512 bytes, mostly 6, of FAT32",
);

/// The options that [`MountOptions::new`] knows.
pub(crate) const MOUNT_OPTIONS: &[OptionSpec] = &[
    spec(
        "own",
        "mounter|root",
        "who owns files without an owner: who mounts, with their umask (default), or root, open to all",
    ),
    spec("uid", "ID", "owner of files without one"),
    spec("gid", "ID", "group of files without one"),
    spec(
        "umask",
        "OCTAL",
        "permission bits to take away from all modes, those on the disk too",
    ),
    spec("fmask", "OCTAL", "the same for files only"),
    spec("dmask", "OCTAL", "the same for directories only"),
    spec(
        "nosuid",
        "",
        "take set-uid and set-gid bits away from modes on the disk",
    ),
    spec(
        "names",
        "long|dos|lower|unix",
        "VFAT's long names (default); 8.3 as DOS shows them; 8.3 in lower case; 11 bytes as they are",
    ),
    spec(
        "unix",
        "auto|on|off|dosfs",
        "UNIX modes and owners: if the volume has them (default), in whichever layout; always; never; in DosFs's own layout",
    ),
    spec(
        "iosize",
        "SIZE",
        "largest request, a power of two from 4k to 16M (default 256k)",
    ),
    spec(
        "codepage",
        "NUMBER",
        "code page of short names (default 437)",
    ),
    spec(
        "tz",
        "ZONE",
        "zone of the times on the disk, as UTC (default) or +HH:MM",
    ),
    spec(
        "quiet",
        "",
        "let changes of mode and owner that cannot be kept succeed without effect",
    ),
    BOOT,
];

/// Returns a row of a table of options.
pub(crate) const fn spec(
    name: &'static str,
    value: &'static str,
    help: &'static str,
) -> OptionSpec {
    OptionSpec { name, value, help }
}

impl MountOptions {
    /// Checks the options of a mount.
    ///
    /// # Errors
    /// `Invalid` for an unknown option or a value that is none, naming it.
    pub(crate) fn new(how: &Attach) -> Result<Self> {
        let options = &how.options;
        options.check_known(MOUNT_OPTIONS)?;
        let unix = options.choice(
            "unix",
            &[
                ("auto", UnixMode::Auto),
                ("on", UnixMode::On),
                ("off", UnixMode::Off),
                ("dosfs", UnixMode::Dosfs),
            ],
        )?;
        let unix = unix.unwrap_or(UnixMode::Auto);
        let names = options.choice("names", &Style::CHOICES)?;
        Ok(Self {
            own: ownership(how)?,
            names: names.unwrap_or(default_names(unix)),
            unix,
            io_size: io_size(options)?,
            codepage: codepage(options)?,
            zone: zone(options)?,
            quiet: options.flag("quiet", false)?,
            boot: options.number(BOOT.name)?,
        })
    }

    /// Goes by the paper's layout, which the volume was found to have.
    pub(crate) fn take_paper(&mut self, how: &Attach) {
        self.unix = UnixMode::Dosfs;
        if how.options.get("names").is_none() {
            self.names = default_names(self.unix);
        }
    }
}

/// The paper's layout has the paper's default.
fn default_names(unix: UnixMode) -> Style {
    match unix {
        UnixMode::Dosfs => Style::Lower,
        _ => Style::Long,
    }
}

fn ownership(how: &Attach) -> Result<Ownership> {
    let options = &how.options;
    let root = options.choice("own", &[("mounter", false), ("root", true)])?;
    let (uid, gid, umask) = match root {
        Some(true) => (0, 0, 0),
        _ => (how.uid, how.gid, how.umask & 0o777),
    };
    let umask_given = options.octal("umask")?;
    let fmask_given = options.octal("fmask")?.or(umask_given);
    let dmask_given = options.octal("dmask")?.or(umask_given);
    for (key, mask) in [("fmask", fmask_given), ("dmask", dmask_given)] {
        if mask.is_some_and(|m| m > 0o7777) {
            let words = format!("{key} (or umask) has more than the 12 bits of a mode");
            return Err(Error::note(Kind::Invalid, words));
        }
    }
    let suid = if options.flag("nosuid", false)? {
        0o6000
    } else {
        0
    };
    Ok(Ownership {
        uid: id(options, "uid")?.unwrap_or(uid),
        gid: id(options, "gid")?.unwrap_or(gid),
        fmask: fmask_given.unwrap_or(umask),
        dmask: dmask_given.unwrap_or(umask),
        disk_fmask: fmask_given.unwrap_or(0) | suid,
        disk_dmask: dmask_given.unwrap_or(0),
    })
}

fn id(options: &Options, key: &str) -> Result<Option<u32>> {
    let too_large = || Error::note(Kind::Invalid, format!("{key} is larger than an id can be"));
    let number = options.number(key)?;
    number
        .map(|n| u32::try_from(n).map_err(|_| too_large()))
        .transpose()
}

fn io_size(options: &Options) -> Result<u32> {
    let size = options.number("iosize")?.unwrap_or(IO_SIZE.into());
    if !size.is_power_of_two() || !IO_SIZES.contains(&size) {
        let words = format!("iosize is {size}, expected a power of two from 4k to 16M");
        return Err(Error::note(Kind::Invalid, words));
    }
    // At most 16 MiB.
    Ok(size as u32)
}

/// Returns the option `codepage`; the default without it.
///
/// # Errors
/// `Invalid` if there is no such code page.
pub(crate) fn codepage(options: &Options) -> Result<u16> {
    let number = options
        .number("codepage")?
        .unwrap_or(CodePage::DEFAULT.into());
    // What is too large is no code page either.
    let page = CodePage::new(u16::try_from(number).unwrap_or(u16::MAX))?;
    Ok(page.number())
}

/// Returns the option `tz`; UTC without it.
///
/// # Errors
/// `Invalid` if it is no zone.
pub(crate) fn zone(options: &Options) -> Result<Zone> {
    let Some(text) = options.get("tz") else {
        return Ok(Zone(0));
    };
    parse_zone(text).ok_or_else(|| {
        let words = format!("tz is '{text}', expected UTC or +HH:MM (at most 14 hours)");
        Error::note(Kind::Invalid, words)
    })
}

fn parse_zone(text: &str) -> Option<Zone> {
    if text.eq_ignore_ascii_case("utc") {
        return Some(Zone(0));
    }
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match rest.split_once(':') {
        Some(parts) => parts,
        None if rest.len() == 4 => rest.split_at_checked(2)?,
        None => (rest, "0"),
    };
    let (hours, minutes): (u8, u8) = (hours.parse().ok()?, minutes.parse().ok()?);
    let all = i16::from(hours) * 60 + i16::from(minutes);
    (hours <= 14 && minutes < 60 && all <= 14 * 60).then_some(Zone(sign * all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<MountOptions> {
        MountOptions::new(&Attach {
            uid: 1000,
            gid: 100,
            umask: 0o027,
            options: Options::parse(text),
            ..Attach::default()
        })
    }

    #[test]
    fn the_mounter_owns_all_unless_told_otherwise() {
        let own = parse("").unwrap().own;
        assert_eq!(
            (own.uid, own.gid, own.mode(true, false)),
            (1000, 100, 0o750)
        );
        assert_eq!(own.masked(false, 0o4777), 0o4777);
        let root = parse("own=root").unwrap().own;
        assert_eq!((root.uid, root.gid, root.mode(false, false)), (0, 0, 0o777));
        let given = parse("uid=5,gid=6,umask=077,fmask=177").unwrap().own;
        assert_eq!((given.uid, given.gid), (5, 6));
        assert_eq!(
            (given.mode(false, false), given.mode(true, false)),
            (0o600, 0o700)
        );
        assert_eq!(given.masked(true, 0o755), 0o700);
    }

    #[test]
    fn nosuid_takes_only_those_bits() {
        assert_eq!(parse("nosuid").unwrap().own.masked(false, 0o6755), 0o755);
    }

    #[test]
    fn zones_as_people_write_them() {
        for (text, minutes) in [
            ("UTC", 0),
            ("+01:00", 60),
            ("-0330", -210),
            ("+5:45", 345),
            ("+2", 120),
        ] {
            assert_eq!(parse_zone(text), Some(Zone(minutes)), "{text}");
        }
        for text in ["", "1", "+15:00", "+1:60", "+", "CET", "+é", "é"] {
            assert_eq!(parse_zone(text), None, "{text}");
        }
    }

    #[test]
    fn the_paper_s_layout_has_the_papers_default_for_names() {
        assert_eq!(parse("unix=dosfs").unwrap().names, Style::Lower);
        assert_eq!(parse("unix=dosfs,names=unix").unwrap().names, Style::Unix);
        assert_eq!(parse("").unwrap().names, Style::Long);
    }

    #[test]
    fn bad_values_are_refused_by_name() {
        for text in [
            "own=me",
            "uid=x",
            "uid=4294967296",
            "umask=9",
            "umask=10000",
            "names=short",
            "unix=maybe",
            "iosize=3k",
            "iosize=256",
            "iosize=512",
            "iosize=1G",
            "codepage=1",
            "codepage=99999",
            "tz=here",
            "quiet=perhaps",
            "nosuch",
        ] {
            let e = parse(text).unwrap_err();
            assert_eq!(e, Kind::Invalid, "{text}");
            let key = text.split('=').next().unwrap();
            assert!(
                e.to_string().contains(key) || text.starts_with("codepage"),
                "{text}: {e}"
            );
        }
    }
}
