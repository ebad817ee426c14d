//! Maps user and group ids.

use volary_core::{
    ACL_ACCESS, ACL_DEFAULT, Access, Acl, Attr, Cookie, Create, Cred, Ctx, DirBuf, Entry, Error,
    FileKind, Fs, Kind, Layer, Mode, Name, NodeId, OpenId, Quota, QuotaOf, QuotaReport,
    RenameFlags, Result, SetAttr, SetQuota,
};

/// Maps the users and groups of a volume to other ids, in both directions. Callers see and set
/// owners by ids "above"; the volume stores ids "below". Calls by a node also map the caller's ids.
/// Reads and writes by an open do not: access was decided when it was opened.
///
/// Quotas are shown only for ids that map one to one. Setting the limits of another id answers
/// `Invalid`.
pub struct IdMap {
    below: Fs,
    users: IdRules,
    groups: IdRules,
}

/// A range of ids, above and below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdRule {
    /// The first id as callers see it.
    pub above: u32,
    /// The first id as the volume stores it.
    pub below: u32,
    /// How many ids the range has.
    pub count: u32,
}

/// Maps ids by the first rule that has them. An id that no rule has becomes `squash`, if that is
/// set, in both directions; otherwise it stays the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdRules {
    /// The rules.
    pub rules: Vec<IdRule>,
    /// The id for all others.
    pub squash: Option<u32>,
}

impl IdRules {
    fn up(&self, id: u32) -> u32 {
        let mut rules = self.rules.iter();
        rules
            .find_map(|rule| shift(id, rule.below, rule.above, rule.count))
            .unwrap_or(self.squash.unwrap_or(id))
    }

    fn down(&self, id: u32) -> u32 {
        let mut rules = self.rules.iter();
        rules
            .find_map(|rule| shift(id, rule.above, rule.below, rule.count))
            .unwrap_or(self.squash.unwrap_or(id))
    }
}

fn shift(id: u32, from: u32, to: u32, count: u32) -> Option<u32> {
    let place = id.checked_sub(from).filter(|&place| place < count)?;
    to.checked_add(place)
}

impl IdMap {
    /// Puts the layer over `below`.
    pub fn new(below: Fs, users: IdRules, groups: IdRules) -> Self {
        Self {
            below,
            users,
            groups,
        }
    }

    /// Parses rules with commas between, each `u:ABOVE:BELOW[:COUNT]` for users,
    /// `g:ABOVE:BELOW[:COUNT]` for groups, or `squash:UID:GID` for all ids that no rule has.
    ///
    /// # Errors
    /// `Invalid`, which says what is expected.
    pub fn parse(below: Fs, text: &str) -> Result<Self> {
        let (mut users, mut groups) = (IdRules::default(), IdRules::default());
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (word, ids) = part.split_once(':').unwrap_or((part, ""));
            let ids: Vec<u32> = ids
                .split(':')
                .map(str::parse)
                .collect::<std::result::Result<_, _>>()
                .map_err(|_| bad(part))?;
            match (word, ids.as_slice()) {
                ("u", &[above, below]) => users.add(above, below, 1),
                ("u", &[above, below, count]) => users.add(above, below, count),
                ("g", &[above, below]) => groups.add(above, below, 1),
                ("g", &[above, below, count]) => groups.add(above, below, count),
                ("squash", &[uid, gid]) => {
                    users.squash = Some(uid);
                    groups.squash = Some(gid);
                }
                _ => return Err(bad(part)),
            }
        }
        if users == IdRules::default() && groups == IdRules::default() {
            return Err(bad(text));
        }
        Ok(Self::new(below, users, groups))
    }

    fn show(&self, attr: &mut Attr) {
        attr.uid = self.users.up(attr.uid);
        attr.gid = self.groups.up(attr.gid);
    }

    fn shown(&self, mut entry: Entry) -> Entry {
        self.show(&mut entry.attr);
        entry
    }

    fn set_below(&self, set: &SetAttr) -> SetAttr {
        SetAttr {
            uid: set.uid.map(|uid| self.users.down(uid)),
            gid: set.gid.map(|gid| self.groups.down(gid)),
            ..*set
        }
    }

    fn rules(&self, of: QuotaOf) -> &IdRules {
        match of {
            QuotaOf::Users => &self.users,
            QuotaOf::Groups => &self.groups,
        }
    }

    /// Returns an access list with its ids mapped by `map`; the value of any other attribute stays
    /// the same.
    fn mapped(
        &self,
        name: &[u8],
        value: Vec<u8>,
        map: fn(&IdRules, u32) -> u32,
    ) -> Result<Vec<u8>> {
        if name != ACL_ACCESS && name != ACL_DEFAULT {
            return Ok(value);
        }
        let mut acl = Acl::parse(&value)?;
        let named = [
            (&mut acl.users, &self.users),
            (&mut acl.groups, &self.groups),
        ];
        for (ids, rules) in named {
            ids.iter_mut().for_each(|(id, _)| *id = map(rules, *id));
        }
        // If several ids become one, it gets only the rights that all of them had.
        for ids in [&mut acl.users, &mut acl.groups] {
            ids.sort_unstable();
            ids.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                kept.1 &= if same { next.1 } else { 7 };
                same
            });
        }
        Ok(acl.emit())
    }

    /// Calls `call` with the caller's ids mapped to those below.
    fn as_below<T>(&self, cx: &Ctx<'_>, call: impl FnOnce(&Ctx<'_>) -> T) -> T {
        let cred = map_cred(
            cx.cred,
            |uid| self.users.down(uid),
            |gid| self.groups.down(gid),
        );
        call(&Ctx { cred: &cred, ..*cx })
    }
}

impl IdRules {
    /// Returns the quota of the lowest id above that is at least `from`. `below` returns the
    /// volume's first quota from one of its own ids on.
    fn next_quota(
        &self,
        from: u32,
        below: &dyn Fn(u32) -> Result<Option<Quota>>,
    ) -> Result<Option<Quota>> {
        let rest = match self.squash {
            Some(id) => IdRule {
                above: id,
                below: id,
                count: 1,
            },
            None => IdRule {
                above: 0,
                below: 0,
                count: u32::MAX, // The last id is nobody's.
            },
        };
        let mut lowest: Option<Quota> = None;
        for rule in self.rules.iter().chain([&rest]) {
            let skipped = from.saturating_sub(rule.above);
            let mut at = rule.below.checked_add(skipped);
            while let Some(quota) = at.map(below).transpose()?.flatten() {
                let above = shift(quota.id, rule.below, rule.above, rule.count);
                let Some(id) = above else { break };
                if self.up(quota.id) == id && self.down(id) == quota.id {
                    let found = Quota { id, ..quota };
                    lowest = Some(lowest.filter(|l| l.id <= id).unwrap_or(found));
                    break;
                }
                at = quota.id.checked_add(1);
            }
        }
        Ok(lowest)
    }

    fn add(&mut self, above: u32, below: u32, count: u32) {
        self.rules.push(IdRule {
            above,
            below,
            count,
        });
    }
}

fn map_cred(cred: &Cred, user: impl Fn(u32) -> u32, group: impl Fn(u32) -> u32) -> Cred {
    Cred {
        uid: user(cred.uid),
        gid: group(cred.gid),
        groups: cred.groups.iter().map(|&gid| group(gid)).collect(),
    }
}

fn bad(text: &str) -> Error {
    let words = format!(
        "layer idmap does not know '{text}'; expected u:ABOVE:BELOW[:COUNT], \
         g:ABOVE:BELOW[:COUNT] or squash:UID:GID"
    );
    Error::note(Kind::Invalid, words)
}

impl Layer for IdMap {
    fn below(&self) -> &Fs {
        &self.below
    }

    fn caller(&self, cred: &Cred) -> Option<Cred> {
        let below = map_cred(
            cred,
            |uid| self.users.down(uid),
            |gid| self.groups.down(gid),
        );
        let found = self.below.caller(&below)?;
        Some(map_cred(
            &found,
            |uid| self.users.up(uid),
            |gid| self.groups.up(gid),
        ))
    }

    fn quota(&self, cx: &Ctx<'_>, of: QuotaOf, from: u32) -> Result<QuotaReport> {
        let next = |below: u32| self.as_below(cx, |cx| self.below.quota(cx, of, below));
        let mut report = next(0)?;
        report.quota = self.rules(of).next_quota(from, &|id| Ok(next(id)?.quota))?;
        Ok(report)
    }

    fn set_quota(&self, cx: &Ctx<'_>, of: QuotaOf, set: &SetQuota) -> Result<()> {
        let mut set = *set;
        if let SetQuota::Limits { id, .. } = &mut set {
            let below = self.rules(of).down(*id);
            if self.rules(of).up(below) != *id {
                let words = format!("layer idmap: {} {id} is another on the volume", of.word());
                return Err(Error::note(Kind::Invalid, words));
            }
            *id = below;
        }
        self.as_below(cx, |cx| self.below.set_quota(cx, of, &set))
    }

    fn lookup(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let entry = self.as_below(cx, |cx| self.below.lookup(cx, dir, name))?;
        Ok(self.shown(entry))
    }

    fn parent(&self, cx: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        let entry = self.as_below(cx, |cx| self.below.parent(cx, dir))?;
        Ok(self.shown(entry))
    }

    fn readdir(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        let had = out.len();
        let end = self.as_below(cx, |cx| self.below.readdir(cx, dir, from, out))?;
        out.change_attrs(had, |attr| self.show(attr));
        Ok(end)
    }

    fn create(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        let set = self.set_below(set);
        let (entry, open) = self.as_below(cx, |cx| self.below.create(cx, dir, name, how, &set))?;
        Ok((self.shown(entry), open))
    }

    fn mkdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry> {
        let set = self.set_below(set);
        let entry = self.as_below(cx, |cx| self.below.mkdir(cx, dir, name, &set))?;
        Ok(self.shown(entry))
    }

    fn mknod(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        kind: FileKind,
        rdev: u64,
        set: &SetAttr,
    ) -> Result<Entry> {
        let set = self.set_below(set);
        let entry = self.as_below(cx, |cx| self.below.mknod(cx, dir, name, kind, rdev, &set))?;
        Ok(self.shown(entry))
    }

    fn symlink(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        let set = self.set_below(set);
        let entry = self.as_below(cx, |cx| self.below.symlink(cx, dir, name, target, &set))?;
        Ok(self.shown(entry))
    }

    fn link(&self, cx: &Ctx<'_>, node: NodeId, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let entry = self.as_below(cx, |cx| self.below.link(cx, node, dir, name))?;
        Ok(self.shown(entry))
    }

    fn unlink(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.as_below(cx, |cx| self.below.unlink(cx, dir, name))
    }

    fn rmdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.as_below(cx, |cx| self.below.rmdir(cx, dir, name))
    }

    fn rename(
        &self,
        cx: &Ctx<'_>,
        from: NodeId,
        name: Name<'_>,
        to: NodeId,
        new_name: Name<'_>,
        flags: RenameFlags,
    ) -> Result<()> {
        self.as_below(cx, |cx| {
            self.below.rename(cx, from, name, to, new_name, flags)
        })
    }

    fn getattr(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        let mut attr = self.as_below(cx, |cx| self.below.getattr(cx, node))?;
        self.show(&mut attr);
        Ok(attr)
    }

    fn setattr(&self, cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        let set = self.set_below(set);
        let mut attr = self.as_below(cx, |cx| self.below.setattr(cx, node, &set))?;
        self.show(&mut attr);
        Ok(attr)
    }

    fn access(&self, cx: &Ctx<'_>, node: NodeId, want: Access) -> Result<Access> {
        self.as_below(cx, |cx| self.below.access(cx, node, want))
    }

    fn readlink(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
        self.as_below(cx, |cx| self.below.readlink(cx, node))
    }

    fn getxattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        let value = self.as_below(cx, |cx| self.below.getxattr(cx, node, name))?;
        self.mapped(name, value, IdRules::up)
    }

    fn setxattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8], value: &[u8]) -> Result<()> {
        let value = self.mapped(name, value.to_vec(), IdRules::down)?;
        self.as_below(cx, |cx| self.below.setxattr(cx, node, name, &value))
    }

    fn listxattr(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Vec<Vec<u8>>> {
        self.as_below(cx, |cx| self.below.listxattr(cx, node))
    }

    fn removexattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<()> {
        self.as_below(cx, |cx| self.below.removexattr(cx, node, name))
    }

    fn open(&self, cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        self.as_below(cx, |cx| self.below.open(cx, node, mode))
    }
}
