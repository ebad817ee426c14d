//! What `serve` and `mount` give up, so that whoever takes over the process has little.
//!
//! From [`begin`] on, before a volume is opened or a thread started:
//!
//! - nobody reads this process's memory: no core dumps, and only root can trace it;
//! - nothing that it could start has more rights (`no_new_privs`), and it can start nothing:
//!   neither programs nor processes;
//! - of root's rights it has few (`rights.rs`): none to change the system, or look into processes;
//! - files of the host are those that [`Needs`] lists, and what is in the directories there
//!   (Landlock); so are the ports that it binds;
//! - mounts, namespaces, modules, other processes' memory and signals, and what else no server
//!   calls, are out of reach (seccomp; `calls.rs` has the list).
//!
//! From [`Sandbox::settle`] on, once all is open and listens:
//!
//! - it is the user of `--run-as`, if there is one, and cannot become another again;
//! - it makes no sockets, but TCP to clients where NFS has locks to grant, and what `nfs://` needs.
//!
//! What needs more is done by attendants: processes beside it, started before, that can do that one
//! thing (`attendant.rs`). All of this is had as far as the kernel has it; with
//! [`Level::Strict`], all or nothing.
//!
//! | module | what |
//! |---|---|
//! | `needs`, `files` | what a command needs; Landlock |
//! | `rights`, `calls` | capabilities; seccomp |
//! | `run_as` | `--run-as` |
//! | `attendant` | processes beside |

pub(crate) mod attendant;
mod calls;
mod files;
mod needs;
mod rights;
mod run_as;
#[cfg(test)]
mod tests;

use crate::exit::{Done, Exit, Fail};
pub(crate) use needs::Needs;
pub(crate) use run_as::RunAs;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

/// How much is given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Level {
    /// As much as this kernel can.
    #[default]
    On,
    /// All of it, or it does not start.
    Strict,
    /// Nothing: for debugging.
    Off,
}

/// Options of the commands that go on by themselves.
#[derive(clap::Args, Debug)]
pub(crate) struct SandboxArgs {
    /// How much this process gives up once it has started (other files, programs, sockets):
    /// on: as much as the kernel can; strict: all, or it does not start; off: nothing
    /// [default: on]
    #[arg(long, value_name = "HOW", hide_possible_values = false)]
    sandbox: Option<Level>,
    /// Gives up nothing: --sandbox off
    #[arg(long, conflicts_with = "sandbox")]
    no_sandbox: bool,
    /// Becomes this user for good once ports, images and key are open; opens directories of the
    /// host as that user (needs root)
    #[arg(long, value_name = "USER")]
    run_as: Option<String>,
}

impl SandboxArgs {
    /// Returns how strictly the process confines itself. Its arguments win over `config`, the
    /// level of the configuration file.
    pub(crate) fn level(&self, config: Option<Level>) -> Level {
        match self.no_sandbox {
            true => Level::Off,
            false => self.sandbox.or(config).unwrap_or_default(),
        }
    }

    /// Returns who it becomes, if the configuration file says `config`.
    ///
    /// # Errors
    /// Of the command line: not root, an unknown user, root.
    pub(crate) fn run_as(&self, config: Option<&str>) -> Done<RunAs> {
        RunAs::find(self.run_as.as_deref().or(config))
    }
}

/// A process that has given up something, and will give up more.
#[derive(Debug)]
#[must_use]
pub(crate) struct Sandbox {
    level: Level,
    calls: calls::Later,
}

/// Gives up what the head of this module lists. It holds for this thread and for those that it
/// starts from now on: there must be no others.
///
/// # Errors
/// `Failed` with [`Level::Strict`], for what this kernel does not have.
pub(crate) fn begin(level: Level, needs: &Needs) -> Done<Sandbox> {
    let sandbox = Sandbox {
        level,
        calls: calls::Later::of(needs),
    };
    if level == Level::Off {
        return Ok(sandbox);
    }
    hide_memory();
    let no_new_privs = rustix::thread::set_no_new_privs(true);
    sandbox.require(no_new_privs.map_err(|e| format!("no_new_privs: {e}")))?;
    sandbox.require(rights::give_up(needs))?;
    sandbox.require(files::restrict(needs))?;
    sandbox.require(calls::restrict())?;
    Ok(sandbox)
}

/// Neither a core dump nor a tracer of the same user shows what is in memory. Programs that are
/// started can be traced again.
pub(crate) fn hide_memory() {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    // Neither is refused to anybody.
    let _ = setrlimit(Resource::Core, none);
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

impl Sandbox {
    /// Gives up the rest, on all threads.
    ///
    /// # Errors
    /// `Failed` if it cannot become who it is to be; with [`Level::Strict`], for what this kernel
    /// does not have.
    pub(crate) fn settle(&self, run_as: &RunAs) -> Done {
        run_as.become_for_good()?;
        if self.level == Level::Off {
            return Ok(());
        }
        if run_as.is_another() {
            // A change of user lets the new one trace again, by what the host says.
            hide_memory();
        }
        self.require(self.calls.restrict())
    }

    fn require(&self, done: Result<(), String>) -> Done {
        match done {
            Err(words) if self.level == Level::Strict => {
                let words = format!("--sandbox strict: this system lacks {words}");
                Err(Fail::new(Exit::Failed, words))
            }
            _ => Ok(()),
        }
    }
}
