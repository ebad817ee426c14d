//! The results of a run of the suite.

use std::fmt;

/// The results of a run of the suite, case by case.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The name of the suite.
    pub name: String,
    /// Cases that passed.
    pub passed: Vec<&'static str>,
    /// Cases that could not run, or not to their end, with the reason.
    pub skipped: Vec<(&'static str, String)>,
    /// Cases that the caller left out, with the reason.
    pub left_out: Vec<(&'static str, String)>,
    /// Cases that failed.
    pub failed: Vec<Failure>,
}

/// A case that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The name of the case.
    pub case: &'static str,
    /// What was wrong, and the location in the case.
    pub what: String,
    /// The sentence of the contract, from the documentation of `FileSystem`.
    pub contract: &'static str,
    /// The last operations before the failure, oldest first.
    pub operations: Vec<String>,
    /// The command that runs the case alone.
    pub alone: String,
}

impl Report {
    /// Returns whether no case failed.
    pub fn held(&self) -> bool {
        self.failed.is_empty()
    }

    /// Returns whether the case failed.
    pub fn has_failed(&self, case: &str) -> bool {
        self.failed.iter().any(|failure| failure.case == case)
    }

    /// Returns the counts in one line.
    pub fn summary(&self) -> String {
        format!(
            "{}: {} passed, {} skipped, {} left out, {} failed",
            self.name,
            self.passed.len(),
            self.skipped.len(),
            self.left_out.len(),
            self.failed.len()
        )
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.case, self.what)?;
        writeln!(f, "  the contract: {}", self.contract)?;
        writeln!(f, "  the last operations:")?;
        for operation in &self.operations {
            writeln!(f, "    {operation}")?;
        }
        write!(f, "  alone: {}", self.alone)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (case, why) in &self.skipped {
            writeln!(f, "{}: skipped: {case}: {why}", self.name)?;
        }
        for (case, why) in &self.left_out {
            writeln!(f, "{}: left out: {case}: {why}", self.name)?;
        }
        for failure in &self.failed {
            writeln!(f, "{}: FAILED: {failure}", self.name)?;
        }
        f.write_str(&self.summary())
    }
}
