//! A volume whose process is killed: what that process does, and what is found
//! of it then. The device outlives the process; between it and the volume stands
//! a [`Losing`](crate::Losing) one.

use super::{Step, Volume, of_preset, on, tag_bytes, told, with_ctx};
use crate::op::{Op, Ops};
use crate::subject::{Recovered, Subject};
use crate::trace::Moment;
use crate::tree::{self, Node, Tree};
use std::fmt;
use std::sync::Arc;
use volary_core::{BlockDevice, Fs, Result};

type Words<T> = std::result::Result<T, String>;

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Began(op) => write!(f, "began {op}"),
            Self::Ended(op, done) => write!(f, "ended {op} {}", u8::from(*done)),
        }
    }
}

/// How far a process was that was killed, by what it said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Operations that had begun.
    pub began: usize,
    /// Of those that had ended, and so been acknowledged, which were done.
    pub done: Vec<bool>,
    /// So many of them, the first, were to be durable though nobody had asked for that.
    pub kept: usize,
}

impl Progress {
    /// Takes a line of what [`Volume::load`] said; false if it is none, or out of
    /// order, as a line is that was cut.
    pub fn hear(&mut self, line: &str) -> bool {
        let mut words = line.split(' ');
        let kind = words.next();
        let op = words.next().and_then(|word| word.parse().ok());
        match (kind, words.next()) {
            (Some("began"), None) if op == Some(self.began) => self.began += 1,
            (Some("ended"), Some(done)) if op == Some(self.done.len()) => {
                self.done.push(done == "1");
            }
            _ => return false,
        }
        true
    }

    /// Operations that made all durable that was done before, and were acknowledged.
    pub fn synced(&self, script: &Ops) -> usize {
        let ended = script.0.iter().zip(&self.done);
        ended
            .filter(|(op, done)| **done && super::is_durable(op))
            .count()
    }
}

/// Returns the number of an operation among all those of all rounds: what it writes is
/// not mistaken for what was written some rounds before.
fn tag(round: u64, i: usize) -> u32 {
    tag_bytes(true, (round as usize).wrapping_mul(1021).wrapping_add(i))
}

impl Volume {
    /// Runs a script on a volume that holds the preset. Each line that `say` is
    /// given tells of an operation: that it begins, before anything of it is done;
    /// that it has ended, with all that it promises.
    ///
    /// # Errors
    /// In words.
    pub fn load(
        &self,
        script: &Ops,
        round: u64,
        dev: Arc<dyn BlockDevice>,
        say: &mut dyn FnMut(&str),
    ) -> Words<()> {
        let fs = self.attach(dev)?;
        self.load_by(script, round, on(&fs), say)?;
        with_ctx(0, |cx| fs.detach(cx)).map_err(|e| e.to_string())
    }

    /// Runs a script on a volume that is attached already, and does not detach it at the end. `act`
    /// does each operation, given its number and the tag of its file.
    ///
    /// # Errors
    /// In words.
    pub fn load_by(
        &self,
        script: &Ops,
        round: u64,
        act: impl FnMut(usize, &Op, u32) -> Result<()>,
        say: &mut dyn FnMut(&str),
    ) -> Words<()> {
        let mut tell = |step: Step| say(&step.to_string());
        let tree = self.preset_tree()?;
        let tag = |i| tag(round, i);
        self.perform_all(act, &script.0, tree, tag, &mut tell)
            .map(|_| ())
    }

    /// Attaches the volume on a device, to change it.
    ///
    /// # Errors
    /// In words.
    pub fn attach(&self, dev: Arc<dyn BlockDevice>) -> Words<Fs> {
        self.attach_on(dev, false).map_err(|e| e.to_string())
    }

    /// Recovers a volume whose process was killed in [`load`](Self::load), and
    /// holds it to what that had acknowledged. A second recovery must write nothing.
    /// Of a write that came through a mount, what is before any border of `pages` may be
    /// there alone: the kernel passes it on in parts when it likes.
    ///
    /// # Errors
    /// In words: what was promised and is not so.
    pub fn held_to(
        &self,
        script: &Ops,
        round: u64,
        progress: &Progress,
        pages: Option<u64>,
        dev: &Arc<dyn BlockDevice>,
    ) -> Words<()> {
        let begun = script.0.iter().take(progress.began).enumerate();
        let parts =
            begun.flat_map(|(i, op)| in_parts(op, pages).into_iter().map(move |op| (i, op)));
        let (whose, ops): (Vec<usize>, Vec<Op>) = parts.unzip();
        let whose = |part: usize| whose.get(part).copied().unwrap_or(part);
        let tag = |part| tag(round, whose(part));
        // What was begun and did not end may have been done.
        let mut history = told(self, &ops, self.preset_tree()?, tag, |part, _, _| {
            Ok(progress.done.get(whose(part)).copied().unwrap_or(true))
        })?;
        let kept = (0..ops.len()).take_while(|part| whose(*part) < progress.kept);
        if let Some(durable) = kept.last().and_then(|last| history.durable.get_mut(last)) {
            *durable = true;
        }
        let mended = self.recover(dev.clone())?;
        let found = self.look(dev.clone())?;
        let ended = |part: &usize| whose(*part) < progress.done.len();
        let moment = Moment {
            began: ops.len(),
            ended: (0..ops.len()).take_while(ended).count(),
        };
        self.judge(&Recovered::new(mended, found), &history, moment)
    }

    /// Empties a volume and has it hold the preset, so that it can be killed again.
    ///
    /// # Errors
    /// In words.
    pub fn renew(&self, dev: Arc<dyn BlockDevice>) -> Words<()> {
        let words = |e: volary_core::Error| e.to_string();
        let fs = self.attach_on(dev, false).map_err(words)?;
        let mut found = with_ctx(0, |cx| tree::read(&fs, cx))?;
        found.retain(|path, _| !self.own.contains(&path.as_str()));
        // What is in a directory comes after it.
        let mut ops: Vec<Op> = found.into_iter().rev().map(gone).collect();
        let preset: Ops = self.preset.parse()?;
        ops.push(Op::Sync);
        for (i, op) in ops.iter().enumerate() {
            let done = with_ctx(i, |cx| super::perform(&fs, cx, op, 0));
            done.map_err(|e| format!("{op}: {e}"))?;
        }
        self.perform_all(on(&fs), &preset.0, Tree::new(), of_preset, &mut |_| ())?;
        with_ctx(0, |cx| fs.detach(cx)).map_err(words)
    }
}

/// Returns an operation and what may be there of it before: of a write all up to each border of
/// pages, in order.
fn in_parts(op: &Op, pages: Option<u64>) -> Vec<Op> {
    let mut parts = Vec::new();
    if let (Op::Write(path, at, len), Some(page)) = (op, pages) {
        let borders = (at / page + 1..).map(|n| (n * page - at) as usize);
        let lens = borders.take_while(|border| border < len);
        parts.extend(lens.map(|len| Op::Write(path.clone(), *at, len)));
    }
    parts.push(op.clone());
    parts
}

/// Returns the removal of what was found.
fn gone((path, node): (String, Node)) -> Op {
    match node {
        Node::Dir(_) => Op::Rmdir(path),
        Node::File(..) => Op::Unlink(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_may_come_in_parts_as_pages_cut_it() {
        let parts = |text: &str, pages| {
            let ops: Ops = text.parse().unwrap();
            Ops(in_parts(&ops.0[0], pages)).to_string()
        };
        let write = "write /a 1196 7000";
        assert_eq!(parts(write, None), write);
        assert_eq!(
            parts(write, Some(4096)),
            "write /a 1196 2900; write /a 1196 6996; write /a 1196 7000"
        );
        assert_eq!(parts("write /a 0 4096", Some(4096)), "write /a 0 4096");
        assert_eq!(parts("unlink /a", Some(4096)), "unlink /a");
    }

    #[test]
    fn progress_is_what_was_said_in_whole_lines() {
        let mut progress = Progress::default();
        for line in ["began 0", "ended 0 1", "began 1", "ended 1 0", "began 2"] {
            assert!(progress.hear(line), "{line}");
        }
        for line in ["ended 3 1", "ended", "began 2", "", "ended 2"] {
            assert!(!progress.hear(line), "{line}");
        }
        let script: Ops = "sync; sync; sync".parse().unwrap();
        assert_eq!((progress.began, progress.synced(&script)), (3, 1));
        assert_eq!(progress.done, [true, false]);
    }
}
