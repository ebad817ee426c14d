//! Quotas as a user sees and sets them: bytes and nodes, with limits that may be reached.
//!
//! The quota files keep the first number that is refused, as 4.2BSD's did (its comment says
//! "maximum # allocated inodes + 1"). A limit shown here is therefore one less, as on NetBSD.

use crate::attached::operations::{Attached, State};
use crate::quota::{Counts, Form, Grace, QuotaFile, Record, Share, form_of};
use crate::tree::names::New;
use volary_core::{
    Ctx, Error, Kind, Name, Quota, QuotaGrace, QuotaLimits, QuotaOf, QuotaReport, QuotaShare,
    Result, SetAttr, SetQuota, Time,
};

/// The bytes that one `dqb_curblocks` stands for, and the inodes that one `dqb_curinodes` does.
const UNITS: [u64; 2] = [512, 1];
/// The most records that one change makes room for.
const RECORDS: usize = 64;

/// Changes a record. It gets the file's form and grace times too.
type Change<'a> = dyn Fn(&mut Record, (Form, [Grace; 2])) -> Result<()> + 'a;

impl Attached {
    /// Returns a quota report; see [`FileSystem::quota`](volary_core::FileSystem::quota).
    ///
    /// # Errors
    /// `NotFound`; `Corrupt`; `Io`.
    pub(crate) fn quota(&self, of: QuotaOf, from: u32) -> Result<QuotaReport> {
        self.look(|state, reader| {
            let file = state.quotas.get(of).ok_or_else(|| off(of))?;
            let secs = |grace: Grace| match grace {
                Grace::Secs(secs) => u64::try_from(secs).unwrap_or(0),
                Grace::Warnings => 0,
            };
            let [bytes, nodes] = file.grace(&reader, &state.nodes)?.map(secs);
            let next = file.next(&reader, &state.nodes, from)?;
            Ok(QuotaReport {
                grace: QuotaGrace { bytes, nodes },
                quota: next.map(|(id, record)| shown(file.form, id, &record)),
            })
        })
    }

    /// Changes quotas; see [`FileSystem::set_quota`](volary_core::FileSystem::set_quota).
    ///
    /// # Errors
    /// `ReadOnly`; `NotFound`; `Invalid`; `TooBig`; `Exists` for a quota file that is not valid;
    /// `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn set_quota(&self, cx: &Ctx<'_>, of: QuotaOf, set: &SetQuota) -> Result<()> {
        match *set {
            SetQuota::On => self.with_changes(|state| self.quota_on(state, cx, of)),
            SetQuota::Off => self.with_changes(|state| self.quota_off(state, cx, of)),
            SetQuota::Grace(grace) => {
                let times = [seconds(grace.bytes)?, seconds(grace.nodes)?];
                self.change_record(cx, of, 0, &|record, (form, _)| {
                    if matches!(form, Form::Warned(_)) {
                        let words = "quotas of 4.3BSD have warnings, no times of grace";
                        return Err(Error::note(Kind::Invalid, words));
                    }
                    for (share, time) in record.iter_mut().zip(times) {
                        share.time = time;
                    }
                    Ok(())
                })
            }
            SetQuota::Limits { id: 0, .. } => {
                let words = "user and group 0 have no limits";
                Err(Error::note(Kind::Invalid, words))
            }
            SetQuota::Limits { id, bytes, nodes } => {
                self.change_record(cx, of, id, &|record, (form, grace)| {
                    let units = form.most().into_iter().zip(UNITS).zip(grace);
                    for ((share, limits), ((most, unit), grace)) in
                        record.iter_mut().zip([bytes, nodes]).zip(units)
                    {
                        if let Some(limits) = limits {
                            limit(share, limits, most, unit, cx.now.secs, grace)?;
                        }
                    }
                    Ok(())
                })
            }
        }
    }

    /// Recounts the usage of all users and groups whose quotas are on.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn recount(&self, cx: &Ctx<'_>) -> Result<()> {
        self.with_changes(|state| {
            for of in state.quotas.on() {
                self.quota_on(state, cx, of)?;
            }
            Ok(())
        })
    }

    /// Changes a record.
    fn change_record(&self, cx: &Ctx<'_>, of: QuotaOf, id: u32, act: &Change<'_>) -> Result<()> {
        self.change(cx, |tree| {
            let file = tree.charges.quotas().get(of).ok_or_else(|| off(of))?;
            let (reader, nodes) = (&tree.files.edit.reader, tree.files.edit.nodes());
            let mut record = file.record(reader, nodes, id)?;
            let grace = file.grace(reader, nodes)?;
            act(&mut record, (file.form, grace))?;
            tree.charges.make_record(&mut tree.files, of, id)?;
            tree.charges.set_record(of, id, record);
            Ok(())
        })
    }

    /// Turns quotas on: creates the quota file if it is missing, with room for all records, and
    /// counts.
    fn quota_on(&self, state: &mut State, cx: &Ctx<'_>, of: QuotaOf) -> Result<()> {
        if state.quotas.get(of).is_none() {
            let file = self.make_file(state, cx, of)?;
            state.quotas.set(of, Some(file));
        }
        // All that is to be counted is on the disk from here on.
        self.commit_state(state, cx.now)?;
        let ids = Counts::read(&self.as_reader(), of)?.all.into_keys();
        let ids: Vec<u32> = ids.collect();
        for some in ids.chunks(RECORDS) {
            self.change_state(state, cx, |tree| {
                let (charges, files) = (&tree.charges, &mut tree.files);
                some.iter()
                    .try_for_each(|&id| charges.make_record(files, of, id).map(drop))
            })?;
        }
        self.commit_state(state, cx.now)?;
        let reader = self.as_reader();
        let Some(file) = state.quotas.get_mut(of) else {
            return Ok(());
        };
        let grace = file.grace(&reader, &state.nodes)?;
        for (id, (_, counted)) in Counts::read(&reader, of)?.differing(&reader, file)? {
            let mut record = file.record(&reader, &state.nodes, id)?;
            for ((share, used), grace) in record.iter_mut().zip(counted).zip(grace) {
                share.used = used;
                if id != 0 {
                    share.count(0, cx.now.secs, grace, true);
                }
            }
            file.set(id, record);
        }
        // Only records have changed.
        self.commit_state(state, cx.now)
    }

    /// Returns the existing quota file, or a new one.
    fn make_file(&self, state: &mut State, cx: &Ctx<'_>, of: QuotaOf) -> Result<QuotaFile> {
        if let Some(file) = QuotaFile::find(&self.as_reader(), of)? {
            return Ok(file);
        }
        let form = form_of(&self.as_reader(), of);
        let mut content = form.header();
        content.extend(form.stored(&Record::default()));
        let set = SetAttr {
            uid: Some(0),
            gid: Some(0),
            ..SetAttr::mode(0o640)
        };
        let ino = self.change_state(state, cx, |tree| {
            let name = Name::new(form.file_name(of).as_bytes()).map_err(|_| Kind::Invalid)?;
            let inode = tree.make(self.root, name, &New::File, &set)?;
            tree.files.file(inode.ino).write(0, &content)?;
            Ok(inode.ino)
        })?;
        Ok(QuotaFile::new(ino, form))
    }

    fn quota_off(&self, state: &mut State, cx: &Ctx<'_>, of: QuotaOf) -> Result<()> {
        let file = state.quotas.set(of, None).ok_or_else(|| off(of))?;
        let gone = self.change_state(state, cx, |tree| {
            let name = file.form.file_name(of).as_bytes();
            let name = Name::new(name).map_err(|_| Kind::Invalid)?;
            tree.unlink(self.root, name)
        });
        if gone.is_err() {
            state.quotas.set(of, Some(file));
        }
        gone
    }
}

fn shown(form: Form, id: u32, record: &Record) -> Quota {
    let share = |share: &Share, unit: u64| QuotaShare {
        used: share.used.saturating_mul(unit),
        limits: QuotaLimits {
            soft: share.soft.checked_sub(1).map(|n| n.saturating_mul(unit)),
            hard: share.hard.checked_sub(1).map(|n| n.saturating_mul(unit)),
        },
        until: share.until(form).filter(|_| id != 0).map(Time::from_secs),
    };
    let ([blocks, inodes], [block, inode]) = (record, UNITS);
    Quota {
        id,
        bytes: share(blocks, block),
        nodes: share(inodes, inode),
    }
}

/// Sets the limits of a share, which are stored in multiples of `unit`, up to `most`.
///
/// # Errors
/// `TooBig`.
fn limit(
    share: &mut Share,
    limits: QuotaLimits,
    most: u64,
    unit: u64,
    now: i64,
    grace: Grace,
) -> Result<()> {
    let stored = |limit: Option<u64>| match limit {
        None => Ok(0),
        Some(limit) => {
            let refused = limit / unit + 1;
            match refused <= most {
                true => Ok(refused),
                false => Err(Error::from(Kind::TooBig)),
            }
        }
    };
    let (soft, hard) = (stored(limits.soft)?, stored(limits.hard)?);
    if soft != share.soft {
        share.begin(grace);
    }
    (share.soft, share.hard) = (soft, hard);
    share.count(0, now, grace, true);
    Ok(())
}

fn seconds(secs: u64) -> Result<i64> {
    // 4.4BSD's files have 31 bits for it, and 0 means that the user has no grace time of their own.
    let secs = i32::try_from(secs).map_err(|_| Kind::TooBig)?;
    Ok(secs.max(1).into())
}

fn off(of: QuotaOf) -> Error {
    let words = format!("the volume has no {} quotas", of.word());
    Error::note(Kind::NotFound, words)
}
