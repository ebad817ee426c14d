//! Changes a volume's parameters in place (`tunefs`), in the superblock and in its replicas.

use crate::disk::cache::{LOOK_MEMORY, cache};
use crate::disk::ondisk::{Superblock, VOLNAME};
use crate::disk::superblock::Found;
use crate::disk::volume::{Variant, Volume};
use crate::parameters::values::{label, small};
use std::sync::Arc;
use volary_block::{Cache, Stage};
use volary_core::{BlockDevice, Error, Fact, Kind, OptionSpec, Options, Result, Tune};

const fn spec(name: &'static str, value: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec { name, value, help }
}

/// The parameters that can be changed.
pub(crate) const OPTIONS: &[OptionSpec] = &[
    spec("minfree", "PERCENT", "kept free for root, 0 to 99"),
    spec(
        "optim",
        "time|space",
        "what is saved where room is short; BSD advises space below 8 percent kept free",
    ),
    spec("maxcontig", "NUMBER", "blocks that are put in a row"),
    spec(
        "maxbpg",
        "NUMBER",
        "blocks that a file takes of a group before it goes to another",
    ),
    spec(
        "rotdelay",
        "MS",
        "time to begin a transfer, for blocks in a row (ffs1)",
    ),
    spec("avgfilesize", "SIZE", "what files are expected to have"),
    spec("avgfpdir", "NUMBER", "files expected in a directory"),
];

/// Flags of `tunefs` that concern how a kernel writes.
const KERNELS: [&str; 3] = ["softupdates", "journal", "suj"];

/// Makes the changes that `how` asks for. Returns facts about them.
///
/// # Errors
/// `Unsupported` for a parameter that the format cannot store, or that would have no effect;
/// `Invalid` for an option; `Corrupt` for an invalid superblock; `ReadOnly`; `Io`.
pub(crate) fn tune(dev: &Arc<dyn BlockDevice>, how: &Tune) -> Result<Vec<Fact>> {
    let volume = Volume::new(Found::choose(&**dev, None)?, dev.geometry().size)?;
    let changes = Changes::new(how, &volume)?;
    let cache = cache(dev.clone(), LOOK_MEMORY);
    // The first superblock is the one that counts, so it is written last.
    changes.put_replicas(&cache, &volume)?;
    cache.commit()?;
    put(&cache, &volume, &volume.found, &changes)?;
    cache.commit()?;
    Ok(changes.facts)
}

/// A function that sets a parameter, and the value.
type Set = (fn(&mut Superblock, i32), i32);

/// The changes to make.
#[derive(Default)]
pub(crate) struct Changes {
    values: Vec<Set>,
    label: Option<Vec<u8>>,
    dirty: Option<bool>,
    facts: Vec<Fact>,
}

impl Changes {
    /// Parses a line of options, as an attached volume takes it.
    ///
    /// # Errors
    /// `Invalid`; `Unsupported` for a parameter that the format cannot store.
    pub(crate) fn of_line(line: &str, volume: &Volume) -> Result<Self> {
        let mut how = Tune::default();
        how.options.add(line);
        Self::new(&how, volume)
    }

    /// Sets the parameters in a superblock.
    pub(crate) fn apply(&self, raw: &mut Superblock) {
        for (set, n) in &self.values {
            set(raw, *n);
        }
    }

    /// Writes the changes to all replicas that are valid.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn put_replicas(&self, cache: &Cache, volume: &Volume) -> Result<()> {
        for group in 0..volume.ncg {
            let found = Found::read(&**cache.device(), volume.replica_at(group))?;
            let is_one = |found: &Found| {
                let raw = &found.raw;
                (found.order, raw.fs_magic) == (volume.order, volume.found.raw.fs_magic)
            };
            if let Some(replica) = found.filter(is_one) {
                put(cache, volume, &replica, self)?;
            }
        }
        Ok(())
    }

    fn new(how: &Tune, volume: &Volume) -> Result<Self> {
        let refuse = |words: &'static str| Err(Error::note(Kind::Unsupported, words));
        if how.compact {
            return refuse(
                "an FFS volume keeps itself in order as it is written; copy it to a new one to \
                 have each file in one piece",
            );
        }
        if KERNELS.iter().any(|&name| how.options.get(name).is_some()) {
            return refuse(
                "soft updates and journals are a kernel's ways of writing; here all changes are \
                 in the order of soft updates, whatever the flag says",
            );
        }
        how.options.check_known(OPTIONS)?;
        let mut changes = Self::default();
        if let Some(text) = &how.label {
            if !has_new_fields(volume) {
                return refuse("4.3BSD's format keeps no label");
            }
            changes.label = Some(label(text)?);
            changes.facts.push(Fact::word("label", text.as_str()));
        }
        changes.parameters(&how.options, volume)?;
        changes.dirty = how.dirty;
        if let Some(dirty) = how.dirty {
            let word = if dirty { "dirty" } else { "clean" };
            changes.facts.push(Fact::word("mark", word));
        }
        Ok(changes)
    }

    fn parameters(&mut self, options: &Options, volume: &Volume) -> Result<()> {
        let refuse = |words| Err(Error::note(Kind::Unsupported, words));
        let wide = ["avgfilesize", "avgfpdir"];
        if !has_new_fields(volume) && wide.iter().any(|&name| options.get(name).is_some()) {
            return refuse("4.3BSD's format keeps no expectations of files");
        }
        if volume.variant == Variant::Ufs2 && options.get("rotdelay").is_some() {
            return refuse("UFS2 has no rotational delay");
        }
        if let Some(optim) = options.choice("optim", &[("time", 0), ("space", 1)])? {
            self.values.push((|raw, n| raw.fs_optim = n, optim));
            let word = if optim == 0 { "time" } else { "space" };
            self.facts.push(Fact::word("optim", word));
        }
        self.number(options, "minfree", 0..=99, |raw, n| raw.fs_minfree = n)?;
        self.number(options, "maxcontig", 1..=1 << 20, |raw, n| {
            raw.fs_maxcontig = n;
        })?;
        self.number(options, "maxbpg", 1..=1 << 30, |raw, n| raw.fs_maxbpg = n)?;
        self.number(options, "rotdelay", 0..=1000, |raw, n| {
            raw.fs_old_rotdelay = n;
        })?;
        self.number(options, "avgfilesize", 1..=1 << 30, |raw, n| {
            raw.fs_avgfilesize = n.unsigned_abs();
        })?;
        self.number(options, "avgfpdir", 1..=1 << 30, |raw, n| {
            raw.fs_avgfpdir = n.unsigned_abs();
        })
    }

    fn number(
        &mut self,
        options: &Options,
        name: &'static str,
        range: std::ops::RangeInclusive<u64>,
        set: fn(&mut Superblock, i32),
    ) -> Result<()> {
        if let Some(n) = small(options, name, range)? {
            self.values.push((set, n));
            let shown = u64::from(n.unsigned_abs());
            self.facts.push(Fact::number(name, shown, ""));
        }
        Ok(())
    }
}

/// Returns whether the superblock has room for a label and the other newer fields.
fn has_new_fields(volume: &Volume) -> bool {
    volume.found.is_ufs2 || volume.found.has_new_fields()
}

fn put(cache: &Cache, volume: &Volume, found: &Found, changes: &Changes) -> Result<()> {
    let (mut raw, mut bytes) = (found.raw, found.bytes.clone());
    changes.apply(&mut raw);
    if let Some(dirty) = changes.dirty {
        raw.fs_clean = i8::from(!dirty);
    }
    raw.write(volume.order, &mut bytes);
    if let (Some(label), Some(room)) = (&changes.label, bytes.get_mut(VOLNAME)) {
        room.fill(0);
        for (to, byte) in room.iter_mut().zip(label) {
            *to = *byte;
        }
    }
    volume
        .hashes
        .seal_superblock(volume.order, found.at, &mut bytes);
    cache.write(found.at, &bytes, Stage::DATA)
}
