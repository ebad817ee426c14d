//! The model's locks, and the opens that those of NFS are held through.

use crate::model::{File, H, Held, Model, R, READ, W, WRITE};
use crate::op::{Name, No, Op, Span, Who};

/// Whose lock: a number for each open of SMB, since there may be as many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Fuse,
    Nfs(usize),
    Smb(u64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Lock {
    pub(crate) owner: Owner,
    pub(crate) file: File,
    pub(crate) span: Span,
    pub(crate) alone: bool,
}

impl Model {
    pub(crate) fn step_lock(&mut self, op: Op) -> Option<Result<(), No>> {
        Some(match op {
            Op::LockHeld(who, n, unit, alone) => {
                let number = self.open_of(who, n)?;
                let (owner, span) = lock_of(who, number, unit);
                let held = self.held(number).clone();
                if held.share.wants & (READ | WRITE) == 0 {
                    return Some(Err(No::Access));
                }
                self.take(
                    Some(&held),
                    Lock {
                        owner,
                        file: held.file,
                        span,
                        alone,
                    },
                )?
            }
            Op::UnlockHeld(who, n, unit) => {
                let number = self.open_of(who, n)?;
                let (owner, span) = lock_of(who, number, unit);
                self.give_back(owner, self.held(number).file, span)?
            }
            Op::LockNamed(client, name, unit, alone) => {
                let (owner, span) = (Owner::Nfs(client), Span::Unit(unit));
                let file = self.names.get(&name).copied()?;
                let lock = Lock {
                    owner,
                    file,
                    span,
                    alone,
                };
                if self.has(owner, file, span) {
                    return None;
                }
                let opened = self.open_for_nfs(name, file, alone);
                let taken = opened.and_then(|()| self.take(None, lock).unwrap_or(Ok(())));
                self.settle_nfs(file);
                taken.map_err(|_| No::Locked)
            }
            Op::UnlockNamed(client, name, unit) => {
                let file = self.names.get(&name).copied()?;
                let given = self.give_back(Owner::Nfs(client), file, Span::Unit(unit))?;
                self.settle_nfs(file);
                given
            }
            _ => return None,
        })
    }

    fn open_for_nfs(&mut self, name: Name, file: File, alone: bool) -> Result<(), No> {
        let slots = self.nfs_opens.get(&file).copied().unwrap_or_default();
        if !slots[usize::from(alone)] {
            self.brief(name, if alone { WRITE } else { READ })?;
            self.nfs_opens.entry(file).or_default()[usize::from(alone)] = true;
        }
        Ok(())
    }

    /// Opens for locks end with the last lock.
    fn settle_nfs(&mut self, file: File) {
        let is_nfs = |lock: &Lock| lock.file == file && matches!(lock.owner, Owner::Nfs(_));
        if !self.locks.iter().any(is_nfs) {
            self.nfs_opens.remove(&file);
        }
    }

    fn has(&self, owner: Owner, file: File, span: Span) -> bool {
        let mut locks = self.locks.iter();
        locks.any(|lock| lock.owner == owner && lock.file == file && lock.span == span)
    }

    /// `None` if the owner has it already: that is not tried.
    fn take(&mut self, through: Option<&Held>, want: Lock) -> Option<Result<(), No>> {
        if self.has(want.owner, want.file, want.span) {
            return None;
        }
        self.hit(want.file, through.and_then(Held::key), R | H | W);
        let in_the_way = |lock: &Lock| {
            lock.file == want.file
                && lock.owner != want.owner
                && lock.span.meets(want.span)
                && (lock.alone || want.alone)
        };
        if self.locks.iter().any(in_the_way) {
            return Some(Err(No::Locked));
        }
        self.locks.push(want);
        Some(Ok(()))
    }

    /// `None` if it has none: that is not tried.
    fn give_back(&mut self, owner: Owner, file: File, span: Span) -> Option<Result<(), No>> {
        let mine = |lock: &Lock| lock.owner == owner && lock.file == file && lock.span == span;
        let at = self.locks.iter().position(mine)?;
        self.locks.remove(at);
        Some(Ok(()))
    }

    pub(crate) fn end_locks(&mut self, file: File, owner: Owner) {
        self.locks
            .retain(|lock| lock.file != file || lock.owner != owner);
    }
}

/// Returns a mount's process locks all of a file, whichever of its opens it names.
fn lock_of(who: Who, number: u64, unit: u64) -> (Owner, Span) {
    match who {
        Who::Smb(_) => (Owner::Smb(number), Span::Unit(unit)),
        _ => (Owner::Fuse, Span::All),
    }
}
