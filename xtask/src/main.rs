//! Project automation, all of it: `cargo xtask COMMAND`.

mod book;
mod check;
mod deps;
mod features;
mod harness;
mod ledger;
mod ports;
mod python;
mod release;
mod run;
mod rustc;
mod semantics;
mod test;
mod tools;

#[cfg(test)]
mod tidy;

use anyhow::{Result, bail};

const HELP: &str = "\
cargo xtask COMMAND

  check            the quick gate: fmt, clippy with warnings denied, unit tests, docs
  test             everything CI runs: the gate, the oracles, real mounts, fuzz smoke, suites
                   (installs missing tools by apt and cargo; --no-install leaves that out)
  suites           the suites of others: pjdfstest and fsx on real mounts (needs /dev/fuse)
  soak             the long runs: 2,000 differential sequences of each kind
  soak servers [--minutes N]
                   16 clients of servers that are killed on the way, N minutes (10) for each volume
  fuzz TARGET [N]  one fuzz target under libFuzzer, N runs (default 1,000,000)
  deps [--advisories DIR]
                   what volary is built from: licences, sources, versions (deny.toml), advisories
                   (of the newest RustSec database, or the clone of it at DIR)
  release [--target TRIPLE]... [--out DIR] [--quick]
                   static binaries, Debian packages, recipes, SBOM and sums in DIR (dist); --quick
                   leaves out the optimisation between crates, to try it
  publish [--dry-run]
                   every crate to crates.io, in order
  book             the book (book/src, the pages, the help of each command) as HTML in target/book
  ledger           LEDGER.md, from ledger.toml
  tidy             the house rules alone, with their figures: circles, large types, names, tuples
  python           the Python package: built, installed and tested
  tools            installs what `test` needs, and says what it found
";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        [compiler, arguments @ ..] if rustc::is_wrapper_call(compiler) => {
            std::process::exit(rustc::compile(compiler, arguments)?)
        }
        ["check"] => check::gate(),
        ["test"] => test::everything(true),
        ["test", "--no-install"] => test::everything(false),
        ["suites"] => test::suites(),
        ["soak"] => test::soak(),
        ["soak", "servers"] => test::soak_servers("10"),
        ["soak", "servers", "--minutes", minutes] => test::soak_servers(minutes),
        ["fuzz", target] => test::fuzz(target, "1000000"),
        ["fuzz", target, runs] => test::fuzz(target, runs),
        ["deps"] => deps::check_all(None),
        ["deps", "--advisories", dir] => deps::check_all(Some(dir)),
        ["release", words @ ..] => release::run(words),
        ["publish"] => release::publish(false),
        ["publish", "--dry-run"] => release::publish(true),
        ["book"] => book::build(),
        ["ledger"] => ledger::write(),
        ["tidy"] => check::tidy(),
        ["python"] => python::check("gate"),
        ["tools"] => tools::install(),
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        _ => bail!("unknown command\n\n{HELP}"),
    }
}
