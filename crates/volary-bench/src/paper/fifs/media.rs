//! The ways to the files, and how long the benchmarks take on each.

use super::build;
use crate::needs;
use crate::served::clients::{self, Phases};
use crate::served::guest::{self, Guest, MOUNTED};
use crate::served::ours::{self, Volume};
use crate::served::{Client, Clients, Place, Started};
use anyhow::{Context, Result, bail};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use volary::Progress;

/// How often each is run; the median counts.
pub(super) const ROUNDS: usize = 3;

/// The phases with a large file.
pub(super) const LARGE: [&str; 5] = [
    "sequential-write",
    "sequential-read",
    "random-write",
    "random-read",
    "read-again",
];

/// The paper's names of media, with what each is here.
pub(super) const DIRECTORY: &str = "NTFS: the directory";
pub(super) const FSWIN32: &str = "FSWIN32: SMB";
pub(super) const FUSE_1: &str = "FSWIN32-1: FUSE";
pub(super) const FUSE_4: &str = "FSWIN32-4: FUSE";
pub(super) const FUSE_NC: &str = "FSWIN32-4nc: FUSE";
pub(super) const NFS: &str = "FSWIN32: NFS";
pub(super) const FSNFS_1: &str = "FSNFS-1: SMB";
pub(super) const FSNFS_4: &str = "FSNFS-4: SMB";
pub(super) const FSNFS_C: &str = "FSNFS-4c: SMB";
pub(super) const FSNFS_FUSE_4: &str = "FSNFS-4: FUSE";
pub(super) const FSNFS_FUSE_C: &str = "FSNFS-4c: FUSE";
pub(super) const CIFS_NC: &str = "FSWIN32nc: cifs";
pub(super) const CIFS: &str = "FSWIN32: cifs";
pub(super) const FSNFS_NC: &str = "FSNFSnc: cifs";
pub(super) const FSNFS_CIFS: &str = "FSNFSc: cifs";
pub(super) const KNFS_NC: &str = "kNFSnc";
pub(super) const KNFS: &str = "kNFS";

pub(super) const HOST_NOTE: &str = "\
SMB by libsmbclient, which has nothing in memory and no call that syncs; NFS by libnfs; FUSE by the kernel. -1 and -4: threads
of the mount, and connections of FSNFS to its NFS server, which is volary's; servers of SMB start threads as calls wait. FSNFS
asks for attributes each time, FSNFS-4c for those older than 3 s. 4nc: the kernel has no names, attributes or (but in the
build) data. The directory is in memory. Medians of 3.";

pub(super) const GUEST_NOTE: &str = "\
The guest's processor is emulated, its servers are on the host: these times can only be compared with each other. nc: cifs with
cache=none,actimeo=0; NFS with noac,actimeo=0,lookupcache=none and (but in the build) O_DIRECT; FSNFS with cache=0. Without nc:
cache=strict, or the kernel's defaults, and FSNFS's own. Others may change what both volumes show, so that volary grants no
leases, without which cifs keeps no data. Messages are not signed, as the paper's were not. kNFS and FSNFS have the same NFS
server, volary's. The directory is the guest's own memory. Large files: medians of 3; the others take minutes, and were run once.";

/// Options of `nfs://`: as the paper's client, which has no memory of its own; and as it is.
const ONE: &str = "connections=1,cache=0";
const FOUR: &str = "connections=4,cache=0";
const CACHED: &str = "connections=4";

/// The paper's benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// One that the client programs know by these words.
    Client(&'static [&'static str]),
    /// The application benchmark.
    Build,
}

impl Work {
    /// Returns how often it is run in the guest: once what takes minutes there.
    fn guest_rounds(self) -> usize {
        match self {
            Self::Client(["large", _]) => ROUNDS,
            _ => 1,
        }
    }
}

/// How the host gets at the files.
#[derive(Clone, Copy)]
enum Way {
    Directly,
    Smb,
    Nfs,
    /// Through FUSE, with these options of the mount. True if the kernel caches data.
    Fuse(&'static str, bool),
    FsnfsSmb(&'static str),
    /// With options of the client, and of the mount.
    FsnfsFuse(&'static str, &'static str),
}

const HOST: [(&str, Way); 11] = [
    (DIRECTORY, Way::Directly),
    (FSWIN32, Way::Smb),
    (FUSE_1, Way::Fuse("threads=1", true)),
    (FUSE_4, Way::Fuse("threads=4", true)),
    (FUSE_NC, Way::Fuse("threads=4,remember=0", false)),
    (NFS, Way::Nfs),
    (FSNFS_1, Way::FsnfsSmb(ONE)),
    (FSNFS_4, Way::FsnfsSmb(FOUR)),
    (FSNFS_C, Way::FsnfsSmb(CACHED)),
    (FSNFS_FUSE_4, Way::FsnfsFuse(FOUR, "threads=4")),
    (FSNFS_FUSE_C, Way::FsnfsFuse(CACHED, "threads=4")),
];

/// Ports of the servers that a guest uses.
const SMB_PORT: u16 = 14_470;
const NFS_PORT: u16 = 14_471;
const FSNFS_NC_PORT: u16 = 14_472;
const FSNFS_PORT: u16 = 14_473;

/// How the guest mounts, and whether its programs have the kernel keep no data.
const GUEST: [(&str, &str, u16, &str, bool); 7] = [
    (DIRECTORY, "memory", 0, "", false),
    (CIFS_NC, "smb", SMB_PORT, ",cache=none,actimeo=0", false),
    (CIFS, "smb", SMB_PORT, ",cache=strict", false),
    (
        FSNFS_NC,
        "smb",
        FSNFS_NC_PORT,
        ",cache=none,actimeo=0",
        false,
    ),
    (FSNFS_CIFS, "smb", FSNFS_PORT, ",cache=strict", false),
    (
        KNFS_NC,
        "nfs",
        NFS_PORT,
        ",noac,actimeo=0,lookupcache=none",
        true,
    ),
    (KNFS, "nfs", NFS_PORT, "", false),
];

/// What was measured of a medium.
pub(super) struct Timed {
    pub(super) name: &'static str,
    pub(super) phases: Phases,
}

impl Timed {
    /// Of several rounds. A phase that comes several times in one is the sum of these.
    pub(super) fn new(
        name: &'static str,
        rounds: impl IntoIterator<Item = Vec<(String, f64)>>,
    ) -> Self {
        let mut phases = Phases::default();
        for costs in rounds {
            phases.add(build::summed(costs));
        }
        Self { name, phases }
    }
}

/// What was measured for a figure.
#[derive(Default)]
pub(super) struct Times {
    pub(super) host: Vec<Timed>,
    pub(super) guest: Vec<Timed>,
    /// What is left out, and why.
    pub(super) missing: Vec<String>,
}

/// Returns the names of the host's media that a benchmark is run on.
#[cfg(test)]
pub(super) fn host_names(work: Work) -> Vec<&'static str> {
    media(work).map(|(name, _)| *name).collect()
}

/// Returns the names of the guest's media.
#[cfg(test)]
pub(super) fn guest_names() -> Vec<&'static str> {
    GUEST.map(|(name, ..)| name).to_vec()
}

/// Returns the host's media: the build's programs need a mount.
fn media(work: Work) -> impl Iterator<Item = &'static (&'static str, Way)> {
    HOST.iter().filter(move |(_, way)| {
        let is_mounted = matches!(way, Way::Directly | Way::Fuse(..) | Way::FsnfsFuse(..));
        is_mounted || work != Work::Build
    })
}

/// What all benchmarks need.
pub(super) struct Bench<'a> {
    place: &'a Place,
    clients: &'a Clients,
    volary: &'a Path,
    archive: PathBuf,
    progress: &'a dyn Progress,
    /// What is being measured, and how many have been, of how many.
    now: Cell<(&'static str, u64, u64)>,
}

impl<'a> Bench<'a> {
    /// # Errors
    /// What the host says.
    pub(super) fn new(
        place: &'a Place,
        clients: &'a Clients,
        volary: &'a Path,
        progress: &'a dyn Progress,
    ) -> Result<Self> {
        Ok(Self {
            place,
            clients,
            volary,
            archive: build::archive(place)?,
            progress,
            now: Cell::default(),
        })
    }

    /// Measures all media. What is not here leaves out that medium.
    ///
    /// # Errors
    /// If a program fails.
    pub(super) fn times(&self, work: Work) -> Result<Times> {
        let mut times = Times::default();
        let total = media(work).count() as u64 + 1;
        for (done, (name, way)) in (0_u64..).zip(media(work)) {
            self.now.set((name, done, total));
            match self.rounds(*way, work) {
                Ok(rounds) => times.host.push(Timed::new(name, rounds)),
                Err(e) => {
                    let why = needs::lacking(e)?;
                    times.missing.push(format!("{name} is left out: {why}."));
                }
            }
        }
        self.now.set(("in a guest", total - 1, total));
        match self.guest(work) {
            Ok(guest) => times.guest = guest,
            Err(e) => {
                let names = GUEST.map(|(name, ..)| name).join(", ");
                let why = needs::lacking(e)?;
                let words = format!("Linux's own clients ({names}) are left out: {why}.");
                times.missing.push(words);
            }
        }
        Ok(times)
    }

    /// Starts what reaches `dir` in this way.
    fn start(&self, way: Way, dir: &Path) -> Result<Started> {
        let (volary, clients) = (self.volary, self.clients);
        let at = self.mounted();
        match way {
            Way::Directly => Ok((Box::new(()), clients.posix(dir)?)),
            Way::Smb => ours::smb(volary, dir, clients, "signed"),
            Way::Nfs => ours::nfs(volary, dir, clients),
            Way::Fuse(how, true) => ours::fuse_with(volary, dir, &at, clients, how),
            Way::Fuse(how, false) => {
                let (mounted, client) = ours::fuse_with(volary, dir, &at, clients, how)?;
                Ok((mounted, client.uncached()))
            }
            Way::FsnfsSmb(options) => ours::smb_of_nfs(volary, dir, clients, options),
            Way::FsnfsFuse(options, how) => {
                ours::fuse_of_nfs(volary, dir, &at, clients, options, how)
            }
        }
    }

    /// # Errors
    /// What the progress says: to stop.
    fn goes_on(&self) -> Result<()> {
        let (name, done, total) = self.now.get();
        Ok(self.progress.progress(name, done, total)?)
    }

    fn mounted(&self) -> PathBuf {
        self.place.path("mounted")
    }

    /// Returns the seconds of each round. One goes before them, which warms up; but the build takes too long for that.
    fn rounds(&self, way: Way, work: Work) -> Result<Vec<Vec<(String, f64)>>> {
        let mut all = Vec::new();
        let first = usize::from(work == Work::Build);
        for round in first..=ROUNDS {
            self.goes_on()?;
            let dir = self.place.served()?;
            let (server, client) = self.start(way, dir.path())?;
            let costs = self.once(way, work, client, dir.path())?;
            drop(server);
            if round > 0 {
                all.push(costs);
            }
        }
        Ok(all)
    }

    fn once(&self, way: Way, work: Work, client: Client, dir: &Path) -> Result<Vec<(String, f64)>> {
        let build = |dir: &Path| build::run(dir, &self.archive, &|| self.goes_on());
        match (work, way) {
            (Work::Client(words), _) => client.run(words),
            (Work::Build, Way::Directly) => build(dir),
            (Work::Build, _) => build(&self.mounted()),
        }
    }

    /// Measures the guest's media, all in one guest.
    fn guest(&self, work: Work) -> Result<Vec<Timed>> {
        let guest = Guest::find()?;
        let program = self.clients.posix_program()?;
        let [host, nfs] = [self.place.served()?, self.place.served()?];
        let [dir, nfs] = [host.path(), nfs.path()];
        let volary = self.volary;
        // The servers that use another come after it, and end before it.
        let _smb = Volume::host(dir)?.serve_smb(volary, SMB_PORT, "none")?;
        let _nfs = Volume::host(nfs)?.serve_nfs(volary, NFS_PORT)?;
        let fsnfs =
            |port, options| Volume::nfs(nfs, NFS_PORT, options).serve_smb(volary, port, "none");
        let _fsnfs_nc = fsnfs(FSNFS_NC_PORT, FOUR)?;
        let _fsnfs = fsnfs(FSNFS_PORT, CACHED)?;
        let files = [program, self.archive.as_path()];
        let printed = guest.run(&files, &script(work, files), dir, &|| self.goes_on())?;
        read(&printed)
    }
}

/// Returns what the guest runs: all media in turn, each mounted anew.
fn script(work: Work, files: [&Path; 2]) -> String {
    let mut script = guest::mounting();
    for file in files.iter().filter_map(|file| file.file_name()) {
        script += &format!("cp '/root/{}' /host/tmp/ || exit 9\n", file.display());
    }
    if work == Work::Build {
        let archive = "/tmp/tree.tar";
        script += &build::script(Path::new(MOUNTED), archive, "/host/tmp/build.sh");
    }
    for round in 0..work.guest_rounds() {
        for (name, mount, port, options, direct) in GUEST {
            let env = if direct { "POSIX_DIRECT=1" } else { "" };
            let run = match work {
                Work::Client(words) => {
                    format!("env {env} /tmp/posix {MOUNTED} {}", words.join(" "))
                }
                Work::Build => "bash /tmp/build.sh".to_owned(),
            };
            script += &format!(
                "echo 'medium {round} {name}'\n{mount} {port} {options} || exit 9\n\
                 chroot /host {run} || exit 9\numount $M || exit 9\n"
            );
        }
    }
    script
}

/// Returns what the guest printed: the seconds of each medium.
fn read(printed: &str) -> Result<Vec<Timed>> {
    let mut all: Vec<Timed> = Vec::new();
    for part in printed.split("medium ").skip(1) {
        let (head, lines) = part.split_once('\n').context("no line of a medium")?;
        let name = head.split_once(' ').map_or("", |(_, name)| name);
        let known = GUEST.iter().find(|(known, ..)| *known == name);
        let Some((name, ..)) = known else {
            bail!("the guest printed {head:?}");
        };
        let costs = build::summed(clients::parse(lines)?);
        match all.iter_mut().find(|one| one.name == *name) {
            Some(one) => one.phases.add(costs),
            None => all.push(Timed::new(name, [costs])),
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_guest_prints_is_read_for_each_medium_and_round() {
        let printed = "medium 1 kNFS\nread 1.5\ncopy 1\ncopy 2\nmedium 1 kNFSnc\nread 9\nmedium 2 kNFS\nread 0.5\n\
                       medium 3 kNFS\nread 0.75\n";
        let found = read(printed).unwrap();
        let names: Vec<&str> = found.iter().map(|one| one.name).collect();
        assert_eq!(names, [KNFS, KNFS_NC]);
        let median = |at: usize, phase| found[at].phases.median(phase);
        assert_eq!(median(0, "read"), Some(0.75));
        assert_eq!(median(0, "copy"), Some(3.0));
        assert_eq!(median(1, "read"), Some(9.0));
        assert!(read("medium 1 another\nread 1\n").is_err());
        assert!(read("medium 1 kNFS\nmount: no such device\n").is_err());
    }

    #[test]
    fn the_guest_mounts_each_medium_in_each_round() {
        let files = [Path::new("/x/posix"), Path::new("/x/tree.tar")];
        let large = script(Work::Client(&["large", "8"]), files);
        assert_eq!(large.matches("umount $M").count(), GUEST.len() * ROUNDS);
        assert_eq!(large.matches("POSIX_DIRECT").count(), ROUNDS);
        assert!(large.contains("smb 14470 ,cache=strict"), "{large}");
        let build = script(Work::Build, files);
        assert_eq!(build.matches("bash /tmp/build.sh").count(), GUEST.len());
    }
}
