//! A volume plain, under layers, and through servers, each with the excuses that the way there makes.

#[cfg(feature = "fuse")]
mod fuse;
#[cfg(feature = "layers")]
mod layers;
#[cfg(any(feature = "nfs", feature = "smb"))]
mod servers;

use crate::{Fresh, Manifest, Report, Suite};
use std::sync::Arc;

/// Makes a volume for each case.
type Make = Arc<dyn Fn() -> Fresh + Send + Sync>;

/// Cases and why they are left out.
#[cfg(any(feature = "fuse", feature = "nfs", feature = "smb"))]
type LeftOut = (&'static [&'static str], &'static str);

/// A volume that is held to its word everywhere: plain; under each layer that should not be noticed
/// (feature `layers`); through FUSE, NFS and SMB (features of these names).
pub struct Everywhere {
    name: String,
    make: Make,
    manifest: Option<Manifest>,
    left_out: Vec<(&'static str, &'static str)>,
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
            name: name.into(),
            make: Arc::new(move || make().into()),
            manifest: None,
            left_out: Vec::new(),
        }
    }

    /// Returns it for volumes that hold what a manifest says.
    pub fn reading<F: Into<Fresh>>(
        name: impl Into<String>,
        make: impl Fn() -> F + Send + Sync + 'static,
        manifest: &Manifest,
    ) -> Self {
        Self {
            manifest: Some(manifest.clone()),
            ..Self::new(name, make)
        }
    }

    /// Leaves a case out everywhere.
    #[must_use]
    pub fn leave_out(mut self, case: &'static str, why: &'static str) -> Self {
        self.left_out.push((case, why));
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
            mine.fold(suite, |suite, (case, why)| suite.leave_out(case, why))
                .report()
        });
        all.collect()
    }

    fn ways(&self) -> Vec<Suite> {
        let plain = || self.suite("plain", Arc::clone(&self.make));
        #[cfg(feature = "layers")]
        let layered = layers::TRANSPARENT.iter();
        #[cfg(feature = "layers")]
        let layered = layered.map(|&(name, layer)| plain().under(name, layer));
        #[cfg(not(feature = "layers"))]
        let layered = std::iter::empty();
        let ways = std::iter::once(plain()).chain(layered);
        #[cfg(feature = "fuse")]
        let ways = ways.chain(fuse::suite(self));
        #[cfg(feature = "nfs")]
        let ways = ways.chain([servers::nfs(self)]);
        #[cfg(feature = "smb")]
        let ways = ways.chain([servers::smb(self)]);
        ways.collect()
    }

    fn suite(&self, way: &str, make: Make) -> Suite {
        let name = format!("{} {way}", self.name);
        match &self.manifest {
            None => Suite::new(name, move || make()),
            Some(manifest) => Suite::reading(name, move || make(), manifest),
        }
    }
}

/// A volume and what it lives on, without what can be done with it from outside.
#[cfg(any(feature = "fuse", feature = "nfs", feature = "smb"))]
fn volume(fs: volary_core::Fs) -> Arc<volary_session::Volume> {
    volary_session::Volume::new(fs, volary_session::VolumeOptions::new("test", clock))
}

#[cfg(any(feature = "fuse", feature = "nfs", feature = "smb"))]
#[expect(clippy::disallowed_methods, reason = "servers run by the host's clock")]
fn clock() -> volary_core::Time {
    std::time::SystemTime::now().into()
}

/// Cases that clients do not pass on to a volume which is only read.
#[cfg(any(feature = "fuse", feature = "nfs", feature = "smb"))]
const LOOKS_FIRST: LeftOut = (
    &["a_read_only_volume_refuses_every_change"],
    "clients look for what they are to remove or rename, and find nothing",
);
