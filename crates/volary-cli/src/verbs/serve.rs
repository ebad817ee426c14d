//! `volary serve`: volumes for the clients that every system has.

mod address;
mod config;
mod deaths;
mod key;
mod mounts;
mod needs;
mod plan;
mod say;
mod smb;

use crate::alarm::{alarmed, commit_failed, lost, tell_if_read_only};
use crate::clock;
use crate::exit::{Done, Exit, Fail};
use crate::log::LogArgs;
use crate::plugins::PluginArgs;
use crate::sandbox::{self, RunAs, Sandbox, SandboxArgs, attendant};
use crate::stack::stack;
use crate::volumes::{At, KindArg, Use, attach_with, commit_of, tell_of_replica};
use address::Listen;
use config::{Config, Entry, anonymous_of};
use deaths::Deaths;
use mounts::Mounts;
pub(super) use mounts::{mount_ended, mount_on};
use needs::Common;
use plan::{Nfs, Plan, Served};
use smb::{Protect, Smb, SmbMin};
use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use volary::fuse::Attendant;
use volary::layers::Subtree;
use volary::nfs::{self, Clients, ExportOptions, OnEnd, ServeOptions, Squash};
use volary::{Options, Source, TYPE_OPTION, Volume, VolumeOptions, escape};

/// Serves volumes over NFS or SMB, on this host's own address.
///
/// Each volume is an export and a share, named after it: disk.img is /disk. NFS
/// is what is served unless --smb says otherwise. Stays until it
/// is stopped (Ctrl-C); then everything is on the images. With no volume it
/// serves a small one in memory, to try things on. It tells how to mount on
/// Linux, macOS and Windows.
///
/// By NFS, a user of this host is who the kernel says they are; root may call as
/// anybody. What clients on other hosts say about who calls is believed. So NFS is
/// served to this host only; to serve others, say who they are (--allow) and that
/// you know (--i-know-auth-sys).
///
/// Once it serves, it reaches no files but those of the volumes, and starts no
/// programs (--sandbox). Started by root, let it go on as another (--run-as).
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary serve
  volary serve disk.img unix.img
  volary serve --ro --nfs 127.0.0.1:3049 disk.img
  VOLARY_PASSWORD=secret volary serve --smb --user me disk.img
  volary serve --mount mnt disk.img
  volary serve --config volary.toml")]
#[command(after_long_help = long_help())]
pub(crate) struct Serve {
    /// The volumes; with :/path, a directory of one
    #[arg(value_name = "VOLUME")]
    volumes: Vec<OsString>,
    /// Where to serve NFS: address, port, or both; port 0 is any that is free
    /// [default: 127.0.0.1:2049]
    #[arg(long, value_name = "ADDRESS")]
    nfs: Option<String>,
    /// Where to serve SMB, to users with passwords; without an address on
    /// 127.0.0.1:4450
    #[arg(
        long,
        value_name = "ADDRESS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = SMB_DEFAULT
    )]
    smb: Option<String>,
    /// A user of SMB, who is who runs this: run by root, they are root on every share. The
    /// password is in VOLARY_PASSWORD
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Users of SMB, one a line: name:uid:gid[,gid...]:NT hash
    #[arg(long, value_name = "FILE")]
    users: Option<PathBuf>,
    /// What messages of SMB must be; with none, they may be signed and encrypted
    /// [default: signed; encrypted where others than this host are served]
    #[arg(long, value_name = "HOW")]
    protect: Option<Protect>,
    /// The oldest dialect of SMB that is spoken; 2.0.2 is signed by what can be talked down
    /// to less, and is spoken only if it is named here [default: 2.1]
    #[arg(long, value_name = "DIALECT")]
    smb_min: Option<SmbMin>,
    /// Mounts the volume here as well; what is locked, leased or changed there and
    /// through the servers is one
    #[arg(long, value_name = "DIR")]
    mount: Option<PathBuf>,
    /// Answers as a portmapper too, on port 111 of the same address: for
    /// Windows, and for locks from other hosts (needs root)
    #[arg(long)]
    portmap: bool,
    /// Lets these clients in: an address, or a network as 192.168.1.0/24. By NFS nobody else
    /// but this host; by SMB as well, if any are named
    #[arg(long, value_name = "CLIENTS")]
    allow: Vec<String>,
    /// Serves others than this host, who can claim to be anybody
    #[arg(long)]
    i_know_auth_sys: bool,
    /// Refuses changes
    #[arg(long)]
    ro: bool,
    /// Whose user ids are not believed: root's, all, or none
    #[arg(long, value_name = "WHOSE", default_value = "root")]
    squash: String,
    /// Who those are instead, as UID or UID:GID
    #[arg(long, value_name = "UID[:GID]", default_value = "65534:65534")]
    anonymous: String,
    /// Answers changes of names and attributes before they are on the volume
    #[arg(long = "async")]
    unsafe_quick: bool,
    /// How to open the volumes: options of every volume and of their formats, with commas
    /// between; --help lists them
    #[arg(short = 'o', long = "options", value_name = "OPTIONS")]
    options: Vec<String>,
    #[command(flatten)]
    kind: KindArg,
    /// Puts a layer over each volume, the first lowest; --help lists them
    #[arg(long = "layer", value_name = "LAYER[=ARGUMENT]")]
    layers: Vec<String>,
    /// Reads what to serve from a file; --help shows one
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where the key of file handles is kept, so that clients go on after a
    /// restart, and beside it, which of them have locks
    /// [default: ~/.local/state/volary/nfs.key]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// How long clients of NFS that had locks may claim them again after a restart,
    /// before others are given any, by whatever server
    #[arg(long, value_name = "SECONDS", default_value_t = 45)]
    grace: u16,
    #[command(flatten)]
    plugins: PluginArgs,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    sandbox: SandboxArgs,
    /// Prints a line of JSON when it serves, and one when it has ended
    #[arg(long)]
    json: bool,
}

/// Returns whether a word is a place to listen at, and no volume.
pub(crate) fn is_address(word: &OsStr) -> bool {
    let is_one = |text: &str| address::address("--smb", text, 0).is_ok();
    word.to_str().is_some_and(is_one) && !Path::new(word).exists()
}

fn long_help() -> String {
    use super::info::{attach_help, layers_text};
    format!(
        "\
Examples:
  volary serve
  volary serve disk.img unix.img
  volary serve --ro --nfs 127.0.0.1:3049 disk.img
  VOLARY_PASSWORD=secret volary serve --smb --user me disk.img
  volary serve --mount mnt disk.img
  volary serve --config volary.toml

A configuration file; all of it may be left out, and the command line goes first:
{}
{}
Layers (--layer):
{}",
        config::EXAMPLE,
        attach_help(),
        layers_text()
    )
}

/// Where SMB is served unless told otherwise: 445 is root's.
const SMB_DEFAULT: &str = "127.0.0.1:4450";
const SMB_PORT: u16 = 4450;

impl Serve {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let config = match &self.config {
            Some(path) => Config::read(path)?,
            None => Config::default(),
        };
        self.log_args(&config).begin()?;
        let entries = self.entries(&config)?;
        let level = self.sandbox.level(config.sandbox);
        let run_as = self.sandbox.run_as(config.run_as.as_deref())?;
        let plan = self.plan(&config, &entries, &run_as)?;
        volary::host::raise_descriptor_limit();
        // From here on a signal ends it cleanly, however early it comes.
        let signals = signals()?;
        self.plugins.install(Some(&run_as));
        let attendants = mounts::attendants(level, &entries)?;
        self.prepare(&entries)?;
        let sandbox = sandbox::begin(level, &needs::of(&self.common(), &plan, &entries))?;
        let mut open = Vec::new();
        let served = self
            .open_all(&entries, attendants, &config, &run_as, &mut open)
            .and_then(|()| self.serve(&config, plan, &open, signals, &sandbox, &run_as));
        // What is lost says more than that a mount of it could not be synced.
        close(open)?;
        let exit = served?;
        if self.json {
            say::stopped()?;
        }
        Ok(exit)
    }

    fn log_args(&self, config: &Config) -> LogArgs {
        LogArgs {
            log: self.log.log.clone().or_else(|| config.log.clone()),
            log_json: self.log.log_json || config.log_json,
        }
    }

    fn plan(&self, config: &Config, entries: &[Entry], run_as: &RunAs) -> Done<Plan> {
        let nfs = self.nfs.as_ref().or(config.nfs.as_ref());
        let smb = self.smb.as_ref().or(config.smb.as_ref());
        let smb = match smb {
            None => None,
            Some(text) => {
                let address = address::address("--smb", text, SMB_PORT)?;
                for entry in entries {
                    smb::check_name(entry.name.as_deref().unwrap_or_default())?;
                }
                let users = self.users.as_ref().or(config.users.as_ref());
                let one = self.user.as_ref().or(config.user.as_ref());
                let (file, one) = (users.map(PathBuf::as_path), one.map(String::as_str));
                let users = smb::users(file, one, run_as.cred())?;
                for entry in entries {
                    entry.check_users(&users)?;
                }
                Some(Smb {
                    address,
                    users,
                    protect: self.protect.or(config.protect),
                    min: self.smb_min.or(config.smb_min),
                })
            }
        };
        let nfs = if nfs.is_some() || smb.is_none() {
            let listen = self.listen(config)?;
            let key = key::obtain(self.key.as_deref().or(config.key.as_deref()), run_as)?;
            let grace = Duration::from_secs(self.grace.into());
            let locks = key.locks(listen.address, grace, run_as)?;
            let database = attendant::for_groups(self.sandbox.level(config.sandbox), run_as)?;
            Some(Nfs {
                listen,
                key,
                locks,
                database,
            })
        } else {
            None
        };
        Ok(Plan { nfs, smb })
    }

    fn listen(&self, config: &Config) -> Done<Listen> {
        let text = self.nfs.as_deref().or(config.nfs.as_deref());
        let mut listen = Listen::parse(text.unwrap_or(address::DEFAULT))?;
        listen.portmap = self.portmap || config.portmap;
        let allowed = !self.allow.is_empty()
            || !config.allow.is_empty()
            || config.volumes.iter().any(|v| !v.allow.is_empty());
        listen.check(allowed, self.i_know_auth_sys || config.i_know_auth_sys)?;
        Ok(listen)
    }

    /// Returns what is to be served: that of the command line, then that of the file.
    fn entries(&self, config: &Config) -> Done<Vec<Entry>> {
        let mut entries: Vec<Entry> = self.volumes.iter().map(|v| Entry::named(v)).collect();
        entries.extend(config.volumes.iter().cloned());
        if entries.is_empty() {
            entries.push(Entry::named("mem:".as_ref()));
        }
        if let Some(dir) = &self.mount {
            let [entry] = &mut entries[..] else {
                return Err(Fail::usage(
                    "--mount: there are several volumes; name each one's directory in a \
                     configuration file",
                ));
            };
            entry.mount = Some(dir.clone());
        }
        let mut names = Vec::new();
        for entry in &mut entries {
            let name = entry.export_name()?;
            if names.contains(&name) {
                return Err(Fail::usage(format!(
                    "two volumes would both be /{name}; give one another name in a \
                     configuration file"
                )));
            }
            entry.name = Some(name.clone());
            names.push(name);
        }
        Ok(entries)
    }

    fn open_all(
        &self,
        entries: &[Entry],
        attendants: Vec<Option<Arc<Attendant>>>,
        config: &Config,
        run_as: &RunAs,
        open: &mut Vec<Served>,
    ) -> Done {
        for (entry, attendant) in entries.iter().zip(attendants) {
            let served = self.open(entry, config, run_as)?;
            open.push(Served {
                attendant,
                ..served
            });
        }
        Ok(())
    }

    /// Does what schemes have to do before anything is given up.
    fn prepare(&self, entries: &[Entry]) -> Done {
        for entry in entries {
            let mut options = Options::new();
            let given = self.options.iter().chain(&entry.options);
            given.for_each(|text| options.add(text));
            crate::registry::prepare(&At::parse(&entry.volume)?.source, &options)?;
        }
        Ok(())
    }

    /// Returns what counts for all volumes.
    fn common(&self) -> Common<'_> {
        Common {
            options: &self.options,
            layers: &self.layers,
            read_only: self.ro,
        }
    }

    /// Returns the options of a volume: those of the command, and then its own.
    fn options_of(&self, entry: &Entry) -> Options {
        let mut options = Options::new();
        let given = self.options.iter().chain(&entry.options);
        given.for_each(|text| options.add(text));
        self.kind.add_to(&mut options);
        if let Some(kind) = &entry.kind {
            options.set(TYPE_OPTION, kind.as_str());
        }
        options
    }

    fn open(&self, entry: &Entry, config: &Config, run_as: &RunAs) -> Done<Served> {
        let at = At::parse(&entry.volume)?;
        let mut export = self.export(entry, config)?;
        if matches!(at.source, Source::Host { .. }) {
            export.system_groups = lowest_group_of_users();
        }
        let options = self.options_of(entry);
        let read_only = options
            .flag("ro", export.read_only)
            .map_err(|e| Fail::usage(format!("-o: {e}")))?;
        let usage = if read_only { Use::Look } else { Use::Change };
        let commit = commit_of(&options)?;
        let attach = attach_with(options, usage)?;
        let source = at.source.clone();
        let opened = run_as.open_volume(&source, attach)?;
        if let Some(replica) = &opened.replica {
            tell_of_replica(&source, replica, Use::Look)?;
        }
        let below = opened.fs;
        tell_if_read_only(&below, &source, read_only);
        let layers: Vec<String> = [&entry.layers[..], &self.layers].concat();
        let layered = if at.path == b"/" {
            Ok(below.clone())
        } else {
            Subtree::new(below.clone(), &at.path)
                .map(|fs| -> volary::Fs { Arc::new(fs) })
                .map_err(|e| Fail::at(&at, &e))
        };
        let how = VolumeOptions {
            commit,
            commit_failed,
            ..VolumeOptions::new(source.to_string(), clock::now)
        };
        match layered.and_then(|fs| stack(fs, &layers, &source)) {
            Ok((fs, reports)) => {
                let alarm = alarmed(fs, &source);
                Ok(Served {
                    source,
                    volume: Volume::new(alarm.clone(), how),
                    export: ExportOptions {
                        read_only: read_only || export.read_only,
                        ..export
                    },
                    mount: entry.mount.clone(),
                    attendant: None,
                    encrypt: entry.encrypt,
                    users: entry.users.clone(),
                    alarm,
                    reports,
                })
            }
            Err(e) => {
                // It was not used; the layer's own error is the one to tell.
                let _ = Volume::new(below, how).detach();
                Err(e)
            }
        }
    }

    fn export(&self, entry: &Entry, config: &Config) -> Done<ExportOptions> {
        let name = entry.name.clone().unwrap_or_default();
        let squash = entry.squash.as_deref().unwrap_or(&self.squash);
        let squash = match squash {
            "none" => Squash::None,
            "root" => Squash::Root,
            "all" => Squash::All,
            other => {
                let words = format!(
                    "--squash: '{}' is not root, all or none",
                    escape(other.as_bytes())
                );
                return Err(Fail::usage(words));
            }
        };
        let anonymous = entry.anonymous.as_deref().unwrap_or(&self.anonymous);
        let mut clients = Vec::new();
        for text in self.allow.iter().chain(&config.allow).chain(&entry.allow) {
            let parsed: Result<Clients, volary::Error> = text.parse();
            clients.push(parsed.map_err(|e| Fail::usage(format!("--allow: {e}")))?);
        }
        Ok(ExportOptions {
            read_only: self.ro || entry.read_only,
            squash,
            anonymous: anonymous_of(anonymous)?,
            clients,
            durable: !(self.unsafe_quick || entry.unsafe_quick),
            ..ExportOptions::new(name)
        })
    }

    fn serve(
        &self,
        config: &Config,
        plan: Plan,
        open: &[Served],
        mut signals: signal_hook::iterator::Signals,
        sandbox: &Sandbox,
        run_as: &RunAs,
    ) -> Done<Exit> {
        let portmap = plan.nfs.as_ref().is_some_and(|nfs| nfs.listen.portmap);
        let deaths = Deaths::new(signals.handle());
        let one = self.user.as_ref().or(config.user.as_ref());
        let root = one.filter(|_| rustix::process::geteuid().is_root());
        let nfs = match plan.nfs {
            Some(plan) => Some(start_nfs(plan, open, &deaths)?),
            None => None,
        };
        let smb = match plan.smb {
            Some(plan) => {
                let user = plan.users.first().map(|user| user.name.clone());
                let running = smb::start(plan, shares(open), opens_max(open), &deaths)?;
                Some((running, user.unwrap_or_default()))
            }
            None => None,
        };
        // After NFS: it may begin with a time of grace, that holds for them all.
        let mounts = Mounts::start(open)?;
        sandbox.settle(run_as)?;
        let said = say::At {
            nfs: nfs.as_ref().and_then(|n| n.addresses().first().copied()),
            portmap,
            smb: smb.as_ref().map(|(running, _)| running.address),
            user: smb.as_ref().map_or("", |(_, user)| user),
            root: root.filter(|_| smb.is_some()).map(String::as_str),
            run_as: run_as.name(),
        };
        if let Some(user) = said.root {
            let user = volary::escape_short(user.as_bytes());
            tracing::info!(target: "SMB", user, "user is root on every share");
        }
        if self.json {
            say::serving_json(&said, open)?;
        } else {
            say::serving(&said, open)?;
        }
        let told = signals.forever().next().is_some();
        deaths.expect();
        let unmounted = mounts.stop();
        let at = said.nfs;
        let nfs = nfs.map_or(Ok(()), |server| stop_nfs(server, at));
        let smb = smb.map_or(Ok(()), |(running, _)| running.stop());
        nfs.and(smb).and(unmounted)?;
        if told {
            Ok(Exit::Done)
        } else {
            Err(Fail::new(Exit::Failed, "a server has ended by itself"))
        }
    }
}

/// # Errors
/// What ended the server before.
fn stop_nfs(server: nfs::Server, at: Option<SocketAddr>) -> Done {
    let at = at.map(|at| at.to_string()).unwrap_or_default();
    server.stop().map_err(|e| Fail::host(at, e))
}

/// Returns how many opens a user of SMB may have, where each takes one of this process's descriptors:
/// half of what there are for that.
fn opens_max(open: &[Served]) -> Option<usize> {
    let takes = |served: &Served| matches!(served.source, Source::Host { .. });
    let is_bound = open.iter().any(takes);
    is_bound.then(|| volary::host::opens_max() / 2)
}

fn start_nfs(plan: Nfs, open: &[Served], deaths: &Deaths) -> Done<nfs::Server> {
    let listen = plan.listen;
    let mut options = ServeOptions::new(listen.address, plan.key.key, instance());
    options.locks = plan.locks;
    options.database = plan.database;
    let deaths = deaths.clone();
    options.on_end = Some(OnEnd::new(move || deaths.note("NFS")));
    if listen.portmap {
        options.portmap.push(listen.portmapper());
    }
    let exports = open
        .iter()
        .map(|served| (Arc::clone(&served.volume), served.export.clone()))
        .collect();
    nfs::serve(exports, &options).map_err(|e| listen.failed(&e))
}

fn shares(open: &[Served]) -> Vec<volary::smb::Share> {
    let share = |served: &Served| volary::smb::Share {
        name: served.export.name.clone(),
        volume: Arc::clone(&served.volume),
        read_only: served.export.read_only,
        encrypt: served.encrypt,
        clients: served.export.clients.clone(),
        users: served.users.clone(),
    };
    open.iter().map(share).collect()
}

/// Detaches all, whatever comes of it.
///
/// # Errors
/// The last; those before it are printed.
fn close(open: Vec<Served>) -> Done {
    let mut last = Ok(());
    for served in open {
        let source = &served.source;
        let closed = served.volume.detach().map_err(|e| Fail::at(source, &e));
        let closed = closed.and_then(|()| lost(&served.alarm, source));
        for report in &served.reports {
            crate::log::say(&report());
        }
        if closed.is_err()
            && let Err(before) = std::mem::replace(&mut last, closed)
        {
            before.report();
        }
    }
    last
}

fn signals() -> Done<signal_hook::iterator::Signals> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|e| Fail::host("signals", e))
}

/// Returns a number that no other run has.
fn instance() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let nanos = i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec);
    nanos as u64
}

/// Returns the lowest group of this host that is not one of the system's (login.defs(5)).
fn lowest_group_of_users() -> u32 {
    let text = std::fs::read_to_string("/etc/login.defs").unwrap_or_default();
    let mut lines = text.lines().map(str::split_whitespace);
    let line = lines.find(|line| line.clone().next() == Some("GID_MIN"));
    let number = line.and_then(|mut line| line.nth(1)?.parse().ok());
    number.unwrap_or(1000)
}
