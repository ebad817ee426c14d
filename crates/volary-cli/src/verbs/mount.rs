//! `volary mount`: a volume as a directory of this host.

use super::serve::{mount_ended, mount_on};
use crate::alarm::{alarmed, commit_failed, lost, tell_if_read_only};
use crate::clock;
use crate::exit::{Done, Exit, Fail};
use crate::log::LogArgs;
use crate::plugins::PluginArgs;
use crate::sandbox::{self, Needs, RunAs, SandboxArgs, attendant};
use crate::stack::{Report, stack};
use crate::volumes::{At, KindArg, Use, attach_with, commit_of, tell_of_replica};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use volary::fuse::{Checks, MountOptions, Stop};
use volary::layers::{Alarm, Subtree};
use volary::{Caps, Options, Volume, VolumeOptions};

/// Mounts a volume on a directory, by FUSE.
///
/// Stays until it is unmounted (fusermount3 -u DIR) or stopped (Ctrl-C); then
/// everything is on the image. With --background it goes on by itself, once
/// the volume is mounted, and says what goes wrong in the system's log. What is in the directory already is
/// hidden meanwhile. An ordinary user mounts on a directory that they may write, through
/// fusermount3, and needs access to /dev/fuse. Once the volume is mounted, this reaches no files but
/// those of the volume, and starts no programs (--sandbox).
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary mount disk.img mnt
  volary mount --background -o ro,names=lower disk.img mnt
  volary mount --layer subtree=/docs --layer readonly disk.img mnt
  volary mount 'nfs://server/export?uid=1000' mnt")]
#[command(after_long_help = long_help())]
pub(crate) struct Mount {
    /// The volume
    #[arg(value_name = "VOLUME")]
    volume: OsString,
    /// The directory
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Options, with commas between them; mount --help lists them
    #[arg(short = 'o', long = "options", value_name = "OPTIONS")]
    options: Vec<String>,
    #[command(flatten)]
    kind: KindArg,
    /// Puts a layer over the volume, the first lowest; mount --help lists them
    #[arg(long = "layer", value_name = "LAYER[=ARGUMENT]")]
    layers: Vec<String>,
    /// Stays in the foreground: what it does unless told otherwise
    #[arg(short, long, conflicts_with = "background")]
    foreground: bool,
    /// Returns once the volume is mounted, and goes on in the background
    #[arg(short, long)]
    background: bool,
    #[command(flatten)]
    plugins: PluginArgs,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    sandbox: SandboxArgs,
    /// Prints "mounted" once it is
    #[arg(long, hide = true)]
    tell: bool,
}

fn long_help() -> String {
    use super::info::{attach_help, layers_text, specs_text};
    format!(
        "\
Examples:
  volary mount disk.img mnt
  volary mount --background -o ro,names=lower disk.img mnt
  volary mount --layer subtree=/docs --layer readonly disk.img mnt

Options of every mount (-o), and what every fstab may have (noatime, nofail, x-...):
{}{}
Layers (--layer):
{}",
        specs_text(MountOptions::SPECS),
        attach_help(),
        layers_text()
    )
}

impl Mount {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        if self.background {
            return self.in_background();
        }
        self.log.begin()?;
        let system = self.tell.then(crate::log::System::open).flatten();
        volary::host::raise_descriptor_limit();
        let at = At::parse(&self.volume)?;
        let mut options = Options::new();
        self.options.iter().for_each(|text| options.add(text));
        self.kind.add_to(&mut options);
        let usage = |e: volary::Error| Fail::usage(format!("-o: {e}"));
        options.also_known(MountOptions::SPECS);
        let mount = MountOptions::from_options(&mut options).map_err(usage)?;
        if mount.suid && matches!(at.source, volary::Source::Host { .. }) {
            options.set("suid", "");
        }
        let read_only = mount.read_only;
        if options.get("sync") == Some("") && options.get("commit").is_none() {
            options.set("commit", "0");
        }
        let level = self.sandbox.level(None);
        let run_as = self.sandbox.run_as(None)?;
        self.plugins.install(Some(&run_as));
        crate::registry::prepare(&at.source, &options)?;
        let attendant = attendant::for_mount(level, &self.dir, &self.options)?;
        let sandbox = sandbox::begin(level, &self.needs(&at, read_only))?;
        let (volume, alarm, reports) = self.volume(&at, options, read_only, &mount, &run_as)?;
        let mounted = mount_on(
            Arc::clone(&volume),
            &self.dir,
            &mount,
            Stop::Signals,
            attendant,
        );
        let mounted = mounted.inspect_err(|_| {
            // It was not used; the mount's own error is the one to tell.
            let _ = volume.detach();
        })?;
        sandbox.settle(&run_as)?;
        if self.tell {
            leave_the_terminal(system).map_err(|e| Fail::host("background", e))?;
        }
        let ended = mounted.wait().map_err(|e| Fail::at(&at.source, &e));
        mount_ended(&self.dir);
        for report in reports {
            crate::log::say(&report());
        }
        ended.and_then(|()| lost(&alarm, &at.source))?;
        Ok(Exit::Done)
    }

    fn needs(&self, at: &At, read_only: bool) -> Needs {
        let mut needs = Needs::new();
        needs.volume(&at.source, &self.options, &self.layers, read_only);
        needs.fuse();
        needs
    }

    fn volume(
        &self,
        at: &At,
        options: Options,
        read_only: bool,
        mount: &MountOptions,
        run_as: &RunAs,
    ) -> Done<(Arc<Volume>, Arc<Alarm>, Vec<Report>)> {
        let source = &at.source;
        let commit = commit_of(&options)?;
        let usage = if read_only { Use::Look } else { Use::Change };
        let attach = attach_with(options, usage)?;
        let opened = run_as.open_volume(source, attach)?;
        if let Some(replica) = &opened.replica {
            tell_of_replica(source, replica, Use::Look)?;
        }
        let mut fs = opened.fs;
        tell_if_read_only(&fs, source, read_only);
        if at.path != b"/" {
            let subtree = Subtree::new(fs, &at.path).map_err(|e| Fail::usage(e.to_string()))?;
            fs = Arc::new(subtree);
        }
        let (fs, reports) = stack(fs, &self.layers, source)?;
        let trust = mount.checks == Checks::Kernel && !fs.caps().has(Caps::CHECKS_ACCESS);
        let options = VolumeOptions {
            trust,
            commit,
            commit_failed,
            ..VolumeOptions::new(source.to_string(), clock::now)
        };
        let alarm = alarmed(fs, source);
        Ok((Volume::new(alarm.clone(), options), alarm, reports))
    }

    /// Starts itself again without a terminal, and waits until it is mounted.
    fn in_background(&self) -> Done<Exit> {
        use std::io::Read;
        use std::os::unix::process::CommandExt;
        let fail = |e: std::io::Error| Fail::host("background", e);
        let program = std::env::current_exe().map_err(fail)?;
        let words = std::env::args_os().skip(1);
        let mut words: Vec<OsString> = words.filter(|w| w != "-b" && w != "--background").collect();
        words.push("--tell".into());
        let mut command = Command::new(program);
        // A group of its own: Ctrl-C in this terminal is not for it.
        command
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0);
        let mut child = command.spawn().map_err(fail)?;
        let mut told = [0; 8];
        let stdout = child.stdout.as_mut().map(|out| out.read_exact(&mut told));
        if matches!(stdout, Some(Ok(()))) {
            return Ok(Exit::Done);
        }
        // It has said why.
        let code = child.wait().map_err(fail)?.code();
        let exits = Exit::COMMON.into_iter();
        let exit = exits
            .into_iter()
            .find(|e| Some(i32::from(e.code())) == code);
        Err(Fail::new(exit.unwrap_or(Exit::Failed), ""))
    }
}

/// Tells who started this that the volume is mounted, and holds on to nothing
/// of theirs. What is to be said from now on goes to the system's log.
fn leave_the_terminal(system: Option<crate::log::System>) -> std::io::Result<()> {
    use std::io::Write;
    if let Some(system) = system {
        crate::log::to_system(system);
    }
    // Who asked for it may have gone.
    let _ = crate::out::Raw.write_all(b"mounted\n");
    let null = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}
