//! The configuration file.

use super::smb::{Protect, SmbMin, is_called};
use crate::exit::{Done, Fail};
use crate::sandbox::Level;
use serde::Deserialize;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use volary::smb::User;
use volary::{Cred, Source, escape};

/// Longest file, in bytes.
const LEN_MAX: u64 = 1 << 20;
/// Longest name of an export, in bytes: a path to mount has at most 1024.
const NAME_MAX: usize = 255;

/// What the help shows; a test reads it.
pub(super) const EXAMPLE: &str = r#"
  nfs = "127.0.0.1:2049"
  portmap = false                 # answer on port 111 too
  key = "/var/lib/volary/nfs.key"
  allow = ["192.168.1.0/24"]      # clients other than this host, by NFS and SMB
  i-know-auth-sys = false         # needed to serve them

  smb = "127.0.0.1:4450"
  user = "me"                     # with VOLARY_PASSWORD
  users = "/etc/volary/users"     # name:uid:gid:NT hash, one a line
  protect = "signed"              # signed, encrypted or none
  smb-min = "2.1"                 # the oldest dialect: 2.0.2, 2.1, 3.0, 3.0.2, 3.1.1

  log = "/var/log/volary.log"     # who did what; or stderr, or system
  log-json = false

  sandbox = "on"                  # on, strict or off
  run-as = "volary"               # once ports, images and key are open

  [[volume]]
  volume = "disk.img"
  name = "disk"                   # clients mount /disk
  mount = "/mnt/disk"             # on this host too

  [[volume]]
  volume = "unix.img:/docs"
  name = "docs"
  read-only = true
  type = "fat"                    # as --type; else it is recognised
  options = ["names=unix"]        # as -o
  layers = ["count"]              # as --layer
  squash = "all"                  # root, all or none
  anonymous = "1000:100"
  allow = ["10.0.0.7"]
  async = false
  encrypt = true                  # by SMB, encrypted only
  users = ["me", "you"]           # by SMB, these only
"#;

/// All of it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Config {
    pub(super) nfs: Option<String>,
    pub(super) portmap: bool,
    pub(super) smb: Option<String>,
    pub(super) user: Option<String>,
    pub(super) users: Option<PathBuf>,
    pub(super) protect: Option<Protect>,
    pub(super) smb_min: Option<SmbMin>,
    pub(super) log: Option<PathBuf>,
    pub(super) log_json: bool,
    pub(super) key: Option<PathBuf>,
    pub(super) allow: Vec<String>,
    pub(super) i_know_auth_sys: bool,
    pub(super) sandbox: Option<Level>,
    pub(super) run_as: Option<String>,
    #[serde(rename = "volume")]
    pub(super) volumes: Vec<Entry>,
}

/// One volume.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Entry {
    pub(super) volume: OsStringOfText,
    pub(super) name: Option<String>,
    pub(super) mount: Option<PathBuf>,
    #[serde(default)]
    pub(super) read_only: bool,
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    #[serde(default)]
    pub(super) options: Vec<String>,
    #[serde(default)]
    pub(super) layers: Vec<String>,
    pub(super) squash: Option<String>,
    pub(super) anonymous: Option<String>,
    #[serde(default)]
    pub(super) allow: Vec<String>,
    #[serde(default, rename = "async")]
    pub(super) unsafe_quick: bool,
    #[serde(default)]
    pub(super) encrypt: bool,
    pub(super) users: Option<Vec<String>>,
}

/// An argument, which in a file is text.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "String")]
pub(super) struct OsStringOfText(OsString);

impl From<String> for OsStringOfText {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl std::ops::Deref for OsStringOfText {
    type Target = OsStr;

    fn deref(&self) -> &OsStr {
        &self.0
    }
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// In one line, with the file's name and the place in it.
    pub(super) fn read(path: &Path) -> Done<Self> {
        let shown = volary::escape(path.as_os_str().as_bytes()).to_string();
        let fail = |e: std::io::Error| Fail::usage(format!("{shown}: {}", crate::exit::words(&e)));
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(fail)?;
        file.take(LEN_MAX).read_to_string(&mut text).map_err(fail)?;
        Self::parse(&text).map_err(|words| Fail::usage(format!("{shown}: {words}")))
    }

    fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|e| {
            let before = e.span().and_then(|span| text.get(..span.start));
            let before = before.unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let last = before.rsplit('\n').next().unwrap_or_default();
            let column = last.chars().count() + 1;
            let words: Vec<&str> = e.message().split_whitespace().collect();
            format!(
                "line {line}, column {column}: {}",
                escape(words.join(" ").as_bytes())
            )
        })
    }
}

impl Entry {
    /// Returns a volume without more.
    pub(super) fn named(volume: &OsStr) -> Self {
        Self {
            volume: OsStringOfText(volume.into()),
            name: None,
            mount: None,
            read_only: false,
            kind: None,
            options: Vec::new(),
            layers: Vec::new(),
            squash: None,
            anonymous: None,
            allow: Vec::new(),
            unsafe_quick: false,
            encrypt: false,
            users: None,
        }
    }

    /// Checks that all users whom it names exist.
    ///
    /// # Errors
    /// Of the configuration file.
    pub(super) fn check_users(&self, users: &[User]) -> Done {
        let is_one = |name: &str| users.iter().any(|user| is_called(user, name));
        match self.users.iter().flatten().find(|name| !is_one(name)) {
            None => Ok(()),
            Some(name) => Err(Fail::usage(format!(
                "users of /{}: '{}' is no user of SMB",
                escape(self.name.as_deref().unwrap_or_default().as_bytes()),
                escape(name.as_bytes())
            ))),
        }
    }

    /// Returns what it is exported as: the given name, or that of the image without its
    /// ending, or of the directory in it.
    ///
    /// # Errors
    /// Of the command line.
    pub(super) fn export_name(&self) -> Done<String> {
        if let Some(name) = &self.name {
            let bad = name.is_empty() || name.len() > NAME_MAX || name.contains(['/', '\0']);
            let dots = name == "." || name == "..";
            if bad || dots || name.chars().any(char::is_control) {
                return Err(Fail::usage(format!(
                    "'{}' is no name of an export",
                    escape(name.as_bytes())
                )));
            }
            return Ok(name.clone());
        }
        let bytes = self.volume.as_bytes();
        let (source, path) = crate::registry::registry()
            .place_in_volume(bytes)
            .map_err(|e| crate::volumes::usage(&self.volume, &e))?;
        let inner = path.rsplit(|&b| b == b'/').find(|part| !part.is_empty());
        let name = match (inner, &source) {
            (Some(inner), _) => String::from_utf8_lossy(inner).into_owned(),
            (None, Source::Memory { size: None }) => "demo".into(),
            (None, Source::Memory { .. }) => "mem".into(),
            (None, Source::Host { path }) => path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into(),
            (None, Source::Nfs(location)) => {
                let last = location
                    .export
                    .rsplit(|&b| b == b'/')
                    .find(|p| !p.is_empty());
                last.map_or("nfs".into(), |name| String::from_utf8_lossy(name).into())
            }
            (None, Source::Scheme { name, rest }) => {
                let scheme = crate::registry::registry().scheme(name);
                scheme.map_or((*name).into(), |scheme| scheme.label_of(rest))
            }
            (None, Source::Image { path, partition }) => {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                match partition {
                    Some(id) => format!("{stem}-{id}"),
                    None => stem.into_owned(),
                }
            }
        };
        // What would make a strange path gets another letter.
        let safe = |c: char| {
            if c.is_control() || c.is_whitespace() {
                '_'
            } else {
                c
            }
        };
        let name: String = name.chars().map(safe).collect();
        Ok(if name.is_empty() {
            "volume".into()
        } else {
            name
        })
    }
}

/// Returns who is meant by `UID` or `UID:GID`.
///
/// # Errors
/// Of the command line.
pub(super) fn anonymous_of(text: &str) -> Done<Cred> {
    let (uid, gid) = text.split_once(':').unwrap_or((text, text));
    match (uid.parse(), gid.parse()) {
        (Ok(uid), Ok(gid)) => Ok(Cred::new(uid, gid)),
        _ => Err(Fail::usage(format!(
            "--anonymous: '{}' is not UID or UID:GID",
            escape(text.as_bytes())
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_help_is_read() {
        let config = Config::parse(EXAMPLE).unwrap();
        assert_eq!(config.volumes.len(), 2);
        assert_eq!(config.allow, ["192.168.1.0/24"]);
        let docs = &config.volumes[1];
        assert!(docs.read_only && docs.encrypt && !docs.unsafe_quick);
        assert_eq!(config.protect, Some(Protect::Signed));
        assert_eq!(config.smb_min, Some(SmbMin::Smb210));
        assert_eq!(
            docs.users.as_deref(),
            Some(&["me".into(), "you".into()][..])
        );
        assert_eq!(docs.squash.as_deref(), Some("all"));
    }

    /// The example with some of its bytes changed, left out or put in again; what is wrong with
    /// it is told in one line that a terminal can show.
    #[test]
    fn no_text_is_worse_than_told_in_a_line() {
        let mut x = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = |bound: usize| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 32) as usize % bound
        };
        let signs: Vec<char> = "\"'[]{}=#.,\\\n\0\x1b-_0x9eéa".chars().collect();
        let mut refused = 0;
        for _ in 0..1000 {
            let mut text: Vec<char> = EXAMPLE.chars().collect();
            for _ in 0..=next(4) {
                let at = next(text.len());
                match next(4) {
                    0 => drop(text.remove(at)),
                    1 => text.insert(at, signs[next(signs.len())]),
                    2 => text.extend_from_within(at..text.len().min(at + 40)),
                    _ => text[at] = signs[next(signs.len())],
                }
            }
            let text: String = text.into_iter().collect();
            if let Err(words) = Config::parse(&text) {
                refused += 1;
                assert!(words.starts_with("line "), "{words}");
                assert!(!words.chars().any(char::is_control), "{words:?}");
            }
        }
        assert!((100..1000).contains(&refused), "{refused}");
    }

    #[test]
    fn what_makes_no_sense_is_told_with_its_line() {
        for (text, line) in [
            ("nfs = 5\n", "line 1, column 7: "),
            ("\nportmap = true\nsmb = 1\n", "line 3, column 7: "),
            ("\n\nftp = 1\n", "line 3, column 1: "),
            (
                "[[volume]]\nname = 'x'\n",
                "line 1, column 1: missing field `volume`",
            ),
            (
                "[[volume]]\nvolume = 'x'\nreadonly = true\n",
                "line 3, column 1: ",
            ),
            ("= \x1b[2J", "line 1, column 4: "),
        ] {
            let words = Config::parse(text).unwrap_err();
            assert!(words.starts_with(line), "{text:?}: {words}");
            assert!(!words.contains(['\n', '\x1b']), "{words}");
        }
    }

    #[test]
    fn exports_are_named_after_their_volumes() {
        for (volume, name) in [
            ("disk.img", "disk"),
            ("dir/my disk.img", "my_disk"),
            ("disk.img#2", "disk-2"),
            ("disk.img:/docs/old/", "old"),
            ("mem:", "demo"),
            ("mem:64M", "mem"),
            (".img", ".img"),
        ] {
            let entry = Entry::named(volume.as_ref());
            assert_eq!(entry.export_name().unwrap(), name, "{volume}");
        }
        for bad in ["", "a/b", "..", "a\nb"] {
            let entry = Entry {
                name: Some(bad.into()),
                ..Entry::named("disk.img".as_ref())
            };
            assert!(entry.export_name().is_err(), "{bad:?}");
        }
    }
}
