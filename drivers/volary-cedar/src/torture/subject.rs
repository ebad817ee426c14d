//! A Cedar volume as what is tortured.

use super::script::{NOW, Op, Player, Script, as_root};
use crate::CEDAR;
use crate::log::LogImage;
use crate::look::info::LOOK;
use crate::mistakes::{Mistake, plant};
use crate::recover::open;
use std::collections::BTreeMap;
use std::sync::Arc;
use volary_core::{
    Answer, Attach, BlockDevice, Check, CheckMode, Create, Ctx, Finding, Format, Fs, Make, Mode,
    Name, NodeId, Options, Quiet, SetAttr,
};
use volary_sim::{Cow, Disk, Moment, Recovered, Subject, Traced};
use volary_testkit::tree::Tree;

/// A volume, how it is attached, and the mistake that it makes.
pub(super) struct Volume {
    pub(super) make: &'static str,
    pub(super) size: usize,
    pub(super) attach: &'static str,
    pub(super) mistake: Option<Mistake>,
    /// What was done to it before, so that the log is warm.
    pub(super) warm: Script,
    /// What is done before the script, each with a commit: the log goes round.
    pub(super) lap: Script,
}

/// What a script went through: after each call the tree, with the operation that
/// the call was of; and how many of those were durable after each operation.
#[derive(Default)]
pub(super) struct History {
    trees: Vec<(usize, Seen)>,
    durable: Vec<usize>,
}

/// All that is on a volume: files and, by their names, their older versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    tree: Tree,
    older: BTreeMap<String, Vec<u8>>,
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
fn words(e: volary_core::Error) -> String {
    e.to_string()
}

impl Volume {
    pub(super) fn attach(&self, dev: Arc<dyn BlockDevice>, read_only: bool) -> Result<Fs, String> {
        let how = Attach {
            read_only,
            memory: 4 << 20,
            options: Options::parse(self.attach),
            ..Attach::default()
        };
        CEDAR.attach(dev, &how).map_err(words)
    }
}

pub(super) fn read_tree(fs: &Fs) -> Result<Seen, String> {
    as_root(|cx| {
        let tree = Tree::read(fs, cx)?;
        let mut older = BTreeMap::new();
        for path in tree.0.keys() {
            read_older(fs, cx, path, &mut older)?;
        }
        Ok(Seen { tree, older })
    })
    .map_err(words)
}

/// Reads the older versions of a file.
fn read_older(
    fs: &Fs,
    cx: &Ctx<'_>,
    path: &[u8],
    older: &mut BTreeMap<String, Vec<u8>>,
) -> volary_core::Result<()> {
    let mut parts: Vec<&[u8]> = path.split(|b| *b == b'/').collect();
    let last = parts.pop().unwrap_or_default();
    let below = |dir, part: &&[u8]| -> volary_core::Result<NodeId> {
        Ok(fs.lookup(cx, dir, Name::new(part)?)?.node)
    };
    let dir = parts.iter().try_fold(fs.root(), below)?;
    let Ok(all) = fs.getxattr(cx, below(dir, &last)?, b"user.cedar.versions") else {
        return Ok(());
    };
    for number in all.split(|b| *b == b' ').skip(1) {
        let name = [last, b"!", number].concat();
        let found = fs.lookup(cx, dir, Name::new(&name)?)?;
        let open = fs.open(cx, found.node, Mode::Read)?;
        let mut content = vec![0; found.attr.size as usize];
        let read = fs.read(cx, open, 0, &mut content);
        fs.close(cx, open)?;
        content.truncate(read?);
        let name = String::from_utf8_lossy(path).into_owned();
        older.insert(
            format!("{name}!{}", String::from_utf8_lossy(number)),
            content,
        );
    }
    Ok(())
}

/// What a check finds, with which it fails.
pub(super) fn must_be_clean(dev: Arc<dyn BlockDevice>) -> Result<(), String> {
    let how = Check {
        mode: CheckMode::Look,
        now: NOW,
        options: Options::new(),
    };
    let mut found = Vec::new();
    let mut tell = |f: &Finding| {
        found.push(format!("{}: {}", f.code, f.message));
        Answer::No
    };
    let report = CEDAR.check(dev, &how, &mut tell, &Quiet).map_err(words)?;
    match report.found {
        0 => Ok(()),
        _ => Err(found.join("; ")),
    }
}

/// After a cut a logged map is known without a walk of the name table, unless the
/// newest record could not tell all.
fn map_must_be_known(dev: &Arc<dyn BlockDevice>) -> Result<(), String> {
    let (files, recovered) = open(dev.clone(), &LOOK).map_err(words)?;
    let log = LogImage::read(&**dev, &files.core.layout);
    let newest = log.chain(files.core.log.anchor()).pop();
    let untold = newest.is_some_and(|record| record.told.is_none());
    match recovered.map_loaded || untold || !files.core.layout.logs_map {
        true => Ok(()),
        false => Err("the map is not to be had from the log".into()),
    }
}

impl Subject for Volume {
    type Script = Script;
    type History = History;
    type Found = Seen;

    fn name(&self) -> &str {
        "cedar"
    }

    fn make(&self) -> Result<Disk, String> {
        plant(None);
        let dev = Arc::new(Cow::new(Disk::new(vec![0; self.size])));
        let make = Make {
            now: NOW,
            options: Options::parse(self.make),
            ..Make::default()
        };
        CEDAR.make(dev.clone(), "cedar", &make).map_err(words)?;
        let fs = self.attach(dev.clone(), false)?;
        let mut player = Player {
            fs: &fs,
            held: Vec::new(),
            count: 1000,
        };
        for op in &self.warm.0 {
            player.play(op, &mut |_| {}).map_err(words)?;
        }
        as_root(|cx| fs.detach(cx)).map_err(words)?;
        Ok(dev.disk().rebased())
    }

    fn play(&self, script: &Script, dev: &Arc<Traced>) -> Result<History, String> {
        plant(self.mistake);
        let fs = self.attach(dev.clone(), false)?;
        let mut durable = 0;
        let mut player = Player {
            fs: &fs,
            held: Vec::new(),
            count: 0,
        };
        for op in &self.lap.0 {
            player.play(op, &mut |_| {}).map_err(words)?;
            as_root(|cx| fs.sync(cx)).map_err(words)?;
        }
        let mut history = History {
            trees: vec![(0, read_tree(&fs)?)],
            durable: Vec::new(),
        };
        for (number, op) in script.0.iter().enumerate() {
            dev.begin(number);
            let trees = &mut history.trees;
            player
                .play(op, &mut |fs| {
                    if let Ok(tree) = read_tree(fs) {
                        trees.push((number, tree));
                    }
                })
                .map_err(words)?;
            if matches!(op, Op::Sync) || self.attach.contains("commit=0") {
                as_root(|cx| fs.sync(cx)).map_err(words)?;
                durable = history.trees.len() - 1;
            }
            history.durable.push(durable);
            dev.end(number);
        }
        Ok(history)
    }

    fn recover(&self, dev: Arc<dyn BlockDevice>) -> Result<Vec<&'static str>, String> {
        plant(self.mistake);
        map_must_be_known(&dev)?;
        let fs = self.attach(dev, false)?;
        as_root(|cx| fs.detach(cx)).map_err(words)?;
        Ok(Vec::new())
    }

    fn look(&self, dev: Arc<dyn BlockDevice>) -> Result<Seen, String> {
        plant(self.mistake);
        map_must_be_known(&dev)?;
        must_be_clean(dev.clone())?;
        let fs = self.attach(dev.clone(), false)?;
        let tree = read_tree(&fs)?;
        if tree.tree.0.len() % 4 == 0 {
            self.goes_on(&fs, dev, &tree)?;
        }
        Ok(tree)
    }

    fn judge(&self, found: &Recovered<Seen>, history: &History, at: Moment) -> Result<(), String> {
        let found = &*found.found;
        let least = at.ended.checked_sub(1).and_then(|n| history.durable.get(n));
        let least = least.copied().unwrap_or(0);
        let allowed = history
            .trees
            .iter()
            .enumerate()
            .filter(|(i, (op, _))| *i >= least && (*op < at.began || *i == 0));
        let mut count = 0;
        for (_, (_, tree)) in allowed {
            if tree == found {
                return Ok(());
            }
            count += 1;
        }
        let newest = history.trees.get(least).map(|t| &t.1);
        Err(format!(
            "none of {count} trees that may be there; of those, {newest:?}; there is {found:?}"
        ))
    }
}

impl Volume {
    /// A volume that was recovered takes changes, and the next cut keeps both
    /// what was there and what was made durable since.
    fn goes_on(&self, fs: &Fs, dev: Arc<dyn BlockDevice>, before: &Seen) -> Result<(), String> {
        let name = Name::new(b"after").map_err(|_| "name")?;
        as_root(|cx| {
            let set = SetAttr::default();
            let (_, open) = fs.create(cx, fs.root(), name, Create::New, &set)?;
            fs.write(cx, open, Some(0), &[0xaf; 900])?;
            fs.fsync(cx, open, false)
        })
        .map_err(words)?;
        let fs = self.attach(dev, true)?;
        let mut tree = read_tree(&fs)?;
        let there = tree.tree.0.remove(&b"after"[..]);
        match there.is_some_and(|leaf| leaf.size == 900) && tree == *before {
            true => Ok(()),
            false => Err("a change after recovery did not stay, or not alone".into()),
        }
    }
}
