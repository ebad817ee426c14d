//! Prints files of a volume: `read_files IMAGE PATH…`.

use std::io::Write;
use volary::Vol;

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let vol = Vol::open(args.next().ok_or("which volume?")?)?;
    for path in args {
        std::io::stdout().write_all(&vol.read(path)?)?;
    }
    Ok(())
}
