//! `VOLUME:/path`: how people name a volume and a place in it.
//!
//! | written | means |
//! |---|---|
//! | `disk.img:/a/b` | the place `/a/b` in the volume on the image `disk.img` |
//! | `disk.img:` | the root of that volume |
//! | `disk.img#2:/a` | a place in the second partition of the image |
//! | `disk.img#2a:/a` | a place in partition `a` of a BSD disklabel in the second partition |
//! | `mem:/a`, `mem:64M:/a` | a place in a volume in memory |
//! | `host:DIR`, `host:DIR:/a` | a directory of the host as a volume, and a place in it |
//! | `nfs://HOST/EXPORT`, `nfs://HOST/EXPORT:/a` | an NFS export as a volume, and a place in it |
//! | `NAME:REST`, `NAME:REST:/a` | a volume of a scheme that the program added, and a place in it |
//! | anything without `:/` and without a colon at its end | a path of the host |
//!
//! A backslash before a colon, a `#` or a backslash removes that character's meaning:
//! `odd\:/name.img:/a`, `disk\#1.img`. The first `:/` counts.

use crate::scheme::Schemes;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use volary_core::{Error, Kind, Options, Result};
#[cfg(feature = "nfs-client")]
use volary_nfs_client::Location;

/// The source of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// An image, a block device, or a partition of one, counted from 1.
    Image {
        /// The path on the host.
        path: PathBuf,
        /// The partition's [`block::Partition::id`](crate::block::Partition); `None` for the whole
        /// device.
        partition: Option<String>,
    },
    /// Memory, lost on closing. Without a size, it is the small volume with a few files that
    /// [`demo`](crate::demo) makes.
    Memory {
        /// Size in bytes.
        size: Option<u64>,
    },
    /// A directory of the host.
    Host {
        /// The path of the directory.
        path: PathBuf,
    },
    /// An NFS export.
    #[cfg(feature = "nfs-client")]
    Nfs(Location),
    /// A source that a [`Scheme`](crate::Scheme) opens.
    Scheme {
        /// The scheme's name.
        name: &'static str,
        /// The text after the colon.
        rest: Vec<u8>,
    },
}

impl Source {
    /// Parses a source as the user wrote it: `IMAGE`, `IMAGE#2`, `mem:`, `mem:64M`, `host:DIR`,
    /// `nfs://HOST/EXPORT`.
    ///
    /// # Errors
    /// `Invalid` for an empty name, a malformed size, a malformed export, and a URL of another
    /// kind; `Unsupported` for an export without the feature `nfs-client`.
    pub fn parse(text: &[u8]) -> Result<Self> {
        Schemes::default().source(text)
    }
}

/// Parsing depends on the schemes that exist.
impl Schemes {
    /// # Errors
    /// As [`Registry::source`](crate::Registry::source).
    pub(crate) fn source(&self, text: &[u8]) -> Result<Source> {
        if let Some(found) = scheme_of(self, text) {
            return Ok(Source::Scheme {
                name: found.name,
                rest: unescape(found.rest),
            });
        }
        refuse_url(text)?;
        if let Some(size) = text.strip_prefix(b"mem:") {
            return memory(size);
        }
        if let Some(path) = text.strip_prefix(b"host:") {
            return host(path);
        }
        if let Some(export) = text.strip_prefix(b"nfs://") {
            return export_named(&unescape(export));
        }
        if text.starts_with(b"nfs:") {
            let words = "write nfs://HOST/EXPORT, or ./nfs:... for an image of that name";
            return Err(Error::note(Kind::Invalid, words));
        }
        let (name, partition) = split_partition(text);
        if name.is_empty() {
            return Err(Error::note(
                Kind::Invalid,
                "no name of a volume; write IMAGE:/path",
            ));
        }
        let path = PathBuf::from(OsString::from_vec(unescape(name)));
        let partition = partition.map(Into::into);
        Ok(Source::Image { path, partition })
    }

    /// # Errors
    /// As [`source`](Self::source).
    pub(crate) fn place(&self, text: &[u8]) -> Result<Place> {
        if scheme_of(self, text).is_none() {
            refuse_url(text)?;
        }
        match split(self, text) {
            None => {
                let path = OsString::from_vec(unescape(text));
                Ok(Place::Host(PathBuf::from(path)))
            }
            Some((source, path)) => Ok(Place::Volume {
                source: self.source(source)?,
                path: path.to_vec(),
            }),
        }
    }

    /// # Errors
    /// As [`source`](Self::source).
    pub(crate) fn place_in_volume(&self, text: &[u8]) -> Result<(Source, Vec<u8>)> {
        if scheme_of(self, text).is_none() {
            refuse_url(text)?;
        }
        let (source, path) = split(self, text).unwrap_or((text, b"/"));
        Ok((self.source(source)?, path.to_vec()))
    }

    pub(crate) fn without_slash(&self, text: &[u8]) -> Option<(PathBuf, Vec<u8>)> {
        let mut colons = unescaped(text, |rest| rest.starts_with(b":"));
        if split(self, text).is_some() {
            return None;
        }
        let at = colons.next()?;
        let (image, path) = (text.get(..at)?, text.get(at + 1..)?);
        let (name, _) = split_partition(image);
        let name = PathBuf::from(OsString::from_vec(unescape(name)));
        Some((name, [image, b":/", path].concat()))
    }
}

/// A source that begins with a scheme's name.
struct OfScheme<'a> {
    name: &'static str,
    rest: &'a [u8],
}

fn scheme_of<'a>(schemes: &Schemes, text: &'a [u8]) -> Option<OfScheme<'a>> {
    schemes.all().find_map(|scheme| {
        let rest = text.strip_prefix(scheme.name().as_bytes())?;
        Some(OfScheme {
            name: scheme.name(),
            rest: rest.strip_prefix(b":")?,
        })
    })
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Image { path, partition } => {
                volary_core::escape(path.as_os_str().as_bytes()).fmt(f)?;
                partition.as_ref().map_or(Ok(()), |n| write!(f, "#{n}"))
            }
            Self::Host { path } => {
                write!(
                    f,
                    "host:{}",
                    volary_core::escape(path.as_os_str().as_bytes())
                )
            }
            #[cfg(feature = "nfs-client")]
            Self::Nfs(location) => location.fmt(f),
            Self::Scheme { name, rest } => write!(f, "{name}:{}", volary_core::escape(rest)),
            Self::Memory { size: None } => f.write_str("mem:"),
            Self::Memory { size: Some(n) } => write!(f, "mem:{n}"),
        }
    }
}

/// Parses the export after `nfs://`.
#[cfg(feature = "nfs-client")]
fn export_named(text: &[u8]) -> Result<Source> {
    Location::parse(text).map(Source::Nfs)
}

#[cfg(not(feature = "nfs-client"))]
fn export_named(_: &[u8]) -> Result<Source> {
    Err(crate::absent("an NFS export", "nfs-client"))
}

fn host(path: &[u8]) -> Result<Source> {
    if path.is_empty() {
        let words = "no name of a directory; write host:DIR";
        return Err(Error::note(Kind::Invalid, words));
    }
    let path = PathBuf::from(OsString::from_vec(unescape(path)));
    Ok(Source::Host { path })
}

fn memory(size: &[u8]) -> Result<Source> {
    if size.is_empty() {
        return Ok(Source::Memory { size: None });
    }
    let parsed = std::str::from_utf8(size).ok().and_then(Options::parse_size);
    match parsed {
        Some(n) if n > 0 => Ok(Source::Memory { size: Some(n) }),
        _ => {
            let words = format!(
                "'{}' is no size of a volume in memory; write mem:64M",
                volary_core::escape(size)
            );
            Err(Error::note(Kind::Invalid, words))
        }
    }
}

/// Splits `IMAGE#2`. A `#` that is escaped, or not followed by a partition's id up to the end,
/// belongs to the image's name.
fn split_partition(text: &[u8]) -> (&[u8], Option<&str>) {
    let last = unescaped(text, |rest| rest.starts_with(b"#")).last();
    let found = last.and_then(|at| Some((text.get(..at)?, partition_id(text.get(at + 1..)?)?)));
    found.map_or((text, None), |(name, id)| (name, Some(id)))
}

/// Checks a partition's id: a number, a letter of a disklabel, or both: `2`, `a`, `2a`.
fn partition_id(text: &[u8]) -> Option<&str> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let is_id = match text.get(digits..)? {
        [] => digits > 0,
        [letter] => letter.is_ascii_lowercase(),
        _ => false,
    };
    if is_id {
        std::str::from_utf8(text).ok()
    } else {
        None
    }
}

/// Returns the offsets in `text` that no backslash escapes, and where `wanted` returns true for the
/// rest.
fn unescaped(text: &[u8], wanted: impl Fn(&[u8]) -> bool) -> impl Iterator<Item = usize> {
    let mut escaped = false;
    text.iter().enumerate().filter_map(move |(at, &b)| {
        let here = !escaped && wanted(text.get(at..)?);
        escaped = !escaped && b == b'\\' && is_special(text.get(at + 1));
        here.then_some(at)
    })
}

fn is_special(byte: Option<&u8>) -> bool {
    matches!(byte, Some(b':' | b'#' | b'\\'))
}

/// Removes the backslashes that [`unescaped`] treats as escapes.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter().peekable();
    while let Some(&b) = bytes.next() {
        match b {
            b'\\' if is_special(bytes.peek().copied()) => out.extend(bytes.next()),
            b => out.push(b),
        }
    }
    out
}

/// A place: on the host, or in a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A path of the host.
    Host(PathBuf),
    /// A path in a volume.
    Volume {
        /// The volume.
        source: Source,
        /// The path from the volume's root; begins with `/`.
        path: Vec<u8>,
    },
}

impl Place {
    /// Parses a place as the user wrote it; see the table at the head of this page.
    ///
    /// # Errors
    /// As [`Source::parse`].
    pub fn parse(text: &[u8]) -> Result<Self> {
        Schemes::default().place(text)
    }

    /// Calls [`Registry::without_slash`](crate::Registry::without_slash) on the built-in registry.
    pub fn without_slash(text: &[u8]) -> Option<(PathBuf, Vec<u8>)> {
        Schemes::default().without_slash(text)
    }

    /// Calls [`Registry::place_in_volume`](crate::Registry::place_in_volume) on the built-in
    /// registry.
    ///
    /// # Errors
    /// As there.
    pub fn parse_in_volume(text: &[u8]) -> Result<(Source, Vec<u8>)> {
        Schemes::default().place_in_volume(text)
    }
}

/// URL schemes that are no sources, with what to do instead.
const URLS: &[(&str, &str)] = &[
    ("smb", MOUNT_IT),
    ("cifs", MOUNT_IT),
    ("dav", MOUNT_IT),
    ("davs", MOUNT_IT),
    ("file", "name the file itself, or host:DIR for a directory"),
    ("http", FETCH_IT),
    ("https", FETCH_IT),
    ("ftp", FETCH_IT),
    ("sftp", FETCH_IT),
    ("ssh", FETCH_IT),
    ("s3", FETCH_IT),
];
const MOUNT_IT: &str = "volary serves SMB and opens nfs://HOST/EXPORT, but is no client of this: \
                        mount it, and name the directory as host:DIR";
const FETCH_IT: &str = "volary does not fetch images: fetch it, and name the file";

/// # Errors
/// `Invalid` for a URL that volary cannot open, with what to do.
fn refuse_url(text: &[u8]) -> Result<()> {
    let is_of = |scheme: &str| {
        let (name, rest) = text.split_at_checked(scheme.len())?;
        (name.eq_ignore_ascii_case(scheme.as_bytes()) && rest.starts_with(b"://")).then_some(())
    };
    match URLS.iter().find(|(scheme, _)| is_of(scheme).is_some()) {
        Some((_, words)) => Err(Error::note(Kind::Invalid, *words)),
        None => Ok(()),
    }
}

/// Splits `VOLUME:/path`. Returns `None` if `text` is something else.
fn split<'a>(schemes: &Schemes, text: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    if let Some(rest) = text.strip_prefix(b"mem:") {
        return Some(split_memory(text, rest));
    }
    let ends = |rest: &[u8]| rest == b":" || rest.starts_with(b":/");
    let mut colons = unescaped(text, ends);
    let own = scheme_of(schemes, text).map(|found| found.name.len());
    let first = match text.starts_with(b"host:") || text.starts_with(b"nfs:") {
        true => Some(b"host:".len()),
        false => own,
    };
    if let Some(first) = first {
        let last = colons.filter(|&at| at > first).last();
        return Some(last.and_then(|at| cut(text, at)).unwrap_or((text, b"/")));
    }
    cut(text, colons.next()?)
}

/// Splits `mem:`, `mem:64M`, `mem:/path`, `mem:64M:/path`.
fn split_memory<'a>(text: &'a [u8], rest: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    if rest.starts_with(b"/") {
        return (b"mem:", rest);
    }
    let colon = rest.iter().position(|&b| b == b':');
    colon
        .and_then(|at| cut(text, at + b"mem:".len()))
        .unwrap_or((text, b"/"))
}

/// Returns the text before the colon at `at`, and the path after it.
fn cut(text: &[u8], at: usize) -> Option<(&[u8], &[u8])> {
    let path = text.get(at + 1..)?;
    Some((text.get(..at)?, if path.is_empty() { b"/" } else { path }))
}

#[cfg(all(test, feature = "full"))]
mod tests {
    use super::*;

    fn image(path: &str, partition: Option<&str>) -> Source {
        Source::Image {
            path: path.into(),
            partition: partition.map(Into::into),
        }
    }

    fn place(text: &str) -> Place {
        Place::parse(text.as_bytes()).unwrap()
    }

    fn in_volume(source: Source, path: &str) -> Place {
        Place::Volume {
            source,
            path: path.into(),
        }
    }

    #[test]
    fn the_table_at_the_head_of_the_page_holds() {
        let memory = |size| Source::Memory { size };
        let host = |path: &str| Source::Host { path: path.into() };
        let nfs = |text: &str| Source::Nfs(Location::parse(text.as_bytes()).unwrap());
        for (text, expected) in [
            ("disk.img:/a/b", in_volume(image("disk.img", None), "/a/b")),
            ("disk.img:", in_volume(image("disk.img", None), "/")),
            (
                "disk.img#2:/a",
                in_volume(image("disk.img", Some("2")), "/a"),
            ),
            ("host:/srv", in_volume(host("/srv"), "/")),
            ("host:/srv:/a/b", in_volume(host("/srv"), "/a/b")),
            ("host:dir:", in_volume(host("dir"), "/")),
            (r"host:/odd\:/name:/a", in_volume(host("/odd:/name"), "/a")),
            ("nfs://server/e", in_volume(nfs("server/e"), "/")),
            ("nfs://server/e:/a/b", in_volume(nfs("server/e"), "/a/b")),
            ("nfs://server/e:", in_volume(nfs("server/e"), "/")),
            (
                "nfs://[::1]:2049/e/f?uid=5&sync:/a",
                in_volume(nfs("[::1]:2049/e/f?uid=5&sync"), "/a"),
            ),
            ("mem:", in_volume(memory(None), "/")),
            ("mem:/a", in_volume(memory(None), "/a")),
            ("mem::/a", in_volume(memory(None), "/a")),
            ("mem:64M", in_volume(memory(Some(64 << 20)), "/")),
            ("mem:64M:/a", in_volume(memory(Some(64 << 20)), "/a")),
            ("disk.img", Place::Host("disk.img".into())),
            ("/a:b/c", Place::Host("/a:b/c".into())),
            ("disk.img:a", Place::Host("disk.img:a".into())),
            ("a:/b:/c", in_volume(image("a", None), "/b:/c")),
            (
                r"odd\:/name.img:/a",
                in_volume(image("odd:/name.img", None), "/a"),
            ),
            (r"a\:/b", Place::Host("a:/b".into())),
            (r"disk\#1:/", in_volume(image("disk#1", None), "/")),
            (r"disk#1\#2:/", in_volume(image("disk#1#2", None), "/")),
            ("disk#2a:/", in_volume(image("disk", Some("2a")), "/")),
            ("disk#ab:/", in_volume(image("disk#ab", None), "/")),
            (r"back\slash:/", in_volume(image(r"back\slash", None), "/")),
            (r"back\\:/", in_volume(image(r"back\", None), "/")),
        ] {
            assert_eq!(place(text), expected, "{text}");
        }
    }

    #[test]
    fn a_bare_name_is_a_root_for_commands_that_know_no_host_places() {
        let (source, path) = Place::parse_in_volume(b"disk.img#3").unwrap();
        assert_eq!(
            (source, path.as_slice()),
            (image("disk.img", Some("3")), &b"/"[..])
        );
    }

    #[test]
    fn a_path_of_an_image_that_has_no_slash_is_known_as_one() {
        let (image, place) = Place::without_slash(b"d/disk.img#2a:a/b").unwrap();
        assert_eq!(
            (image, place),
            ("d/disk.img".into(), b"d/disk.img#2a:/a/b".to_vec())
        );
        for text in [
            "disk.img:/a",
            "disk.img:",
            "disk.img",
            r"disk\:a",
            "mem:a",
            "host:a",
        ] {
            assert_eq!(Place::without_slash(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn what_names_nothing_is_refused_in_words() {
        for text in [
            "mem:lots",
            "mem:0",
            "host:",
            ":/a",
            "#1:/",
            "nfs:server",
            "nfs:///export",
            "nfs://server:0/export",
            "smb://server/share",
            "HTTPS://server/disk.img",
            "file:///disk.img",
        ] {
            let e = Place::parse(text.as_bytes()).unwrap_err();
            assert_eq!(e.kind(), Kind::Invalid, "{text}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_a_name_too() {
        let Place::Volume {
            source: Source::Image { path, .. },
            ..
        } = Place::parse(b"\xff:/x").unwrap()
        else {
            panic!("no image");
        };
        assert_eq!(path.as_os_str().as_bytes(), b"\xff");
    }
}
