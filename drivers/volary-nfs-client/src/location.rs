//! `nfs://HOST[:PORT]/EXPORT[?options]`: the name of an export, and its options.

use std::fmt;
use std::time::Duration;
use volary_core::{Error, Kind, OptionSpec, Options, Result};

/// The location of an export.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// The server: a name, an IPv4 address, or an IPv6 address in brackets.
    pub host: String,
    /// NFS's port; `None` to ask the server's portmapper.
    pub port: Option<u16>,
    /// The path to mount, as the server names it: it begins with `/`.
    pub export: Vec<u8>,
    /// The options `key=value` with `&` between them, as written after the `?`.
    pub options: String,
}

/// The options that are allowed after the `?`, and after `-o`.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "port",
        value: "PORT",
        help: "where NFS is, without asking the server's portmapper",
    },
    OptionSpec {
        name: "mountport",
        value: "PORT",
        help: "where MOUNT is; else where NFS is",
    },
    OptionSpec {
        name: "uid",
        value: "ID",
        help: "all calls are this user's, without further groups",
    },
    OptionSpec {
        name: "gid",
        value: "ID",
        help: "all calls are this group's; with uid and without gid, that number",
    },
    OptionSpec {
        name: "timeout",
        value: "SECONDS",
        help: "how long a call may take (default 60)",
    },
    OptionSpec {
        name: "cache",
        value: "SECONDS",
        help: "how long attributes are believed (default 3; 0: not at all)",
    },
    OptionSpec {
        name: "connections",
        value: "N",
        help: "at most so many connections (default 4)",
    },
    OptionSpec {
        name: "sync",
        value: "",
        help: "each write is at the server before it is answered",
    },
    OptionSpec {
        name: "nolock",
        value: "",
        help: "locks are for programs of this host only",
    },
    OptionSpec {
        name: "anyport",
        value: "",
        help: "root too calls from a port that anybody may have",
    },
];

/// How an export is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NfsOptions {
    /// Whether changes are refused.
    pub read_only: bool,
    /// Bytes of memory for cached nodes, read-ahead and write-behind.
    pub memory: u64,
    /// The port of NFS, if it differs from [`Location::port`].
    pub port: Option<u16>,
    /// The port of MOUNT.
    pub mount_port: Option<u16>,
    /// The user and group of all calls, without supplementary groups; `None` for those of each
    /// caller.
    pub caller: Option<(u32, u32)>,
    /// How long a call may take.
    pub timeout: Duration,
    /// How long attributes are valid.
    pub cache: Duration,
    /// Connections at a time.
    pub connections: usize,
    /// Whether each write is sent to the server before it returns.
    pub sync: bool,
    /// Whether locks are taken at the server too.
    pub locks: bool,
    /// Whether root calls from a port that only root may use.
    pub reserved: bool,
    /// The port of the server's portmapper.
    pub portmap: u16,
}

impl Default for NfsOptions {
    fn default() -> Self {
        Self {
            read_only: false,
            memory: 64 << 20,
            port: None,
            mount_port: None,
            caller: None,
            timeout: Duration::from_secs(60),
            cache: Duration::from_secs(3),
            connections: 4,
            sync: false,
            locks: true,
            reserved: true,
            portmap: 111,
        }
    }
}

/// Returns an `Invalid` error that says what to write instead.
fn invalid(words: impl Into<String>) -> Error {
    Error::note(Kind::Invalid, words)
}

impl Location {
    /// Parses the text after `nfs://`. In the export's name, `%` and two hexadecimal digits stand
    /// for a byte.
    ///
    /// # Errors
    /// `Invalid` for a missing host, an invalid port, and a `%` without its digits.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let (place, options) = match text.iter().position(|&b| b == b'?') {
            Some(at) => (text.get(..at), text.get(at + 1..)),
            None => (Some(text), None),
        };
        let (place, options) = (place.unwrap_or_default(), options.unwrap_or_default());
        let slash = place.iter().position(|&b| b == b'/');
        let (server, export) = place.split_at(slash.unwrap_or(place.len()));
        let not_text = |_| invalid("the server's name is not text");
        let (host, port) = host_and_port(std::str::from_utf8(server).map_err(not_text)?)?;
        let options = std::str::from_utf8(options).map_err(|_| invalid("options are not text"))?;
        let export = decode(export)?;
        Ok(Self {
            host,
            port,
            export: if export.is_empty() {
                b"/".to_vec()
            } else {
                export
            },
            options: options.to_owned(),
        })
    }
}

fn host_and_port(server: &str) -> Result<(String, Option<u16>)> {
    let (host, port) = match server.rfind(']') {
        Some(end) => server.split_at(end + 1),
        None => server.split_at(server.find(':').unwrap_or(server.len())),
    };
    if host.is_empty() || host == "[]" {
        return Err(invalid("no server; write nfs://HOST/EXPORT"));
    }
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => None,
        Some(port) => Some(port),
        None => return Err(invalid("after [ADDRESS] only :PORT can stand")),
    };
    let number = port.map(|port| match port.parse::<u16>() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(invalid(format!(
            "'{port}' is no port; write nfs://HOST:2049/EXPORT"
        ))),
    });
    Ok((host.to_owned(), number.transpose()?))
}

fn decode(text: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&b, after)) = rest.split_first() {
        rest = after;
        if b != b'%' {
            out.push(b);
            continue;
        }
        let digits = after.first_chunk::<2>();
        let digits = digits.and_then(|d| std::str::from_utf8(d).ok());
        let byte = digits.and_then(|d| u8::from_str_radix(d, 16).ok());
        let words = "a % in an export's name needs two hexadecimal digits after it; %25 is a %";
        out.push(byte.filter(|&b| b != 0).ok_or_else(|| invalid(words))?);
        rest = after.get(2..).unwrap_or_default();
    }
    Ok(out)
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nfs://{}", volary_core::escape(self.host.as_bytes()))?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        volary_core::escape(&self.export).fmt(f)?;
        if !self.options.is_empty() {
            write!(f, "?{}", volary_core::escape(self.options.as_bytes()))?;
        }
        Ok(())
    }
}

impl NfsOptions {
    /// Applies the options in `location`, and then those in `more`.
    ///
    /// # Errors
    /// `Invalid` for an unknown option, and for an invalid value.
    pub fn with(mut self, location: &Location, more: &Options) -> Result<Self> {
        self.take(&Options::parse(&location.options.replace('&', ",")))?;
        self.take(more)?;
        Ok(self)
    }

    fn take(&mut self, options: &Options) -> Result<()> {
        let mut rest = options.clone();
        if rest.take("ro").is_some() {
            self.read_only = true;
        }
        rest.check_known(OPTIONS)?;
        self.port = port(&rest, "port")?.or(self.port);
        self.mount_port = port(&rest, "mountport")?.or(self.mount_port);
        self.caller = match (id(&rest, "uid")?, id(&rest, "gid")?) {
            (Some(uid), gid) => Some((uid, gid.unwrap_or(uid))),
            (None, Some(_)) => return Err(invalid("option 'gid' needs 'uid' beside it")),
            (None, None) => self.caller,
        };
        if let Some(secs) = within(&rest, "timeout", 1..=3600)? {
            self.timeout = Duration::from_secs(secs);
        }
        if let Some(secs) = within(&rest, "cache", 0..=3600)? {
            self.cache = Duration::from_secs(secs);
        }
        if let Some(count) = within(&rest, "connections", 1..=16)? {
            self.connections = usize::try_from(count).unwrap_or(1);
        }
        self.sync = rest.flag("sync", self.sync)?;
        self.locks = !rest.flag("nolock", !self.locks)?;
        self.reserved = !rest.flag("anyport", !self.reserved)?;
        Ok(())
    }
}

fn within(
    options: &Options,
    key: &str,
    range: std::ops::RangeInclusive<u64>,
) -> Result<Option<u64>> {
    let number = options.number(key)?;
    if number.is_some_and(|n| !range.contains(&n)) {
        let (low, high) = (range.start(), range.end());
        let words = format!("option '{key}' is out of range, expected {low} to {high}");
        return Err(invalid(words));
    }
    Ok(number)
}

fn port(options: &Options, key: &str) -> Result<Option<u16>> {
    let number = within(options, key, 1..=u16::MAX.into())?;
    Ok(number.and_then(|n| u16::try_from(n).ok()))
}

fn id(options: &Options, key: &str) -> Result<Option<u32>> {
    let number = within(options, key, 0..=u32::MAX.into())?;
    Ok(number.and_then(|n| u32::try_from(n).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(text: &str) -> Location {
        Location::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn servers_ports_exports_and_options_are_told_apart() {
        for (text, host, port, export, options) in [
            ("server/export/a", "server", None, "/export/a", ""),
            ("server:2049/e", "server", Some(2049), "/e", ""),
            ("[::1]:99/e?uid=5", "[::1]", Some(99), "/e", "uid=5"),
            ("[fe80::1]/e", "[fe80::1]", None, "/e", ""),
            ("server", "server", None, "/", ""),
            ("server/", "server", None, "/", ""),
            (
                "server/a%20b%3f?ro&sync",
                "server",
                None,
                "/a b?",
                "ro&sync",
            ),
        ] {
            let found = location(text);
            assert_eq!(found.host, host, "{text}");
            assert_eq!(found.port, port, "{text}");
            assert_eq!(found.export, export.as_bytes(), "{text}");
            assert_eq!(found.options, options, "{text}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_words() {
        for text in [
            "", "/e", ":2049/e", "h:0/e", "h:x/e", "h/%2", "h/%zz", "h/%00", "[]/e", "[a]b/e",
        ] {
            let e = Location::parse(text.as_bytes()).unwrap_err();
            assert_eq!(e.kind(), Kind::Invalid, "{text}");
        }
        let refuses = |text: &str| {
            let found = location(text);
            NfsOptions::default()
                .with(&found, &Options::new())
                .unwrap_err()
                .kind()
        };
        for text in [
            "h/e?uid=x",
            "h/e?gid=1",
            "h/e?timeout=0",
            "h/e?port=70000",
            "h/e?what",
        ] {
            assert_eq!(refuses(text), Kind::Invalid, "{text}");
        }
    }

    #[test]
    fn options_come_from_both_places_and_the_later_counts() {
        let found = location("h/e?uid=5&gid=6&sync&timeout=9");
        let more = Options::parse("uid=7,nolock,ro");
        let options = NfsOptions::default().with(&found, &more).unwrap();
        assert_eq!(options.caller, Some((7, 7)));
        assert_eq!(options.timeout, Duration::from_secs(9));
        assert!(options.sync && !options.locks && options.read_only && options.reserved);
    }

    #[test]
    fn it_is_shown_as_it_was_written() {
        for text in ["server/export", "[::1]:99/e?uid=5"] {
            assert_eq!(location(text).to_string(), format!("nfs://{text}"));
        }
    }
}
