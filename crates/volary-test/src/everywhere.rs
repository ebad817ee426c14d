//! Runs the suite on a volume directly, under layers, and through servers. Cases that a layer or a
//! server cannot pass are left out.

#[cfg(feature = "fuse")]
mod fuse;
#[cfg(feature = "layers")]
mod layers;
#[cfg(feature = "smb")]
mod only;
mod plain;
#[cfg(any(feature = "nfs", feature = "smb"))]
mod servers;

use crate::{Fresh, Manifest, Report, Suite};
use plain::Plain;
use std::sync::Arc;

/// A volume that is tested in all ways: directly, under each layer that must be transparent
/// (feature `layers`), and through FUSE, NFS and SMB (features of these names).
pub struct Everywhere {
    volume: Plain,
    left_out: Vec<(&'static str, &'static str)>,
    each: Vec<Box<dyn Fn(Suite) -> Suite + Send + Sync>>,
}

/// Tests a volume that allows changes in all ways of [`Everywhere`].
///
/// # Panics
/// If a case fails in any of them, after all have run.
pub fn everywhere<F: Into<Fresh>>(
    name: impl Into<String>,
    make: impl Fn() -> F + Send + Sync + 'static,
) {
    Everywhere::new(name, make).run();
}

impl Everywhere {
    /// Tests volumes that `make` makes empty, and that allow changes.
    pub fn new<F: Into<Fresh>>(
        name: impl Into<String>,
        make: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self {
        Self {
            volume: Plain {
                name: name.into(),
                make: Arc::new(move || make().into()),
                manifest: None,
            },
            left_out: Vec::new(),
            each: Vec::new(),
        }
    }

    /// Tests volumes that are only read, and compares them with a manifest.
    pub fn reading<F: Into<Fresh>>(
        name: impl Into<String>,
        make: impl Fn() -> F + Send + Sync + 'static,
        manifest: &Manifest,
    ) -> Self {
        let mut all = Self::new(name, make);
        all.volume.manifest = Some(manifest.clone());
        all
    }

    /// Tests volumes that are only read, by comparing all ways to read them, as [`Suite::coherent`]
    /// does.
    ///
    /// # Errors
    /// A description of what is wrong with the content of the volume.
    pub fn coherent<F: Into<Fresh>>(
        name: impl Into<String>,
        make: impl Fn() -> F + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let make = Arc::new(make);
        let manifest = Suite::held(Arc::clone(&make))?;
        Ok(Self::reading(name, move || make(), &manifest))
    }

    /// Leaves out a case in all suites.
    #[must_use]
    pub fn leave_out(mut self, case: &'static str, why: &'static str) -> Self {
        self.left_out.push((case, why));
        self
    }

    /// Changes each suite, e.g. `each(Suite::own_clock)`, or sets another time limit.
    #[must_use]
    pub fn each(mut self, change: impl Fn(Suite) -> Suite + Send + Sync + 'static) -> Self {
        self.each.push(Box::new(change));
        self
    }

    /// Runs all suites, and prints and returns their reports.
    ///
    /// # Panics
    /// If a case fails in any suite, after all have run.
    pub fn run(&self) -> Vec<Report> {
        let reports = self.reports();
        for report in &reports {
            println!("{report}");
        }
        let failed: Vec<_> = reports.iter().filter(|report| !report.held()).collect();
        let failed: Vec<_> = failed.iter().map(|report| report.summary()).collect();
        assert!(failed.is_empty(), "{}", failed.join("\n"));
        reports
    }

    /// Runs all suites, and returns their reports.
    pub fn reports(&self) -> Vec<Report> {
        let suites = self.ways().into_iter();
        let all = suites.map(|suite| {
            let mine = self.left_out.iter();
            let changes = self.each.iter();
            let suite = changes.fold(suite, |suite, change| change(suite));
            mine.fold(suite, |suite, (case, why)| suite.leave_out(case, why))
                .report()
        });
        all.collect()
    }

    fn ways(&self) -> Vec<Suite> {
        let plain = || self.volume.suite("plain", Arc::clone(&self.volume.make));
        #[cfg(feature = "layers")]
        let layered = layers::TRANSPARENT.iter();
        #[cfg(feature = "layers")]
        let layered = layered.map(|&(name, layer)| plain().under(name, layer));
        #[cfg(not(feature = "layers"))]
        let layered = std::iter::empty();
        let ways = std::iter::once(plain()).chain(layered);
        #[cfg(feature = "fuse")]
        let ways = ways.chain(fuse::suite(&self.volume));
        #[cfg(feature = "nfs")]
        let ways = ways.chain([servers::nfs(&self.volume)]);
        #[cfg(feature = "smb")]
        let ways = ways.chain([servers::smb(&self.volume)]);
        ways.collect()
    }
}
