//! A volume and its model, taken through a sequence step by step.

use super::op::{Op, SLOTS};
use super::rules::{Rules, Times};
use super::side::{AttrSeen, Seen, Side, Step};
use crate::suite::Fresh;
use std::collections::HashMap;
use volary_core::{
    Cancel, Caps, Cred, Ctx, DirBuf, FileKind, Fs, Kind, Mode, Name, NodeId, Result, Time, escape,
};

/// The time at which a sequence starts: an even second in 2023.
pub(super) const START: i64 = 1_700_000_000;

pub(super) struct Pair<'a> {
    ours: Side,
    model: Side,
    fresh: Fresh,
    rules: &'a Rules,
    cred: Cred,
    cancel: Cancel,
    now: i64,
    /// Which node of the volume a node of the model is, in the order seen.
    nodes: HashMap<NodeId, NodeId>,
    seen: Vec<NodeId>,
}

/// What tells the two apart, in words.
type Told = std::result::Result<(), String>;

impl<'a> Pair<'a> {
    pub(super) fn new(fresh: Fresh, model: Fs, rules: &'a Rules) -> Self {
        Self {
            ours: Side::new(fresh.fs.clone()),
            model: Side::new(model),
            fresh,
            rules,
            cred: Cred::root(),
            cancel: Cancel::new(),
            now: START,
            nodes: HashMap::new(),
            seen: Vec::new(),
        }
    }

    fn cx(&self) -> (Cred, Time) {
        (self.cred.clone(), Time::from_secs(self.now))
    }

    /// Does one operation on both.
    pub(super) fn step(&mut self, op: &Op) -> Told {
        let (cred, now) = self.cx();
        let cancel = Cancel::new();
        let cx = Ctx {
            cred: &cred,
            now,
            cancel: &cancel,
        };
        match op {
            Op::Pass(secs) => {
                self.now += i64::from(*secs);
                return Ok(());
            }
            Op::Reattach => return self.reattach(&cx),
            Op::StatOld(n) => return self.stat_old(&cx, *n),
            Op::Create { slot, .. } | Op::Open { slot, .. } => self.empty(&cx, *slot)?,
            _ => {}
        }
        let step = Step {
            cx,
            names: &self.rules.names,
            times: self.rules.times,
        };
        let ours = self.ours.act(&step, op);
        // The model is never full.
        if ours.as_ref().is_err_and(|e| *e == Kind::NoSpace) {
            return Ok(());
        }
        let model = self.model.act(&step, op);
        same(&ours, &model)?;
        self.same_node()
    }

    fn empty(&mut self, cx: &Ctx<'_>, slot: u8) -> Told {
        let ours = self.ours.empty(cx, slot).map(|()| Seen::Nothing);
        let model = self.model.empty(cx, slot).map(|()| Seen::Nothing);
        same(&ours, &model)
    }

    /// Returns what both have just found must be what both found before.
    fn same_node(&mut self) -> Told {
        let (Some(model), Some(ours)) = (self.model.found, self.ours.found) else {
            return Ok(());
        };
        match self.nodes.get(&model) {
            Some(&known) if known == ours => Ok(()),
            Some(known) => Err(format!("the node was {known:?} and is now {ours:?}")),
            None => {
                let twice = self.nodes.values().any(|&n| n == ours);
                if twice {
                    return Err(format!("{ours:?} was another node before"));
                }
                self.nodes.insert(model, ours);
                self.seen.push(model);
                Ok(())
            }
        }
    }

    fn stat_old(&mut self, cx: &Ctx<'_>, n: u16) -> Told {
        if self.seen.is_empty() {
            return Ok(());
        }
        let node = self.seen[usize::from(n) % self.seen.len()];
        let look = |fs: &Fs, node| {
            fs.getattr(cx, node)
                .map(|a| Seen::Attr(AttrSeen::new(&a, self.rules.times)))
        };
        same(
            &look(&self.ours.fs, self.nodes[&node]),
            &look(&self.model.fs, node),
        )
    }

    fn reattach(&mut self, cx: &Ctx<'_>) -> Told {
        let Some(attach) = &self.fresh.reattach else {
            return Ok(());
        };
        self.ours
            .fs
            .detach(cx)
            .map_err(|e| format!("detach: {e}"))?;
        self.ours = Side::new(attach());
        for slot in 0..SLOTS {
            self.model
                .empty(cx, slot)
                .map_err(|e| format!("the model's close: {e}"))?;
        }
        // Ids keep their meaning only where that is claimed, and then only
        // those of nodes that have not moved.
        self.nodes.clear();
        self.seen.clear();
        Ok(())
    }

    /// Compares all of both: names, kinds, attributes, content.
    pub(super) fn compare_trees(&self) -> Told {
        let cx = Ctx {
            cred: &self.cred,
            now: Time::from_secs(self.now),
            cancel: &self.cancel,
        };
        let compare = Compare {
            cx,
            times: self.rules.times,
            keeps_case: self.ours.fs.caps().has(Caps::CASE_KEEPING),
            fold: self.rules.fold,
        };
        let (ours, model) = (&self.ours.fs, &self.model.fs);
        compare.dirs(b"", (ours, ours.root()), (model, model.root()))
    }

    /// Closes everything, compares, and compares again once reattached; what
    /// the factory can check on a detached volume is checked last.
    pub(super) fn end(mut self) -> Told {
        let (cred, now) = self.cx();
        let cancel = Cancel::new();
        let cx = Ctx {
            cred: &cred,
            now,
            cancel: &cancel,
        };
        for slot in 0..SLOTS {
            self.empty(&cx, slot)?;
        }
        self.compare_trees()?;
        if self.fresh.reattach.is_some() {
            self.reattach(&cx)?;
            self.compare_trees()
                .map_err(|words| format!("after reattaching: {words}"))?;
        }
        self.ours
            .fs
            .detach(&cx)
            .map_err(|e| format!("detach: {e}"))?;
        match &self.fresh.check {
            Some(check) => check(),
            None => Ok(()),
        }
    }
}

/// Holds if both answered the same, errors by their kinds.
fn same(ours: &Result<Seen>, model: &Result<Seen>) -> Told {
    if ours == model {
        return Ok(());
    }
    Err(format!("gave     {}\nmodel    {}", told(ours), told(model)))
}

fn told(seen: &Result<Seen>) -> String {
    match seen {
        Ok(Seen::Data(data)) => {
            format!("{} bytes, {:?}..", data.len(), &data[..data.len().min(16)])
        }
        Ok(Seen::Entries(all)) => {
            let names = all.iter().map(|(n, k)| format!("{} {k:?}", escape(n)));
            names.collect::<Vec<_>>().join(", ")
        }
        other => format!("{other:?}"),
    }
}

struct Compare<'a> {
    cx: Ctx<'a>,
    times: Times,
    keeps_case: bool,
    fold: fn(&[u8]) -> Vec<u8>,
}

/// A node of one of the two.
type At<'a> = (&'a Fs, NodeId);

impl Compare<'_> {
    fn dirs(&self, path: &[u8], ours: At<'_>, model: At<'_>) -> Told {
        let list = |at| self.list(at).map_err(|e| about(path, &e.to_string()));
        let (a, b) = (list(ours)?, list(model)?);
        let names = |all: &[Listed]| all.iter().map(|l| l.key.clone()).collect::<Vec<_>>();
        if names(&a) != names(&b) {
            let show = |all: &[Listed]| {
                let names = all.iter().map(|l| escape(&l.name).to_string());
                names.collect::<Vec<_>>().join(" | ")
            };
            let words = format!("holds    {}\nmodel    {}", show(&a), show(&b));
            return Err(about(path, &words));
        }
        for (a, b) in a.iter().zip(&b) {
            let below = [path, b"/", &a.name].concat();
            self.nodes(&below, (ours.0, a.node), (model.0, b.node))?;
        }
        Ok(())
    }

    fn nodes(&self, path: &[u8], ours: At<'_>, model: At<'_>) -> Told {
        let attr = |at: At<'_>| {
            let attr = at.0.getattr(&self.cx, at.1);
            attr.map(|a| AttrSeen::new(&a, self.times))
        };
        let (a, b) = (attr(ours), attr(model));
        if a != b {
            return Err(about(path, &format!("is       {a:?}\nmodel    {b:?}")));
        }
        match a.map(|a| a.kind) {
            Ok(FileKind::Dir) => return self.dirs(path, ours, model),
            Ok(FileKind::File) => {}
            _ => return Ok(()),
        }
        let (a, b) = (self.content(ours), self.content(model));
        match (a, b) {
            (Ok(a), Ok(b)) if a == b => Ok(()),
            (Ok(a), Ok(b)) => {
                let at = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
                Err(about(path, &format!("content differs from byte {at} on")))
            }
            (a, b) => Err(about(path, &format!("read: {:?} {:?}", a.err(), b.err()))),
        }
    }

    fn content(&self, (fs, node): At<'_>) -> Result<Vec<u8>> {
        let open = fs.open(&self.cx, node, Mode::Read)?;
        let size = usize::try_from(fs.getattr(&self.cx, node)?.size).unwrap_or(usize::MAX);
        let mut buf = vec![0; size.min(1 << 28) + 1];
        let n = fs.read(&self.cx, open, 0, &mut buf)?;
        buf.truncate(n);
        fs.close(&self.cx, open)?;
        Ok(buf)
    }

    fn list(&self, (fs, dir): At<'_>) -> Result<Vec<Listed>> {
        let open = fs.open(&self.cx, dir, Mode::Read)?;
        let mut buf = DirBuf::new(usize::MAX, usize::MAX, false);
        fs.readdir(&self.cx, open, volary_core::Cookie::START, &mut buf)?;
        fs.close(&self.cx, open)?;
        let mut all = Vec::new();
        for e in buf.iter() {
            let key = if self.keeps_case {
                e.name.to_vec()
            } else {
                (self.fold)(e.name)
            };
            // As a name finds it, which must be what was listed.
            let node = fs.lookup(&self.cx, dir, Name::new(e.name)?)?.node;
            assert_eq!(node, e.node, "the node that '{}' leads to", escape(e.name));
            all.push(Listed {
                key,
                name: e.name.to_vec(),
                node,
            });
        }
        all.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(all)
    }
}

struct Listed {
    key: Vec<u8>,
    name: Vec<u8>,
    node: NodeId,
}

fn about(path: &[u8], words: &str) -> String {
    let path = if path.is_empty() { b"/" } else { path };
    format!("'{}' {words}", escape(path))
}
