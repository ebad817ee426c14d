//! A volume whose process is killed: the work of that process, and the check of its volume
//! afterwards. The device outlives the process; a [`Losing`](crate::Losing) device stands between
//! it and the volume.

use super::{Step, Volume, of_preset, on, tag_bytes, told, with_ctx};
use crate::disks::trace::Moment;
use crate::explorer::subject::{Recovered, Subject};
use crate::script::op::{Op, Ops};
use crate::script::tree::{self, Node, Tree};
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

/// How far a killed process had come, by its own report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Operations that had begun.
    pub began: usize,
    /// For each operation that had ended, and so was acknowledged, whether it was done.
    pub done: Vec<bool>,
    /// How many of the first operations had to be durable although nobody had asked for it.
    pub kept: usize,
}

impl Progress {
    /// Takes a line of the report of [`Volume::load`]. Returns false if it is malformed or out of
    /// order, such as a line that was cut.
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

    /// Returns how many acknowledged operations made all earlier ones durable.
    pub fn synced(&self, script: &Ops) -> usize {
        let ended = script.0.iter().zip(&self.done);
        ended
            .filter(|(op, done)| **done && super::is_durable(op))
            .count()
    }
}

/// Returns a tag for an operation that differs between rounds, so that its data is not mistaken for
/// that of an earlier round.
fn tag(round: u64, i: usize) -> u32 {
    tag_bytes(true, (round as usize).wrapping_mul(1021).wrapping_add(i))
}

impl Volume {
    /// Runs a script on a volume with the preset, and reports each operation to `say`. A line says
    /// that it begins, before it has any effect. Another says that it has ended, and its promise
    /// holds.
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
    /// performs each operation, given its number and the tag of its file.
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

    /// Attaches the volume on a device for writing.
    ///
    /// # Errors
    /// In words.
    pub fn attach(&self, dev: Arc<dyn BlockDevice>) -> Words<Fs> {
        self.attach_on(dev, false).map_err(|e| e.to_string())
    }

    /// Recovers a volume whose process was killed in [`load`](Self::load), and checks it against
    /// what the process had acknowledged. A second recovery must write nothing. With `pages`,
    /// writes came through a mount. Of such a write, only the part before some page border may be
    /// there, since the kernel passes it on in parts.
    ///
    /// # Errors
    /// A description of the broken promise.
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
        // An operation that had begun and not ended may have been done.
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

    /// Empties a volume and runs the preset on it, so that it can be used again.
    ///
    /// # Errors
    /// In words.
    pub fn renew(&self, dev: Arc<dyn BlockDevice>) -> Words<()> {
        let words = |e: volary_core::Error| e.to_string();
        let fs = self.attach_on(dev, false).map_err(words)?;
        let mut found = with_ctx(0, |cx| tree::read(&fs, cx))?;
        found.retain(|path, _| !self.own.contains(&path.as_str()));
        // Entries of a directory come after it, so the reverse order removes them first.
        let found = found.into_iter().rev();
        let mut ops: Vec<Op> = found.map(|(path, node)| removal(path, &node)).collect();
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

/// Returns an operation after its possible partial results, in order: for a write, all up to each
/// page border.
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

/// Returns the operation that removes this node.
fn removal(path: String, node: &Node) -> Op {
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
