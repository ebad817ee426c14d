//! [`Paths`]: a table of paths as a [`FileSystem`](volary_core::FileSystem).
//!
//! Calls run concurrently, but a call that moves or removes names runs alone. A path must not
//! change its meaning while the plug-in works on it. So a slow call delays a rename, and a rename
//! delays all calls after it.
//!
//! | module | what |
//! |---|---|
//! | `tree` | node ids, and their current paths |
//! | `opens` | open files and directories, and their listings |
//! | `ask` | looks at a path, and makes its node known |
//! | `moves` | removing and renaming; files that are removed while open |
//! | `opening` | opening, making and listing |
//! | `fs` | the operations |

mod ask;
mod fs;
mod moves;
mod opening;
mod opens;
mod tree;

use crate::abi::VolaryPathTable;
use crate::loaded::calls::Calls;
use crate::loaded::hooks::Hooks;
use crate::loaded::{Begun, Functions, check_there, copied, upcalls};
use crate::news::News;
use opens::Opens;
use parking_lot::RwLock;
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;
use tree::Tree;
use volary_core::{Attach, Caps, Ctx, Error, Kind, NodeId, Result};

/// The end of the required functions: those up to `read`.
const TABLE_MIN: usize = offset_of!(VolaryPathTable, attach);
/// Approximate memory for a node with its names, in bytes.
const NODE_SIZE: u64 = 1 << 10;
/// Capabilities that a table of paths never has: stable ids and cookies, crash safety, shared
/// locks, places on a device.
const NEVER: u32 =
    Caps::STABLE_IDS | Caps::STABLE_COOKIES | Caps::CRASH_SAFE | Caps::SHARED_LOCKS | Caps::EXTENTS;
/// Capabilities that a table of paths must have.
const ALWAYS: u32 = Caps::CASE_SENSITIVE | Caps::CASE_KEEPING;

/// A table of paths as a file system. Every result is checked.
pub(crate) struct Paths {
    table: Functions<VolaryPathTable>,
    calls: Calls,
    caps: Caps,
    root: NodeId,
    commit: Duration,
    tree: Tree,
    opens: Opens,
    /// Held shared by calls with paths, exclusively by those that move or remove names.
    turn: RwLock<()>,
    /// Held shared by writes at an offset, exclusively by appends. Each lock serves several files.
    ends: [RwLock<()>; 16],
    /// How many files were removed while they were open, so far.
    removed: AtomicU64,
    news: Arc<News>,
    detached: AtomicBool,
}

impl Paths {
    /// Attaches the file system of a table.
    ///
    /// # Errors
    /// As for [`Loaded::attach`](crate::Loaded::attach); `Unsupported` if it does not distinguish
    /// upper from lower case.
    ///
    /// # Safety
    /// `table` is NULL, or was returned by a plug-in of this interface's version, and is not
    /// attached yet.
    #[expect(
        unsafe_code,
        reason = "the table is a plug-in's: nothing checks its functions"
    )]
    pub(crate) unsafe fn attach(
        table: *const VolaryPathTable,
        how: &Attach,
        cx: &Ctx<'_>,
    ) -> Result<Self> {
        // SAFETY: as the caller promises.
        let table = unsafe { copied(table, TABLE_MIN)? };
        check_there(&[
            ("getattr", table.getattr.is_none()),
            ("readdir", table.readdir.is_none()),
            ("read", table.read.is_none()),
        ])?;
        let hooks = Hooks {
            fs: table.fs,
            attach: table.attach,
            release: table.release,
            caps: table.caps,
            connect: table.connect,
            disconnect: table.disconnect,
        };
        let news = Arc::new(News::default());
        let begun = Begun::new(hooks, upcalls::host(&news, false), how, cx)?;
        if begun.caps.bits & ALWAYS != ALWAYS {
            let words = "the plug-in's paths do not tell upper from lower case; have it answer \
                         VOLARY_NOT_FOUND for other spellings, and put the layer casefold over it";
            return Err(Error::note(Kind::Unsupported, words));
        }
        let caps = begun.caps.without(NEVER);
        let nodes = (how.memory / NODE_SIZE).clamp(1 << 10, 1 << 20);
        let this = Self {
            table: Functions(table),
            calls: begun.calls,
            caps,
            root: NodeId::new(tree::ROOT, 0).ok_or(Kind::Invalid)?,
            commit: begun.commit,
            tree: Tree::new(
                usize::try_from(nodes).unwrap_or(usize::MAX),
                caps.has(Caps::HARD_LINKS),
            ),
            opens: Opens::new(usize::try_from(how.memory / 2).unwrap_or(usize::MAX)),
            turn: RwLock::default(),
            ends: Default::default(),
            removed: AtomicU64::new(0),
            news,
            detached: AtomicBool::new(false),
        };
        this.remove_left(cx);
        Ok(this)
    }
}
