//! `--run-as`: the user that a server becomes once it has opened what only root can.

use crate::clock;
use crate::exit::{Done, Exit, Fail};
use crate::registry::registry;
use nix::unistd::{
    Gid, Uid, User, getgrouplist, getgroups, setegid, seteuid, setgroups, setresgid, setresuid,
};
use std::ffi::CString;
use std::io;
use std::path::{Path, PathBuf};
use volary::{Attach, Cred, Opened, Source, escape};

/// The user that this process is to become; none if it stays who it is.
#[derive(Debug)]
pub(crate) struct RunAs(Option<Other>);

#[derive(Debug)]
struct Other {
    name: String,
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
    home: PathBuf,
}

impl RunAs {
    /// Returns the user of this name or number; without a name, none.
    ///
    /// # Errors
    /// Of the command line: a user who does not exist, or root; `Failed` for whoever is not root.
    pub(super) fn find(name: Option<&str>) -> Done<Self> {
        let Some(name) = name else {
            return Ok(Self(None));
        };
        let shown = escape(name.as_bytes()).to_string();
        let by_number = || User::from_uid(Uid::from_raw(name.parse().ok()?)).ok()?;
        let user = User::from_name(name).ok().flatten().or_else(by_number);
        let Some(user) = user else {
            return Err(Fail::usage(format!("--run-as: no user '{shown}'")));
        };
        if user.uid.is_root() {
            let words = "--run-as: that is root, who gives up nothing so; name another user";
            return Err(Fail::usage(words));
        }
        if !Uid::effective().is_root() {
            let words = "--run-as: only root can run it as another user; leave it out, or use sudo";
            return Err(Fail::new(Exit::Failed, words));
        }
        let groups = CString::new(user.name.as_str())
            .ok()
            .and_then(|name| getgrouplist(&name, user.gid).ok());
        Ok(Self(Some(Other {
            name: user.name,
            uid: user.uid,
            gid: user.gid,
            groups: groups.unwrap_or_else(|| vec![user.gid]),
            home: user.dir,
        })))
    }

    /// Returns whether it is another user than the process has now.
    pub(crate) fn is_another(&self) -> bool {
        self.0.is_some()
    }

    /// Returns its name, if it is to be another.
    pub(crate) fn name(&self) -> Option<&str> {
        self.0.as_ref().map(|other| other.name.as_str())
    }

    /// Returns the directory of its own, if it is to be another.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.0.as_ref().map(|other| other.home.as_path())
    }

    /// Returns its ids.
    pub(crate) fn cred(&self) -> Cred {
        match &self.0 {
            Some(other) => Cred::new(other.uid.as_raw(), other.gid.as_raw()),
            None => Cred::new(
                rustix::process::geteuid().as_raw(),
                rustix::process::getegid().as_raw(),
            ),
        }
    }

    /// Runs `work` as that user, and is root again after it: what the host lets that user open is
    /// what the server can use later.
    ///
    /// # Errors
    /// `Failed` if it cannot become that user, or root again.
    pub(crate) fn meanwhile<T>(&self, work: impl FnOnce() -> Done<T>) -> Done<T> {
        let Some(other) = &self.0 else {
            return work();
        };
        let before = getgroups().map_err(refused)?;
        setgroups(&other.groups).map_err(refused)?;
        setegid(other.gid).map_err(refused)?;
        seteuid(other.uid).map_err(refused)?;
        let done = work();
        seteuid(Uid::from_raw(0)).map_err(refused)?;
        setegid(Gid::from_raw(0)).map_err(refused)?;
        setgroups(&before).map_err(refused)?;
        done
    }

    /// Opens a volume: images and devices as the present user, directories of the host, NFS
    /// exports and volumes of schemes as the user to come.
    ///
    /// # Errors
    /// Of opening it; as [`meanwhile`](Self::meanwhile).
    pub(crate) fn open_volume(&self, source: &Source, mut attach: Attach) -> Done<Opened> {
        let cred = self.cred();
        (attach.uid, attach.gid) = (cred.uid, cred.gid);
        let open = || {
            let opened = registry().open_volume(source, &attach, clock::now());
            opened.map_err(|e| Fail::volume(source, &e))
        };
        match source {
            Source::Host { .. } | Source::Nfs(_) | Source::Scheme { .. } => self.meanwhile(open),
            Source::Image { .. } | Source::Memory { .. } => open(),
        }
    }

    /// Gives that user the file at `path` if root owns it and, where `len` is given, it has that
    /// length. Leaves any other file alone: it may be somebody else's.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn give(&self, path: &Path, len: Option<u64>) -> io::Result<()> {
        use rustix::fs::{FileType, Mode, OFlags, fchown, fstat, open};
        let Some(other) = &self.0 else {
            return Ok(());
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match open(path, flags, Mode::empty()) {
            // Reading it reports the error.
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::LOOP) => return Ok(()),
            file => file?,
        };
        let facts = fstat(&file)?;
        let is_file = FileType::from_raw_mode(facts.st_mode).is_file();
        let is_long = |len| u64::try_from(facts.st_size).is_ok_and(|size| size == len);
        if !is_file || facts.st_nlink != 1 || facts.st_uid != 0 || !len.is_none_or(is_long) {
            return Ok(());
        }
        let (uid, gid) = (other.uid.as_raw(), other.gid.as_raw());
        let uid = rustix::process::Uid::from_raw(uid);
        let gid = rustix::process::Gid::from_raw(gid);
        Ok(fchown(&file, Some(uid), Some(gid))?)
    }

    /// Becomes that user for good, on all threads.
    ///
    /// # Errors
    /// `Failed` if it cannot, or could come back.
    pub(super) fn become_for_good(&self) -> Done {
        let Some(other) = &self.0 else {
            return Ok(());
        };
        setgroups(&other.groups).map_err(refused)?;
        setresgid(other.gid, other.gid, other.gid).map_err(refused)?;
        setresuid(other.uid, other.uid, other.uid).map_err(refused)?;
        let root = Uid::from_raw(0);
        if seteuid(root).is_ok() || setresuid(root, root, root).is_ok() {
            let words = "--run-as: root was given up, and came back";
            return Err(Fail::new(Exit::Failed, words));
        }
        Ok(())
    }
}

fn refused(e: nix::Error) -> Fail {
    Fail::new(Exit::Failed, format!("--run-as: {}", e.desc()))
}
