//! Copies a tree out of a volume: `copy_out IMAGE PATH DIR`.

use volary::Vol;

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let copied = Vol::open(&args[1])?.copy_out(&args[2], &args[3])?;
    println!("{} files, {} bytes", copied.files, copied.bytes);
    Ok(())
}
