//! A volume plain, under layers, and through servers, each with the excuses that the way there makes.

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

/// A volume that is held to its word everywhere: plain; under each layer that should not be noticed
/// (feature `layers`); through FUSE, NFS and SMB (features of these names).
pub struct Everywhere {
    volume: Plain,
    left_out: Vec<(&'static str, &'static str)>,
    each: Vec<Box<dyn Fn(Suite) -> Suite + Send + Sync>>,
}

/// Holds a volume that takes changes to its word everywhere.
///
/// # Panics
/// If it does not hold somewhere, after all have run.
pub fn everywhere<F: Into<Fresh>>(
    name: impl Into<String>,
    make: impl Fn() -> F + Send + Sync + 'static,
) {
    Everywhere::new(name, make).run();
}

impl Everywhere {
    /// Returns it for volumes that are empty and take changes.
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

    /// Returns it for volumes that hold what a manifest says.
    pub fn reading<F: Into<Fresh>>(
        name: impl Into<String>,
        make: impl Fn() -> F + Send + Sync + 'static,
        manifest: &Manifest,
    ) -> Self {
        let mut all = Self::new(name, make);
        all.volume.manifest = Some(manifest.clone());
        all
    }

    /// Returns it for volumes whose ways to be read must agree, as [`Suite::coherent`].
    ///
    /// # Errors
    /// What is wrong with what the volume holds, in words.
    pub fn coherent<F: Into<Fresh>>(
        name: impl Into<String>,
        make: impl Fn() -> F + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let make = Arc::new(make);
        let manifest = Suite::held(Arc::clone(&make))?;
        Ok(Self::reading(name, move || make(), &manifest))
    }

    /// Leaves a case out everywhere.
    #[must_use]
    pub fn leave_out(mut self, case: &'static str, why: &'static str) -> Self {
        self.left_out.push((case, why));
        self
    }

    /// Changes each suite: `each(Suite::own_clock)`, or another limit of time.
    #[must_use]
    pub fn each(mut self, change: impl Fn(Suite) -> Suite + Send + Sync + 'static) -> Self {
        self.each.push(Box::new(change));
        self
    }

    /// Runs all, and prints the reports.
    ///
    /// # Panics
    /// If it does not hold somewhere, after all have run.
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

    /// Runs all.
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
