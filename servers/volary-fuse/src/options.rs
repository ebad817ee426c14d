//! Options for mounting a volume.

use std::time::Duration;
use volary_core::{OptionSpec, Options, Result};

/// Who checks what a caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checks {
    /// The kernel, before it sends a request, by the mode, owner and groups that the volume states.
    /// The volume's sessions may then rely on it (`VolumeOptions::trust`).
    Kernel,
    /// The session, at each request. This is for volumes that check access themselves.
    Session,
}

/// Where byte-range locks are managed. Whole-file locks (`flock`) are always managed by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locks {
    /// In the kernel. Only processes that use this mount see them. This is the fastest way, and
    /// right if the mount is the volume's only user.
    Kernel,
    /// In the volume's lock table. All other clients of the volume see them too. This costs one
    /// more request for each `close`.
    Session,
}

/// Options for mounting. [`MountOptions::default`] is right for an image that only this mount
/// changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountOptions {
    /// Refuse changes. A volume that takes no changes is always mounted in this way.
    pub read_only: bool,
    /// Give access to users other than the one who mounts.
    pub allow_other: bool,
    /// Who checks access.
    pub checks: Checks,
    /// Where byte-range locks are managed. For a volume that shares its locks with others
    /// (`Caps::SHARED_LOCKS`), this is always the session.
    pub locks: Locks,
    /// Set-uid and set-gid programs on the volume get their owner's rights.
    pub suid: bool,
    /// Device nodes on the volume lead to devices.
    pub dev: bool,
    /// Programs on the volume may be run.
    pub exec: bool,
    /// Symlinks on the volume are shown but never followed. Needs root.
    pub nosymfollow: bool,
    /// The source that `mount` and `df` show. `None` means the volume's name.
    pub source: Option<String>,
    /// How many requests are handled at once, each by its own thread: 1 to 64. `None` means the
    /// host's number of processors, but at least 2 and at most 8.
    pub threads: Option<usize>,
    /// Whether the kernel gathers writes before it sends them, for programs that write in small
    /// pieces. It then maintains times and sizes itself. So this needs three conditions: the kernel
    /// checks access, all changes come through this volume's sessions, and the kernel supports the
    /// resolution of times. `None` means no, because each new file would need one more request, for
    /// its times.
    pub write_back: Option<bool>,
    /// How long the kernel may cache names and attributes. `None` means a day if all changes come
    /// through this volume's sessions, and otherwise one second.
    pub remember: Option<Duration>,
    /// How far the kernel reads ahead, in KiB. More than 128 is set only if the mounting user may
    /// set it.
    pub read_ahead: u32,
}

impl Default for MountOptions {
    fn default() -> Self {
        Self {
            read_only: false,
            allow_other: false,
            checks: Checks::Kernel,
            locks: Locks::Kernel,
            suid: false,
            dev: false,
            exec: true,
            nosymfollow: false,
            source: None,
            threads: None,
            write_back: None,
            remember: None,
            read_ahead: 1024,
        }
    }
}

impl MountOptions {
    /// The options of [`from_options`](Self::from_options), for help texts and messages.
    pub const SPECS: &'static [OptionSpec] = &[
        spec("ro", "", "refuse changes"),
        spec(
            "allow_other",
            "",
            "let other users in (default: only the one who mounts)",
        ),
        spec(
            "checks",
            "kernel|session",
            "who checks access (default kernel)",
        ),
        spec(
            "locks",
            "kernel|session",
            "where byte-range locks are kept (default kernel)",
        ),
        spec(
            "suid",
            "",
            "honour set-uid and set-gid programs (default: not)",
        ),
        spec("dev", "", "honour device nodes (default: not)"),
        spec(
            "noexec",
            "",
            "run no programs (default: run them; with user or users: not)",
        ),
        spec(
            "nosymfollow",
            "",
            "never follow symlinks on the volume; needs root",
        ),
        spec(
            "fsname",
            "NAME",
            "the source that mount and df show (default: the volume)",
        ),
        spec(
            "threads",
            "N",
            "requests worked on at once (default: one a processor)",
        ),
        spec(
            "writeback",
            "yes|no",
            "gather writes in the kernel, where it is safe (default no)",
        ),
        spec(
            "remember",
            "SECONDS",
            "how long names and attributes are remembered",
        ),
        spec(
            "readahead",
            "SIZE",
            "how far the kernel reads ahead (default 1M)",
        ),
    ];

    /// Takes the options in [`SPECS`](Self::SPECS) out of `options`, and those that mount(8) and
    /// fstab(5) have for every file system. Leaves the others. Of `suid` and `nosuid` and similar
    /// pairs, the last one counts.
    ///
    /// # Errors
    /// `Invalid` for an invalid value. The message names the option.
    pub fn from_options(options: &mut Options) -> Result<Self> {
        let default = Self::default();
        let checks = [("kernel", Checks::Kernel), ("session", Checks::Session)];
        let locks = [("kernel", Locks::Kernel), ("session", Locks::Session)];
        let threads = options.number("threads")?;
        let write_back = match options.get("writeback") {
            Some(_) => Some(options.flag("writeback", true)?),
            None => None,
        };
        let read_ahead = options.number("readahead")?;
        let last = |yes, no| options.last_of(&[yes, no]);
        let all = Self {
            read_only: options.flag("ro", false)? && last("ro", "rw") == Some("ro"),
            allow_other: options.flag("allow_other", false)?,
            checks: options.choice("checks", &checks)?.unwrap_or(default.checks),
            locks: options.choice("locks", &locks)?.unwrap_or(default.locks),
            suid: options.flag("suid", false)? && last("suid", "nosuid") == Some("suid"),
            dev: options.flag("dev", false)? && last("dev", "nodev") == Some("dev"),
            exec: match options.last_of(&["exec", "noexec", "user", "users"]) {
                None | Some("exec") => true,
                Some("noexec") => !options.flag("noexec", false)?,
                Some(_) => false,
            },
            nosymfollow: options.flag("nosymfollow", false)?,
            source: options.get("fsname").map(Into::into),
            threads: threads.map(|count| usize::try_from(count).unwrap_or(usize::MAX)),
            write_back,
            remember: options.number("remember")?.map(Duration::from_secs),
            read_ahead: read_ahead.map_or(default.read_ahead, |bytes| {
                u32::try_from(bytes >> 10).unwrap_or(u32::MAX)
            }),
        };
        for spec in Self::SPECS {
            options.take(spec.name);
        }
        options.pass_over(is_everybodys);
        Ok(all)
    }
}

/// Returns whether mount(8) accepts this option for every file system. Some of these are handled
/// above. The others do not concern a file system, or describe what is always the case here. (The
/// volume itself determines times of access.)
fn is_everybodys(key: &str) -> bool {
    const WORDS: &[&str] = &[
        "_netdev",
        "async",
        "atime",
        "auto",
        "comment",
        "defaults",
        "diratime",
        "exec",
        "fail",
        "group",
        "loud",
        "noatime",
        "noauto",
        "nodev",
        "nodiratime",
        "nofail",
        "nogroup",
        "noowner",
        "norelatime",
        "nostrictatime",
        "nosuid",
        "nouser",
        "nousers",
        "owner",
        "relatime",
        "rw",
        "silent",
        "strictatime",
        "symfollow",
        "user",
        "users",
    ];
    WORDS.contains(&key) || key.starts_with("x-") || key.starts_with("X-")
}

const fn spec(name: &'static str, value: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec { name, value, help }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_options_are_taken_and_others_left() {
        let mut options = Options::parse("ro,uid=5,checks=session,remember=3,readahead=256k");
        let mount = MountOptions::from_options(&mut options).unwrap();
        assert!(mount.read_only);
        assert_eq!(mount.checks, Checks::Session);
        assert_eq!(mount.remember, Some(Duration::from_secs(3)));
        assert_eq!(mount.read_ahead, 256);
        assert_eq!(options, Options::parse("uid=5"));
    }

    #[test]
    fn the_words_of_fstab_are_taken() {
        let given = "defaults,noatime,nofail,_netdev,user,exec,nosuid,nodev,x-systemd.automount,\
            comment=a b,async,rw";
        let mut options = Options::parse(given);
        let mount = MountOptions::from_options(&mut options).unwrap();
        assert!(options.is_empty(), "{options:?}");
        assert_eq!(mount, MountOptions::default());
        for (given, suid, exec, read_only) in [
            ("suid", true, true, false),
            ("suid,nosuid,ro", false, true, true),
            ("nosuid,suid,ro,rw", true, true, false),
            ("users", false, false, false),
            ("noexec,exec", false, true, false),
            ("exec,noexec", false, false, false),
        ] {
            let mount = MountOptions::from_options(&mut Options::parse(given)).unwrap();
            let found = (mount.suid, mount.exec, mount.read_only);
            assert_eq!(found, (suid, exec, read_only), "{given}");
        }
    }

    #[test]
    fn without_options_it_is_the_default() {
        let mount = MountOptions::from_options(&mut Options::new()).unwrap();
        assert_eq!(mount, MountOptions::default());
    }

    #[test]
    fn a_value_that_is_none_is_named() {
        let mut options = Options::parse("locks=mine");
        let error = MountOptions::from_options(&mut options).unwrap_err();
        assert_eq!(
            error.to_string(),
            "option 'locks' is 'mine', expected kernel or session"
        );
    }
}
